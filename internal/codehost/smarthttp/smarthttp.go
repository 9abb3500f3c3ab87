// Package smarthttp is what servers of git over HTTP have in common: the packets of a
// push, the service and its protocol as a client names them, and the limits of
// transfers. It runs no git.
//
//   - smarthttp.go: requests
//   - pktline.go: the head of a push, and the report about it
//   - transfer.go, limit.go: limits of transfers
package smarthttp

import (
	"net/http"
	"strconv"
	"time"

	"yardmaster/internal/fault"
	"yardmaster/internal/lazy"
	"yardmaster/internal/observe"
)

// Services of git.
const (
	UploadPack  = "git-upload-pack"  // a fetch
	ReceivePack = "git-receive-pack" // a push
)

var protocolPattern = lazy.New(`^version=[0-2](:[a-z0-9=._-]{1,64}){0,8}$`)

// Protocol is the wire protocol that the client asks for, in the form of git's
// environment variable; "" if it asks for none that is known.
func Protocol(r *http.Request) string {
	if p := r.Header.Get("Git-Protocol"); protocolPattern.MatchString(p) {
		return p
	}
	return ""
}

// Challenge asks the client for a credential.
func Challenge(w http.ResponseWriter, r *http.Request) {
	observe.Of(r.Context()).Slug = fault.Unauthenticated.Slug()
	w.Header().Set("WWW-Authenticate", `Basic realm="git", charset="UTF-8"`)
	http.Error(w, "This needs a valid token as the password.", http.StatusUnauthorized)
}

// NotFound answers for a repository that there is not, or that is hidden.
func NotFound(w http.ResponseWriter, r *http.Request) {
	observe.Of(r.Context()).Slug = fault.NotFound.Slug()
	http.Error(w, "There is no such repository.", http.StatusNotFound)
}

// ComeBack sets what tells the client when to try again, if f says so, and that nothing stays
// open until then.
func ComeBack(w http.ResponseWriter, f *fault.Error) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((f.RetryAfter+time.Second-1)/time.Second), 10))
		w.Header().Set("Connection", "close")
	}
}

// ReadsOnly refuses a push whose credential may only read.
func ReadsOnly(w http.ResponseWriter, r *http.Request) {
	observe.Of(r.Context()).Slug = fault.Forbidden.Slug()
	http.Error(w, "This token may read the repository, not push to it.", http.StatusForbidden)
}
