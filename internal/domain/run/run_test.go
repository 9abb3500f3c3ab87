package run

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/protocol"
)

func TestWorkWithoutCommitsCompletes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		taskID := f.create(task.KindScout)
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, started()...)
		row := f.wantStatus(taskID, task.Running)
		if *row.BaseSHA != "base" {
			t.Errorf("base %v", row.BaseSHA)
		}
		f.mustSay(f.boxes[0], st, 5, finished(protocol.Finished{State: protocol.Succeeded, Report: "All is in main.go:12.",
			ReportBy: "report_md"}))
		f.wantStatus(taskID, task.Completed)
		r := f.run(f.boxes[0], st.Run)
		if *r.Outcome != Succeeded || r.State != Ended || *r.AgentVersion != "2" || *r.Isolation != "landlock" ||
			f.live(st.ModelToken, TokenModel) {
			t.Errorf("run %+v", r)
		}
		f.mustSay(f.boxes[0], st, 6, ev("agent.update", nil))
		if got := f.run(f.boxes[0], st.Run).CommittedSeq; got != 5 {
			t.Errorf("an ended run took events: %d", got)
		}
	})
}

func TestEndings(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		f       protocol.Finished
		status  task.Status
		kind    string
		charged int64
	}{
		"nothing delivered": {protocol.Finished{State: protocol.Succeeded}, task.Pending, task.ReportMissing, 1},
		"agent failed": {protocol.Finished{State: protocol.Failed, Kind: task.AgentError, Error: "boom"}, task.Pending,
			task.AgentError, 1},
		"provider's limit": {protocol.Finished{State: protocol.Failed, Kind: task.AgentError, Error: "HTTP 429 Too Many Requests"},
			task.Pending, task.ProviderRateLimit, 0},
		"unknown kind": {protocol.Finished{State: protocol.Failed, Kind: "gremlins"}, task.Pending, task.AgentError, 1},
		"blocked":      {protocol.Finished{State: protocol.Failed, Kind: task.Blocked}, task.Held, task.Blocked, 0},
		"given back": {protocol.Finished{State: protocol.Halted, WIP: true, Tip: "wip", Paths: []string{"a"}}, task.Pending,
			task.BoxDrained, 0},
		"lost by the box": {protocol.Finished{State: protocol.Lost}, task.Pending, task.BoxLost, 0},
		"unfit box": {protocol.Finished{State: protocol.Failed, Kind: task.BoxUnfit, Error: "HTTP 429"}, task.Pending,
			task.BoxUnfit, 0},
		"unfit box, lost": {protocol.Finished{State: protocol.Lost, Kind: task.BoxUnfit, Error: "no room", WIP: true, Tip: "wip"},
			task.Pending, task.BoxUnfit, 0},
		"host that is down": {protocol.Finished{State: protocol.Failed, Kind: task.PushRejected, Error: "HTTP 503", Busy: true},
			task.Pending, task.PushRejected, 0},
		"push that is refused": {protocol.Finished{State: protocol.Failed, Kind: task.PushRejected, Error: "not today"},
			task.Pending, task.PushRejected, 1},
		"agent that says the host is down": {protocol.Finished{State: protocol.Failed, Kind: task.AgentError, Error: "boom", Busy: true},
			task.Pending, task.AgentError, 1},
		"text from hell": {protocol.Finished{State: protocol.Failed, Error: "a\x00b" + strings.Repeat("é", 5000)}, task.Pending,
			task.AgentError, 1},
	}
	each(t, func(t *testing.T, f *fixture) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				f := f.tenant()
				f.t = t
				taskID := f.create(task.KindWork)
				st := f.claim(f.boxes[0])
				f.mustSay(f.boxes[0], st, 1, append(started(), finished(c.f))...)
				got := f.wantStatus(taskID, c.status)
				if *got.FailureKind != c.kind || got.Charged != c.charged || got.RunID != nil && got.Status == task.Pending {
					t.Errorf("task %+v", got)
				}
				// One envelope held all events.
				if r := f.run(f.boxes[0], st.Run); r.AcceptedAt == nil || r.StartedAt == nil || r.Isolation == nil ||
					*r.Isolation != "landlock" ||
					!slices.Equal(wire(&r).Holds, []string{"files", "network"}) || *r.AgentVersion != "2" {
					t.Errorf("run %+v", r)
				}
				// The box is blamed for a fault of its own alone.
				if told := f.faulty[f.boxes[0]]; (len(told) == 1 && told[0] == c.f.Error) != (c.kind == task.BoxUnfit) || len(told) > 1 ||
					f.faulty[f.boxes[1]] != nil {
					t.Errorf("the box is said to be unfit: %q", told)
				}
				if c.f.WIP && (got.WIPSHA == nil || *got.WIPSHA != "wip") {
					t.Errorf("saved work %v", got.WIPSHA)
				}
			})
		}
	})
}

// TestUnfitBoxIsNotedWithTheEnd holds that a fault of the box is stored in the
// transaction that ends the run: if that fails, nothing is stored, and the box
// sends its last event again.
func TestUnfitBoxIsNotedWithTheEnd(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.others.deaf = true
		taskID := f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, started()...)
		last := finished(protocol.Finished{State: protocol.Failed, Kind: task.BoxUnfit, Error: "no room"})
		if err := f.say(f.boxes[0], st, 5, last); err == nil {
			t.Error("the end was taken")
		}
		f.wantStatus(taskID, task.Running)
		if r := f.run(f.boxes[0], st.Run); r.EndedAt != nil || r.CommittedSeq != 4 {
			t.Errorf("run %+v", r)
		}
		f.others.deaf = false
		for range 2 { // the second time it is passed over
			f.mustSay(f.boxes[0], st, 5, last)
		}
		f.wantStatus(taskID, task.Pending)
		if r := f.run(f.boxes[0], st.Run); *r.Outcome != Failed || *r.FailureKind != task.BoxUnfit || *r.Error != "no room" ||
			len(f.faulty[f.boxes[0]]) != 1 {
			t.Errorf("run %+v, told %v", r, f.faulty)
		}
	})
}

// TestUnfitBoxOfAHaltedRun holds that a halted run ends for the reason of the
// halt even if its box reports itself unfit, and that the box is marked as
// unfit.
func TestUnfitBoxOfAHaltedRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		taskID := f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, started()...)
		f.write(func(tx *db.Tx) error { return Halt(tx, st.Run, task.BudgetExhausted, "budget") })
		f.mustSay(f.boxes[0], st, 5, finished(protocol.Finished{State: protocol.Failed, Kind: task.BoxUnfit, Error: "no room"}))
		if row := f.wantStatus(taskID, task.Held); *row.FailureKind != task.BudgetExhausted || len(f.faulty[f.boxes[0]]) != 1 {
			t.Errorf("task %+v, told %v", row, f.faulty)
		}
	})
}

func TestSettlerSettles(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.others.settle = func(tx *db.Tx, t *task.Row, r *Row, fin Ending) (bool, error) {
			if fin.Tip == "" || *r.Outcome != Succeeded || tx.Account != f.account {
				return false, nil
			}
			return true, f.Tasks.ToAwaitingCI(tx, t, "pr-1")
		}
		taskID := f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, finished(protocol.Finished{State: protocol.Succeeded, Tip: "tip"}))
		if row := f.wantStatus(taskID, task.AwaitingCI); *row.PRID != "pr-1" {
			t.Errorf("task %+v", row)
		}
	})
}

func TestGapsComeAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, started()...)
		if err := f.say(f.boxes[0], st, 6, ev("agent.update", nil)); err == nil {
			t.Error("a gap was stored")
		}
		f.mustSay(f.boxes[0], st, 3, ev("x", nil), ev("y", nil), ev("agent.update", nil), ev("agent.update", nil))
		if got := f.run(f.boxes[0], st.Run).CommittedSeq; got != 6 {
			t.Errorf("committed %d, want 6", got)
		}
		f.mustSay(f.boxes[1], st, 7, finished(protocol.Finished{State: protocol.Failed}))
		old := *st
		old.Attempt++
		f.mustSay(f.boxes[0], &old, 7, finished(protocol.Finished{State: protocol.Failed}))
		if r := f.run(f.boxes[0], st.Run); r.CommittedSeq != 6 || r.EndedAt != nil {
			t.Errorf("a foreign box or another attempt changed the run: %+v", r)
		}
	})
}

func TestLeases(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := context.Background()
		taskID := f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		if got, err := f.Accept(ctx, f.boxes[0], protocol.Accept{Run: st.Run, Attempt: 1}); err != nil || !got.OK || got.LeaseMS != 60_000 {
			t.Fatalf("accept: %+v %v", got, err)
		}
		f.mustSay(f.boxes[0], st, 1, started()...)
		f.pass(70 * time.Second)
		if got, err := f.Renew(ctx, f.boxes[0], protocol.Renew{Run: st.Run, Attempt: 1}); err != nil || !got.OK || got.CommittedSeq != 4 {
			t.Fatalf("renew: %+v %v", got, err)
		}
		f.pass(70 * time.Second)
		f.scan()
		f.wantStatus(taskID, task.Running)
		_, fresh, err := f.gitToken(ctx, f.boxes[0], protocol.GitTokenAsk{Run: st.Run, Attempt: 1})
		if err != nil || f.live(st.GitToken, TokenGit) || !f.live(fresh, TokenGit) {
			t.Errorf("git token: %v", err)
		}
		f.pass(6 * time.Second)
		f.scan()
		row := f.wantStatus(taskID, task.Pending)
		if *row.FailureKind != task.LeaseExpired || row.Charged != 0 {
			t.Errorf("task %+v", row)
		}
		if f.live(fresh, TokenGit) || f.live(st.ModelToken, TokenModel) {
			t.Error("tokens outlive the lease")
		}
		if got, err := f.Renew(ctx, f.boxes[0], protocol.Renew{Run: st.Run, Attempt: 1}); err != nil || got.OK {
			t.Errorf("a lost lease was renewed: %+v %v", got, err)
		}
		if _, _, err := f.gitToken(ctx, f.boxes[0], protocol.GitTokenAsk{Run: st.Run, Attempt: 1}); err == nil {
			t.Error("a lost attempt got a push token")
		}
		if next := f.claim(f.boxes[1]); next == nil || next.Attempt != 2 {
			t.Errorf("next try: %+v", next)
		}
	})
}

func TestStuck(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := context.Background()
		taskID := f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, started()...)
		for range 16 {
			f.pass(time.Minute)
			if _, err := f.Renew(ctx, f.boxes[0], protocol.Renew{Run: st.Run, Attempt: 1}); err != nil {
				t.Fatal(err)
			}
		}
		f.scan()
		if !f.task(taskID).Stuck {
			t.Error("16 silent minutes are not stuck")
		}
		f.pass(time.Second)
		f.mustSay(f.boxes[0], st, 5, ev("agent.update", nil))
		f.scan()
		if f.task(taskID).Stuck {
			t.Error("still stuck after news")
		}
		if status := f.post("/v1/tasks/" + taskID + "/redispatch"); status != 409 {
			t.Errorf("redispatch of a task that moves answers %d", status)
		}
		for range 16 {
			f.pass(time.Minute)
			if _, err := f.Renew(ctx, f.boxes[0], protocol.Renew{Run: st.Run, Attempt: 1}); err != nil {
				t.Fatal(err)
			}
		}
		f.scan()
		if status := f.post("/v1/tasks/" + taskID + "/redispatch"); status != 200 {
			t.Errorf("redispatch of a stuck task answers %d", status)
		}
		if row := f.wantStatus(taskID, task.Pending); row.Attempt != 0 || row.Stuck || f.live(st.ModelToken, TokenModel) {
			t.Errorf("redispatched task %+v", row)
		}
	})
}

func TestHello(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		kept, forgotten := f.create(task.KindWork), f.create(task.KindWork)
		a, b := f.claim(f.boxes[0]), f.claim(f.boxes[0])
		if a.Task != kept {
			a, b = b, a
		}
		f.mustSay(f.boxes[0], a, 1, started()...)
		refs := []protocol.RunRef{{Run: a.Run, Attempt: 1, Seq: 9}, {Run: "gone", Attempt: 3}}
		v, err := f.Verdicts(context.Background(), f.boxes[0], refs)
		if err != nil || len(v) != 2 || v[0].Do != protocol.DoContinue || v[0].FromSeq != 5 || v[0].LeaseMS != 60_000 ||
			v[1].Do != protocol.DoKill {
			t.Fatalf("verdicts %+v %v", v, err)
		}
		f.wantStatus(forgotten, task.Claimed) // its claim's answer may be under way
		f.pass(6 * time.Second)
		if _, err := f.Verdicts(context.Background(), f.boxes[0], refs); err != nil {
			t.Fatal(err)
		}
		f.wantStatus(kept, task.Running)
		if row := f.wantStatus(forgotten, task.Pending); *row.FailureKind != task.BoxLost || f.live(b.ModelToken, TokenModel) {
			t.Errorf("forgotten run: %+v", row)
		}
	})
}

func TestCancelHaltsTheBox(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		taskID := f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, started()...)
		f.write(func(tx *db.Tx) error {
			row, _, err := task.Lock(tx, f.account, taskID)
			if err != nil {
				return err
			}
			return f.Tasks.Cancel(tx, &row)
		})
		f.wantStatus(taskID, task.Cancelled)
		if r := f.run(f.boxes[0], st.Run); *r.Outcome != Interrupted || f.live(st.GitToken, TokenGit) {
			t.Errorf("run %+v", r)
		}
		owed := f.commands.of(f.boxes[0])
		if len(owed) != 1 || owed[0].Kind != protocol.CommandHalt || owed[0].Run != st.Run || owed[0].Mode != protocol.HaltNow {
			t.Errorf("commands owed: %+v", owed)
		}
	})
}

func TestTakenWorkMayBeSavedForAWhile(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		rescue := func(token string) bool {
			t.Helper()
			var a Access
			var ok bool
			err := f.DB.Read(context.Background(), func(tx *db.Tx) (err error) {
				a, ok, err = RescueByToken(tx, token)
				return err
			})
			if err != nil || ok && (a.RunID == "" || a.Branch == "") {
				t.Fatalf("access %+v, %v", a, err)
			}
			return ok
		}
		f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, started()...)
		_, fresh, err := f.gitToken(context.Background(), f.boxes[0], protocol.GitTokenAsk{Run: st.Run, Attempt: 1})
		if err != nil || rescue(fresh) {
			t.Errorf("a live run is rescued: %v", err)
		}
		f.pass(2 * time.Minute)
		f.scan()
		if !rescue(fresh) || f.live(fresh, TokenGit) || rescue(st.GitToken) || rescue(st.ModelToken) {
			t.Error("after the lease is lost, the newest git token and no other saves the work")
		}
		f.pass(10 * time.Minute)
		if rescue(fresh) {
			t.Error("work is saved for more than ten minutes")
		}

		taskID := f.create(task.KindWork)
		if st = f.claim(f.boxes[0]); st.Task != taskID {
			st = f.claim(f.boxes[0])
		}
		f.mustSay(f.boxes[0], st, 1, started()...)
		f.write(func(tx *db.Tx) error {
			row, _, err := task.Lock(tx, f.account, taskID)
			if err != nil {
				return err
			}
			return f.Tasks.Cancel(tx, &row)
		})
		if rescue(st.GitToken) {
			t.Error("cancelled work is saved")
		}
		f.create(task.KindWork)
		st = f.claim(f.boxes[1])
		f.write(func(tx *db.Tx) error {
			_, err := f.Revoked(tx, f.boxes[1])
			return err
		})
		if rescue(st.GitToken) {
			t.Error("a revoked box saves work")
		}
	})
}

func TestEvacuate(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		taskID, waiting := f.create(task.KindWork), f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		if st.Task != taskID {
			taskID, waiting = waiting, taskID
		}
		other := f.claim(f.boxes[1])
		f.write(func(tx *db.Tx) error {
			n, err := f.Revoked(tx, f.boxes[0])
			if n != 1 {
				t.Errorf("%d runs given back", n)
			}
			return err
		})
		f.wantStatus(taskID, task.Pending)
		f.wantStatus(waiting, task.Claimed)
		if f.live(st.ModelToken, TokenModel) || !f.live(other.ModelToken, TokenModel) {
			t.Error("the wrong tokens died")
		}
	})
}

func TestFailureKind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, text, want string }{
		{task.AgentError, "request failed: status code 429", task.ProviderRateLimit},
		{task.AgentError, "API Error: 401 {\"type\":\"authentication_error\"}", task.ProviderAuth},
		{task.AgentCrashed, "You exceeded your current quota", task.ProviderQuota},
		{task.AgentError, "prompt is too long: 210000 tokens", task.ContextOverflow},
		{task.AgentError, "The model `m-9` does not exist", task.ModelUnavailable},
		{task.AgentError, "529 overloaded_error", task.ProviderUnavailable},
		{task.AgentError, "panic at parser.go line 500", task.AgentError},
		{task.AgentCrashed, "", task.AgentCrashed},
		{task.RunTimeout, "HTTP 429", task.RunTimeout},
		{task.BoxUnfit, "HTTP 429", task.BoxUnfit},
		{"", "", task.AgentError},
	} {
		if got := failureKind(c.kind, c.text); got != c.want {
			t.Errorf("failureKind(%q, %q) = %s, want %s", c.kind, c.text, got, c.want)
		}
	}
}

// TestA13ParkedRunSpendsNoTry holds that a run whose keys all rest ends with its work saved,
// also if its agent took the refusal for a failure first, and that its task waits until the
// first key serves again with all its tries. A halt for another reason before it stays.
func TestA13ParkedRunSpendsNoTry(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		const why = "No key of the account serves the call before then."
		for _, state := range []string{protocol.Halted, protocol.Failed} {
			taskID := f.create(task.KindWork)
			st := f.claim(f.boxes[0])
			f.mustSay(f.boxes[0], st, 1, started()...)
			var until time.Time
			f.write(func(tx *db.Tx) error {
				until = tx.Now.Add(time.Hour)
				if err := Park(tx, st.Run, task.ProviderQuota, why, until); err != nil {
					return err
				}
				return Park(tx, st.Run, task.ProviderAuth, "again", until.Add(time.Hour))
			})
			f.mustSay(f.boxes[0], st, 5, finished(protocol.Finished{
				State: state, Kind: map[string]string{protocol.Failed: task.AgentError}[state], Error: "429",
				WIP: true, Tip: strings.Repeat("a", 40), Base: strings.Repeat("b", 40),
			}))
			row := f.wantStatus(taskID, task.Pending)
			if !row.NotBefore.Equal(until) || row.Charged != 0 || row.Uncharged != 0 || *row.FailureKind != task.ProviderQuota ||
				*row.Failure != why || row.WIPSHA == nil {
				t.Errorf("%s: %+v", state, row)
			}
			if r := f.run(f.boxes[0], st.Run); *r.Outcome != Interrupted || *r.FailureKind != task.ProviderQuota || *r.Error != why {
				t.Errorf("%s: run %+v", state, r)
			}
		}
	})
}
