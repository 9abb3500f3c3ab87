package ask

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/reach"
)

// declared is an ask of a run in acme/web.
func declared() OfRun {
	return OfRun{
		Origin: Origin{
			RunID: id.New(), TaskID: "t-1", Serves: "t-1", TaskTitle: "Run the tests", Kind: "work", RepoID: "acme-web", Repo: "acme/web",
			Text: reach.Account,
		},
		ID: "1", Title: "More work", Body: "I saw it.",
	}
}

func TestRunAsks(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.judge.say = always(mint("acme/api", nil))
		file := func(o OfRun) {
			t.Helper()
			y.write(func(tx *db.Tx) error { return y.FileOfRun(tx, o) })
		}
		base := declared()
		file(base)
		file(base)
		if n := one(y, countAsks); n != 1 {
			t.Fatalf("%d asks of one declaration", n)
		}
		own := all(y, newestAsk)[0]
		if a := y.ask(own); a.Source != FromRun || a.FiledBy != "run:"+base.RunID || *a.Repo != "acme/web" {
			t.Errorf("%+v", a)
		}
		other := base
		other.ID, other.For = "2", "acme/api"
		file(other)
		there := all(y, newestAsk)[0]
		y.want(there, Escalated, reach.OtherRepository)
		foreign := base
		foreign.ID, foreign.For = "3", "rival/web"
		file(foreign)
		outside := all(y, newestAsk)[0]
		y.want(outside, Escalated, UnknownRepository)
		chained := base
		chained.ID = "4"
		for i := range maxDepth {
			chained.AskID, chained.ID = &own, string(rune('a'+i))
			file(chained)
			own = all(y, newestAsk)[0]
		}
		y.want(own, Escalated, ChainTooLong)
		// The same key is the same ask for later runs in the repository.
		keyed := base
		keyed.ID, keyed.DedupeKey = "5", "leak"
		file(keyed)
		n := one(y, countAsks)
		keyed.RunID, keyed.ID = id.New(), "1"
		file(keyed)
		if again := one(y, countAsks); again != n {
			t.Errorf("%d asks, want %d", again, n)
		}
		for i := range 2 * maxOfRun {
			many := base
			many.ID = "many" + string(rune('A'+i))
			file(many)
		}
		if n := one(y, countOfRun, "acme", base.RunID); n != maxOfRun {
			t.Errorf("a run has filed %d asks", n)
		}
		y.write(func(tx *db.Tx) error {
			ids, err := OfRuns(tx, []string{base.RunID, id.New()})
			if len(ids) != maxOfRun || ids[1] != there {
				t.Errorf("the run's asks are %v", ids)
			}
			return err
		})
		// A key that waits for a person is not in the way of work that does not.
		keyed.ID, keyed.For, keyed.DedupeKey = "6", "acme/api", "drip"
		keyed.RunID = id.New()
		file(keyed)
		n = one(y, countAsks)
		keyed.ID, keyed.For = "7", ""
		file(keyed)
		if again := one(y, countAsks); again != n+1 {
			t.Errorf("%d asks, want %d", again, n+1)
		}
		y.judge.say = always(mint("acme/web", nil))
		y.pass()
		for _, made := range y.minted("acme") {
			if made.RepoID != "acme-web" {
				t.Errorf("work in %s", made.RepoID)
			}
		}
		if y.want(there, Escalated, reach.OtherRepository); len(y.minted("acme")) == 0 || len(y.minted("rival")) != 0 {
			t.Error("the work is elsewhere")
		}
	})
}

// TestAskOfRunFollowsTheTable holds that an ask of a run is judged only where the table of
// package reach says so, and otherwise waits, or is dropped.
func TestAskOfRunFollowsTheTable(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.judge.say = always(mint("acme/web", nil))
		for _, kind := range append(reach.Kinds(), "unknown") {
			for _, to := range reach.Targets() {
				for _, given := range reach.Texts() {
					o := declared()
					o.Kind, o.Text, o.Weaker = kind, given, to == reach.Wider
					if to == reach.Other {
						o.For = "acme/api"
					}
					calls, tasks := y.judge.calls(), len(y.minted("acme"))
					y.write(func(tx *db.Tx) error { return y.FileOfRun(tx, o) })
					y.pass()
					var ids []string
					y.write(func(tx *db.Tx) (err error) { ids, err = OfRuns(tx, []string{o.RunID}); return err })
					switch d := reach.Of(kind, reach.Ask, to, given); d.Outcome {
					case reach.Refused:
						if len(ids) != 0 {
							t.Errorf("%s %s %s has filed %v", kind, to, given, ids)
						}
					case reach.Waits:
						if a := y.want(ids[0], Escalated, d.Reason); !strings.Contains(a.Verdict.Reason, o.RunID) ||
							!strings.Contains(a.Verdict.Reason, `the task "Run the tests" (t-1) in acme/web asks for work in acme/`) {
							t.Errorf("a person is told %q", a.Verdict.Reason)
						}
						if y.judge.calls() != calls || len(y.minted("acme")) != tasks {
							t.Errorf("%s %s %s was judged", kind, to, given)
						}
					default:
						if y.want(ids[0], Triaged, ""); len(y.minted("acme")) != tasks+1 {
							t.Errorf("%s %s %s was not minted", kind, to, given)
						}
					}
				}
			}
		}
	})
}

// TestApprove holds that an ask that waits goes to triage for the person who approves it,
// with that person's rights, and that no other ask does.
func TestApprove(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		o := declared()
		o.For, o.By, o.BudgetMicros = "acme/api", new("ann"), new(int64(5_000_000))
		y.write(func(tx *db.Tx) error { return y.FileOfRun(tx, o) })
		waits := all(y, newestAsk)[0]
		approve := func(askID, user string, scopes policy.Set) error {
			ctx := policy.With(y.ctx(), policy.Actor{Credential: policy.Session, UserID: user, AccountID: "acme", Scopes: scopes})
			_, err := y.approve(ctx, idIn{askID})
			return err
		}
		if err := approve(waits, "olga", filer); err != nil {
			t.Fatal(err)
		}
		if open := all(y, openOf, waits); len(open) != 0 {
			t.Errorf("people are still asked: %v", open)
		}
		a := y.want(waits, Pending, "")
		if deref(a.ApprovedBy) != "olga" || deref(a.RequestedBy) != "olga" {
			t.Errorf("it counts for %+v", a)
		}
		y.judge.say = always(mint("acme/api", object{"priority": 80}))
		y.pass()
		y.want(waits, Triaged, "")
		if made := y.minted("acme"); len(made) != 1 || made[0].RepoID != "acme-api" || made[0].Priority != 80 {
			t.Fatalf("%+v", made)
		}
		if n := y.mints[0]; n.RequestedBy != "olga" || n.Unbound || n.BudgetMicros != nil {
			t.Errorf("minted as %+v", n)
		}
		var refused *fault.Error
		for _, other := range []string{waits, y.file(nil)} {
			if err := approve(other, "olga", filer); !errors.As(err, &refused) || refused.Slug != "not_approvable" {
				t.Errorf("%v", err)
			}
		}
		// Somebody who may create no tasks lets nothing begin.
		o.RunID = id.New()
		y.write(func(tx *db.Tx) error { return y.FileOfRun(tx, o) })
		weak := all(y, newestAsk)[0]
		if err := approve(weak, "olga", policy.Scopes(policy.ReadTasks)); err != nil {
			t.Fatal(err)
		}
		y.pass()
		y.want(weak, Escalated, JudgeInvalid)
		// What nobody has approved has the limits of the run that asks, and no token.
		o.RunID, o.For = id.New(), ""
		y.write(func(tx *db.Tx) error { return y.FileOfRun(tx, o) })
		y.judge.say = always(mint("acme/web", nil))
		y.pass()
		if n := y.mints[len(y.mints)-1]; n.RequestedBy != "ann" || !n.Unbound || n.BudgetMicros == nil || *n.BudgetMicros != 5_000_000 {
			t.Errorf("minted as %+v", n)
		}
		y.file(func(f *Filing) { f.Title, f.Labels = "With labels", map[string]string{"team": "web"} })
		y.pass()
		if n := y.mints[len(y.mints)-1]; n.Labels["team"] != "web" {
			t.Errorf("a task of an ask with labels is minted as %+v", n)
		}
	})
}

// TestAsksShareTheLimitOfTheirTask holds that what the runs of a task begin by asks has the
// limit of the task once, however many asks and tasks there are, and that a person decides
// about the rest.
func TestAsksShareTheLimitOfTheirTask(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		o := declared()
		o.Serves, o.BudgetMicros = y.existing("acme-web", "Greet people"), new(int64(500_000))
		const part = `{"repo":"acme/web","title":"A part","problem":"Do it."}`
		y.judge.say = always(`{"kind":"mint","reason":"Plain work.","tasks":[` + part + "," + part + "," + part + `]}`)
		var filed []string
		for i := range 4 {
			o.ID, o.Title = fmt.Sprint("ask-", i), fmt.Sprint("More of it ", i)
			if i == 2 {
				o.RunID = id.New() // the next try of the same task
			}
			y.write(func(tx *db.Tx) error { return y.FileOfRun(tx, o) })
			filed = append(filed, all(y, newestAsk)[0])
			y.pass()
		}
		var sum int64
		for _, n := range y.mints {
			if n.BudgetMicros == nil {
				t.Fatalf("minted without a limit: %+v", n)
			}
			sum += *n.BudgetMicros
		}
		if sum > 500_000 || len(y.mints) != 3 {
			t.Errorf("%d tasks have %d micro-dollars together, and the task that asks 500000", len(y.mints), sum)
		}
		y.want(filed[0], Triaged, "")
		for _, one := range filed[1:] {
			a := y.want(one, Escalated, reach.MoreRights)
			run := strings.Replace(a.FiledBy, ":", " ", 1)
			who := fmt.Sprintf("The %s for the task %q (%s) in acme/web asks", run, "Greet people", o.Serves)
			if !strings.HasPrefix(a.Verdict.Reason, who) {
				t.Errorf("a person is told %q", a.Verdict.Reason)
			}
		}
	})
}

// TestSharesAtOnce holds that two asks of one task that are minted at the same moment wait
// for one another: together they have no more than the limit, and the database ends neither
// of the two transactions for waiting in a circle.
func TestSharesAtOnce(t *testing.T) {
	t.Parallel()
	y := open(t, db.Postgres) // SQLite has one transaction at a time
	o := declared()
	o.Serves, o.BudgetMicros = y.existing("acme-web", "Greet people"), new(int64(500_000))
	for i := range 2 {
		o.ID = fmt.Sprint("ask-", i)
		y.write(func(tx *db.Tx) error { return y.FileOfRun(tx, o) })
	}
	waiting := all(y, openKeys, 50)
	if len(waiting) != 2 {
		t.Fatalf("%v", waiting)
	}
	v, err := parse(mint("acme/web", nil))
	if err != nil {
		t.Fatal(err)
	}
	var began atomic.Int64
	var held, done sync.WaitGroup
	held.Add(2)
	for _, c := range waiting {
		done.Go(func() {
			first := true
			if err := y.DB.Write(y.ctx(), func(tx *db.Tx) error {
				began.Add(1)
				r, err := lockPending(tx, c.Key)
				if err != nil {
					return err
				}
				if first {
					first = false
					held.Done()
					held.Wait() // each has the row of its ask
				}
				return y.carryOut(tx, &r, &v)
			}); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	if n := began.Load(); n != 2 {
		t.Errorf("two transactions were begun %d times", n)
	}
	if len(y.mints) != 1 || *y.mints[0].BudgetMicros != 500_000 {
		t.Errorf("minted %+v", y.mints)
	}
}
