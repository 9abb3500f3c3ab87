package intent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

var (
	say  = Declare[string, string]("test.say", false)
	show = Declare[string, string]("test.show", true)
)

// yard is the service beside a host that does what a test says.
type yard struct {
	*Service
	t    *testing.T
	ctx  context.Context
	repo repo.Ref

	mu     sync.Mutex
	now    time.Time
	does   func(what string) error // nil: all that is asked
	wanted func(what string) bool  // nil: all is
	said   []string                // what the host has done, with the ids of the intents
	ended  []string                // what the domain was told
	up     []Trouble
}

func onBoth(t *testing.T, fn func(*yard)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			y := &yard{t: t, now: time.Unix(1_800_000_000, 0)}
			d := dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: y.clock})
			y.ctx = policy.With(db.WithAccount(t.Context(), "acme"), policy.Actor{Credential: policy.System})
			y.Service = y.node(d)
			y.write(func(tx *db.Tx) error {
				err := seed.Add(tx, seed.Account{ID: "acme"}, seed.Repo{ID: "r1", Account: "acme", Name: "web", Host: "elsewhere"})
				if err == nil {
					y.repo, _, err = repo.ByID(tx, "r1")
				}
				return err
			})
			GivenUp.On(d, func(tx *db.Tx, about Trouble) error {
				tx.AfterCommit(func() { y.up = append(y.up, about) })
				return nil
			})
			fn(y)
		})
	}
}

func (y *yard) node(d *db.DB) *Service {
	hosts := codehost.NewHosts(map[string]codehost.Sides{"elsewhere": {Host: &builtin.Host{}, Forge: codehost.NoForge{}}})
	s := New(Needs{DB: d, Due: duetest.New(d, event.NewHub()), Hosts: hosts, Logger: slog.New(slog.DiscardHandler)})
	LineMoved.On(d, s.FollowLine)
	say.Handle(s, y)
	show.Handle(s, y)
	return s
}

// pass has nodes carry out what is due; without any, the first does.
func (y *yard) pass(nodes ...*Service) {
	y.t.Helper()
	all := []*due.Kernel{y.Due}
	for _, n := range nodes {
		all = append(all, n.Due)
	}
	duetest.Pass(y.ctx, y.t, all...)
}

func (y *yard) clock() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.now
}

func (y *yard) wait(d time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.now = y.now.Add(d)
}

func (y *yard) write(fn func(*db.Tx) error) {
	y.t.Helper()
	if err := y.DB.Write(y.ctx, fn); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) put(k Kind[string, string], object, what string, rank int64) (intentID string) {
	y.t.Helper()
	y.write(func(tx *db.Tx) (err error) {
		intentID, err = k.Put(tx, Want[string]{Repo: y.repo, Object: object, Rank: rank, Args: what})
		return err
	})
	return intentID
}

// Still implements Handler.
func (y *yard) Still(_ *db.Tx, c Call[string]) (bool, error) {
	return y.wanted == nil || y.wanted(c.Args), nil
}

// Do implements Handler.
func (y *yard) Do(_ context.Context, _ codehost.Forge, c Call[string]) (string, error) {
	y.mu.Lock()
	does := y.does
	y.mu.Unlock()
	if does != nil {
		if err := does(c.Args); err != nil {
			return "", err
		}
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.said = append(y.said, string(c.ID)+" "+c.Args)
	return "done " + c.Args, nil
}

// Done implements Handler.
func (y *yard) Done(tx *db.Tx, c Call[string], answer string, failure error) error {
	tx.AfterCommit(func() {
		y.mu.Lock()
		defer y.mu.Unlock()
		y.ended = append(y.ended, fmt.Sprintf("%s: %s%v", c.Args, answer, failure))
	})
	return nil
}

// words are what the host has done, without the ids.
func (y *yard) words() (out []string) {
	for _, s := range y.said {
		_, word, _ := strings.Cut(s, " ")
		out = append(out, word)
	}
	return out
}

// The intents of one object are carried out in turn, each once; those of others beside
// them.
func TestLines(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.put(say, "a", "first", ForRuns)
		y.put(say, "a", "second", ForPeople)
		y.put(say, "b", "other", ForRecord)
		busy := true
		y.does = func(what string) error {
			if what == "first" && busy {
				return &codehost.BusyError{After: time.Minute, Limit: true}
			}
			return nil
		}
		y.pass()
		if got := y.words(); !slices.Equal(got, []string{"other"}) {
			t.Errorf("past a busy line: %q", got)
		}
		w := Wait{Since: y.now, Until: y.now.Add(time.Minute)}
		limited := func() (all map[string]Wait) {
			y.write(func(tx *db.Tx) (err error) { all, err = Limited(tx, []string{"a", "b", "c"}); return err })
			return all
		}
		if all := limited(); len(all) != 1 || !all["a"].Since.Equal(w.Since) || !all["a"].Until.Equal(w.Until) {
			t.Errorf("for the limit wait %+v", all)
		}
		busy = false
		y.pass() // too soon
		y.wait(longestLimited * 5 / 4)
		y.pass()
		if all := limited(); len(all) != 0 {
			t.Errorf("for the limit still wait %+v", all)
		}
		if got := y.words(); !slices.Equal(got, []string{"other", "first", "second"}) {
			t.Errorf("in the end: %q", got)
		}
		if want := []string{"other: done other<nil>", "first: done first<nil>", "second: done second<nil>"}; !slices.Equal(y.ended, want) {
			t.Errorf("told %q", y.ended)
		}
	})
}

// A node that stops leaves its intent to another one, with the same id.
func TestNodeStops(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		intentID := y.put(say, "a", "once", ForRuns)
		other := y.node(y.DB)
		ctx, stop := context.WithCancel(y.ctx)
		y.does = func(string) error {
			stop() // after the host has done it, before we know
			return context.Canceled
		}
		_ = y.Due.Drain(ctx)
		y.does = nil
		y.pass(other)
		if want := []string{intentID + " once"}; !slices.Equal(y.said, want) || len(y.ended) != 1 {
			t.Errorf("%q, %q, want %q", y.said, y.ended, want)
		}
	})
}

// The head of a line of which nodes die is given up, and the next one is carried out.
func TestNodesDie(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.put(say, "a", "deadly", ForRuns)
		y.put(say, "a", "next", ForRuns)
		for range 3 { // as many nodes as may die
			y.write(func(tx *db.Tx) error {
				if _, err := heldByTheDead.Exec(tx); err != nil {
					return err
				}
				return y.Due.Restarted(tx)
			})
		}
		y.pass()
		died := len(y.ended) == 2 && strings.HasPrefix(y.ended[0], "deadly: nodes that")
		if got := y.words(); !died || !slices.Equal(got, []string{"next"}) {
			t.Errorf("%q, told %q", got, y.ended)
		}
	})
}

// An intent of a kind that a node does not know is left for a day to a node of a newer release.
func TestKindOfANewerRelease(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.put(say, "a", "later", ForRuns)
		named := func(kind string) {
			y.write(func(tx *db.Tx) error {
				_, err := setKind.Exec(tx, kind)
				return err
			})
			y.wait(2 * time.Minute)
			y.pass()
		}
		if named("newer"); len(y.said) != 0 || len(y.ended) != 0 {
			t.Fatalf("said %q, told %q", y.said, y.ended)
		}
		if named(say.name); !slices.Equal(y.words(), []string{"later"}) {
			t.Fatalf("said %q", y.said)
		}
		y.put(say, "a", "never", ForRuns)
		named("newer")
		y.wait(25 * time.Hour)
		y.pass()
		y.put(say, "a", "next", ForRuns)
		if y.pass(); !slices.Equal(y.words(), []string{"later", "next"}) {
			t.Errorf("said %q", y.said)
		}
	})
}

var setKind = db.S(`UPDATE host_intents SET kind = $1 WHERE ended_at IS NULL`)

var heldByTheDead = db.S(`UPDATE due SET state = 'held'`)

// A newer intent replaces one that has not begun, where the kind says so.
func TestNewest(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		for _, what := range []string{"1", "2", "3"} {
			y.put(show, "a", what, ForRecord)
		}
		y.put(show, "b", "4", ForRecord)
		y.pass()
		y.pass()
		slices.Sort(y.said)
		if got := y.words(); !slices.Equal(got, []string{"3", "4"}) {
			t.Errorf("%q", got)
		}
	})
}

// What is not wanted any more is dropped, and nobody is told.
func TestNoLongerWanted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.wanted = func(what string) bool { return what != "over" }
		y.put(say, "a", "over", ForRuns)
		y.put(say, "a", "next", ForRuns)
		y.put(say, "b", "taken back", ForRuns)
		y.write(func(tx *db.Tx) error { return Drop(tx, "r1", "b") })
		for range 3 {
			y.pass()
		}
		if got := y.words(); !slices.Equal(got, []string{"next"}) || len(y.ended) != 1 {
			t.Errorf("%q, %q", got, y.ended)
		}
	})
}

// A refusal is final; a host that does not answer is asked for a day.
func TestFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		final bool // at once
		up    string
	}{
		"a refusal":    {codehost.ErrNoCommits, true, ""},
		"a permission": {&codehost.ForbiddenError{Permission: "workflows: write"}, true, "workflows: write"},
		"a silence":    {&codehost.BusyError{Cause: errors.New("reset")}, false, "*"},
		"no access":    {codehost.ErrGone, false, "*"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(y *yard) {
				y.does = func(string) error { return c.err }
				y.put(say, "a", "it", ForRuns)
				tries := 0
				for ; len(y.ended) == 0 && tries < 500; tries++ {
					y.pass()
					y.wait(longest)
				}
				if len(y.ended) != 1 || (tries == 1) != c.final || !c.final && (tries < 90 || tries > 100) {
					t.Errorf("ended after %d tries: %q", tries, y.ended)
				}
				switch {
				case c.up == "" && len(y.up) != 0, c.up != "" && len(y.up) != 1:
					t.Errorf("told of %+v", y.up)
				case c.up != "" && c.up != "*" && y.up[0].Permission != c.up:
					t.Errorf("the permission is %q", y.up[0].Permission)
				}
			})
		})
	}
}

// One that is carried out when it is dropped, or when a newer one comes, goes on, and its domain
// is told.
func TestBegunGoesOn(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		failed := false
		y.does = func(what string) error {
			if what != "1" {
				return nil
			}
			if !failed {
				y.put(show, "a", "2", ForRecord)
				y.write(func(tx *db.Tx) error { return Drop(tx, "r1", "a") })
				y.put(show, "a", "3", ForRecord)
				failed = true
				return &codehost.BusyError{}
			}
			return nil
		}
		y.put(show, "a", "1", ForRecord)
		y.pass()
		y.put(show, "a", "4", ForRecord)
		y.wait(first * 5 / 4)
		y.pass()
		if got := y.words(); !slices.Equal(got, []string{"1", "4"}) || len(y.ended) != 2 {
			t.Errorf("%q, told %q", got, y.ended)
		}
	})
}

// What nodes take at once is carried out once.
func TestNodesAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		const n = 40
		for i := range n {
			y.put(say, fmt.Sprint(i), fmt.Sprint(i), ForRuns)
		}
		y.pass(y.node(y.DB), y.node(y.DB))
		slices.Sort(y.said)
		if len(slices.Compact(y.said)) != n || len(y.said) != n {
			t.Errorf("%d were carried out", len(y.said))
		}
	})
}

// An intent that waits for a permission asks a person once, and is carried out once the
// permission is granted.
func TestUngranted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		lacks := &codehost.ForbiddenError{Permission: "pull_requests: write", Asked: true}
		y.does = func(string) error { return lacks }
		y.put(say, "a", "first", ForRuns)
		y.pass()
		for range 3 {
			y.wait(longest + time.Minute)
			y.pass()
		}
		if len(y.up) != 1 || y.up[0].Permission != "pull_requests: write" {
			y.t.Errorf("asked %+v", y.up)
		}
		y.does = nil
		y.pass()
		if got := y.words(); len(got) != 0 {
			y.t.Errorf("before it is granted: %q", got)
		}
		y.write(func(tx *db.Tx) error { return RetryNow(tx, []string{"r1"}) })
		y.pass()
		if got := y.words(); !slices.Equal(got, []string{"first"}) {
			y.t.Errorf("after it is granted: %q", got)
		}
		y.does = func(string) error { return lacks }
		y.put(say, "a", "second", ForRuns)
		y.pass()
		y.wait(noAnswer)
		y.pass()
		if len(y.up) != 2 || len(y.ended) == 0 {
			y.t.Errorf("given up: asked %+v, told %q", y.up, y.ended)
		}
	})
}
