package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/repo"
	runs "yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/standin"
	"yardmaster/internal/protocol"
)

// Sizes of the long queue and of the short one.
const (
	longFinished = 1_000_000
	longPending  = 100_000
	longRepos    = 200
	shortPending = 100
	shortRepos   = 10
	claimRounds  = 400
)

var (
	newAccount = db.S(`INSERT INTO accounts (id, login, kind, tier, seats, created_at) VALUES ('a', 'a', 'org', 'self_hosted', 100, 0)`)
	newRepos   = db.S(`WITH RECURSIVE n (i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $1)
		INSERT INTO repos (id, account_id, owner, name, host, default_branch, private, enabled, created_at)
		SELECT 'r' || CAST(i AS TEXT), 'a', 'a', 'r' || CAST(i AS TEXT), 'builtin', 'main', FALSE, TRUE, 0 FROM n`)
	newBox = db.S(`INSERT INTO boxes (id, account_id, name, owner_target, owner_id, state, nkey, token_hash, token_expires_at, slots,
		agents, isolation, presence, created_at)
		VALUES ('b', 'a', 'b', 'org', 'a', 'enrolled', '', 'b', 0, 100, '[]', '["landlock"]', 'online', 0)`)
	// newTasks numbers $2 tasks from $1, spread over $3 repositories.
	newTasks = db.SWith[newTasksArgs](`WITH RECURSIVE n (i) AS (SELECT CAST(:from AS BIGINT) UNION ALL SELECT i + 1 FROM n
		WHERE i + 1 < CAST(:from AS BIGINT) + :n)
		INSERT INTO tasks (id, account_id, repo_id, kind, sink, title, problem, status, attempt, queued_at, branch,
		template, created_by, created_at, updated_at)
		SELECT '00000000-0000-4000-8000-' || substr(CAST(1000000000000 + (i * 7919) % 999983 + i * 1000000 AS TEXT), 2,
		12) , 'a', 'r' || CAST(i % :repo_id AS TEXT), 'work', 'queued',
			'Make a widget turn the right way round', 'It turns left when it is asked to turn right. Its test says how it should be.',
			CAST(:status AS TEXT), 1, 1700000000000000 + i * 1000, 'svc/make-widget--00000000', 'default', 'user:ada',
			1700000000000000 + i * 1000, 1700000000000000 + i * 1000 FROM n`)
	fillLanes = db.S(`INSERT INTO queue_lanes (account_id, repo_id, template, priority, ready, place, head_at)
		SELECT account_id, repo_id, template, priority, COUNT(*), -priority, MIN(created_at) FROM tasks WHERE status = 'pending'
		GROUP BY account_id, repo_id, template, priority`)
	fillDepth = db.S(`INSERT INTO queue_depths (account_id, pending) SELECT account_id, COUNT(*) FROM tasks WHERE status = 'pending'
		GROUP BY account_id`)
	analyze = db.S(`ANALYZE`)
	anyRepo = db.Q[task.Repo](`SELECT id, owner, name, enabled, default_branch, '' AS clone_url, '' AS template, '' AS isolation,
		0 AS check_timeout, '' AS conflicts FROM repos WHERE id = $1`)
)

// newTasksArgs are the parameters of newTasks.
type newTasksArgs struct {
	From, N, RepoID int
	Status          string
}

// queue is one database with tasks, and the domains that serve it.
type queue struct {
	db   *db.DB
	runs *runs.Service
}

func claim(ctx context.Context, b *bench) error {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		if err := claimOn(ctx, b, e); err != nil {
			return fmt.Errorf("%s: %w", e, err)
		}
	}
	return nil
}

func claimOn(ctx context.Context, b *bench, e db.Engine) (err error) {
	var queues [2]*queue // short, long
	for i, size := range [][3]int{{shortPending, 0, shortRepos}, {longPending, longFinished, longRepos}} {
		dsn, drop, err := dbtest.Throwaway(ctx, e, filepath.Join(b.dir, fmt.Sprintf("queue-%d.db", i)))
		if err != nil {
			return err
		}
		defer drop()
		d, err := db.Open(ctx, dsn, db.Options{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.Close()) }()
		if queues[i], err = fillQueue(ctx, d, size[0], size[1], size[2]); err != nil {
			return err
		}
	}
	var took [2][]time.Duration
	for range claimRounds {
		for i, q := range queues { // the two queues alternate
			d, err := q.claim(ctx)
			if err != nil {
				return err
			}
			took[i] = append(took[i], d)
		}
	}
	for _, of := range []float64{50, 90} {
		long, short := percentile(took[1], of), percentile(took[0], of)
		r := ratio(long, short)
		b.add(row{what: fmt.Sprintf("claim, p%.0f, %d pending and %d finished tasks in %d repositories, %s", of, longPending,
			longFinished, longRepos, e),
			value: us(long), baseline: us(short), ratio: r, target: fmt.Sprintf("≤ 1.50 of a queue of %d", shortPending), met: r <= 1.5})
	}
	return nil
}

func fillQueue(ctx context.Context, d *db.DB, pending, finished, repos int) (*queue, error) {
	write := func(fn func(tx *db.Tx) error) error { return d.Write(db.WithAccount(ctx, "a"), fn) }
	err := write(func(tx *db.Tx) error {
		if _, err := newAccount.Exec(tx); err != nil {
			return err
		}
		if _, err := newRepos.Exec(tx, repos); err != nil {
			return err
		}
		_, err := newBox.Exec(tx)
		return err
	})
	const batch = 50_000
	for from := 0; from < pending+finished && err == nil; from += batch {
		status, n := "merged", min(batch, finished-from)
		if from >= finished {
			status, n = "pending", min(batch, pending+finished-from)
		}
		err = write(func(tx *db.Tx) error {
			_, err := newTasks.Exec(tx, newTasksArgs{From: from, N: n, RepoID: repos, Status: status})
			return err
		})
	}
	if err == nil {
		err = write(func(tx *db.Tx) error {
			if _, err := fillLanes.Exec(tx); err != nil {
				return err
			}
			if _, err := fillDepth.Exec(tx); err != nil {
				return err
			}
			_, err := analyze.Exec(tx)
			return err
		})
	}
	hub := event.NewHub()
	stand := standin.Tasks{Agent: "builtin", Places: 100}
	known := standin.Repos(func(tx *db.Tx, id string) (task.Repo, error) { return anyRepo.One(tx, id) })
	tasks, queued := standin.Services(d, hub, known, stand)
	served := runs.New(runs.Needs{DB: d, Hub: hub, Tasks: tasks, Queue: queued, Bus: alone{}, Logger: slog.New(slog.DiscardHandler),
		Setup: alone{}, Boxes: alone{}, Vault: alone{}, Branches: alone{}, Settler: alone{}, Asks: alone{}})
	task.RunUnwanted.On(d, served.Stop)
	return &queue{d, served}, err
}

// alone answers for all that runs ask.
type alone struct{}

func (alone) Template(*db.Tx, string, string, string, string) (runs.Template, bool, error) {
	return runs.Template{Agent: "builtin"}, true, nil
}

func (alone) Prefer(*db.Tx, string, string, string, *runs.Template) (runs.Preferred, error) {
	return runs.Preferred{}, nil
}

func (alone) Policy(tx *db.Tx, repoID string) (string, error) {
	r, _, err := repo.ByID(tx, repoID)
	return fmt.Sprint(r.Policy), err
}

func (alone) Notes(*db.Tx, *task.Row, string) ([]string, error)                  { return nil, nil }
func (alone) Servers(*db.Tx, *task.Row) ([]protocol.MCPServer, error)            { return nil, nil }
func (alone) OfLent(*db.Tx, *task.Row) (bool, error)                             { return false, nil }
func (alone) Declares(*db.Tx, *task.Row) (bool, error)                           { return true, nil }
func (alone) HeadRef(*db.Tx, *task.Row) (string, error)                          { return "", nil }
func (alone) Submodules(*db.Tx, *task.Row) (*protocol.Submodules, error)         { return nil, nil }
func (alone) Environment(*db.Tx, *task.Row, bool) (*protocol.Environment, error) { return nil, nil }
func (alone) OfFanout(*db.Tx, string) (bool, error)                              { return false, nil }
func (alone) SealKey(*db.Tx, string) (string, error)                             { return "", nil }
func (alone) DropMessages(*db.Tx, string, string) error                          { return nil }
func (alone) FaultShown(_ *db.Tx, _, why string) (string, error)                 { return why, nil }
func (alone) ForRun(*db.Tx, string, string) ([]protocol.Secret, error)           { return nil, nil }
func (alone) Changed(context.Context, string, string, string) (codehost.Diff, error) {
	return codehost.Diff{}, nil
}
func (alone) At(context.Context, string, string) (string, error)                      { return "", nil }
func (alone) Settle(*db.Tx, *task.Row, *runs.Row, runs.Ending) (bool, error)          { return false, nil }
func (alone) OfRuns(*db.Tx, []string) ([]string, error)                               { return nil, nil }
func (alone) Handle(string, func(context.Context, string, []byte) (any, error)) error { return nil }

// claim measures the box's claim of a task, and then requeues the task.
func (q *queue) claim(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	reply, err := q.runs.Claim(ctx, "b", protocol.Claim{ID: id.New(), Free: 1})
	took := time.Since(begin)
	if err == nil && reply.Run == nil {
		err = fmt.Errorf("nothing to claim: %v", reply.Reasons)
	}
	if err != nil {
		return 0, err
	}
	return took, q.db.Write(db.WithAccount(ctx, "a"), func(tx *db.Tx) error {
		t, _, err := task.Lock(tx, "a", reply.Run.Task)
		if err != nil {
			return err
		}
		if err := q.runs.Stop(tx, task.Unwanted{Task: &t, Why: task.StopReassigned}); err != nil {
			return err
		}
		return q.runs.Tasks.Requeue(tx, &t, task.StopReassigned)
	})
}
