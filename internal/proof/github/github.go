// Package github is a GitHub for tests: it speaks GitHub's REST API, the few
// operations of its GraphQL API that Yardmaster uses, git over smart HTTP, and sends
// signed deliveries. Its state is in memory, its repositories are real bare git
// repositories in a temporary folder. Package description judges all of what is said
// to it and by it against what GitHub publishes; tests start it by description.Serve.
//
//	gh := description.Serve(t, github.Options{})
//	ann := gh.Person("ann")
//	repo := gh.Repo("acme/shop", github.NewRepo{Private: true, Files: map[string]string{"README.md": "text\n"}})
//	app := gh.NewApp(github.NewApp{Name: "Yard", HookURL: url, Permissions: permissions, Events: events})
//	app.Install(gh.Org("acme"), repo)
//	repo.Commit(ann, "feature", "A feature", map[string]string{"a.go": "package a\n"})
//	pull := repo.OpenPull(ann, github.NewPull{Head: "feature"})
//
// The program under test gets gh.API, gh.GraphQL and gh.Web as addresses and app.ID,
// app.PEM() and app.Secret() as credentials. gh.Settle waits until deliveries have
// arrived, gh.Break and gh.Spoil make requests and deliveries go wrong.
//
// Faithful are:
//   - Apps: the manifest form and its conversion; App JWTs (RS256, 10 minutes);
//     installation tokens of the long form, which end after an hour, are narrowed to
//     repositories and permissions, and are checked for their permission on every
//     operation. Suspended and removed installations, permissions that wait to be
//     accepted. Fine-grained personal tokens.
//   - What is hidden is 404; a renamed repository answers its old name with 301, and
//     writes with 307; an archived one refuses writes.
//   - Every number in answers comes from git: heads, mergeability (null at first),
//     files, hunks, merge commits, outdated comments, commit_id after a force push.
//   - Reviews are posted whole or not at all, by GitHub's rules for lines of a diff.
//     Resolving threads needs contents: write; files below .github/workflows need
//     workflows: write, in a push and in a merge.
//   - Rules of branches with required checks and their sources, classic protection,
//     the merge queue with groups, check runs, check suites, statuses, workflow runs
//     with jobs, attempts and logs at another address.
//   - ETags, 304 answers that cost nothing, the primary limit by installation, and the
//     secondary limits with the published numbers. Lists have pages by Link.
//   - Deliveries: signed, answered within 10 s or failed, listed, never repeated by
//     themselves, redelivered with the same GUID. Faults are chosen by a seed: lost,
//     doubled, out of order, forged, of another App. Bodies over 25 MB are not sent.
//
// Left out are search, projects, packages, releases, gists, teams beyond empty lists,
// commit signatures, reactions beyond zeros, auto-merge, limits of CPU time, and those
// limits that GitHub keeps to itself. Issues are not transferred. Organisations have
// no members besides those that a test names. The only pages for people are those on
// which an App is registered and installed; all else that people do is a method of
// Server, App, Installation, Repo, Issue and Pull. Lists of files are cut by their
// number (Options.MaxFiles), and patches are never cut for their size.
//
// Of the files, github.go starts the peer, state.go has its objects, route.go the
// table of operations, call.go what all operations share; auth.go, limit.go and
// fault.go decide whether an operation is carried out; app.go, repo.go, content.go,
// pull.go, merge.go, review.go, check.go, action.go, issue.go, rule.go, queue.go and
// graphql.go carry it out; the files show*.go make the objects of answers; git.go,
// diff.go, transport.go and push.go are git; delivery.go and event.go send; person*.go
// are what people do, page.go the pages that they see.
package github

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options change what a peer does. The zero value is github.com.
type Options struct {
	Enterprise string           // version of a GitHub Enterprise Server, such as "3.19.0"; empty: github.com
	Now        func() time.Time // the clock; nil: the machine's. Advance moves it
	Limits     Limits           // zero fields are the published numbers

	HookTimeout time.Duration // in which a receiver must answer; 0: 10 s, and 30 s for an Enterprise Server
	Senders     int           // how many deliveries are sent at once; 0: 1, so that they come in order
	MaxPayload  int           // bytes of the largest delivery that is sent; 0: 25 MB
	MaxFiles    int           // files of a pull request that are listed; 0: 3,000

	// MovedWrites is what writes by the old name of a repository are answered with. 0: 307,
	// as people see it (VirtusLab/git-machete#597). The description has 301 for some.
	MovedWrites int

	// OrphanReviews keeps the body of a review whose lines were refused. People have seen
	// that (max-sixty/tend#123), and that nothing is kept (max-sixty/tend#252).
	OrphanReviews bool

	// MergeableAfter is how many times a pull request is read after a push before its
	// mergeability is known. 0: once; negative: it is known at once.
	MergeableAfter int

	// CutAtExpiry ends transfers of git when their token ends. Without it a transfer
	// goes on, because the token was good when the request began.
	CutAtExpiry bool

	Watch         func(Exchange)                                         // is told each exchange with the API
	WatchDelivery func(event, action string, h http.Header, body []byte) // is told each genuine delivery when it is made
}

// Exchange is a request to the API and its answer.
type Exchange struct {
	Operation string            // such as "GET /repos/{owner}/{repo}"; empty: there is no such operation here
	Params    map[string]string // of the path
	Request   *http.Request
	Body      []byte
	Status    int
	Header    http.Header
	Answer    []byte
}

// Server is a running peer. It is safe for concurrent use.
type Server struct {
	API     string // address of the REST API, without a slash at the end
	GraphQL string // address of the GraphQL API
	Web     string // address of the pages, and of git below it

	o       Options
	dir     string // of the repositories
	storage string // address of the logs
	servers []*http.Server
	done    context.CancelFunc
	ctx     context.Context
	work    sync.WaitGroup

	mu     sync.Mutex
	offset time.Duration // that the clock was moved
	state
	limits limiter
	faults []*Fault
	post   postOffice
}

// Start starts a peer on loopback addresses.
func Start(o Options) (*Server, error) {
	dir, err := os.MkdirTemp("", "github-peer")
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.HookTimeout == 0 {
		o.HookTimeout = 10 * time.Second
		if o.Enterprise != "" {
			o.HookTimeout = 30 * time.Second
		}
	}
	if o.MaxPayload == 0 {
		o.MaxPayload = 25 << 20
	}
	if o.MaxFiles == 0 {
		o.MaxFiles = 3000
	}
	if o.MovedWrites == 0 {
		o.MovedWrites = http.StatusTemporaryRedirect
	}
	switch {
	case o.MergeableAfter == 0:
		o.MergeableAfter = 1
	case o.MergeableAfter < 0:
		o.MergeableAfter = 0
	}
	s := &Server{o: o, dir: dir, state: newState(), limits: newLimiter(o.Limits)}
	s.ctx, s.done = context.WithCancel(context.Background())
	s.post.init()
	api := http.HandlerFunc(s.serveAPI)
	if err := s.start(o, api); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for range max(1, o.Senders) {
		s.work.Go(s.deliver)
	}
	return s, nil
}

// start opens the listeners.
func (s *Server) start(o Options, api http.Handler) (err error) {
	web := http.NewServeMux()
	web.HandleFunc("/", s.serveWeb)
	if s.Web, err = s.listen(web); err != nil {
		return err
	}
	s.API, s.GraphQL = s.Web+"/api/v3", s.Web+"/api/graphql"
	if o.Enterprise != "" {
		web.Handle("/api/v3/", http.StripPrefix("/api/v3", api))
		web.Handle("POST /api/graphql", http.StripPrefix("/api", api))
	} else {
		if s.API, err = s.listen(api); err != nil {
			return err
		}
		s.GraphQL = s.API + "/graphql"
	}
	s.storage, err = s.listen(http.HandlerFunc(s.serveLog))
	return err
}

// listen serves a handler on a port of its own and returns the address.
func (s *Server) listen(h http.Handler) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return s.ctx }}
	s.servers = append(s.servers, server)
	s.work.Go(func() { _ = server.Serve(l) }) // it ends by Close
	return "http://" + l.Addr().String(), nil
}

// Close stops the peer and removes its repositories.
func (s *Server) Close() error {
	s.done()
	s.post.close()
	var wrong []error
	for _, server := range s.servers {
		// Requests that are being answered may still tell Options.Watch something.
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_ = server.Shutdown(ctx)
		cancel()
		wrong = append(wrong, server.Close())
	}
	s.work.Wait()
	return errors.Join(append(wrong, os.RemoveAll(s.dir))...)
}

// Now is the time of the peer's clock.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now()
}

// Advance moves the peer's clock forward.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset += d
	for _, n := range slices.Sorted(maps.Keys(s.repos)) {
		s.queueMoves(s.repos[n]) // a check may be too late now
	}
}

func (s *Server) now() time.Time { return s.o.Now().Add(s.offset).UTC() }

// seconds is the time as GitHub's objects have it.
func (s *Server) seconds() time.Time { return s.now().Truncate(time.Second) }

// stamp writes a time as GitHub does. The zero time is null.
func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

// serveWeb serves the pages for people and git.
func (s *Server) serveWeb(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/settings/apps/new"):
		s.serveManifest(w, r)
	case installPath.MatchString(r.URL.Path):
		s.serveInstall(w, r)
	case gitPath.MatchString(r.URL.Path):
		s.serveGit(w, r)
	default:
		http.Error(w, fmt.Sprintf("There is no page %s here.", r.URL.Path), http.StatusNotFound)
	}
}
