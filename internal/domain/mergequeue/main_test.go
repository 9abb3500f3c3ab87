package mergequeue

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

var errKilled = errors.New("the node was killed")

// forge is a code host whose commits are sets of heads. A tree fails its check if it has a
// bad head, or two heads that do not work together.
type forge struct {
	codehost.Host
	base    string              // the commit of main
	heads   map[string][]string // commit -> the heads that it has, sorted
	made    int
	clashes [][2]string // heads that conflict
	bad     map[string]bool
	rivals  [][2]string // heads that fail together
	needs   [][2]string // heads that fail without another one
	refs    map[string]string
	kill    func(step string) bool // whether the node dies before a step
	checked int
}

func sum(s string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(s))) }

func (f *forge) commit(heads []string) string {
	f.made++
	sha := sum(fmt.Sprint("commit", f.made))
	f.heads[sha] = heads
	return sha
}

func (f *forge) tree(heads []string) string { return sum("tree" + strings.Join(heads, ",")) }

func both(pairs [][2]string, in []string) bool {
	return slices.ContainsFunc(pairs, func(p [2]string) bool { return slices.Contains(in, p[0]) && slices.Contains(in, p[1]) })
}

// works tells whether a tree passes its check.
func (f *forge) works(in []string) bool {
	if slices.ContainsFunc(f.needs, func(p [2]string) bool { return slices.Contains(in, p[0]) && !slices.Contains(in, p[1]) }) {
		return false
	}
	return !both(f.rivals, in) && !slices.ContainsFunc(in, func(h string) bool { return f.bad[h] })
}

func (f *forge) Head(_ context.Context, _ codehost.Repo, branch string) (string, error) {
	if f.kill("head") {
		return "", errKilled
	}
	if branch == "main" {
		return f.base, nil
	}
	if sha, ok := f.refs[branch]; ok {
		return sha, nil
	}
	return "", codehost.ErrNotFound
}

func (f *forge) Stack(_ context.Context, _ codehost.Repo, o codehost.StackOptions) (codehost.Stacked, error) {
	if f.kill("stack") {
		return codehost.Stacked{}, errKilled
	}
	out := codehost.Stacked{SHA: o.BaseSHA, Conflict: -1}
	in := f.heads[o.BaseSHA]
	for i, h := range o.Heads {
		out.HeadTrees = append(out.HeadTrees, f.tree([]string{h}))
		if slices.Contains(in, h) {
			continue
		}
		next := slices.Sorted(slices.Values(append(slices.Clone(in), h)))
		if both(f.clashes, next) {
			out.Conflict = i
			return out, nil
		}
		in = next
		out.SHA = f.commit(in)
	}
	out.Tree = f.tree(in)
	return out, nil
}

func (f *forge) PutBranch(_ context.Context, _ codehost.Repo, branch, sha string) error {
	if f.kill("put") {
		return errKilled
	}
	f.refs[branch] = sha
	if f.kill("put, and then") {
		return errKilled
	}
	return nil
}

func (f *forge) DeleteBranch(_ context.Context, _ codehost.Repo, branch, _ string) error {
	if f.kill("delete") {
		return errKilled
	}
	delete(f.refs, branch)
	return nil
}

func (f *forge) Compare(context.Context, codehost.Repo, string, string) (codehost.Comparison, error) {
	if f.kill("compare") {
		return codehost.Comparison{}, errKilled
	}
	return codehost.Comparison{}, nil
}

// yard is two nodes of a server with one repository, and what has become of its orders.
type yard struct {
	t     *testing.T
	db    *db.DB
	clock atomic.Int64
	forge *forge
	nodes [2]*Service
	repo  repo.Ref
	on    bool

	orders   map[string]*order // by the id of the pull request
	checks   map[string]Result // by commit
	stopped  []string
	rejected map[string]string // reasons, by the id of the pull request
	turns    int
	intents  [2]*intent.Service
}

// order is a pull request with an approved merge.
type order struct {
	pr, action, head string
	number           int64
	open, merged     bool
	fork             bool
	by               string // the commit that brought its head into the base
	at               time.Time
}

func open(t *testing.T, e db.Engine) *yard {
	y := &yard{t: t}
	y.clock.Store(time.Unix(1_800_000_000, 0).UnixMicro())
	y.db = dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: func() time.Time { return time.UnixMicro(y.clock.Load()) }})
	y.write(func(tx *db.Tx) error { return seed.Add(tx, seed.Account{ID: "acme"}) })
	TurnCame.On(y.db, func(tx *db.Tx, _ string) error { tx.AfterCommit(func() { y.turns++ }); return nil })
	HeadRejected.On(y.db, func(tx *db.Tx, o ThrownOut) error {
		tx.AfterCommit(func() {
			if y.rejected[o.PRID] != "" {
				t.Errorf("%s was thrown out twice", o.PRID)
			}
			y.rejected[o.PRID] = o.Reason
			y.orders[o.PRID].open = false
		})
		return nil
	})
	y.begin("r0")
	return y
}

// begin has the yard go on with another repository.
func (y *yard) begin(repoID string) {
	y.forge = &forge{
		heads: map[string][]string{}, bad: map[string]bool{}, refs: map[string]string{}, kill: func(string) bool { return false },
	}
	y.forge.base = y.forge.commit(nil)
	y.orders, y.checks, y.rejected, y.on = map[string]*order{}, map[string]Result{}, map[string]string{}, true
	y.stopped, y.turns = nil, 0
	for i := range y.nodes {
		hosts := codehost.NewHosts(map[string]codehost.Sides{codehost.BuiltIn: {Host: y.forge, Forge: builtin.Forge{}}})
		hub, log := event.NewHub(), slog.New(slog.DiscardHandler)
		y.intents[i] = intent.New(intent.Needs{DB: y.db, Due: duetest.New(y.db, hub), Hosts: hosts, Logger: log})
		y.nodes[i] = New(Needs{
			DB: y.db, Hub: hub, Hosts: hosts, Logger: log, Orders: y, Checks: y, Intents: y.intents[i],
			Bot: codehost.Person{Name: "Yardmaster", Email: "yardmaster@localhost"},
		})
	}
	y.write(func(tx *db.Tx) error {
		if err := seed.Add(tx, seed.Repo{ID: repoID, Account: "acme", Name: repoID}); err != nil {
			return err
		}
		_, err := seed.SetPolicy.Exec(tx, repoID, "merge: {queue: batch, batch: 4}\nchecks: {command: make test}\n")
		if err == nil {
			y.repo, _, err = repo.ByID(tx, repoID)
		}
		return err
	})
}

func (y *yard) ctx() context.Context {
	return policy.With(db.WithAccount(context.Background(), "acme"), policy.Actor{Credential: policy.System})
}

func (y *yard) write(fn func(*db.Tx) error) {
	y.t.Helper()
	if err := y.db.Write(y.ctx(), fn); err != nil {
		y.t.Fatal(err)
	}
}

// Standing implements Orders.
func (y *yard) Standing(_ *db.Tx, ids []string) (map[string]Order, error) {
	out := map[string]Order{}
	for _, o := range y.orders {
		if o.open && !o.merged && slices.Contains(ids, o.action) {
			out[o.action] = Order{HeadSHA: o.head, BaseRef: "main"}
		}
	}
	return out, nil
}

// Check implements Checks.
func (y *yard) Check(tx *db.Tx, _ repo.Ref, _, sha string, _ bool) (string, error) {
	tx.AfterCommit(func() {
		y.forge.checked++
		y.checks[sha] = Result{State: CheckPending}
	})
	return "task-" + sha, nil
}

// Result implements Checks.
func (y *yard) Result(_ *db.Tx, _ repo.Ref, sha string, _ bool) (Result, error) {
	r, ok := y.checks[sha]
	if !ok {
		y.t.Errorf("%s was never checked", sha)
	}
	return r, nil
}

// Stop implements Checks.
func (y *yard) Stop(tx *db.Tx, task string) error {
	tx.AfterCommit(func() { y.stopped = append(y.stopped, task) })
	return nil
}

// approve orders the merge of a new head.
func (y *yard) approve(name string) *order {
	n := int64(len(y.orders) + 1)
	o := &order{
		pr: y.repo.ID + "-" + name, action: y.repo.ID + "-order-" + name, head: sum(y.repo.ID + name), number: n, open: true,
		at: time.UnixMicro(y.clock.Add(1000)),
	}
	y.orders[o.pr] = o
	return o
}

// apply tries the merge of an order as package pull does. dies tells whether the node dies
// after the host has merged.
func (y *yard) apply(node int, o *order, dies bool) {
	y.t.Helper()
	if !o.open || o.merged {
		return
	}
	base := y.forge.base
	if !slices.Contains(y.forge.heads[base], o.head) {
		var turn Turn
		y.write(func(tx *db.Tx) (err error) {
			turn, err = y.nodes[node].Admit(tx, y.repo, Item{
				PRID: o.pr, ActionID: o.action, HeadSHA: o.head, BaseRef: "main", Number: o.number, OrderedAt: o.at, Fork: o.fork,
			}, base, false)
			return err
		})
		if !turn.Go {
			return
		}
		if turn.BaseSHA != base && turn.BaseSHA != "" {
			y.t.Errorf("%s may be merged into %s, and not into %s", o.pr, turn.BaseSHA, base)
		}
		in := slices.Sorted(slices.Values(append(slices.Clone(y.forge.heads[base]), o.head)))
		if both(y.forge.clashes, in) { // package pull begins a round
			o.open = false
			y.rejected[o.pr] = ByConflict
			return
		}
		y.forge.base = y.forge.commit(in)
		o.by = y.forge.base
		if dies {
			return
		}
	}
	y.write(func(tx *db.Tx) error { return y.nodes[node].Merged(tx, o.pr, o.action, o.by) })
	o.merged = true
}

// checkEnds ends the checks that run.
func (y *yard) checkEnds(lost func() bool) {
	for _, sha := range slices.Sorted(maps.Keys(y.checks)) {
		r := y.checks[sha]
		if r.State != CheckPending {
			continue
		}
		switch {
		case lost():
			r = Result{State: CheckLost, Why: "it is lost"}
		case y.forge.works(y.forge.heads[sha]):
			r = Result{State: CheckPassed}
		default:
			r = Result{State: CheckFailed, Why: "the check exited with 1", Log: "main.go:3:1: undefined: x\n"}
		}
		y.checks[sha] = r
	}
}

func never0() bool { return false }

// rest has everything come to its end, without further faults.
func (y *yard) rest() {
	y.forge.kill = func(string) bool { return false }
	for range 60 {
		for _, pr := range slices.Sorted(maps.Keys(y.orders)) {
			y.apply(0, y.orders[pr], false)
		}
		y.nodes[0].Pass(y.ctx())
		y.checkEnds(never0)
		y.clock.Add((11 * time.Second).Microseconds())
	}
	y.clock.Add((refHold + buildHold).Microseconds())
	y.nodes[1].Pass(y.ctx())
}

func (y *yard) shown() (q Queue) {
	y.t.Helper()
	q, err := y.nodes[0].show(y.ctx(), queueIn{Owner: "acme", Repo: y.repo.Name})
	if err != nil {
		y.t.Fatal(err)
	}
	return q
}

func onBoth(t *testing.T, fn func(*testing.T, *yard)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) { fn(t, open(t, e)) })
	}
}
