package ask

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/seed"
)

func TestMint(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		askID := y.file(nil)
		y.judge.say = always("```json\n" + says(object{"kind": "mint", "reason": "Two parts.", "tasks": []any{
			object{"repo": "acme/web", "title": "Say it loudly", "problem": "It is too quiet.", "depends_on": []int{1}, "priority": 70,
				"files": []string{"a/b.go"}},
			object{"repo": "acme/web", "title": "Say hello", "problem": "Nobody is greeted.", "kind": "scout"},
		}}) + "\n```")
		y.pass()
		a := y.want(askID, Triaged, "")
		if a.Verdict.Kind != Minted || a.Verdict.Reason != "Two parts." || len(a.Verdict.TaskIDs) != 2 || a.TriagedAt == nil {
			t.Fatalf("verdict %+v", a.Verdict)
		}
		rows := y.minted("acme")
		i := slices.IndexFunc(rows, func(r made) bool { return r.ID == a.Verdict.TaskIDs[0] })
		first := rows[i]
		if len(rows) != 2 || first.Priority != 70 || first.WaitingDeps != 1 || *first.AskID != askID ||
			!slices.Equal(first.Files.V, []string{"a/b.go"}) || first.Title != "Say it loudly" {
			t.Errorf("%d tasks, the first %+v", len(rows), first)
		}
		if other := rows[1-i]; other.Kind != "scout" || other.Priority != 50 || other.WaitingDeps != 0 {
			t.Errorf("the other %+v", other)
		}
		if got := all(y, audited, askID); !slices.Equal(got, []string{"ask.filed", "ask.triaged"}) {
			t.Errorf("audit rows %v", got)
		}
		y.later(time.Hour)
		y.pass()
		if n := y.judge.calls(); n != 1 || !slices.Equal(y.judge.ends, []string{"succeeded"}) {
			t.Errorf("the judge was asked %d times, sessions ended %v", n, y.judge.ends)
		}
	})
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		covering := y.existing("acme-web", "Greet")
		judged := func(v object) string {
			y.judge.say = always(says(v))
			askID := y.file(nil)
			y.pass()
			return askID
		}
		dup := judged(object{"kind": "drop", "reason": "A duplicate.", "covering_task_id": covering})
		noise := judged(object{"kind": "drop", "reason": "Noise."})
		link := judged(object{"kind": "cross_link", "reason": "In work.", "task_ids": []string{covering}})
		human := judged(object{"kind": "escalate", "reason": "Money is involved.", "category": "needs_decision"})
		if v := y.want(dup, Dropped, "").Verdict; v.Kind != NotNeeded || *v.CoveringTaskID != covering {
			t.Errorf("duplicate: %+v", v)
		}
		if v := y.want(noise, Dropped, "").Verdict; v.CoveringTaskID != nil {
			t.Errorf("noise: %+v", v)
		}
		if v := y.want(link, Triaged, "").Verdict; v.Kind != CrossLinked || !slices.Equal(v.TaskIDs, []string{covering}) {
			t.Errorf("link: %+v", v)
		}
		y.want(human, Escalated, "needs_decision")
		if got := one(y, openOf, human); got != "needs_decision" {
			t.Errorf("escalated for %s", got)
		}
		if n := len(y.minted("acme")); n != 1 {
			t.Errorf("%d tasks, want the one that was there", n)
		}
	})
}

// TestDedupe holds that one ask is filed under a key, however many nodes file
// it at once.
func TestDedupe(t *testing.T) {
	t.Parallel()
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			y := open(t, e)
			nodes := []*Service{y.Service}
			if e == db.Postgres {
				n := y.Needs
				n.Hub = event.NewHub()
				n.Due = duetest.New(n.DB, n.Hub)
				y2 := New(n)
				nodes = append(nodes, y2)
			}
			var wg sync.WaitGroup
			var mu sync.Mutex
			ids, fresh := map[string]bool{}, 0
			for i := range 50 {
				s := nodes[i%len(nodes)]
				wg.Go(func() {
					var a Ask
					var existing bool
					err := s.DB.Write(y.ctx(), func(tx *db.Tx) (err error) {
						a, existing, err = s.File(tx, Filing{Title: "t", Body: "b", DedupeKey: "k", Scopes: filer})
						return err
					})
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Error(err)
					}
					ids[a.ID] = true
					if !existing {
						fresh++
					}
				})
			}
			wg.Wait()
			if len(ids) != 1 || fresh != 1 {
				t.Errorf("%d asks, %d of them new", len(ids), fresh)
			}
			// Another account, and another namespace, have keys of their own.
			y.file(func(f *Filing) { f.DedupeKey, f.Source = "k", FromPlan })
			err := y.DB.Write(db.WithAccount(context.Background(), "rival"), func(tx *db.Tx) error {
				_, existing, err := y.File(tx, Filing{Title: "t", Body: "b", DedupeKey: "k", Scopes: filer})
				if existing {
					t.Error("an account is answered what another filed")
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if n := one(y, countAsks); n != 3 {
				t.Errorf("%d asks, want 3", n)
			}
		})
	}
}

// TestTwoNodes holds that two nodes that take asks at once never have one ask
// judged twice.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	y := open(t, db.Postgres)
	y.judge.say = always(mint("acme/web", nil))
	for range 12 {
		y.file(nil)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	for _, s := range []*Service{y.Service, y.node(y.dsn)} {
		loops.Go(func() {
			if err := s.Due.Loop(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	patience.Come(t, func() bool { return one(y, countTasks) >= 12 })
	cancel()
	loops.Wait()
	if n, calls := one(y, countTasks), y.judge.calls(); n != 12 || calls != 12 {
		t.Errorf("%d tasks after %d calls, want 12 of each", n, calls)
	}
}

// TestCorrected holds that a refused verdict goes back to the judge with the
// reasons, and that nothing of it is stored.
func TestCorrected(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		askID := y.file(nil)
		half := says(object{"kind": "mint", "reason": "Two.", "tasks": []any{
			object{"repo": "acme/web", "title": "a", "problem": "a"}, object{"repo": "acme/nowhere", "title": "b", "problem": "b"}}})
		y.judge.say = func(n int, turns []string) (string, error) {
			if n == 0 {
				return half, nil
			}
			if n := len(y.minted("acme")); n != 0 {
				t.Errorf("%d tasks of a verdict that was refused", n)
			}
			if last := turns[len(turns)-1]; len(turns) != 3 || turns[1] != half || !strings.Contains(last, "tasks.1.repo") {
				t.Errorf("the judge was told %q", last)
			}
			return mint("acme/web", nil), nil
		}
		y.pass()
		y.want(askID, Triaged, "")
	})
}

func TestNoVerdict(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		askID := y.file(nil)
		y.judge.say = always(`I would rather not say.`)
		y.pass()
		a := y.want(askID, Escalated, JudgeInvalid)
		if n := y.judge.calls(); n != maxCalls || !strings.HasSuffix(a.Verdict.Reason, "was not of the form that was asked for.") {
			t.Errorf("%d calls; %s", n, a.Verdict.Reason)
		}
		if _, err := y.redrive(y.ctx(), idIn{askID}); !errors.Is(err, fault.Reason("not_redrivable", "")) {
			t.Errorf("redriven: %v", err)
		}
	})
}

// TestNoModel holds that without a model a person is asked, and can send the
// ask back when there is a model.
func TestNoModel(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		askID := y.file(nil)
		y.judge.refuse = fault.New(fault.Forbidden, "no_credential", "The account has no key.")
		y.pass()
		a := y.want(askID, Escalated, JudgeUnavailable)
		if !strings.Contains(a.Verdict.Reason, "no key") {
			t.Error(a.Verdict.Reason)
		}
		y.judge.refuse, y.judge.say = nil, always(mint("acme/web", nil))
		out, err := y.redrive(y.ctx(), idIn{askID})
		if err != nil || out.State != Pending || out.Nudged {
			t.Fatalf("%+v, %v; no loop runs that could have been nudged", out, err)
		}
		if open := all(y, openOf, askID); len(open) != 0 {
			t.Errorf("still open: %v", open)
		}
		y.pass()
		y.want(askID, Triaged, "")
		if got := all(y, audited, askID); !slices.Equal(got, []string{"ask.filed", "ask.escalated", "ask.redriven", "ask.triaged"}) {
			t.Errorf("audit rows %v", got)
		}
	})
}

// TestPassing holds that a failure that may pass is waited for, a limited
// number of times.
func TestPassing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		askID := y.file(nil)
		y.judge.say = func(int, []string) (string, error) {
			return "", fault.New(fault.RateLimited, "provider_rate_limit", "Slow down.").After(time.Minute)
		}
		for n := range maxTries {
			y.want(askID, Pending, "")
			y.pass()
			if y.judge.calls() != n+1 {
				t.Fatalf("%d calls after %d rounds", y.judge.calls(), n+1)
			}
			y.pass() // nothing is due
			y.later(time.Hour)
		}
		if n := y.judge.calls(); n != maxTries {
			t.Errorf("%d calls", n)
		}
		y.want(askID, Escalated, JudgeUnavailable)
	})
}

// TestCrash holds that the ask of a node that is cut off goes to the next node after
// a while, and that a later answer of the first changes nothing.
func TestCrash(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		askID := y.file(nil)
		asked, answer := make(chan struct{}), make(chan struct{})
		y.judge.say = func(n int, _ []string) (string, error) {
			if n == 0 {
				close(asked)
				<-answer
			}
			return mint("acme/web", nil), nil
		}
		ended := make(chan error)
		go func() { ended <- y.Due.Drain(context.Background()) }()
		<-asked
		next := y.node(y.dsn)
		duetest.Pass(t.Context(), t, next.Due)
		y.want(askID, Pending, "")
		y.later(hold)
		duetest.Pass(t.Context(), t, next.Due)
		y.want(askID, Triaged, "")
		close(answer)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if n := len(y.minted("acme")); n != 1 {
			t.Errorf("%d tasks", n)
		}
	})
}

// TestPoison holds that an ask over which the server fails again and again is given
// to a person.
func TestPoison(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		askID := y.file(nil)
		y.judge.say = func(int, []string) (string, error) { panic("it is poison") }
		for range maxTries {
			y.want(askID, Pending, "")
			y.pass()
			y.later(time.Hour)
		}
		y.pass()
		y.want(askID, Escalated, JudgeUnavailable)
		if n := y.judge.calls(); n != maxTries {
			t.Errorf("the judge was asked %d times", n)
		}
	})
}

func TestFullQueue(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.existing("acme-web", "The only one")
		askID := y.file(nil)
		y.judge.say = always(says(object{"kind": "mint", "reason": "Two.", "tasks": []any{
			object{"repo": "acme/web", "title": "a", "problem": "a"}, object{"repo": "acme/web", "title": "b", "problem": "b"}}}))
		y.queueCap(1)
		y.pass()
		if y.want(askID, Pending, ""); y.judge.calls() != 0 {
			t.Error("the judge was asked though nothing can be minted")
		}
		y.queueCap(2) // room for one of the two
		y.later(queueWait)
		y.pass()
		y.want(askID, Pending, "")
		if n := len(y.minted("acme")); n != 1 {
			t.Fatalf("%d tasks: a verdict was carried out by half", n)
		}
		if n := y.entry(askID).Tries; n != 0 {
			t.Errorf("waiting for room has cost %d tries", n)
		}
		y.queueCap(3)
		y.later(queueWait)
		y.pass()
		y.want(askID, Triaged, "")
		y.queueCap(task.Uncapped)
		y.seats = 0
		none := y.file(nil)
		y.pass()
		y.want(none, Escalated, NoCapacity)
	})
}

// TestStop holds that a node that is stopped gives back the asks that it has.
func TestStop(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		ctx, cancel := context.WithCancel(context.Background())
		y.judge.say = func(int, []string) (string, error) {
			cancel()
			return "", context.Canceled
		}
		askID := y.file(nil)
		if err := y.Due.Loop(ctx); err != nil {
			t.Fatal(err)
		}
		if st := y.entry(askID); st.State != due.Ready || st.Tries != 0 || y.busy.Load() != 0 {
			t.Errorf("%+v; %d in work after the end", st, y.busy.Load())
		}
		y.want(askID, Pending, "")
	})
}

var newestAsk = db.Q[string](`SELECT id FROM asks ORDER BY id DESC`)

// TestBrief holds that the judge is shown what it needs, within the limits.
func TestBrief(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		shown := y.existing("acme-web", "Greet")
		elsewhere := y.existing("acme-api", "Answer")
		foreign := y.existing("rival-web", "Spy")
		y.write(func(tx *db.Tx) error { // one more that is online, and of no use
			if err := seed.Add(tx, seed.Box{ID: "unfit-box", Account: "acme", Slots: 1}); err != nil {
				return err
			}
			_, err := seed.SetUnfit.Exec(tx, "unfit-box", "No room.")
			return err
		})
		y.file(func(f *Filing) { f.Body = strings.Repeat("x", maxBody) })
		y.judge.say = always(says(object{"kind": "drop", "reason": "Noise."}))
		y.pass()
		prompt := y.judge.heard[0][0]
		for _, want := range []string{"acme/web", shown, "Be brief.", `"boxes_online":1`, "claude", "at most 80", "scout, setup, work",
			`"slug":"near/acme-web"`} {
			if !strings.Contains(prompt, want) {
				t.Errorf("%q is not in %s", want, clip(prompt, 2000))
			}
		}
		for _, not := range []string{foreign, elsewhere, "rival", "acme/api", "devops", "kb,"} {
			if strings.Contains(prompt, not) {
				t.Errorf("the judge is shown %q", not)
			}
		}
		if len(prompt) > 20_000 || !strings.Contains(y.judge.system, "slices") {
			t.Errorf("%d bytes", len(prompt))
		}
		y.file(func(f *Filing) { f.RepoIDs = nil })
		y.pass()
		wide := y.judge.heard[1][0]
		if !strings.Contains(wide, elsewhere) || strings.Contains(wide, foreign) || strings.Contains(wide, "attic") {
			t.Errorf("an ask for all repositories is judged with %s", wide)
		}
	})
}
