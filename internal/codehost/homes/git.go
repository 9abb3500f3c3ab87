package homes

import (
	"context"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/fault"
)

// Handler serves smart HTTP under /git/{owner}/{name}.git/: here, or by the home of the
// repository, which asks for the client's credential itself.
func (h *Host) Handler(hooks builtin.Hooks) http.Handler {
	local := h.local(hooks)
	// Who may not read the repository is answered as by a node that has none of its name.
	away := func(w http.ResponseWriter, r *http.Request, repo codehost.Repo, n Node) {
		user, password, _ := r.BasicAuth()
		if access, err := hooks.Authorize(r.Context(), user, password, repo); err == nil && access.Read {
			refuse(w, down(n))
			return
		}
		local.ServeHTTP(w, r)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		repo, is := gitRequest(r)
		if !is {
			local.ServeHTTP(w, r)
			return
		}
		n, here, err := h.home(r.Context(), repo)
		switch {
		case err != nil:
			refuse(w, fault.From(err))
		case here:
			local.ServeHTTP(w, r)
		default:
			h.relay(w, r, n, func() { away(w, r, repo, n) })
		}
	})
}

// Door answers other nodes: git clients that they relay, and what they ask for themselves.
// Whoever reaches it has proved to be a node.
func (h *Host) Door(hooks builtin.Hooks) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+asked+"{call}", h.answer)
	hooks.Otherwise = http.NotFoundHandler()
	mux.Handle("/git/", h.local(hooks))
	return mux
}

// local is the handler of this node's folder. A repository that a push makes has its home here.
func (h *Host) local(hooks builtin.Hooks) http.Handler {
	permit := hooks.Create
	hooks.Create = func(ctx context.Context, r codehost.Repo) error {
		if err := permit(ctx, r); err != nil {
			return err
		}
		n, here, err := h.claim(ctx, r)
		if err == nil && !here {
			err = fault.Newf(codehost.ErrAway.Kind, codehost.ErrAway.Slug, "The repository was just made on the node %s. Push again.", n.Name)
		}
		return err
	}
	return h.Local.Handler(hooks)
}

// gitRequest reads the repository that a git client's request is about.
func gitRequest(r *http.Request) (repo codehost.Repo, ok bool) {
	part := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/git/"), "/", 3)
	if len(part) != 3 {
		return repo, false
	}
	switch part[2] {
	case "info/refs", "git-upload-pack", "git-receive-pack":
	default:
		return repo, false
	}
	return codehost.Repo{Host: codehost.BuiltIn, Owner: part[0], Name: strings.TrimSuffix(part[1], ".git")}, true
}

// relay has a node serve a request. away answers it if that node does not.
func (h *Host) relay(w http.ResponseWriter, r *http.Request, n Node, away func()) {
	n, err := h.live(n)
	if err != nil {
		away()
		return
	}
	ctx, done := h.while(r.Context(), n)
	defer done()
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "https", Host: n.Door})
			p.Out.Host = p.In.Host
			p.SetXForwarded()
		},
		Transport: h.roads, FlushInterval: -1,
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			h.Logger.WarnContext(r.Context(), "a node did not answer a git client", "node", n.ID, "error", err)
			away()
		},
	}
	proxy.ServeHTTP(w, r.WithContext(ctx))
}

// refuse tells a git client, which prints the text, what is wrong.
func refuse(w http.ResponseWriter, f *fault.Error) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())))
	}
	http.Error(w, f.Detail, f.Kind.Status())
}
