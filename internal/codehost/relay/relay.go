// Package relay lets git clients reach repositories at other code hosts through this
// server. A client shows a credential of the server; the server puts that of the host in
// its place, which no box ever sees. The relay enforces what the credential may push
// before the host sees a push, and tells of pushes that succeeded.
//
// The bytes of packs pass through buffers of 32 KiB. Nothing but the commands at the
// head of a push is parsed.
//
//   - relay.go: requests of clients, and who may make them
//   - upstream.go: requests to hosts
//   - push.go: pushes
//   - lfs.go: objects of Git LFS
package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/smarthttp"
	"yardmaster/internal/fault"
	"yardmaster/internal/gitlfs"
	"yardmaster/internal/lazy"
	"yardmaster/internal/observe"
)

const (
	maxBody     = 2 << 30          // bytes of a request
	maxTransfer = 30 * time.Minute // of one request; bytes that pass extend it
)

// Config connects the relay to the rest of the product. All functions but Otherwise are
// needed.
type Config struct {
	// Find answers the repository of an id, which is up to the server: of letters, digits
	// and ":=._-", not ending in ".git". It fails with a fault of kind NotFound.
	Find func(ctx context.Context, id string) (codehost.Repo, error)

	// Git answers how the git of a repository is reached for the holder of an access, as
	// codehost.Hosts.Git does for everybody. It answers nil for a repository of this
	// server.
	Git func(context.Context, codehost.Repo, codehost.Access) (codehost.GitAccess, error)

	// Authorize decides the access of a credential of HTTP basic authentication, see
	// builtin.Hooks. An id that names no repository is passed as the zero Repo.
	Authorize func(ctx context.Context, user, password string, r codehost.Repo) (codehost.Access, error)

	// Pushed is called after the host has moved the refs and before the response ends;
	// its context outlives the client's connection.
	Pushed func(ctx context.Context, e codehost.PushEvent)

	// Objects lets objects of Git LFS through; nil: there are none.
	Objects *Objects

	// Transport carries requests to hosts; nil is http.DefaultTransport.
	Transport http.RoundTripper

	// Otherwise serves every request that is not for a repository at another host.
	Otherwise http.Handler
}

// Relay is the handler. It is safe for concurrent use.
type Relay struct {
	cfg    Config
	client *http.Client
	limit  smarthttp.Limit
	moved  sync.Map // of codehost.Repo.Key: moved, where a host has redirected to
}

// Path is the path of a repository at a server, for git clients: an id cannot collide
// with a repository of the built-in host, whose owners have no name of one dash.
func Path(id string) string { return "/git/-/" + id + ".git" }

// New makes the handler of the addresses below Path.
func New(cfg Config) http.Handler {
	if cfg.Transport == nil {
		cfg.Transport = http.DefaultTransport
	}
	h := &Relay{cfg: cfg, client: &http.Client{
		Transport:     cfg.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	mux := http.NewServeMux()
	for pattern, serve := range map[string]func(*request){
		"GET /git/-/{repo}/info/refs":         (*request).advertise,
		"POST /git/-/{repo}/git-upload-pack":  (*request).upload,
		"POST /git/-/{repo}/git-receive-pack": (*request).receive,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			observe.Of(r.Context()).Pattern = strings.TrimPrefix(pattern, r.Method+" ")
			t := smarthttp.Transferring(w, maxTransfer, time.Minute)
			defer t.Stop()
			r.Body = t.Body(r.Body)
			if q := h.admit(t, r); q != nil {
				serve(q)
			}
		})
	}
	if cfg.Objects != nil {
		h.serveObjects(mux)
	}
	if cfg.Otherwise != nil {
		mux.Handle("/", cfg.Otherwise)
	}
	return mux
}

// request is an admitted request: its credential may read the repository.
type request struct {
	relay  *Relay
	w      *smarthttp.Transfer
	r      *http.Request
	repo   codehost.Repo
	git    codehost.GitAccess
	access codehost.Access
	lfs    bool // the client speaks Git LFS, and is refused in its form
}

// refuse answers a refusal.
func (q *request) refuse(status int, text string) {
	if q.lfs {
		gitlfs.RefuseFault(q.w, status, text)
		return
	}
	http.Error(q.w, text, status)
}

// missing answers for a repository that there is not, or that is hidden.
func (q *request) missing() {
	observe.Of(q.r.Context()).Slug = fault.NotFound.Slug()
	q.refuse(http.StatusNotFound, "There is no such repository.")
}

// challenge asks for a credential.
func (q *request) challenge() {
	if !q.lfs {
		smarthttp.Challenge(q.w, q.r)
		return
	}
	observe.Of(q.r.Context()).Slug = fault.Unauthenticated.Slug()
	gitlfs.Challenge(q.w)
}

// idPattern has the ids of rows, and names of hosts with an id there such as
// github:ghe.corp:8443=17.
var idPattern = lazy.New(`^[0-9A-Za-z][0-9A-Za-z:=._-]{0,299}$`)

// admit returns nil for a request that it has answered itself, without a request to a
// host. An unknown repository, a foreign one and an invalid id get the same response.
func (h *Relay) admit(w *smarthttp.Transfer, r *http.Request) *request {
	return h.admitted(&request{relay: h, w: w, r: r})
}

// admitted is admit for a request that is begun.
func (h *Relay) admitted(q *request) *request {
	w, r := q.w, q.r
	w.Header().Set("Cache-Control", "no-cache, max-age=0, must-revalidate")
	user, password, ok := r.BasicAuth()
	if !ok {
		q.challenge()
		return nil
	}
	if id := strings.TrimSuffix(r.PathValue("repo"), ".git"); idPattern.MatchString(id) {
		var err error
		if q.repo, err = h.cfg.Find(r.Context(), id); err != nil && !fault.IsKind(err, fault.NotFound) {
			q.fail("find the repository", err)
			return nil
		} else if err != nil {
			q.repo = codehost.Repo{} // the credential is checked all the same
		}
	}
	var err error
	q.access, err = h.cfg.Authorize(r.Context(), user, password, q.repo)
	if fault.IsKind(err, fault.Unauthenticated) {
		q.challenge()
		return nil
	}
	if err != nil {
		q.fail("authorize", err)
		return nil
	}
	record := observe.Of(r.Context())
	record.Actor, record.Account = q.access.Who, q.access.Account
	if q.repo == (codehost.Repo{}) || !q.access.Read {
		q.missing()
		return nil
	}
	if q.git, err = h.cfg.Git(r.Context(), q.repo, q.access); err != nil {
		q.fail("find the code host", err)
		return nil
	}
	if q.git == nil {
		q.missing()
		return nil
	}
	return q
}

// fail answers an error. The response tells what the client can do about it.
func (q *request) fail(doing string, err error) {
	note := func(slug string) {
		record := observe.Of(q.r.Context())
		record.Slug, record.Cause = slug, fmt.Errorf("%s: %w", doing, err)
	}
	var busy *codehost.BusyError
	var forbidden *codehost.ForbiddenError
	switch f := fault.From(err); {
	case errors.As(err, &busy):
		note(fault.Unavailable.Slug())
		if busy.After > 0 {
			q.w.Header().Set("Retry-After", strconv.FormatInt(int64(busy.After/time.Second)+1, 10))
		}
		q.refuse(http.StatusServiceUnavailable, "The code host does not answer now. Try again later.")
	case errors.As(err, &forbidden):
		note(fault.Forbidden.Slug())
		q.refuse(http.StatusForbidden, "The code host does not permit this to Yardmaster: it requires the permission "+
			cmp.Or(forbidden.Permission, "for it")+".")
	case errors.Is(err, codehost.ErrNotFound):
		q.missing()
	case f.Kind == fault.Internal, errors.Is(err, codehost.ErrUnknownHost):
		note(fault.Internal.Slug())
		q.refuse(http.StatusInternalServerError, fault.Internal.Title())
	default:
		note(f.Slug)
		smarthttp.ComeBack(q.w, f)
		q.refuse(f.Kind.Status(), f.Detail)
	}
}

// advertise answers GET info/refs: the first half of a fetch or a push.
func (q *request) advertise() {
	service := q.r.URL.Query().Get("service")
	switch service {
	case smarthttp.UploadPack:
	case smarthttp.ReceivePack:
		if len(q.access.Push) == 0 {
			smarthttp.ReadsOnly(q.w, q.r)
			return
		}
	default:
		http.Error(q.w, "Only the smart HTTP protocol is served here.", http.StatusForbidden)
		return
	}
	ctx, cancel := q.w.Bound(q.r.Context())
	defer cancel()
	resp, err := q.ask(ctx, ask{
		method: http.MethodGet, path: "info/refs", query: url.Values{"service": {service}}.Encode(),
		write: service == smarthttp.ReceivePack,
	})
	if err != nil {
		q.fail("ask for the refs", err)
		return
	}
	defer resp.Body.Close()
	if err := q.pass(resp, "application/x-"+service+"-advertisement", &smarthttp.Flusher{To: q.w}); err != nil {
		q.broke(ctx, "advertise", err)
	}
}

// upload answers a fetch.
func (q *request) upload() {
	if !q.expects(smarthttp.UploadPack) {
		return
	}
	ctx, cancel := q.w.Bound(q.r.Context())
	defer cancel()
	leave, err := q.relay.limit.Take(ctx, q.access.Who)
	if err != nil {
		return // the client has disconnected
	}
	defer leave()
	body, err := hold(q.body())
	if err != nil {
		return // the client has disconnected
	}
	resp, err := q.ask(ctx, ask{
		method: http.MethodPost, path: smarthttp.UploadPack, body: body, length: q.r.ContentLength,
		contentType: "application/x-git-upload-pack-request", encoding: q.r.Header.Get("Content-Encoding"),
	})
	if err != nil {
		q.fail("fetch", err)
		return
	}
	defer resp.Body.Close()
	if err := q.pass(resp, "application/x-git-upload-pack-result", &smarthttp.Flusher{To: q.w}); err != nil {
		q.broke(ctx, "fetch", err)
	}
}

// expects answers false for a request that is not one of a git client, after it has
// refused it. It lets the answer begin while the request is still read.
func (q *request) expects(service string) bool {
	if q.r.Header.Get("Content-Type") != "application/x-"+service+"-request" {
		http.Error(q.w, "This is not a request of a git client.", http.StatusUnsupportedMediaType)
		return false
	}
	switch q.r.Header.Get("Content-Encoding") {
	case "", "identity":
	case "gzip", "x-gzip":
		if service == smarthttp.ReceivePack { // no git does so, and the commands must be read here
			http.Error(q.w, "A push must not be compressed as a whole.", http.StatusUnsupportedMediaType)
			return false
		}
	default:
		http.Error(q.w, "The body's encoding is not supported.", http.StatusUnsupportedMediaType)
		return false
	}
	q.w.Duplex()
	return true
}

// broke writes into the record of the request why the answer broke off.
func (q *request) broke(ctx context.Context, doing string, err error) {
	if ctx.Err() != nil {
		return // the client has disconnected
	}
	record := observe.Of(q.r.Context())
	record.Cause, record.Broken = fmt.Errorf("%s: %w", doing, err), true
}
