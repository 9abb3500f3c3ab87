package main

import (
	"context"
	"errors"

	"yardmaster/internal/db"
)

// waiting is how many tasks of a fixture are still in the queue: the oldest, which no
// page of the newest shows.
const waiting = 200

// Task i was created at firstTask + i*taskStep, in Unix microseconds.
const (
	firstTask = 1_700_000_000_000_000
	taskStep  = 1_000_000
)

var (
	accountID = db.Q[string](`SELECT id FROM accounts WHERE login = $1`)
	repoID    = db.Q[string](`SELECT id FROM repos WHERE account_id = $1 AND name = $2`)

	setDepth = db.S(`INSERT INTO queue_depths (account_id, pending) SELECT account_id, COUNT(*) FROM tasks
		WHERE account_id = $1 AND status = 'pending' GROUP BY account_id
		ON CONFLICT (account_id) DO UPDATE SET pending = excluded.pending`)

	setLanes = db.S(`INSERT INTO queue_lanes (account_id, repo_id, template, priority, ready, place, head_at)
		SELECT account_id, repo_id, template, priority, COUNT(*), -priority, MIN(created_at) FROM tasks
		WHERE account_id = $1 AND status = 'pending' AND waiting_deps = 0 AND not_before = 0 AND conflict_with IS NULL
		GROUP BY account_id, repo_id, template, priority
		ON CONFLICT (account_id, repo_id, template, priority) DO UPDATE SET ready = excluded.ready, head_at = excluded.head_at`)

	// addTasks numbers $4 tasks from $3. Their ids, times and texts resemble real
	// ones in size and order; the first $5 wait.
	addTasks = db.S(`WITH RECURSIVE n (i) AS (SELECT CAST($3 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $3 + $4)
		INSERT INTO tasks (id, account_id, repo_id, kind, sink, title, problem, status, attempt, queued_at, branch, base_sha,
			template, created_by, created_at, updated_at, claimed_at, started_at, finished_at)
		SELECT lower(hex(randomblob(4)) || '-0000-4000-8000-' || printf('%012x', i)), $1, $2, 'work', 'queued',
			'Make widget ' || i || ' turn the right way round', 'Widget ' || i || ' turns left when it is asked to turn right. Its test says how it should be.',
			CASE WHEN i < $5 THEN 'pending' ELSE 'merged' END, CASE WHEN i < $5 THEN 0 ELSE 1 END, 1700000000000000 + i * 1000000,
			'svc/make-widget--' || printf('%08x', i), '0123456789abcdef0123456789abcdef01234567', 'default', 'user:ada',
			1700000000000000 + i * 1000000, 1700000000000000 + i * 1000000,
			CASE WHEN i < $5 THEN NULL ELSE 1700000000000000 + i * 1000000 END,
			CASE WHEN i < $5 THEN NULL ELSE 1700000000000000 + i * 1000000 END,
			CASE WHEN i < $5 THEN NULL ELSE 1700000000000000 + i * 1000000 END FROM n`)
)

// fill inserts the tasks from up to to into the database of a stopped server.
func (w *world) fill(ctx context.Context, from, to int) (err error) {
	d, err := db.Open(ctx, "sqlite:"+w.database(), db.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	const batch = 100_000
	for ; from < to && err == nil; from += batch {
		err = d.Write(ctx, func(tx *db.Tx) error {
			acct, err := accountID.One(tx, account)
			if err != nil {
				return err
			}
			repo, err := repoID.One(tx, acct, project)
			if err != nil {
				return err
			}
			if _, err = addTasks.Exec(tx, acct, repo, from, min(batch, to-from), waiting); err != nil {
				return err
			}
			if _, err = setDepth.Exec(tx, acct); err != nil {
				return err
			}
			_, err = setLanes.Exec(tx, acct)
			return err
		})
	}
	return err
}
