package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/actor"
	"yardmaster/internal/domain/digest"
	"yardmaster/internal/event"
)

const (
	toldEvents = 10_000 // of the day that is told: a fifth of each kind
	oldEvents  = 200_000
	toldRounds = 5
	toldSlices = 5
)

// What happened, numbered from $1, $2 of it, one each $4 microseconds from $3.
const happened = `WITH RECURSIVE n (i) AS (SELECT CAST(:from AS BIGINT) UNION ALL SELECT i + 1 FROM n
	WHERE i + 1 < CAST(:from AS BIGINT) + :n), h (i, at) AS (SELECT i, :at + (i - CAST(:from AS BIGINT)) * :step FROM n) `

// happenedArgs are the parameters of what happened.
type happenedArgs struct{ From, N, At, Step int64 }

var happenings = []db.StmtWith[happenedArgs]{
	db.SWith[happenedArgs](happened + `INSERT INTO tasks (id, account_id, repo_id, kind, sink, title, problem, status, queued_at, branch,
		template, failure_kind, failure, created_by, created_at, updated_at, finished_at)
		SELECT 't' || CAST(i AS TEXT), 'a', 'r' || CAST(i % 10 AS TEXT), 'work', 'queued', 'Make a widget turn the right way round', '',
		CASE WHEN i % 3 = 0 THEN 'failed' ELSE 'merged' END, at, '', 'default', 'run_timeout', 'It took too long.', 'user:ada', at, at, at FROM h`),
	db.SWith[happenedArgs](happened + `INSERT INTO pulls (id, account_id, repo_id, number, title, body, url, state, head_ref, base_ref, head_sha,
		base_sha, task_id, author_kind, created_at, updated_at, merged_at, merged_by)
		SELECT 'p' || CAST(i AS TEXT), 'a', 'r' || CAST(i % 10 AS TEXT), i + 1, 'Make a widget turn the right way round', '', '', 'merged', 'h',
		'main', 'h', 'b', 't' || CAST(i AS TEXT), 'agent', at, at, at, 'user:ada' FROM h`),
	db.SWith[happenedArgs](happened + `INSERT INTO ci_runs (id, account_id, repo_id, sha, command, status, created_at, finished_at)
		SELECT 'c' || CAST(i AS TEXT), 'a', 'r' || CAST(i % 10 AS TEXT), 's', 'true', CASE WHEN i % 4 = 0 THEN 'failed' ELSE 'passed' END, at, at
		FROM h`),
	db.SWith[happenedArgs](happened + `INSERT INTO spend_minutes (account_id, minute, session_id, calls, unpriced, cost_micros)
		SELECT 'a', at - at % 60000000, 's' || CAST(i AS TEXT), 10, 0, 12345 FROM h`),
	db.SWith[happenedArgs](happened + `INSERT INTO escalations (id, account_id, category, title, body, reason, created_by, created_at, resolved_at)
		SELECT 'e' || CAST(i AS TEXT), 'a', 'unclear', 'Which way is right?', '', '', 'system', at, CASE WHEN i % 100 = 0 THEN NULL ELSE at END
		FROM h`),
}

// letters counts mails.
type letters struct{ n int }

// Mail implements digest.Mails.
func (l *letters) Mail(tx *db.Tx, _ digest.Letter) error {
	tx.AfterCommit(func() { l.n++ })
	return nil
}

// digests measures how long it takes to make the digest of a busy day, behind a long past.
func digests(ctx context.Context, b *bench) error {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		if err := digestsOn(ctx, b, e); err != nil {
			return fmt.Errorf("%s: %w", e, err)
		}
	}
	return nil
}

func digestsOn(ctx context.Context, b *bench, e db.Engine) (err error) {
	dsn, drop, err := dbtest.Throwaway(ctx, e, filepath.Join(b.dir, "digests.db"))
	if err != nil {
		return err
	}
	defer drop()
	at := time.Date(2026, 3, 4, 8, 0, 0, 0, time.UTC)
	d, err := db.Open(ctx, dsn, db.Options{Clock: func() time.Time { return at }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := d.Migrated(ctx); err != nil {
		return err
	}
	var mails letters
	log := slog.New(slog.DiscardHandler)
	s := digest.New(digest.Needs{
		DB: d, Due: due.New(due.Config{DB: d, Hub: event.NewHub(), Logger: log}), Logger: log, Mails: &mails, BaseURL: "http://yard",
		Actors: actor.New(actor.Needs{DB: d}),
	})
	day := int64(24 * time.Hour / time.Microsecond)
	err = d.Write(ctx, func(tx *db.Tx) error {
		if _, err := newAccount.Exec(tx); err != nil {
			return err
		}
		if _, err := newRepos.Exec(tx, 10); err != nil {
			return err
		}
		past := happenedArgs{N: oldEvents / toldSlices, At: db.Micros(at) - 300*day, Step: 300 * day / (oldEvents / toldSlices)}
		for round := range int64(toldRounds + 1) { // the first is not counted
			now := happenedArgs{
				From: past.N + round*toldEvents/toldSlices, N: toldEvents / toldSlices, At: db.Micros(at) + round*day,
				Step: day / (toldEvents / toldSlices),
			}
			for _, insert := range happenings {
				if round == 0 {
					if _, err := insert.Exec(tx, past); err != nil {
						return err
					}
				}
				if _, err := insert.Exec(tx, now); err != nil {
					return err
				}
			}
		}
		if _, err := analyze.Exec(tx); err != nil {
			return err
		}
		return s.Plan(tx, "a")
	})
	if err != nil {
		return err
	}
	var took []time.Duration
	for round := range toldRounds + 1 {
		at = at.Add(24 * time.Hour)
		began := time.Now()
		if err := s.Due.Drain(ctx); err != nil {
			return err
		}
		if took = append(took, time.Since(began)); mails.n < round+1 {
			return fmt.Errorf("%d mails after %d days", mails.n, round+1)
		}
	}
	slowest := percentile(took[1:], 100)
	b.add(row{what: fmt.Sprintf("a digest of %d events behind %d, %s", toldEvents, oldEvents, e), value: ms(median(took[1:]))})
	b.add(row{
		what: fmt.Sprintf("the slowest of %d, %s", toldRounds, e), value: ms(slowest), target: "≤ 1000.0 ms", met: slowest <= time.Second,
	})
	return nil
}
