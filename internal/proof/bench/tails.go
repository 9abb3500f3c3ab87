package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/protocol"
)

const (
	tailing = 500
	spoken  = 100 // events, one after the other
	// settled is the time after which PostgreSQL has counted the reads of idle
	// connections.
	settled = 11 * time.Second
)

// tails measures the load on the database by connections that follow one run.
func tails(ctx context.Context, b *bench) error {
	dsn, drop, err := dbtest.Throwaway(ctx, db.Postgres, "")
	if err != nil {
		return err
	}
	defer drop()
	pool, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	w, err := b.settle(ctx, "tails", "--database", dsn)
	if err != nil {
		return err
	}
	defer w.stop()
	x, err := w.join(ctx, "talker", 2)
	if err != nil {
		return err
	}
	defer x.close()
	var reads [2]int64
	for i, n := range []int{1, tailing} {
		if err := w.file(ctx, int64(i)); err != nil {
			return err
		}
		if reads[i], err = tailed(ctx, w, x, pool, n); err != nil {
			return fmt.Errorf("%d tails: %w", n, err)
		}
	}
	r := ratio(reads[1], reads[0])
	b.add(row{what: fmt.Sprintf("reads of the events table while %d tails hear %d events", tailing, spoken),
		value:    strconv.FormatInt(reads[1], 10),
		baseline: strconv.FormatInt(reads[0], 10), ratio: r, target: "≤ 2 times", met: r <= 2})
	return nil
}

// tailed counts the reads of the table of events while n connections follow a run
// that sends an event now and then.
func tailed(ctx context.Context, w *world, x *machine, pool *sql.DB, n int) (reads int64, err error) {
	run, _, err := x.take(ctx)
	if err != nil {
		return 0, err
	}
	a, err := attend(ctx, w.url, "/v1/fleet/runs/"+run.Run+"/events", w.pat, "200 OK", n)
	if a != nil {
		defer a.leave()
	}
	if err != nil {
		return 0, err
	}
	before, err := scans(ctx, pool)
	if err != nil {
		return 0, err
	}
	for seq := range int64(spoken) {
		word := fmt.Sprintf("word-%d.", seq)
		heard := a.expect(word, n)
		data := json.RawMessage(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + word + `"}}`)
		e := protocol.Event{Seq: seq + 1, T: 1_700_000_000_000 + seq, Mono: seq, Kind: protocol.EventUpdate, Data: data}
		if _, err = x.append(ctx, run, []protocol.Event{e}); err != nil {
			return 0, err
		}
		if err := a.wait(ctx, heard); err != nil {
			return 0, err
		}
	}
	reads, err = scans(ctx, pool)
	return reads - before, err
}

// scans is the number of scans of the table of events so far.
func scans(ctx context.Context, pool *sql.DB) (n int64, err error) {
	time.Sleep(settled)
	err = pool.QueryRowContext(ctx,
		`SELECT seq_scan + COALESCE(idx_scan, 0) FROM pg_stat_user_tables WHERE relname = 'run_events'`).Scan(&n)
	return n, err
}
