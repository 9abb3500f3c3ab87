package builtin

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/gitfolder"
	"yardmaster/internal/codehost/smarthttp"
	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
)

const (
	maxBody     = gitfolder.MaxInput // bytes of a request, and of its decompressed body
	maxTransfer = gitfolder.MaxTime  // of one request or git process; bytes that pass extend a request
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

	// Room tells how many bytes an account may still push, and the sentence for a push that
	// has more; a negative number: as many as it likes. Nil: there is no limit.
	Room func(ctx context.Context, account string) (left int64, full string, err error)

	// Writes counts a push for its account, beside its other writes, before it is judged. The
	// client sees the detail of a fault.RateLimited. Nil: pushes are not counted.
	Writes func(ctx context.Context, a codehost.Access) error

	// Pushed is called after git has moved the refs and before the response ends;
	// its context outlives the client's connection.
	Pushed func(ctx context.Context, e codehost.PushEvent)

	// LFS serves what is below info/lfs of a repository. Nil: nothing is there.
	LFS http.Handler

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
			t := smarthttp.Transferring(w, maxTransfer, time.Minute)
			defer t.Stop()
			r.Body = t.Body(r.Body)
			if q := h.admit(t, r, hooks); q != nil {
				serve(q)
			}
		})
	}
	if hooks.LFS != nil {
		mux.Handle("/git/{owner}/{name}/info/lfs/", hooks.LFS)
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
	w      *smarthttp.Transfer
	r      *http.Request
	repo   codehost.Repo
	access codehost.Access
	exists bool
}

// admit returns nil for a request that it has answered itself, without git. An unknown
// repository, a foreign one and an invalid name get the same response.
func (h *Host) admit(w *smarthttp.Transfer, r *http.Request, hooks Hooks) *request {
	w.Header().Set("Cache-Control", "no-cache, max-age=0, must-revalidate")
	user, password, ok := r.BasicAuth()
	repo := codehost.Repo{Host: h.name, Owner: r.PathValue("owner"), Name: strings.TrimSuffix(r.PathValue("name"), ".git")}
	if !ok {
		smarthttp.Challenge(w, r)
		return nil
	}
	valid := repo.Validate() == nil
	if !valid {
		repo = codehost.Repo{} // the credential is checked all the same
	}
	access, err := hooks.Authorize(r.Context(), user, password, repo)
	switch {
	case fault.IsKind(err, fault.Unauthenticated):
		smarthttp.Challenge(w, r)
		return nil
	case err != nil:
		f := fault.From(err)
		note(r.Context(), f.Slug, fmt.Errorf("authorize: %w", err))
		smarthttp.ComeBack(w, f)
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
		smarthttp.NotFound(w, r)
		return nil
	}
	return q
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

// known makes a repository known whose folder is there and that nobody knows, as where the folders
// were put back from a younger copy than the database: before a push of somebody who could make it.
func (q *request) known() error {
	if !q.exists || !q.access.Create {
		return nil
	}
	if err := q.hooks.Create(q.r.Context(), q.repo); err != nil {
		return err
	}
	q.hooks.Pushed(q.r.Context(), codehost.PushEvent{Repo: q.repo, Who: q.access.Who})
	return nil
}

// advertise answers GET info/refs: the first half of a fetch or a push.
func (q *request) advertise() {
	service := q.r.URL.Query().Get("service")
	protocol := smarthttp.Protocol(q.r)
	var dir string
	switch service {
	case smarthttp.UploadPack:
		if !q.exists {
			smarthttp.NotFound(q.w, q.r)
			return
		}
	case smarthttp.ReceivePack:
		if len(q.access.Push) == 0 {
			smarthttp.ReadsOnly(q.w, q.r)
			return
		}
		protocol = "" // a push uses version 0
		if err := q.known(); err != nil {
			q.fail("make a repository known", err)
			return
		}
	default:
		http.Error(q.w, "Only the smart HTTP protocol is served here.", http.StatusForbidden)
		return
	}
	ctx, cancel := q.w.Bound(q.r.Context())
	defer cancel()
	if dir = q.host.path(q.repo); !q.exists {
		// A GET creates nothing: show the refs of an empty repository.
		stand, err := q.host.git.Init(ctx, "main")
		if err != nil {
			q.fail("advertise", err)
			return
		}
		defer os.RemoveAll(stand)
		dir = stand
	}
	env := []string{"GIT_PROTOCOL=" + protocol}
	refs, err := q.host.git.At("", "").Filter(ctx, "", env, strings.TrimPrefix(service, "git-"), "--stateless-rpc", "--advertise-refs", dir)
	if err != nil {
		q.fail("advertise", err)
		return
	}
	q.w.Header().Set("Content-Type", "application/x-"+service+"-advertisement")
	if !strings.HasPrefix(protocol, "version=2") {
		refs = smarthttp.Pkt("# service="+service+"\n") + smarthttp.Flush + refs
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
	q.w.Duplex()
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
		smarthttp.NotFound(q.w, q.r)
		return
	}
	body := q.body(smarthttp.UploadPack)
	if body == nil {
		return
	}
	ctx, cancel := q.w.Bound(q.r.Context())
	defer cancel()
	leave, err := q.host.transferLimit.Take(ctx, q.access.Who)
	if err != nil {
		return // the client has disconnected
	}
	defer leave()
	q.w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
	c := q.host.git.At("", "").Command(ctx, "upload-pack", "--stateless-rpc", q.host.path(q.repo))
	c.Env = append(c.Env[:len(c.Env):len(c.Env)], "GIT_PROTOCOL="+smarthttp.Protocol(q.r))
	c.Stdin, c.Stdout = body, &smarthttp.Flusher{To: q.w}
	if err := gitfolder.Run(ctx, c, "upload-pack"); err != nil && ctx.Err() == nil {
		broke(ctx, fmt.Errorf("fetch: %w", err))
	}
}
