package backlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

var (
	stands  = db.Q[standing](`SELECT state, filed, tries FROM backlog_imports WHERE id = $1`)
	audited = db.Q[string](`SELECT kind FROM audit WHERE object = $1 AND account_id = 'acme' ORDER BY seq`)
)

type standing struct {
	State        State
	Filed, Tries int64
}

// yard is the service beside a host that keeps issues.
type yard struct {
	*Service
	codehost.NoForge
	t      *testing.T
	ctx    context.Context
	mu     sync.Mutex
	now    time.Time
	open   []codehost.Issue
	away   error
	during func()            // called once, by the next question to the host
	asks   map[string]string // the label of the filer, by repository and key

	writers []string // those who may write to the repository
	trusted map[string]bool
}

// Can implements codehost.Forge.
func (y *yard) Can(c codehost.Capability) bool { return c == codehost.KeepIssues }

// Permission implements codehost.Forge.
func (y *yard) Permission(_ context.Context, _ codehost.Repo, login string) (codehost.Permission, error) {
	switch {
	case login == "busy" && y.away != nil:
		return codehost.PermitNone, y.away
	case slices.Contains(y.writers, login):
		return codehost.PermitWrite, nil
	case login == "odd":
		return codehost.PermitAdmin, &codehost.ForbiddenError{}
	}
	return codehost.PermitTriage, nil
}

// IssuesSince implements codehost.Forge. A page has two batches and a half.
func (y *yard) IssuesSince(_ context.Context, r codehost.Repo, since time.Time, open bool, cursor string,
) ([]codehost.Issue, string, error) {
	if !since.IsZero() || !open {
		y.t.Errorf("asked for issues since %s, open: %v", since, open)
	}
	if r != (codehost.Repo{Host: "elsewhere", Owner: "acme", Name: "web"}) {
		y.t.Errorf("asked for the issues of %+v", r)
	}
	if during := y.during; during != nil {
		y.during = nil
		during()
	}
	if y.away != nil {
		return nil, "", y.away
	}
	begin, _ := strconv.Atoi(cursor)
	end := begin + 2*batch + batch/2
	if end >= len(y.open) {
		return y.open[begin:], "", nil
	}
	return y.open[begin:end], strconv.Itoa(end), nil
}

// File implements Asks.
func (y *yard) File(tx *db.Tx, repoID, by string, i codehost.Issue, trusted bool) (bool, error) {
	if tx.Account != "acme" {
		y.t.Errorf("filed in %q", tx.Account)
	}
	if trusted {
		y.trusted[i.Key] = true
	}
	_, there := y.asks[repoID+" "+i.Key]
	y.asks[repoID+" "+i.Key] = by
	return !there, nil
}

func onBoth(t *testing.T, fn func(*yard)) {
	t.Helper()
	y := &yard{now: time.Unix(1_700_000_000, 0)}
	clock := y.clock
	dbtest.RunWith(t, db.Options{Clock: clock}, func(t *testing.T, d *db.DB) {
		y := y
		*y = yard{t: t, now: y.now, asks: map[string]string{}, trusted: map[string]bool{}}
		y.ctx = policy.With(db.WithAccount(t.Context(), "ops"), policy.Actor{Credential: policy.System})
		builtIn := &builtin.Host{}
		hosts := codehost.NewHosts(map[string]codehost.Sides{
			codehost.BuiltIn: {Host: builtIn, Forge: builtin.Forge{}},
			"elsewhere":      {Host: builtIn, Forge: y},
		})
		y.Service = New(Needs{DB: d, Due: duetest.New(d, event.NewHub()), Logger: slog.New(slog.DiscardHandler), Hosts: hosts, Asks: y})
		err := d.Write(y.ctx, func(tx *db.Tx) error {
			for _, a := range []string{"acme", "ops"} {
				if err := seed.Add(tx, seed.Account{ID: a}); err != nil {
					return err
				}
			}
			err := seed.Add(tx, seed.Repo{ID: "r1", Account: "acme", Name: "web", Host: "elsewhere"})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		fn(y)
	})
}

func (y *yard) clock() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.now
}

func (y *yard) later(d time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.now = y.now.Add(d)
}

// pass carries out the imports that are due.
func (y *yard) pass() {
	y.t.Helper()
	duetest.Pass(y.ctx, y.t, y.Due)
}

func (y *yard) request() (string, error) {
	out, err := y.Service.request(y.ctx, requestIn{ID: "acme", Owner: "acme", Repo: "web", Confirm: true})
	return out.JobID, err
}

func (y *yard) stands(job string) (s standing, kinds []string) {
	y.t.Helper()
	err := y.DB.Read(y.ctx, func(tx *db.Tx) (err error) {
		if s, err = stands.One(tx, job); err != nil {
			return err
		}
		kinds, err = audited.All(tx, job)
		return err
	})
	if err != nil {
		y.t.Fatal(err)
	}
	return s, kinds
}

// A repository has one import at a time. Each issue becomes one ask, also when it is
// imported again.
func TestImport(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		for i := range 2*batch + 7 {
			y.open = append(y.open, codehost.Issue{Key: fmt.Sprint(i), Title: "t", Body: "b"})
		}
		job, err := y.request()
		if err != nil {
			y.t.Fatal(err)
		}
		var refused *fault.Error
		if _, err := y.request(); !errors.As(err, &refused) || refused.Slug != "import_in_flight" {
			y.t.Errorf("a second one: %v", err)
		}
		y.pass()
		if s, kinds := y.stands(job); s != (standing{Done, int64(len(y.open)), 1}) ||
			fmt.Sprint(kinds) != "[backlog.import_requested backlog.imported]" {
			y.t.Errorf("%+v %v", s, kinds)
		}
		y.open = append(y.open[:10], codehost.Issue{Key: "new"})
		if job, err = y.request(); err != nil {
			y.t.Fatal(err)
		}
		y.pass()
		if s, _ := y.stands(job); s != (standing{Done, 1, 1}) || len(y.asks) != 2*batch+8 {
			y.t.Errorf("again: %+v, %d asks", s, len(y.asks))
		}
	})
}

// A host that does not answer is asked again later. After maxTries the import has failed.
func TestHostIsAway(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.away = errors.New("connection refused")
		job, err := y.request()
		if err != nil {
			y.t.Fatal(err)
		}
		for i := range maxTries {
			if s, _ := y.stands(job); s.Tries != int64(i) {
				y.t.Fatalf("try %d: %+v", i, s)
			}
			y.pass()
			y.pass() // too soon
			y.later(maxTries * time.Minute)
		}
		if s, kinds := y.stands(job); s != (standing{Failed, 0, maxTries}) ||
			fmt.Sprint(kinds) != "[backlog.import_requested backlog.import_failed]" {
			y.t.Errorf("%+v %v", s, kinds)
		}
		if _, err := y.request(); err != nil {
			y.t.Errorf("after a failed one: %v", err)
		}
	})
}

// Another node takes over the import of a node that died, and completes it. The first
// node changes nothing when it goes on afterwards.
func TestNodeDies(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.open = []codehost.Issue{{Key: "1"}, {Key: "2"}}
		job, err := y.request()
		if err != nil {
			y.t.Fatal(err)
		}
		y.during = func() {
			y.later(time.Minute)
			other := y.Needs
			other.Due = duetest.New(y.DB, event.NewHub())
			New(other)
			duetest.Pass(y.ctx, y.t, other.Due)
		}
		y.pass()
		if s, kinds := y.stands(job); s != (standing{Done, 2, 2}) || len(kinds) != 2 || len(y.asks) != 2 {
			y.t.Errorf("%+v %v, %d asks", s, kinds, len(y.asks))
		}
	})
}

// An operator who imports the backlog vouches for nobody: work begins by itself only on
// issues of people who may write to the repository.
func TestNobodyVouches(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.writers = []string{"ann", "robot"}
		of := func(u codehost.User) codehost.Issue {
			return codehost.Issue{Key: u.Login, Title: "t", Body: "b", Author: u}
		}
		y.open = []codehost.Issue{
			of(codehost.User{Login: "ann"}), of(codehost.User{Login: "eve"}), of(codehost.User{Login: "odd"}), of(codehost.User{}),
			of(codehost.User{Login: "robot", Bot: true}), of(codehost.User{Login: "yard", Own: true, Bot: true}),
			of(codehost.User{Login: "busy"}),
		}
		if _, err := y.request(); err != nil {
			y.t.Fatal(err)
		}
		y.pass()
		if got := slices.Sorted(maps.Keys(y.trusted)); !slices.Equal(got, []string{"ann", "yard"}) {
			y.t.Errorf("trusted are %v", got)
		}
		if len(y.asks) != len(y.open) {
			y.t.Errorf("%d asks of %d issues", len(y.asks), len(y.open))
		}
	})
}
