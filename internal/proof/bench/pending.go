package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"yardmaster/internal/client"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

const (
	queued      = 5000
	queuedRepos = 20
)

var (
	// moreRepos copies a repository under other names.
	moreRepos = db.S(`WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $2)
		INSERT INTO repos (id, account_id, owner, name, host, default_branch, private, enabled, created_at)
		SELECT 'copy-' || CAST(n.i AS TEXT), r.account_id, r.owner, r.name || '-' || CAST(n.i AS TEXT), r.host, r.default_branch, r.private,
		r.enabled, r.created_at
		FROM repos r, n WHERE r.account_id = $1`)
	// listed inserts the tasks of the page, in all repositories and two priorities.
	listed = db.SWith[listedArgs](`WITH RECURSIVE n (i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :queued)
		INSERT INTO tasks (id, account_id, repo_id, kind, sink, title, problem, status, attempt, priority, queued_at,
		branch, template, created_by, created_at, updated_at, run_id, box_id, base_sha, claimed_at, started_at, finished_at)
		SELECT '00000000-0000-4000-8000-' || substr(CAST(1000000000000 + (n.i * 7919) % 999983 + n.i * 1000000 AS TEXT), 2,
		12), r.account_id, r.id, 'work', 'queued',
			'Make a widget turn the right way round', 'It turns left when it is asked to turn right. Its test says how it should be.',
			CAST(:status AS TEXT), CASE WHEN :status = 'pending' THEN 0 ELSE 1 END, 50 - 10 * (n.i % 3 / 2),
			1700000000000000 + n.i * 1000, 'svc/make-widget--00000000', 'default', 'user:ada',
			1700000000000000 + n.i * 1000, 1700000000000000 + n.i * 1000,
			CASE WHEN :status <> 'pending' THEN '00000000-0000-4000-8000-000000000000' END,
			CASE WHEN :status <> 'pending' THEN '00000000-0000-4000-8000-000000000000' END,
			CASE WHEN :status <> 'pending' THEN '0123456789abcdef0123456789abcdef01234567' END,
			CASE WHEN :status <> 'pending' THEN 1700000000000000 + n.i * 1000 END,
			CASE WHEN :status <> 'pending' THEN 1700000000000000 + n.i * 1000 END,
			CASE WHEN :status <> 'pending' THEN 1700000000000000 + n.i * 1000 END
		FROM n JOIN (SELECT id, account_id, ROW_NUMBER() OVER (ORDER BY id) - 1 AS k FROM repos
		WHERE account_id = :account_id) r ON r.k = n.i % :queued_repos`)
)

// listedArgs are the parameters of listed.
type listedArgs struct {
	AccountID   string
	Queued      int
	Status      string
	QueuedRepos int
}

// pending compares listing the tasks of a long queue with listing tasks that are
// over.
func pending(ctx context.Context, b *bench) error {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		if err := pendingOn(ctx, b, e); err != nil {
			return fmt.Errorf("%s: %w", e, err)
		}
	}
	return nil
}

func pendingOn(ctx context.Context, b *bench, e db.Engine) error {
	var sides [2]*world // with waiting tasks, and with tasks that are over
	for i, status := range []string{"pending", "merged"} {
		name := fmt.Sprintf("%s-%s", status, e)
		dsn, drop, err := dbtest.Throwaway(ctx, e, filepath.Join(b.dir, name+".db"))
		if err != nil {
			return err
		}
		defer drop()
		w, err := b.settle(ctx, name, "--database", dsn)
		if err != nil {
			return err
		}
		w.stop()
		if err := queueUp(ctx, dsn, status); err != nil {
			return err
		}
		if w.process, _, err = b.serve(ctx, w.data, "--database", dsn); err != nil {
			return err
		}
		defer w.stop()
		w.api = &client.Client{URL: w.url, Token: w.pat}
		sides[i] = w
	}
	var n atomic.Int64
	for _, of := range []struct{ name, query string }{{"the newest 50", ""}, {"the newest 200", "&per_page=200"}} {
		with := func(w *world) func() (outcome, error) {
			l := load{clients: 4, method: http.MethodGet, url: w.url + "/v1/tasks?" + of.query, token: w.pat, status: http.StatusOK}
			return func() (outcome, error) { return l.run(ctx, w.process, 1500*time.Millisecond, 0, &n) }
		}
		waits, over, err := duel(rounds, with(sides[0]), with(sides[1]))
		if err != nil {
			return err
		}
		r := ratio(costs(waits), costs(over))
		b.add(row{what: fmt.Sprintf("%s of %d pending tasks, processor time a call, %s", of.name, queued, e),
			value: us(costs(waits)), baseline: us(costs(over)), ratio: r})
		r = rates(over) / rates(waits)
		b.add(row{what: fmt.Sprintf("%s of %d pending tasks, %s", of.name, queued, e), value: us(time.Duration(4e9 / rates(waits))),
			baseline: us(time.Duration(4e9 / rates(over))),
			ratio:    r, target: "≤ 1.30 of ended tasks", met: r <= 1.3})
	}
	return nil
}

// queueUp inserts tasks of a status into the database of a stopped server.
func queueUp(ctx context.Context, dsn, status string) (err error) {
	d, err := db.Open(ctx, dsn, db.Options{})
	if err != nil {
		return err
	}
	err = d.Write(ctx, func(tx *db.Tx) error {
		acct, err := accountID.One(tx, account)
		if err != nil {
			return err
		}
		if _, err := moreRepos.Exec(tx, acct, queuedRepos); err != nil {
			return err
		}
		if _, err := listed.Exec(tx, listedArgs{AccountID: acct, Queued: queued, Status: status, QueuedRepos: queuedRepos}); err != nil {
			return err
		}
		if _, err := fillLanes.Exec(tx); err != nil {
			return err
		}
		if _, err := setDepth.Exec(tx, acct); err != nil {
			return err
		}
		_, err = analyze.Exec(tx)
		return err
	})
	if e := d.Close(); err == nil {
		err = e
	}
	return err
}
