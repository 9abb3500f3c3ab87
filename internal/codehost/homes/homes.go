// Package homes is the built-in code host of a cluster. Each repository is in the folder of
// one node, its home, for good; the other nodes relay to it, one hop, over TLS between nodes.
// Nobody takes a repository over: while its home is down, it is unavailable, and the problem
// names the node.
//
//   - homes.go: Host, and where a repository is
//   - calls.go: what nodes ask each other for
//   - wire.go: how they ask
//   - git.go: requests of git clients
package homes

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/fault"
)

// Node is a node of the cluster.
type Node struct {
	ID, Name string
	Door     string // host:port at which it answers other nodes
}

// List knows the nodes, and where repositories are.
type List interface {
	// Home answers the node that has a repository; false: none has.
	Home(ctx context.Context, owner, name string) (Node, bool, error)
	// Ours answers the repositories, as owner and name, whose home is this node.
	Ours(ctx context.Context) ([][2]string, error)
	// Settle makes this node the home of those of the repositories, given as owner and name,
	// that have none.
	Settle(ctx context.Context, repos [][2]string) error
	// Live answers a node as it is now; false: it is down.
	Live(id string) (Node, bool)
}

// Config is the configuration of a Host.
type Config struct {
	Local  *builtin.Host
	Own    string // id of this node
	List   List
	TLS    *tls.Config // of both sides of a connection between nodes
	Logger *slog.Logger
}

// Host is the built-in host of this node, and through it that of all nodes.
type Host struct {
	Config
	known sync.Map // owner/name -> Node, which is the home of a repository for good
	roads *http.Transport
}

var (
	_ codehost.Host      = (*Host)(nil)
	_ codehost.Branches  = (*Host)(nil)
	_ codehost.Defaulter = (*Host)(nil)
	_ codehost.Searcher  = (*Host)(nil)
	_ codehost.Noter     = (*Host)(nil)
)

// look is how often it is looked whether a node that is asked is still live.
const look = time.Second

// New makes a Host.
func New(c Config) *Host {
	return &Host{Config: c, roads: &http.Transport{
		TLSClientConfig: c.TLS, TLSHandshakeTimeout: 5 * time.Second, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 16,
		DisableCompression: true,
	}}
}

// Settle makes this node the home of the repositories in its folder that have none.
func (h *Host) Settle(ctx context.Context) error {
	ours, err := h.List.Ours(ctx)
	if err != nil {
		return err
	}
	for _, r := range ours {
		h.known.Store(codehost.Repo{Owner: r[0], Name: r[1]}.String(), Node{ID: h.Own})
	}
	stored, err := h.Local.Stored()
	if err != nil {
		return err
	}
	var repos [][2]string
	for _, r := range stored {
		if _, settled := h.known.Load(r.String()); !settled {
			repos = append(repos, [2]string{r.Owner, r.Name})
		}
	}
	return h.List.Settle(ctx, repos)
}

// home answers which node has a repository. What has none is looked for here.
func (h *Host) home(ctx context.Context, r codehost.Repo) (n Node, here bool, err error) {
	if r.Host != codehost.BuiltIn || r.Validate() != nil {
		return n, true, nil
	}
	if v, ok := h.known.Load(r.String()); ok {
		n = v.(Node)
		return n, n.ID == h.Own, nil
	}
	n, ok, err := h.List.Home(ctx, r.Owner, r.Name)
	if err != nil || !ok {
		return n, true, err
	}
	h.known.Store(r.String(), n)
	return n, n.ID == h.Own, nil
}

// claim is home for a repository that is about to be made: this node is its home unless
// another one is.
func (h *Host) claim(ctx context.Context, r codehost.Repo) (n Node, here bool, err error) {
	if n, here, err = h.home(ctx, r); err != nil || n.ID != "" || r.Host != codehost.BuiltIn || r.Validate() != nil {
		return n, here, err
	}
	if err := h.List.Settle(ctx, [][2]string{{r.Owner, r.Name}}); err != nil {
		return n, false, err
	}
	return h.home(ctx, r)
}

// live answers a node as it is now, or the fault that it is down.
func (h *Host) live(n Node) (Node, error) {
	now, ok := h.List.Live(n.ID)
	if !ok {
		return n, down(n)
	}
	return now, nil
}

// while returns a context that ends also when a node does not count as live any more: it may
// be frozen, and never answer.
func (h *Host) while(ctx context.Context, n Node) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(look)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if _, ok := h.List.Live(n.ID); !ok {
					cancel(down(n))
					return
				}
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// down says that the home of a repository is.
func down(n Node) *fault.Error {
	return fault.Newf(codehost.ErrAway.Kind, codehost.ErrAway.Slug,
		"The repository is on the node %s, which does not answer. It is there again when that node is.", n.Name).After(10 * time.Second)
}

// Missing returns those of the repositories whose folder should be here, and is not.
func (h *Host) Missing(all []codehost.Repo) []codehost.Repo {
	return h.Local.Missing(h.ours(all))
}

// Stored are the repositories that have a folder here.
func (h *Host) Stored() ([]codehost.Repo, error) { return h.Local.Stored() }

// Lost are the repositories that Missing has returned and that still have no folder.
func (h *Host) Lost() []codehost.Repo { return h.ours(h.Local.Lost()) }

// ours are those of the repositories that are at no other node.
func (h *Host) ours(all []codehost.Repo) (out []codehost.Repo) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, r := range all {
		if _, here, err := h.home(ctx, r); here && err == nil {
			out = append(out, r)
		}
	}
	return out
}

// CloneURL implements codehost.Host.
func (h *Host) CloneURL(r codehost.Repo) string { return h.Local.CloneURL(r) }

// Size is how many bytes a repository has on the disk of its home.
func (h *Host) Size(r codehost.Repo) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return at(ctx, h, size, r, none{})
}
