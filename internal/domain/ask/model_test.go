package ask

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/chance"
	"yardmaster/internal/proof/seed"
)

var steps = flag.Int("steps", 250, "random steps of the model test")

// TestRandomVerdicts files asks, judges them with verdicts of every kind and
// none, crashes, redrives and changes rights, in any order. After each step it
// holds that every ask is in a state that it may have, and every task is one
// that may exist.
func TestRandomVerdicts(t *testing.T) {
	t.Parallel()
	seed := chance.Seed(t)
	onBoth(t, func(y *yard) {
		m := &model{yard: y, rng: rand.New(rand.NewPCG(seed, 7)), last: map[string]Ask{}}
		m.links = []string{y.existing("acme-web", "One"), y.existing("acme-api", "Two"), y.existing("rival-web", "Theirs"), id.Random()}
		m.base = one(y, countTasks)
		m.judged(mint("acme/web", nil), Triaged, "")
		m.judged("{", Escalated, JudgeInvalid)
		y.judge.say = func(int, []string) (string, error) {
			m.lots.Lock()
			defer m.lots.Unlock()
			return m.answer()
		}
		for n := range *steps {
			m.step()
			if m.check(); y.t.Failed() {
				y.t.Fatalf("after step %d of seed %d", n, seed)
			}
		}
		if len(m.last) < 3 || m.minted == 0 || m.refused == 0 {
			y.t.Errorf("%d asks, %d tasks, %d refusals: the steps lead nowhere", len(m.last), m.minted, m.refused)
		}
	})
}

type model struct {
	*yard
	rng     *rand.Rand
	lots    sync.Mutex // of the judge, who is asked about several asks at once
	links   []string
	last    map[string]Ask
	base    int64
	minted  int
	refused int
}

// judged files an ask that a judge with this answer brings to a state. Every walk begins
// with a task and a refusal, which are then there to be met: no lot decides on them.
func (m *model) judged(answer string, to State, reason string) {
	m.t.Helper()
	m.judge.say = always(answer)
	askID := m.file(nil)
	m.pass()
	m.want(askID, to, reason)
}

func pick[T any](m *model, of ...T) T { return of[m.rng.IntN(len(of))] }

func (m *model) step() {
	m.t.Helper()
	switch m.rng.IntN(10) {
	case 0, 1, 2:
		m.file(func(f *Filing) {
			f.RepoIDs = pick(m, nil, nil, []string{"acme-web"}, []string{"acme-api"}, []string{"acme-web", "acme-attic"})
			f.Scopes = pick(m, filer, filer, policy.Scopes(policy.ReadTasks), filer|policy.Scopes(policy.WriteRunners))
			f.UserID = pick(m, "ann", "olga", "olga", "", "mallory")
			if m.rng.IntN(3) == 0 {
				f.DedupeKey = fmt.Sprint(m.rng.IntN(5))
			}
		})
	case 3, 4, 5:
		m.pass()
	case 6: // a node that dies with some
		m.write(func(tx *db.Tx) error {
			_, err := dies.Exec(tx, db.Micros(tx.Now.Add(hold)), tx.Micros())
			return err
		})
	case 7:
		m.later(pick(m, time.Second, hold, time.Hour))
	case 8:
		for askID := range m.last {
			_, err := m.redrive(m.ctx(), idIn{askID})
			if err != nil && !fault.IsKind(err, fault.Conflict) {
				m.t.Fatal(err)
			}
			break
		}
	case 9:
		m.queueCap(int64(pick(m, -1, -1, 1, int(one(m.yard, countTasks))+1)))
		m.write(func(tx *db.Tx) error {
			if _, err := seed.SetEnabled.Exec(tx, pick(m, "acme-web", "acme-api"), pick(m, true, true, false)); err != nil {
				return err
			}
			_, err := seed.SetRole.Exec(tx, "acme", "ann", string(pick(m, policy.Viewer, policy.Member)))
			return err
		})
	}
}

// answer returns a verdict that may be right or wrong in any part.
func (m *model) answer() (string, error) {
	switch m.rng.IntN(12) {
	case 0:
		return "", fault.New(fault.Unavailable, "provider_unavailable", "Not now.")
	case 1:
		return "", fault.New(fault.Forbidden, "provider_auth", "The key is refused.")
	case 2:
		return "{", nil
	case 3, 4, 5:
		return mint(pick(m, "acme/web", "acme/api"), nil), nil
	}
	v := object{"kind": pick(m, doMint, doMint, doMint, doDrop, doCrossLink, doEscalate, doPlan, "x"),
		"reason": pick(m, "r", "r", "r", "r", "r", "r", "")}
	if v["kind"] == doMint || m.rng.IntN(20) == 0 {
		var list []any
		for range pick(m, 0, 1, 1, 1, 2, 3) {
			p := object{"repo": pick(m, "acme/web", "acme/web", "acme/web", "acme/api", "acme/api", "acme/attic", "rival/web"),
				"title": pick(m, "t", "t", "t", "t", "t", "t\n"), "problem": "p"}
			if m.rng.IntN(4) == 0 {
				p["priority"] = pick(m, 0, 50, 80, 100)
			}
			if m.rng.IntN(4) == 0 {
				p["kind"] = pick(m, "work", "scout", "kb", "devops", "ci")
			}
			if m.rng.IntN(4) == 0 {
				p["depends_on"] = []int{m.rng.IntN(3)}
			}
			list = append(list, p)
		}
		v["tasks"] = list
	}
	if v["kind"] == doDrop && m.rng.IntN(2) == 0 {
		v["covering_task_id"] = pick(m, m.links...)
	}
	if v["kind"] == doCrossLink {
		v["task_ids"] = []string{pick(m, m.links...), pick(m, m.links...)}[:1+m.rng.IntN(2)]
	}
	if v["kind"] == doEscalate {
		v["category"] = pick(m, "unclear", "sensitive", "agent")
	}
	return says(v), nil
}

// check holds the rules that are true at any time.
func (m *model) check() {
	m.t.Helper()
	tasks := map[string]made{}
	for _, r := range m.yard.minted("acme") {
		tasks[r.ID] = r
	}
	var all []row
	if err := m.DB.Read(m.ctx(), func(tx *db.Tx) (err error) {
		all, err = everyAsk.All(tx)
		return err
	}); err != nil {
		m.t.Fatal(err)
	}
	m.minted = 0
	m.refused = 0
	for i := range all {
		r := &all[i]
		a := r.wire()
		before, seen := m.last[a.ID]
		if seen && before.State != a.State && !m.reachable(before, a) {
			m.t.Errorf("ask %s went from %s (%s) to %s", a.ID, before.State, deref(before.EscalationReason), a.State)
		}
		m.last[a.ID] = a
		open := all2(m, r.ID)
		if (a.State == Pending) != (a.Verdict == nil) || (a.State == Pending) != (a.TriagedAt == nil) ||
			(a.State == Escalated) != (a.EscalationReason != nil) || (a.State == Escalated) != (open == 1) {
			m.t.Errorf("ask %+v, verdict %+v, %d open escalations", a, a.Verdict, open)
		}
		if a.Verdict == nil {
			continue
		}
		if a.Verdict.Kind == ToPerson && *a.EscalationReason == JudgeInvalid {
			m.refused++
		}
		if a.Verdict.Kind != Minted {
			for _, taskID := range append(slices.Clone(a.Verdict.TaskIDs), deref(a.Verdict.CoveringTaskID)) {
				if taskID != "" && (tasks[taskID].ID == "" || !r.within(tasks[taskID].RepoID)) {
					m.t.Errorf("%+v names a task that the ask does not reach", a.Verdict)
				}
			}
			continue
		}
		m.minted += len(a.Verdict.TaskIDs)
		for _, taskID := range a.Verdict.TaskIDs {
			got := tasks[taskID]
			if deref(got.AskID) != a.ID || !r.within(got.RepoID) || got.RepoID == "acme-attic" || got.Priority > r.maxPriority() ||
				got.Kind == "ci" || got.Status != "pending" {
				m.t.Errorf("ask %+v has the task %+v", a, got)
			}
			if got.Kind == "devops" || got.Kind == "kb" {
				m.t.Errorf("%s has a task of kind %s", a.ID, got.Kind)
			}
		}
	}
	if n := one(m.yard, countTasks); n != m.base+int64(m.minted) {
		m.t.Errorf("%d tasks, but verdicts name %d", n-m.base, m.minted)
	}
}

// reachable tells whether one step may take an ask from one state to another. A
// pass may follow a redrive within one step.
func (m *model) reachable(from, to Ask) bool {
	reason := deref(from.EscalationReason)
	return from.State == Pending ||
		from.State == Escalated && to.State == Pending && (reason == JudgeUnavailable || slices.Contains(Approvable(), reason))
}

func all2(m *model, askID string) int { return len(all(m.yard, openOf, askID)) }

var everyAsk = db.Q[row](`SELECT ` + columns + ` WHERE a.account_id = 'acme'`)
