package blob

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
	"yardmaster/internal/seal"
)

// problem is the body of a refusal (RFC 9457).
type problem struct {
	Type       string `json:"type"`
	Title      string `json:"title"`
	Status     int    `json:"status"`
	Detail     string `json:"detail"`
	Instance   string `json:"instance"`
	RequestID  string `json:"request_id,omitempty"`
	Reason     string `json:"reason,omitempty"`      // of a 409
	RetryAfter int    `json:"retry_after,omitempty"` // seconds
}

// ServeHTTP serves the addresses that the folder has signed. The address is the whole
// credential: cookies and other headers are not looked at, and none is set. What is
// answered cannot act as a page of this site: it is saved as a file, has a type that no
// browser runs, and a policy that would keep it from running.
func (f *Folder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "private, no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; form-action 'none'; frame-ancestors 'none'; sandbox")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if method != http.MethodGet && method != http.MethodPut {
		h.Set("Allow", "GET, HEAD, PUT")
		f.refuse(w, r, fault.New(fault.MethodNotAllowed, "", "An object is read by GET and stored by PUT."))
		return
	}
	key := strings.TrimPrefix(r.URL.Path, Path)
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || checkKey(key) != nil || !f.signed(method, key, q) {
		f.refuse(w, r, fault.New(fault.Forbidden, "bad-signature", "This is no address of ours, or a part of it is missing."))
		return
	}
	expires, err := strconv.ParseInt(q.Get(paramExpires), 10, 64)
	if err != nil || f.now().Unix() >= expires {
		f.refuse(w, r, fault.New(fault.Forbidden, "address-expired", "This address has expired. Ask for a new one."))
		return
	}
	if f.Signed != nil {
		if err := f.Signed(r.Context(), key); err != nil {
			h.Set("Connection", "close")
			f.refuse(w, r, err)
			return
		}
	}
	if method == http.MethodPut {
		f.take(w, r, key, q)
		return
	}
	f.give(w, r, key, q)
}

// signed tells whether the folder has made the address for a method.
func (f *Folder) signed(method, key string, q url.Values) (ours bool) {
	for _, s := range f.ring.Signatures(purpose+method, statement(key, q)) {
		ours = seal.Equal(q.Get(paramSign), hex.EncodeToString(s)) || ours
	}
	return ours
}

func (f *Folder) give(w http.ResponseWriter, r *http.Request, key string, q url.Values) {
	o, i, err := f.open(key)
	switch {
	case errors.Is(err, ErrNotFound):
		f.refuse(w, r, fault.Missing("object"))
		return
	case err != nil:
		f.refuse(w, r, err)
		return
	}
	defer o.Close()
	name := q.Get(paramName)
	if show := q.Get(paramShow); show != "" && show == shown(i.Type) {
		w.Header().Set("Content-Type", show)
		w.Header().Set("Content-Disposition", inline(name))
	} else {
		w.Header().Set("Content-Type", served(i.Type))
		w.Header().Set("Content-Disposition", attachment(name))
	}
	http.ServeContent(w, r, "", i.At, o)
}

func (f *Folder) take(w http.ResponseWriter, r *http.Request, key string, q url.Values) {
	size, err := strconv.ParseInt(q.Get(paramSize), 10, 64)
	if err != nil || r.ContentLength != size {
		f.refuse(w, r, fault.New(fault.Forbidden, "other-upload", "The address is for an upload of "+q.Get(paramSize)+" bytes."))
		return
	}
	if r.Header.Get("Content-Type") != q.Get(paramType) {
		f.refuse(w, r, fault.New(fault.Forbidden, "other-upload", "The address is for an upload of the type "+q.Get(paramType)+"."))
		return
	}
	if _, busy := f.taking.LoadOrStore(key, true); busy {
		f.refuse(w, r, fault.Reason("object-exists", "Another upload to this address is under way."))
		return
	}
	defer f.taking.Delete(key)
	if _, err := f.Stat(r.Context(), key); !errors.Is(err, ErrNotFound) {
		if err == nil {
			err = fault.Reason("object-exists", "The object was uploaded already. It does not change.")
		}
		f.refuse(w, r, err)
		return
	}
	switch err := f.Put(r.Context(), key, r.Body, size, q.Get(paramType)); {
	case errors.Is(err, ErrSize):
		f.refuse(w, r, fault.New(fault.Invalid, "", "The upload was cut short."))
	case err != nil:
		f.refuse(w, r, err)
	default:
		if f.Stored != nil {
			f.Stored(r.Context(), key)
		}
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(http.StatusOK)
	}
}

func (f *Folder) refuse(w http.ResponseWriter, r *http.Request, err error) {
	e := fault.From(err)
	record := observe.Of(r.Context())
	record.Slug, record.Cause = e.Slug, err
	after := int(math.Ceil(e.RetryAfter.Seconds()))
	if after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(after))
	}
	// The query is left out: it holds the signature.
	var reason string
	if e.Kind == fault.Conflict {
		reason = e.Slug
	}
	body, err := json.Marshal(problem{
		Type: f.base + "/problems/" + e.Slug, Title: e.Kind.Title(), Status: e.Kind.Status(), Detail: e.Detail,
		Instance: r.URL.Path, RequestID: w.Header().Get("X-Request-Id"), RetryAfter: after, Reason: reason,
	})
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(e.Kind.Status())
	_, _ = w.Write(body) // nobody is left to tell
}
