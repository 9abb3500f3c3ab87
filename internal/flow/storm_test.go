package flow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/github"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/hostlimit"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	peer "yardmaster/internal/proof/github"
	"yardmaster/internal/proof/github/description"
	"yardmaster/internal/proof/seed"
)

// storm is two nodes of a server before a GitHub with the published limits. Waiting moves
// the clock of both.
type storm struct {
	t      *testing.T
	peer   *peer.Server
	db     *db.DB
	nodes  []*intent.Service
	hosts  []*github.Host
	repo   repo.Ref
	at     *peer.Repo
	counts *counting

	head   string
	number int64 // of the pull request that a person merges

	mu     sync.Mutex
	done   []string
	asked  time.Time // when the person did
	waited time.Duration
}

// counting counts the refusals of GitHub.
type counting struct {
	http.RoundTripper
	mu      sync.Mutex
	refused int
	asked   int
}

// RoundTrip implements http.RoundTripper.
func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.RoundTripper.RoundTrip(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if err == nil && (resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusTooManyRequests) {
		c.refused++
	}
	return resp, err
}

// Wait implements pace.Waiter.
func (s *storm) Wait(_ context.Context, d time.Duration) error {
	s.until(s.peer.Now().Add(d))
	return nil
}

// until lets time go by.
func (s *storm) until(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := at.Sub(s.peer.Now()); d > 0 {
		s.peer.Advance(d)
	}
}

// told is the check of a pull request that a host is told of, and the merge of one.
var (
	told   = intent.Declare[int, string]("test.told", false)
	merged = intent.Declare[int64, string]("test.merged", false)
)

// teller carries out told, and merger merged.
type (
	teller struct{ *storm }
	merger struct{ *storm }
)

func (teller) Still(*db.Tx, intent.Call[int]) (bool, error)   { return true, nil }
func (merger) Still(*db.Tx, intent.Call[int64]) (bool, error) { return true, nil }

// Do implements intent.Handler.
func (s teller) Do(ctx context.Context, f codehost.Forge, c intent.Call[int]) (string, error) {
	return f.SetCheck(ctx, c.Repo.HostRepo(), c.ID, codehost.OwnCheck{
		Name: fmt.Sprint("check ", c.Args), SHA: s.head, State: "queued",
	})
}

// Do implements intent.Handler.
func (merger) Do(ctx context.Context, f codehost.Forge, c intent.Call[int64]) (string, error) {
	p, _, err := f.Pull(ctx, c.Repo.HostRepo(), c.Args, "")
	if err != nil {
		return "", err
	}
	return f.MergePull(ctx, c.Repo.HostRepo(), c.ID, c.Args, codehost.PullMerge{HeadSHA: p.HeadSHA, Method: codehost.MethodMerge})
}

// Done implements intent.Handler. A person has a pull request merged in the middle of the
// storm.
func (s teller) Done(tx *db.Tx, c intent.Call[int], _ string, failure error) error {
	if c.Args == middle {
		if _, err := merged.Put(tx, intent.Want[int64]{
			Repo: s.repo, Object: "pull of a person", Rank: intent.ForPeople, Args: s.number,
		}); err != nil {
			return err
		}
		s.mu.Lock()
		s.asked = tx.Now
		s.mu.Unlock()
	}
	return s.ended(tx, fmt.Sprint(c.Args), failure)
}

// middle is the pull request after which the person comes.
const middle = 60

// Done implements intent.Handler.
func (s merger) Done(tx *db.Tx, _ intent.Call[int64], _ string, failure error) error {
	s.mu.Lock()
	s.waited = tx.Now.Sub(s.asked)
	s.mu.Unlock()
	return s.ended(tx, "merge", failure)
}

func (s *storm) ended(tx *db.Tx, what string, failure error) error {
	tx.AfterCommit(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if failure != nil {
			s.t.Errorf("%s: %v", what, failure)
		}
		s.done = append(s.done, what)
	})
	return nil
}

func newStorm(t *testing.T, e db.Engine) *storm {
	t.Helper()
	s := &storm{t: t, peer: description.Serve(t, peer.Options{})}
	org, ann := s.peer.Org("acme"), s.peer.Person("ann")
	ann.Join(org, "admin", false)
	s.at = s.peer.Repo("acme/shop", peer.NewRepo{Files: map[string]string{"README.md": "# Shop\n"}})
	all := map[string]string{}
	for _, p := range github.Needed {
		all[p.Name] = p.Level
	}
	s.head = s.at.Commit(ann, "svc/a", "Say when", map[string]string{"README.md": "# Shop\n\nNow.\n"})
	s.number = int64(s.at.OpenPull(ann, peer.NewPull{Title: "Say when", Head: "svc/a", Base: "main"}).Number)
	app := s.peer.NewApp(peer.NewApp{Name: "Yard", Permissions: all, HookURL: "http://127.0.0.1:1/", Secret: "hush"})
	app.Install(org)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	s.counts = &counting{RoundTripper: transport}
	s.db = dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: s.peer.Now})
	log := slog.New(slog.DiscardHandler)
	for range 2 {
		h, err := github.New(github.Config{
			Name: "github:peer", Addresses: github.Addresses{Web: s.peer.Web, API: s.peer.API, GraphQL: s.peer.GraphQL},
			AppID: app.ID, Slug: app.Slug, Key: []byte(app.PEM()), Secrets: []string{"hush"}, Folder: t.TempDir(),
			CloneURL: func(codehost.Repo) string { return "" }, Now: s.peer.Now, Transport: s.counts,
			Limits: hostlimit.New(hostlimit.Needs{DB: s.db, Logger: log, Waiter: s}).Of("github:peer"),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		hosts := codehost.NewHosts(map[string]codehost.Sides{"github:peer": h.Sides()})
		node := intent.New(intent.Needs{DB: s.db, Due: duetest.New(s.db, event.NewHub()), Hosts: hosts, Logger: log})
		intent.LineMoved.On(s.db, node.FollowLine)
		told.Handle(node, teller{s})
		merged.Handle(node, merger{s})
		s.nodes, s.hosts = append(s.nodes, node), append(s.hosts, h)
	}
	s.write(func(tx *db.Tx) error {
		if err := seed.Add(tx, seed.Account{ID: "acme"}); err != nil {
			return err
		}
		there := codehost.Repo{Host: "github:peer", ID: strconv.FormatInt(s.at.ID, 10), Owner: "acme", Name: "shop"}
		id, err := repo.Install(tx, there, "main", false)
		if err != nil {
			return err
		}
		s.repo, _, err = repo.ByID(tx, id)
		return err
	})
	return s
}

func (s *storm) write(fn func(*db.Tx) error) {
	s.t.Helper()
	if err := s.db.Write(db.WithAccount(s.t.Context(), "acme"), fn); err != nil {
		s.t.Fatal(err)
	}
}

// passes has both nodes carry out what is due.
func (s *storm) passes() { duetest.Pass(s.t.Context(), s.t, s.nodes[0].Due, s.nodes[1].Due) }

// Five hundred pull requests are to be told of at once. Nothing is lost, GitHub refuses
// nothing, and the merge of a person does not wait for the rest.
func TestStorm(t *testing.T) {
	t.Parallel()
	const all = 500
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			s := newStorm(t, e)
			begin := s.peer.Now()
			s.write(func(tx *db.Tx) error {
				for n := range all {
					if _, err := told.Put(tx, intent.Want[int]{
						Repo: s.repo, Object: fmt.Sprint("pull ", n), Rank: intent.ForReviews, Args: n,
					}); err != nil {
						return err
					}
				}
				return nil
			})
			for len(s.done) < all+1 {
				if s.peer.Now().Sub(begin) > 6*time.Hour {
					t.Fatalf("%d of %d were told after %s", len(s.done), all, s.peer.Now().Sub(begin))
				}
				s.passes()
				s.until(s.peer.Now().Add(10 * time.Second))
			}
			if took := s.peer.Now().Sub(begin); took < time.Hour {
				t.Errorf("it took %s: more than the limit of an hour was made", took)
			}
			if s.waited > time.Minute || s.at.Pull(int(s.number)).Merged() == "" {
				t.Errorf("the person waited %s", s.waited)
			}
			if n := len(s.at.Checks(s.head)); n != all || s.counts.refused > 0 {
				t.Errorf("%d checks, %d refusals", n, s.counts.refused)
			}
		})
	}
}

// One node is refused for a secondary limit, and the other node does not call before it ends.
func TestRefusalKeepsAllNodes(t *testing.T) {
	t.Parallel()
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			s := newStorm(t, e)
			ctx := codehost.WithUrgency(t.Context(), codehost.ForPeople)
			ask := func(node int) error {
				_, _, err := s.hosts[node].Pull(ctx, s.repo.HostRepo(), s.number, "")
				return err
			}
			for node := range s.hosts { // each has its credentials
				if err := ask(node); err != nil {
					t.Fatal(err)
				}
			}
			s.peer.Break(peer.Fault{Effect: peer.Throttle, Delay: 90 * time.Second, Times: 1})
			for node := range s.hosts {
				before := s.counts.asked
				busy, is := errors.AsType[*codehost.BusyError](ask(node))
				if !is || !busy.Limit || busy.After < 80*time.Second || s.counts.asked-before != 1-node {
					t.Errorf("node %d: %+v after %d requests", node, busy, s.counts.asked-before)
				}
			}
			s.until(s.peer.Now().Add(90 * time.Second))
			for node := range s.hosts {
				if err := ask(node); err != nil {
					t.Errorf("node %d, afterwards: %v", node, err)
				}
			}
		})
	}
}
