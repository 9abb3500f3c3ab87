// Package gitlfs is the wire of Git LFS as servers, the relay and boxes of this program
// speak it: the batch call with the transfer basic, pointers, and refusals. It makes no
// request and keeps nothing.
//
// What the client git-lfs 3.3 does with some answers shapes whoever uses this package: a
// transfer must never be answered with 422, which it takes for a dislike of Content-Type,
// and then moves the ref without the object; nor with 401, which it repeats without end;
// and an answer to a batch must have every object that was asked for, or it waits for ever.
package gitlfs

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"sync"
)

// MediaType is the type of every request and answer but the bytes of objects.
const MediaType = "application/vnd.git-lfs+json"

// Limits of a batch. The client asks for 100 objects at a time.
const (
	MaxBatch     = 1000    // objects
	MaxBatchBody = 1 << 20 // bytes of the request
	MaxPointer   = 1024    // bytes of a pointer; a larger file is none
)

// Operations of a batch.
const (
	Download = "download"
	Upload   = "upload"
)

// Pointer names an object: the SHA-256 of its bytes in lower-case hexadecimal digits, and
// how many they are.
type Pointer struct {
	OID  string `json:"oid"`
	Size int64  `json:"size"`
}

// Batch asks for the addresses of objects.
type Batch struct {
	Operation string    `json:"operation"`
	Transfers []string  `json:"transfers,omitempty"`
	Ref       *Ref      `json:"ref,omitempty"`
	Objects   []Pointer `json:"objects"`
	HashAlgo  string    `json:"hash_algo,omitempty"`
}

// Ref is the ref that a batch is for, by its full name.
type Ref struct {
	Name string `json:"name"`
}

// Answer answers a Batch.
type Answer struct {
	Transfer string   `json:"transfer,omitempty"`
	Objects  []Object `json:"objects"`
	HashAlgo string   `json:"hash_algo,omitempty"`
}

// Object is one object of an Answer. An upload without actions is there already.
type Object struct {
	Pointer
	Authenticated bool              `json:"authenticated,omitempty"`
	Actions       map[string]Action `json:"actions,omitempty"` // by Download, Upload or "verify"
	Error         *Error            `json:"error,omitempty"`
}

// Action is one request to be made for an object.
type Action struct {
	Href      string            `json:"href"`
	Header    map[string]string `json:"header,omitempty"`
	ExpiresIn int               `json:"expires_in,omitempty"` // seconds
	ExpiresAt string            `json:"expires_at,omitempty"` // RFC 3339
}

// Error says why an object cannot be had or taken. Code is a status of HTTP.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Of finds the answer about an object.
func (a Answer) Of(oid string) (Object, bool) {
	for _, o := range a.Objects {
		if o.OID == oid {
			return o, true
		}
	}
	return Object{}, false
}

// Whole tells whether an answer has the objects of a batch and no others, each once or as
// often as it was asked for.
func (a Answer) Whole(b Batch) bool {
	asked := map[string]bool{}
	for _, p := range b.Objects {
		asked[p.OID] = true
	}
	had := map[string]bool{}
	for _, o := range a.Objects {
		if !asked[o.OID] {
			return false
		}
		had[o.OID] = true
	}
	return len(had) == len(asked)
}

// ValidOID tells whether s is the name of an object.
func ValidOID(s string) bool {
	if len(s) != 64 {
		return false
	}
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

var pointerForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^version https://git-lfs\.github\.com/spec/v1\n(?:ext-[^\n]*\n)*oid sha256:([0-9a-f]{64})\nsize ([0-9]{1,18})\n$`)
})

// ParsePointer reads a file that is a pointer; false if it is none.
func ParsePointer(text []byte) (p Pointer, ok bool) {
	if len(text) > MaxPointer {
		return p, false
	}
	m := pointerForm().FindSubmatch(text)
	if m == nil {
		return p, false
	}
	size, err := strconv.ParseInt(string(m[2]), 10, 64)
	return Pointer{OID: string(m[1]), Size: size}, err == nil
}

// String is the file that stands for the object in git.
func (p Pointer) String() string {
	return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", p.OID, p.Size)
}

// IsType tells whether a Content-Type is that of LFS: with whatever parameters.
func IsType(contentType string) bool {
	plain, _, err := mime.ParseMediaType(contentType)
	return err == nil && (plain == MediaType || plain == "application/json")
}

// Write answers a request with JSON.
func Write(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types above always encode
	}
	w.Header().Set("Content-Type", MediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // nobody is left to tell
}

// RefuseFault answers a fault behind a verified credential, with no status that the client takes for
// something else (see the package comment): 401 becomes 502, 422 becomes 400, and 503, at which it
// gives up whatever Retry-After says, becomes 429, after 10 seconds unless the header says otherwise.
func RefuseFault(w http.ResponseWriter, status int, message string) {
	switch status {
	case http.StatusUnauthorized:
		status = http.StatusBadGateway
	case http.StatusUnprocessableEntity:
		status = http.StatusBadRequest
	case http.StatusServiceUnavailable:
		status = http.StatusTooManyRequests
		if w.Header().Get("Retry-After") == "" {
			w.Header().Set("Retry-After", "10")
		}
	}
	Refuse(w, status, message)
}

// Refuse answers a request with a message, which the client shows.
func Refuse(w http.ResponseWriter, status int, message string) {
	Write(w, status, map[string]string{"message": message, "request_id": w.Header().Get("X-Request-Id")})
}

// Challenge asks for a credential.
func Challenge(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Basic realm="git", charset="UTF-8"`)
	w.Header().Set("LFS-Authenticate", `Basic realm="git", charset="UTF-8"`)
	Refuse(w, http.StatusUnauthorized, "This needs a valid token as the password.")
}

// RefuseLocks answers every call about locks. The client says nothing about it.
func RefuseLocks(w http.ResponseWriter) {
	Refuse(w, http.StatusNotImplemented, "Files cannot be locked here.")
}
