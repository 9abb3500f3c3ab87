package budget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/chance"
	"yardmaster/internal/proof/seed"
)

// stroll is a walk at random: tasks under limits, sessions that call models on two nodes, nodes
// that die and sessions that are lost.
type stroll struct {
	*world
	rnd    *rand.Rand
	seed   uint64
	nodes  []*Service
	limits map[string]int64 // by scope and ref
	live   map[string]bool  // sessions, by their task
	of     map[string]string
	serial int

	held  map[string]bool
	calls []call
	seen  map[string]int
}

// call is a call that is under way.
type call struct {
	on       *Service
	session  string
	reserved int64
}

// over are what the call ends for its session and for its key.
func (c call) over(cost *int64) []Call {
	of := Call{Session: c.session, Account: "acme", Reserved: c.reserved, Cost: cost, Key: "k", Capped: true}
	its := of
	its.Session, its.OfKey = "k", true
	return []Call{of, its}
}

const strollTasks = 4

// TestMoneyStopsNothingItCouldPay walks at random. After every step no meter exceeds its limit;
// after each look of the nodes no task is held that has room for the call that was refused.
func TestMoneyStopsNothingItCouldPay(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, w *world) {
		n := chance.Seed(t)
		m := &stroll{world: w, rnd: rand.New(rand.NewPCG(n, 1)), seed: n, limits: map[string]int64{}, live: map[string]bool{},
			of: map[string]string{}, held: map[string]bool{}, seen: map[string]int{}}
		TaskFreed.On(w.db, func(tx *db.Tx, f Freed) error {
			_, err := seed.FreeTask.Exec(tx, f.ID)
			tx.AfterCommit(func() {
				delete(m.held, f.ID)
				m.seen["goes on"]++
			})
			return err
		})
		for range 2 {
			m.nodes = append(m.nodes, m.boot())
		}
		m.write(func(tx *db.Tx) error {
			err := errors.Join(m.cap(tx, Account, "acme"), m.cap(tx, Member, "ada"), m.cap(tx, Repo, "repo"), m.cap(tx, Key, "k"))
			for i := range strollTasks {
				id := fmt.Sprint("t", i)
				m.limits[Task+" "+id] = 1 + m.rnd.Int64N(1_500_000)
				m.limits[OwnWork+" "+id] = m.limits[Task+" "+id] - m.limits[Task+" "+id]/keptShare
				err = errors.Join(err, seed.Add(tx, seed.Task{ID: id, Account: "acme", Repo: "repo", Status: "running",
					Budget: new(m.limits[Task+" "+id]), By: new("ada")}))
			}
			return err
		})
		steps := strings.Fields("begin begin call call both settle settle settle end crash raise look")
		for range 400 {
			step := steps[m.rnd.IntN(len(steps))]
			m.seen[step]++
			m.step(step)
			if m.check(); t.Failed() {
				t.Fatalf("seed %d: after %s", m.seed, step)
			}
		}
		t.Log(m.seen)
	})
}

func (m *stroll) boot() *Service {
	s := m.node()
	s.patience = 0
	return s
}

// cap sets a limit of the account, of ada, of the repository or of the key, which is never lower than before.
func (m *stroll) cap(tx *db.Tx, scope, ref string) error {
	at := scope + " " + ref
	m.limits[at] += m.rnd.Int64N(2_000_000)
	return storeLimit(tx, scope, ref, new(m.limits[at]))
}

func (m *stroll) step(name string) {
	s := m.nodes[m.rnd.IntN(2)]
	switch name {
	case "begin":
		task := fmt.Sprint("t", m.rnd.IntN(strollTasks))
		if m.live[task] || m.held[task] {
			return
		}
		m.serial++
		id := fmt.Sprint("x", m.serial)
		m.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.Session{ID: id, Account: "acme", Run: new("run-" + id), Task: new(task), Repo: "repo"})
		})
		m.live[task], m.of[id] = true, task
	case "call":
		if session := m.any(); session != "" {
			m.took(s, session, m.ask(s, session))
		}
	case "both": // two sessions at the same moment, on a node each
		a, b := m.any(), m.any()
		if a == "" || a == b {
			return
		}
		asks := [2]asked{m.quote(), m.quote()}
		var wg sync.WaitGroup
		for i, session := range []string{a, b} {
			wg.Go(func() { asks[i].reserve(m.nodes[i], session) })
		}
		wg.Wait()
		for i, session := range []string{a, b} {
			m.took(m.nodes[i], session, asks[i])
		}
	case "settle":
		if len(m.calls) == 0 {
			return
		}
		c := m.calls[0]
		m.calls = m.calls[1:]
		if m.rnd.IntN(10) == 0 {
			c.on.Abandon(c.over(nil))
			return
		}
		m.write(func(tx *db.Tx) error { return c.on.Settle(tx, c.over(new(m.rnd.Int64N(c.reserved+1)))) })
	case "end": // perhaps with calls under way, and on another node
		if session := m.any(); session != "" {
			m.over(s, session)
		}
	case "crash":
		i := m.rnd.IntN(2)
		dead, left := m.nodes[i], m.calls[:0]
		m.nodes[i] = m.boot()
		for _, c := range m.calls {
			if c.on != dead {
				left = append(left, c)
			}
		}
		m.calls = left
		m.write(func(tx *db.Tx) error { _, err := expire.Exec(tx, dead.Node); return err })
		m.must(m.nodes[i].Sweep(m.t.Context()))
	case "raise":
		m.write(func(tx *db.Tx) error {
			switch task := fmt.Sprint("t", m.rnd.IntN(strollTasks)); m.rnd.IntN(6) {
			case 0:
				return m.cap(tx, Account, "acme")
			case 1:
				return m.cap(tx, Member, "ada")
			case 2:
				return m.cap(tx, Repo, "repo")
			case 3:
				return m.cap(tx, Key, "k")
			default:
				to := m.limits[Task+" "+task] + m.rnd.Int64N(500_000)
				m.limits[Task+" "+task], m.limits[OwnWork+" "+task] = to, to-to/keptShare
				_, err := seed.SetBudget.Exec(tx, task, to)
				return err
			}
		})
		if m.rnd.IntN(2) == 0 { // or nobody is told
			m.write(func(tx *db.Tx) error { return s.Recheck(tx, "acme") })
		}
	case "look":
		for range 2 { // the first one takes back what the others do not use
			for _, s := range m.nodes {
				m.must(s.pass(m.t.Context()))
			}
		}
		m.noneHeldWithRoom()
	}
}

func (m *stroll) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatalf("seed %d: %v", m.seed, err)
	}
}

// any is a session that is live; "" if none is.
func (m *stroll) any() string {
	var all []string
	for i := range m.serial {
		if id := fmt.Sprint("x", i+1); m.of[id] != "" {
			all = append(all, id)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return all[m.rnd.IntN(len(all))]
}

// asked is a call that is asked for, and what came of it.
type asked struct {
	most, least, got int64
	err              error
}

func (m *stroll) quote() asked {
	most := m.rnd.Int64N(1_000_000)
	return asked{most: most, least: m.rnd.Int64N(most/3 + 1)}
}

func (a *asked) reserve(s *Service, session string) {
	ctx := context.Background()
	if a.got, a.err = s.Reserve(ctx, session, a.most, a.least); a.err != nil {
		return
	}
	if a.got, a.err = s.ReserveKey(ctx, session, "k", a.got, a.least); !fault.IsKind(a.err, fault.PaymentRequired) {
		return
	}
	refused, err := s.StopKeys(ctx, session, []string{"k"}, a.least, Model{})
	a.err = cmp.Or(err, refused)
}

func (m *stroll) ask(s *Service, session string) asked {
	a := m.quote()
	a.reserve(s, session)
	return a
}

func (m *stroll) took(s *Service, session string, a asked) {
	switch {
	case fault.IsKind(a.err, fault.PaymentRequired):
		m.over(s, session)
		m.write(func(tx *db.Tx) error { _, err := seed.HoldTask.Exec(tx, m.taskOf(session), SlugExhausted); return err })
		m.held[m.taskOf(session)] = true
		m.seen["is held"]++
	case a.err != nil:
		m.must(a.err)
	case a.got < a.least || a.got > a.most:
		m.t.Errorf("seed %d: %d of %+v", m.seed, a.got, a)
	default:
		m.calls = append(m.calls, call{s, session, a.got})
	}
}

// over ends a session on a node.
func (m *stroll) over(s *Service, session string) {
	m.end(s, session)
	m.live[m.of[session]] = false
	m.ended(session)
}

func (m *stroll) ended(session string) {
	m.of["over "+session] = m.of[session]
	delete(m.of, session)
}

func (m *stroll) taskOf(session string) string { return m.of["over "+session] }

// inDays is what the ledger of days says that an account has spent.
var inDays = db.Q[int64](`SELECT CAST(COALESCE(SUM(cost_micros), 0) AS BIGINT) FROM spend_days WHERE account_id = $1`)

// check wants no meter to exceed its limit, and every cent that was spent to stand in a day, once.
func (m *stroll) check() {
	m.t.Helper()
	spent := m.meters()[Account+" acme"].Spent
	m.write(func(tx *db.Tx) error {
		days, err := inDays.One(tx, "acme")
		if err == nil && days != spent {
			m.t.Errorf("seed %d: %d spent, and the days have %d", m.seed, spent, days)
		}
		return err
	})
	for at, b := range m.meters() {
		if limit, ok := m.limits[at]; ok && b.Reserved+b.Spent > limit {
			m.t.Errorf("seed %d: %s has %d set aside and %d spent of %d", m.seed, at, b.Reserved, b.Spent, limit)
		}
	}
}

var heldNeeds = db.Q[stopNeed](`SELECT t.id, b.need FROM tasks t LEFT JOIN budget_stops b ON b.task_id = t.id
	WHERE t.account_id = $1 AND t.status = 'held'`)

type stopNeed struct {
	ID   string
	Need *int64
}

// noneHeldWithRoom wants every held task to lack what the call costs that was refused.
func (m *stroll) noneHeldWithRoom() {
	m.t.Helper()
	meters := m.meters()
	var held []stopNeed
	m.write(func(tx *db.Tx) (err error) {
		held, err = heldNeeds.All(tx, "acme")
		return err
	})
	for _, h := range held {
		if h.Need == nil {
			m.t.Errorf("seed %d: nothing stops %s, and it is held", m.seed, h.ID)
			continue
		}
		least := int64(1) << 60
		for _, at := range []string{
			Account + " acme", Member + " ada", Repo + " repo", Key + " k", Task + " " + h.ID, OwnWork + " " + h.ID,
		} {
			least = min(least, m.limits[at]-meters[at].Reserved-meters[at].Spent)
		}
		if least > 0 && least >= *h.Need {
			m.t.Errorf("seed %d: %s is held for %d, and %d are left", m.seed, h.ID, *h.Need, least)
		}
	}
}
