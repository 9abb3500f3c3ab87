package builtin

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
)

const (
	maxBody     = 2 << 30          // bytes of a request, and of its decompressed body
	maxTransfer = 30 * time.Minute // of one request or git process; bytes that pass extend a request
)

// Hooks connect the HTTP handler to the rest of the product.
type Hooks struct {
	// Authorize decides the access of a credential of HTTP basic authentication. A
	// fault of kind Unauthenticated asks the client for another credential; a valid
	// credential without access to the repository gets the zero codehost.Access. An invalid
	// repository name is passed as the zero Repo.
	Authorize func(ctx context.Context, user, password string, r codehost.Repo) (codehost.Access, error)

	// Create permits a push to create a repository. It may be called again for the
	// same one, after a concurrent or failed push. The client sees the detail of a
	// fault.
	Create func(ctx context.Context, r codehost.Repo) error

	// Pushed is called after git has moved the refs and before the response ends;
	// its context outlives the client's connection.
	Pushed func(ctx context.Context, e codehost.PushEvent)

	// Otherwise serves every request that does not come from a git client.
	Otherwise http.Handler
}

// Handler serves smart HTTP under /git/{owner}/{name}.git/.
func (h *Host) Handler(hooks Hooks) http.Handler {
	mux := http.NewServeMux()
	for pattern, serve := range map[string]func(*request){
		"GET /git/{owner}/{name}/info/refs":         (*request).advertise,
		"POST /git/{owner}/{name}/git-upload-pack":  (*request).upload,
		"POST /git/{owner}/{name}/git-receive-pack": (*request).receive,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			observe.Of(r.Context()).Pattern = strings.TrimPrefix(pattern, r.Method+" ")
			t := transferring(w, maxTransfer, time.Minute)
			defer t.stop()
			r.Body = t.body(r.Body)
			if q := h.admit(t, r, hooks); q != nil {
				serve(q)
			}
		})
	}
	if hooks.Otherwise != nil {
		mux.Handle("/", hooks.Otherwise)
	}
	return mux
}

// request is an admitted request: its credential may read the repository.
type request struct {
	host   *Host
	hooks  Hooks
	w      *transfer
	r      *http.Request
	repo   codehost.Repo
	access codehost.Access
	exists bool
}

// admit returns nil for a request that it has answered itself, without git. An unknown
// repository, a foreign one and an invalid name get the same response.
func (h *Host) admit(w *transfer, r *http.Request, hooks Hooks) *request {
	w.Header().Set("Cache-Control", "no-cache, max-age=0, must-revalidate")
	user, password, ok := r.BasicAuth()
	repo := codehost.Repo{Host: h.name, Owner: r.PathValue("owner"), Name: strings.TrimSuffix(r.PathValue("name"), ".git")}
	if !ok {
		challenge(w, r)
		return nil
	}
	valid := repo.Validate() == nil
	if !valid {
		repo = codehost.Repo{} // the credential is checked all the same
	}
	access, err := hooks.Authorize(r.Context(), user, password, repo)
	switch {
	case fault.IsKind(err, fault.Unauthenticated):
		challenge(w, r)
		return nil
	case err != nil:
		f := fault.From(err)
		note(r.Context(), f.Slug, fmt.Errorf("authorize: %w", err))
		http.Error(w, f.Kind.Title(), f.Kind.Status())
		return nil
	}
	record := observe.Of(r.Context())
	record.Actor, record.Account = access.Who, access.Account
	q := &request{host: h, hooks: hooks, w: w, r: r, repo: repo, access: access}
	if valid {
		_, err = h.open(repo)
		if q.exists = err == nil; err != nil && !errors.Is(err, codehost.ErrNotFound) {
			q.fail("open", err)
			return nil
		}
	}
	if !valid || !access.Read || !q.exists && !access.Create {
		notFound(w, r)
		return nil
	}
	return q
}

func challenge(w http.ResponseWriter, r *http.Request) {
	note(r.Context(), fault.Unauthenticated.Slug(), nil)
	w.Header().Set("WWW-Authenticate", `Basic realm="git", charset="UTF-8"`)
	http.Error(w, "This needs a valid token as the password.", http.StatusUnauthorized)
}

func notFound(w http.ResponseWriter, r *http.Request) {
	note(r.Context(), fault.NotFound.Slug(), nil)
	http.Error(w, "There is no such repository.", http.StatusNotFound)
}

// note writes the cause of a failure into the record of the request.
func note(ctx context.Context, slug string, cause error) {
	r := observe.Of(ctx)
	r.Slug, r.Cause = slug, cause
}

// broke writes into the record of the request why the answer of git broke off.
func broke(ctx context.Context, cause error) {
	r := observe.Of(ctx)
	r.Cause, r.Broken = cause, true
}

// readsOnly refuses a push whose credential may only read.
func (q *request) readsOnly() {
	note(q.r.Context(), fault.Forbidden.Slug(), nil)
	http.Error(q.w, "This token may read the repository, not push to it.", http.StatusForbidden)
}

// fail answers an internal error. The response discloses only that there was one,
// or that the disk is full or the repository lost; the record has the cause.
func (q *request) fail(doing string, err error) {
	f := fault.From(err)
	if f.Kind != fault.StorageFull && !errors.Is(err, codehost.ErrLost) {
		f = fault.New(fault.Internal, "", fault.Internal.Title())
	}
	note(q.r.Context(), f.Slug, fmt.Errorf("%s: %w", doing, err))
	http.Error(q.w, f.Detail, f.Kind.Status())
}

var protocolPattern = regexp.MustCompile(`^version=[0-2](:[a-z0-9=._-]{1,64}){0,8}$`)

// protocol is the wire protocol that the client asks for, in the form of git's
// environment variable.
func (q *request) protocol() string {
	if p := q.r.Header.Get("Git-Protocol"); protocolPattern.MatchString(p) {
		return p
	}
	return ""
}

// advertise answers GET info/refs: the first half of a fetch or a push.
func (q *request) advertise() {
	service := q.r.URL.Query().Get("service")
	protocol := q.protocol()
	var dir string
	switch service {
	case "git-upload-pack":
		if !q.exists {
			notFound(q.w, q.r)
			return
		}
	case "git-receive-pack":
		if len(q.access.Push) == 0 {
			q.readsOnly()
			return
		}
		protocol = "" // a push uses version 0
	default:
		http.Error(q.w, "Only the smart HTTP protocol is served here.", http.StatusForbidden)
		return
	}
	ctx, cancel := q.w.bound(q.r.Context())
	defer cancel()
	if dir = q.host.path(q.repo); !q.exists {
		// A GET creates nothing: show the refs of an empty repository.
		stand, err := q.host.initialise(ctx, "main")
		if err != nil {
			q.fail("advertise", err)
			return
		}
		defer os.RemoveAll(stand)
		dir = stand
	}
	env := []string{"GIT_PROTOCOL=" + protocol}
	refs, err := q.host.filter(ctx, "", "", env, strings.TrimPrefix(service, "git-"), "--stateless-rpc", "--advertise-refs", dir)
	if err != nil {
		q.fail("advertise", err)
		return
	}
	q.w.Header().Set("Content-Type", "application/x-"+service+"-advertisement")
	if !strings.HasPrefix(protocol, "version=2") {
		refs = pkt("# service="+service+"\n") + flushPkt + refs
	}
	_, _ = io.WriteString(q.w, refs) // fails if the client has disconnected
}

// body returns the request's body, decompressed and limited. It is nil after a
// response to a request that is not git's.
func (q *request) body(service string) io.Reader {
	if q.r.Header.Get("Content-Type") != "application/x-"+service+"-request" {
		http.Error(q.w, "This is not a request of a git client.", http.StatusUnsupportedMediaType)
		return nil
	}
	// Git answers while it still reads. Without full duplex net/http would consume
	// the rest of the body first.
	q.w.flow.EnableFullDuplex()
	raw := http.MaxBytesReader(q.w.ResponseWriter, q.r.Body, maxBody)
	switch q.r.Header.Get("Content-Encoding") {
	case "", "identity":
		return raw
	case "gzip", "x-gzip":
		gz, err := gzip.NewReader(raw)
		if err != nil {
			http.Error(q.w, "The body is not valid gzip.", http.StatusBadRequest)
			return nil
		}
		return http.MaxBytesReader(q.w.ResponseWriter, gz, maxBody)
	}
	http.Error(q.w, "The body's encoding is not supported.", http.StatusUnsupportedMediaType)
	return nil
}

// upload answers a fetch. Its processes are killed when the client disconnects.
func (q *request) upload() {
	if !q.exists {
		notFound(q.w, q.r)
		return
	}
	body := q.body("git-upload-pack")
	if body == nil {
		return
	}
	ctx, cancel := q.w.bound(q.r.Context())
	defer cancel()
	leave, err := q.host.transferLimit.take(ctx, q.access.Who)
	if err != nil {
		return // the client has disconnected
	}
	defer leave()
	q.w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
	c := q.host.command(ctx, "", "upload-pack", "--stateless-rpc", q.host.path(q.repo))
	c.Env = append(c.Env[:len(c.Env):len(c.Env)], "GIT_PROTOCOL="+q.protocol())
	c.Stdin, c.Stdout = body, &flusher{w: q.w}
	if err := run(ctx, c, "upload-pack"); err != nil && ctx.Err() == nil {
		broke(ctx, fmt.Errorf("fetch: %w", err))
	}
}

// flusher sends git's output at once, because it shows progress. It fails when the
// client accepts nothing for patience.
type flusher struct{ w *transfer }

func (f *flusher) Write(p []byte) (int, error) {
	_ = f.w.flow.SetWriteDeadline(time.Now().Add(patience))
	n, err := f.w.Write(p)
	if err == nil {
		err = f.w.flow.Flush()
	}
	return n, err
}
