package pull

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/blob"
	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/pull/babysit"
	"yardmaster/internal/domain/pull/merge"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

var (
	actions  = db.Q[string](`SELECT state FROM pull_actions WHERE pr_id = $1 ORDER BY requested_at, id`)
	dueIn    = db.Q[int64](`SELECT d.due_at FROM pull_actions a JOIN due d ON d.queue = 'merges' AND d.key = a.id WHERE a.pr_id = $1`)
	audited  = db.Q[string](`SELECT kind FROM audit WHERE account_id = $1 ORDER BY at, id`)
	checksOf = db.Q[string](`SELECT status FROM ci_runs WHERE pr_id = $1 ORDER BY status`)
)

// yard holds the pull requests of acme/web, at a real code host, and the signals to
// their tasks.
type yard struct {
	*Service
	t        *testing.T
	clock    *atomic.Int64 // microseconds
	host     *flaky
	root     string
	work     string     // a clone
	repo     string     // id of acme/web
	mu       sync.Mutex // guards told
	told     map[string]string
	check    []string        // the tasks of checks, oldest first
	round    []babysit.Round // the rounds begun, oldest first; the task of the nth is round-n
	full     bool            // the queue takes no round
	asked    []string        // categories of the escalations
	resolved []string        // notes with which the escalations were resolved
	stopped  []string        // tasks that were to be stopped
	findings string          // of reviews
	posting  time.Time       // since when a review is being posted; the zero Time: none is
	gone     bool            // tasks have gone on without their closed pull requests
	below    string          // the dropped task on whose work all others were begun
	lent     bool            // a lent box has had a hand in everything
	ci       *ci.Service
	queue    func(*db.Tx) (checkTask string, err error)
	http     http.Handler
	writes   atomic.Int64 // write transactions so far
	line     line
}

// webRepo is the repository of a yard.
var webRepo = at("web")

// at names a repository of acme at the built-in host.
func at(name string) codehost.Repo {
	return codehost.Repo{Host: codehost.BuiltIn, Owner: "acme", Name: name}
}

// served are the hosts of a server whose built-in one is host.
func served(host codehost.Host) *codehost.Hosts {
	return codehost.NewHosts(map[string]codehost.Sides{codehost.BuiltIn: {Host: host, Forge: builtin.Forge{}}})
}

// flaky is a code host that fails for as long as there is an error.
type flaky struct {
	codehost.Host
	merge, remove error
	move          func(branch, to string) error
	during        func() // called before each merge
	lost          error  // answered to a merge that was made
	hidden        error  // answered to a look
	tried         func() // called before each trial
}

func (f *flaky) Merge(ctx context.Context, r codehost.Repo, o codehost.MergeOptions) (string, error) {
	if f.during != nil {
		f.during()
	}
	if f.merge != nil {
		return "", f.merge
	}
	sha, err := f.Host.Merge(ctx, r, o)
	return sha, cmp.Or(f.lost, err)
}

func (f *flaky) Landed(ctx context.Context, r codehost.Repo, base, sha string) (string, error) {
	if f.hidden != nil {
		return "", f.hidden
	}
	return f.Host.Landed(ctx, r, base, sha)
}

func (f *flaky) Outcome(ctx context.Context, r codehost.Repo, o codehost.OutcomeOptions) (codehost.Outcome, error) {
	if f.tried != nil {
		f.tried()
	}
	return f.Host.Outcome(ctx, r, o)
}

func (f *flaky) DeleteBranch(ctx context.Context, r codehost.Repo, branch, sha string) error {
	if f.remove != nil {
		return f.remove
	}
	return f.Host.DeleteBranch(ctx, r, branch, sha)
}

// tell makes a subscriber that records, after the commit, a signal in told.
func (y *yard) tell(what string) func(*db.Tx, string) error {
	return func(tx *db.Tx, who string) error {
		tx.AfterCommit(func() {
			y.mu.Lock()
			defer y.mu.Unlock()
			y.told[who] = what
		})
		return nil
	}
}

// tasks are the tasks of a yard. None of them is a row.
type tasks struct{ *yard }

func (y tasks) Check(tx *db.Tx, _ repo.Ref, _, _ string) (string, error) { return y.queue(tx) }

func (tasks) Stop(*db.Tx, string) error { return nil }

func (y tasks) Repair(_ *db.Tx, _ repo.Ref, r babysit.Round) (string, error) {
	if y.full {
		return "", fault.New(fault.RateLimited, "queue-full", "Full.")
	}
	y.round = append(y.round, r)
	return fmt.Sprintf("round-%d", len(y.round)), nil
}

func (y tasks) Reopen(tx *db.Tx, task, _ string) (bool, error) {
	return !y.gone, y.tell("reopened")(tx, task)
}

func (y tasks) ByLent(*db.Tx, string, string) (bool, error) { return y.lent, nil }

func (y tasks) Unmerged(*db.Tx, string) (string, bool, error) { return y.below, y.below != "", nil }

// checks are the real checks, although their tasks are no rows.
type checks struct{ *ci.Service }

func (checks) Of(tx *db.Tx, prID, sha string) (record.Check, bool, error) {
	r, ok, err := ci.Of(tx, prID, sha)
	return record.Check(r), ok, err
}

func (checks) AtHost(tx *db.Tx, repoID, sha string) (babysit.HostFailure, bool, error) {
	f, ok, err := ci.AtHost(tx, repoID, sha)
	return babysit.HostFailure(f), ok, err
}

// checkPulls implements ci.Pulls.
type checkPulls struct{}

func (checkPulls) Page(prID string) string { return record.PageAt("", prID) }

func (checkPulls) LookedAfter(tx *db.Tx, prID, sha string) (bool, error) {
	return LookedAfter(tx, prID, sha)
}

// silent implements ci.Logs: no run has said anything.
type silent struct{}

func (silent) Output(_ *db.Tx, _ string, after int64) (string, int64, error) { return "", after, nil }

// line is the merge queue of a yard.
type line struct {
	on       bool            // every merge waits, unless it may go or is of a fork
	goes     map[string]bool // orders that may be merged
	merged   []string        // orders that were carried out
	failed   string          // why heads were thrown out
	atHost   bool            // the queue is that of the host
	expelled []codehost.Exit // reasons with which the host took heads out
	seen     []bool          // whether the host had the head
}

func (l *line) Admit(_ *db.Tx, _ repo.Ref, m merge.QueueItem, base string, _ bool) (merge.Turn, error) {
	return merge.Turn{Go: !l.on || m.Fork || l.goes[m.ActionID], BaseSHA: base}, nil
}

func (l *line) Merged(tx *db.Tx, _, action, _ string) error {
	tx.AfterCommit(func() { l.merged = append(l.merged, action) })
	return nil
}

func (l *line) AtHost(*db.Tx, string, string) (bool, error) { return l.atHost, nil }

func (l *line) Seen(_ *db.Tx, _ repo.Ref, _ string, _ codehost.QueueEntry, in bool) error {
	l.seen = append(l.seen, in)
	return nil
}

func (l *line) Expelled(_ *db.Tx, _ repo.Ref, _ string, why codehost.Exit, _ string) error {
	l.expelled = append(l.expelled, why)
	return nil
}

func (l *line) Failure(*db.Tx, string, string) (string, string, bool, error) {
	return l.failed, "the log", l.failed != "", nil
}

func (*line) Refusals(*db.Tx, string, string) (int64, error) { return 1, nil }

func (l *line) Places(_ *db.Tx, ids []string) (map[string]record.QueuePlace, error) {
	out := map[string]record.QueuePlace{}
	for _, prID := range ids {
		if l.on {
			out[prID] = record.QueuePlace{Queue: "own", State: "waiting", Position: 1}
		}
	}
	return out, nil
}

// reviews are the findings that a yard has.
type reviews struct{ *yard }

func (y reviews) Round(*db.Tx, string) (string, error) { return y.findings, nil }

func (y reviews) Posting(*db.Tx, string, string) (time.Time, bool, error) {
	return y.posting, !y.posting.IsZero(), nil
}

// nobody implements People without a name.
type nobody struct{}

func (nobody) Signers(*db.Tx, string, string) (merge.Signers, error) { return merge.Signers{}, nil }

func (nobody) At(_ *db.Tx, _ string, who codehost.User) (Known, error) {
	if label, ok := strings.CutPrefix(who.ID, "known-"); ok {
		return Known{Label: "user:" + label}, nil
	}
	return Known{Barred: who.ID == "barred"}, nil
}

func (nobody) Name(_ *db.Tx, label string) (string, error) { return "Name of " + label, nil }

func (nobody) Same(_ *db.Tx, _, a, b string) (bool, error) {
	return strings.TrimPrefix(a, "user:") == strings.TrimPrefix(b, "code-host:"), nil
}

func (nobody) Asker(_ *db.Tx, taskID, _ string) (string, string, error) {
	return "user:asker", "asker-" + taskID, nil
}

func onBoth(t *testing.T, fn func(*testing.T, *yard)) {
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) { fn(t, open(t, e)) })
	}
}

func open(t *testing.T, e db.Engine) *yard {
	y := &yard{t: t, clock: new(atomic.Int64), root: t.TempDir(), work: t.TempDir(), told: map[string]string{}}
	y.clock.Store(time.Unix(1_800_000_000, 0).UnixMicro())
	d := dbtest.Open(t, dbtest.DSN(t, e), db.Options{
		Clock: func() time.Time { return time.UnixMicro(y.clock.Load()) },
		Observe: func(_ context.Context, x db.Transaction) {
			if x.Kind == "write" {
				y.writes.Add(1)
			}
		},
	})
	host, err := builtin.New(builtin.Config{Root: y.root, BaseURL: "http://host"})
	if err != nil {
		t.Fatal(err)
	}
	y.host = &flaky{Host: host}
	tell, hosts := y.tell, served(y.host)
	y.ci = ci.New(ci.Needs{
		DB: d, Hub: event.NewHub(), Due: duetest.New(d, event.NewHub()), Logger: slog.New(slog.DiscardHandler), Hosts: hosts,
		Tasks: tasks{y}, Logs: silent{},
		Objects: blob.NewFolder(t.TempDir(), "http://host", seal.New(), time.Now),
		Pulls:   checkPulls{},
		Intents: intent.New(intent.Needs{
			DB: d, Due: duetest.New(d, event.NewHub()), Hosts: served(y.host), Logger: slog.New(slog.DiscardHandler),
		}),
	})
	y.Service = New(Needs{
		DB: d, Hub: event.NewHub(), Due: duetest.New(d, event.NewHub()), Hosts: hosts,
		BaseURL: "http://host", Logger: slog.New(slog.DiscardHandler),
		Tasks: tasks{y}, Checks: checks{y.ci}, Reviews: reviews{y}, People: nobody{}, Queue: &y.line,
		Bot:     codehost.Person{Name: "Yardmaster", Email: "yardmaster@localhost"},
		Intents: intent.New(intent.Needs{DB: d, Due: duetest.New(d, event.NewHub()), Hosts: hosts, Logger: slog.New(slog.DiscardHandler)}),
	})
	intent.LineMoved.On(d, y.Intents.FollowLine)
	y.queue = func(tx *db.Tx) (string, error) {
		task := id.New()
		tx.AfterCommit(func() { y.check = append(y.check, task) })
		return task, nil
	}
	ci.Ended.On(d, func(tx *db.Tx, e ci.End) error { return y.CheckEnded(tx, CheckEnd(e)) })
	record.MergedEvent.On(d, func(tx *db.Tx, e event.Event[record.MergedData]) error { return tell("event")(tx, e.Subject.ID) })
	record.TaskUnneeded.On(d, func(tx *db.Tx, task string) error {
		tx.AfterCommit(func() { y.stopped = append(y.stopped, task) })
		_, err := seed.CancelTask.Exec(tx, task)
		return err
	})
	record.RoundsSpent.On(d, func(tx *db.Tx, e record.Trouble) error {
		tx.AfterCommit(func() { y.asked = append(y.asked, e.Category) })
		return nil
	})
	record.SeenTo.On(d, func(tx *db.Tx, n record.Note) error {
		tx.AfterCommit(func() { y.resolved = append(y.resolved, n.Text) })
		return nil
	})
	for signal, what := range map[event.Signal[record.Progress]]string{
		record.TaskAwaits: "awaits", record.TaskMergeable: "mergeable", record.TaskMerged: "merged",
		record.TaskAwaitsReview: "awaits review", record.TaskClosed: "closed",
	} {
		signal.On(d, func(tx *db.Tx, p record.Progress) error { return tell(what)(tx, p.TaskID) })
	}
	record.TaskStuck.On(d, func(tx *db.Tx, p record.Progress) error { return tell("stuck: "+p.FailureKind)(tx, p.TaskID) })
	y.write(func(tx *db.Tx) (err error) {
		for _, account := range []string{"acme", "rival"} {
			if err := seed.Add(tx, seed.Account{ID: account}); err != nil {
				return err
			}
		}
		y.repo, err = repo.Install(tx, webRepo, "main", true)
		return err
	})
	if err := host.Create(t.Context(), webRepo, codehost.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	y.git("init", "--quiet", "--initial-branch=main")
	y.commit("main", "README", "hello\n")
	y.http = rest.Handler(rest.Config{AccountHeader: "X-Caller", Pipeline: &op.Pipeline{
		Authenticate: func(_ context.Context, p op.Presented) (policy.Actor, error) {
			scopes, _ := policy.ParseScopes(strings.Fields(p.Bearer))
			return policy.Actor{Credential: policy.PAT, CredentialID: "t", UserID: "ada", AccountID: p.Account, Scopes: scopes}, nil
		},
		Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
	}}, y.Ops())
	return y
}
