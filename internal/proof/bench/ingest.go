package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"yardmaster/internal/protocol"
)

const (
	talkers      = 32 // runs at once
	perMessage   = 32
	messages     = 40 // of a run in a round
	ingestRounds = 3
)

var said = json.RawMessage(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a few words of what the agent says as it goes"}}`)

func ingest(ctx context.Context, b *bench) error {
	w, err := b.settle(ctx, "ingest")
	if err != nil {
		return err
	}
	defer w.stop()
	bare, err := newScribe(filepath.Join(b.dir, "ingest.db"))
	if err != nil {
		return err
	}
	defer bare.pool.Close()
	x, err := w.join(ctx, "talker", talkers)
	if err != nil {
		return err
	}
	defer x.close()
	runs := make([]*protocol.Start, talkers)
	for i := range runs {
		if err := w.file(ctx, int64(i)); err != nil {
			return err
		}
		if runs[i], _, err = x.take(ctx); err != nil {
			return err
		}
	}
	var seq int64
	var ours, theirs []float64
	const events = talkers * messages * perMessage
	for range ingestRounds {
		took, err := bare.round(ctx)
		if err != nil {
			return err
		}
		theirs = append(theirs, events/took.Seconds())
		begin := time.Now()
		g, ctx := errgroup.WithContext(ctx)
		for _, run := range runs {
			g.Go(func() error { return x.talk(ctx, run, seq) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		ours = append(ours, events/time.Since(begin).Seconds())
		seq += messages * perMessage
	}
	r := median(ours) / median(theirs)
	b.add(row{what: fmt.Sprintf("events stored, %d a message, %d runs", perMessage, talkers), value: rate(median(ours)),
		baseline: rate(median(theirs)), ratio: r,
		target: "≥ 5000/s", met: median(ours) >= 5000})
	return w.check(ctx, b, runs, seq)
}

// talk sends a round of one run; on return the database holds it.
func (b *machine) talk(ctx context.Context, run *protocol.Start, seq int64) error {
	for range messages {
		events := make([]protocol.Event, perMessage)
		for i := range events {
			seq++
			events[i] = protocol.Event{Seq: seq, T: 1_700_000_000_000 + seq, Mono: seq, Kind: protocol.EventUpdate, Data: said}
		}
		stored, err := b.append(ctx, run, events)
		if err != nil {
			return err
		}
		if stored != seq {
			return fmt.Errorf("run %s holds events up to %d, not %d", run.Run, stored, seq)
		}
	}
	return nil
}

// check reads the stored events: those of each run from 1 on, none missing, none
// twice, in the order in which they were sent.
func (w *world) check(ctx context.Context, b *bench, runs []*protocol.Start, last int64) error {
	pool, err := openSQLite(w.database(), true)
	if err != nil {
		return err
	}
	defer pool.Close()
	whole := 0
	for _, run := range runs {
		var n, first, end, wrong int64
		err := pool.QueryRowContext(ctx,
			`SELECT COUNT(*), MIN(seq), MAX(seq), COALESCE(SUM(mono <> seq), 0) FROM run_events WHERE run_id = $1`, run.Run).Scan(&n,
			&first, &end, &wrong)
		if err != nil {
			return err
		}
		if n == last && first == 1 && end == last && wrong == 0 {
			whole++
		}
	}
	b.add(row{what: fmt.Sprintf("runs whose %d events are stored in order, once each", last),
		value: fmt.Sprintf("%d of %d", whole, talkers), target: "all", met: whole == talkers})
	return nil
}

// scribe inserts the same rows with nothing around the inserts.
type scribe struct {
	pool   *sql.DB
	insert *sql.Stmt
	rounds int
}

func newScribe(path string) (*scribe, error) {
	pool, err := openSQLite(path, false)
	if err != nil {
		return nil, err
	}
	if _, err := pool.ExecContext(context.Background(),
		`CREATE TABLE run_events (run_id TEXT NOT NULL, seq BIGINT NOT NULL, attempt BIGINT NOT NULL,
		t BIGINT NOT NULL, mono BIGINT NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL, PRIMARY KEY (run_id, seq))`); err != nil {
		return nil, err
	}
	values := make([]string, perMessage)
	for i := range values {
		values[i] = fmt.Sprintf("($%d, $%d, $%d, $%d, $%d, $%d, $%d)", 7*i+1, 7*i+2, 7*i+3, 7*i+4, 7*i+5, 7*i+6, 7*i+7)
	}
	insert, err := pool.PrepareContext(context.Background(), `INSERT INTO run_events VALUES `+strings.Join(values, ", "))
	return &scribe{pool: pool, insert: insert}, err
}

func (s *scribe) round(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	seq := int64(s.rounds) * messages * perMessage
	s.rounds++
	for range messages {
		for i := range talkers {
			args := make([]any, 0, 7*perMessage)
			for n := range int64(perMessage) {
				at := seq + n + 1
				args = append(args, fmt.Sprintf("01890000-0000-7000-8000-%012d", i), at, 1, 1_700_000_000_000+at, at,
					protocol.EventUpdate, string(said))
			}
			if _, err := s.insert.ExecContext(ctx, args...); err != nil {
				return 0, err
			}
		}
		seq += perMessage
	}
	return time.Since(begin), nil
}
