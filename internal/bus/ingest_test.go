package bus_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"yardmaster/internal/bus"
	"yardmaster/internal/bus/boxconn"
	"yardmaster/internal/protocol"
)

func hostPort(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// ledger is a database of run events as a domain would keep it: it takes seq
// last+1, knows twins, and refuses gaps.
type ledger struct {
	mu     sync.Mutex
	last   map[string]int64 // run/attempt -> last event
	twins  int
	update chan struct{} // gets a value at each change
}

func newLedger() *ledger { return &ledger{last: map[string]int64{}, update: make(chan struct{}, 1)} }

var errGap = errors.New("gap")

func (l *ledger) commit(_ context.Context, boxID string, e protocol.Envelope) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := fmt.Sprintf("%s/%s/%d", boxID, e.Run, e.Attempt)
	for _, ev := range e.Events {
		switch {
		case ev.Seq <= l.last[key]:
			l.twins++
		case ev.Seq > l.last[key]+1:
			return fmt.Errorf("%w: %s has %d, got %d", errGap, key, l.last[key], ev.Seq)
		default:
			l.last[key] = ev.Seq
		}
	}
	select {
	case l.update <- struct{}{}:
	default:
	}
	return nil
}

func (l *ledger) await(t *testing.T, key string, want int64) {
	t.Helper()
	for {
		l.mu.Lock()
		have := l.last[key]
		l.mu.Unlock()
		if have == want {
			return
		}
		if have > want {
			t.Fatalf("%s: %d events, more than the %d that were published", key, have, want)
		}
		receive(t, fmt.Sprintf("event of %s after %d of %d", key, have, want), l.update)
	}
}

// send publishes the events 1..n of an attempt as a box's spool would: it goes
// on from what the stream says, through outages.
func send(ctx context.Context, c *boxconn.Conn, run string, n int64, each func(seq int64)) error {
	var after uint64
	for seq := int64(1); seq <= n; {
		stored, err := c.Publish(ctx, envelope(run, 1, seq, min(seq+2, n)), after)
		var stale *boxconn.StaleError
		switch {
		case err == nil:
			after = stored
			seq = min(seq+2, n) + 1
			each(seq)
		case errors.As(err, &stale):
			after, seq = stale.SubjectSeq, stale.EventSeq+1
		case errors.Is(err, boxconn.ErrOffline):
			if err := c.Wait(ctx); err != nil {
				return err
			}
		default:
			return err
		}
	}
	return nil
}

func TestEventsExactlyOnceInOrderAcrossARestart(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	b := start(t, cfg)
	cfg.Listen = hostPort(t, b.URL())
	db := newLedger()
	var taken atomic.Int64
	// Every 40th envelope is committed, yet its acknowledgement gets lost.
	flaky := func(ctx context.Context, boxID string, e protocol.Envelope) error {
		err := db.commit(ctx, boxID, e)
		if errors.Is(err, errGap) {
			t.Error(err)
		}
		if taken.Add(1)%40 == 0 {
			return errors.New("the acknowledgement was lost")
		}
		return err
	}
	if _, err := b.Ingest(context.Background(), flaky); err != nil {
		t.Fatal(err)
	}
	const runs, events = 4, 300
	c := enrol(t, b, "bx").connect(t, b)
	half := make(chan struct{}, runs)
	var senders sync.WaitGroup
	for i := range runs {
		senders.Go(func() {
			var once sync.Once
			err := send(testContext(t), c, fmt.Sprintf("r%d", i), events, func(seq int64) {
				if seq > events/2 {
					once.Do(func() { half <- struct{}{} })
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range runs {
		receive(t, "first half", half)
	}
	stop(t, b)
	b = start(t, cfg)
	if _, err := b.Ingest(context.Background(), flaky); err != nil {
		t.Fatal(err)
	}
	senders.Wait()
	for i := range runs {
		db.await(t, fmt.Sprintf("bx/r%d/1", i), events)
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.twins == 0 {
		t.Error("no envelope came twice: the test proved nothing")
	}
}

func TestPublishKnowsItsOwnLostAcknowledgement(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	x := enrol(t, b, "bx")
	ctx := testContext(t)
	first, err := x.connect(t, b).Publish(ctx, envelope("r", 1, 1, 3), 0)
	if err != nil {
		t.Fatal(err)
	}
	// The box restarts without having heard of it: another connection.
	c := x.connect(t, b)
	again, err := c.Publish(ctx, envelope("r", 1, 1, 3), 0)
	if err != nil || again != first {
		t.Errorf("published again: sequence %d, %v; was %d", again, err, first)
	}
	var stale *boxconn.StaleError
	if _, err = c.Publish(ctx, envelope("r", 1, 4, 4), 0); !errors.As(err, &stale) || stale.SubjectSeq != first || stale.EventSeq != 3 {
		t.Errorf("published after the wrong sequence: %v", err)
	}
	if _, err = c.Publish(ctx, envelope("r", 2, 1, 1), first); !errors.As(err, &stale) || stale.SubjectSeq != 0 || stale.EventSeq != 0 {
		t.Errorf("published after nothing: %v", err)
	}
	if _, err := c.Publish(ctx, envelope("r", 1, 4, 4), first); err != nil {
		t.Error(err)
	}
}

func TestLargestEnvelopeFits(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	got := make(chan int, 1)
	if _, err := b.Ingest(context.Background(), func(_ context.Context, _ string, e protocol.Envelope) error {
		got <- len(e.Events[0].Data)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	c := enrol(t, b, "bx").connect(t, b)
	e := envelope("r", 1, 1, 1)
	size := protocol.MaxMessage
	for {
		e.Events[0].Data = []byte(`"` + strings.Repeat("x", size) + `"`)
		_, err := c.Publish(testContext(t), e, 0)
		if err == nil {
			break
		}
		if !errors.Is(err, boxconn.ErrTooLarge) {
			t.Fatalf("with %d bytes of data: %v", size, err)
		}
		size--
	}
	if n := receive(t, "envelope", got); n != size+2 || size < protocol.MaxMessage-200 {
		t.Errorf("the largest data has %d bytes, %d arrived", size, n)
	}
}

func TestTombstoneFencesAZombie(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	kinds := make(chan string, 10)
	if _, err := b.Ingest(context.Background(), func(_ context.Context, _ string, e protocol.Envelope) error {
		kinds <- fmt.Sprintf("%s/%d %s", e.Run, e.Attempt, e.Events[0].Kind)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	c := enrol(t, b, "bx").connect(t, b)
	ctx := testContext(t)
	after, err := c.Publish(ctx, envelope("r", 1, 1, 1), 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.Tombstone(ctx, "bx", "r", 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Publish(ctx, envelope("r", 1, 2, 2), after); !errors.Is(err, boxconn.ErrFenced) {
		t.Errorf("a zombie appended: %v", err)
	}
	// An attempt that was closed before its first event.
	if err := b.Tombstone(ctx, "bx", "r", 2); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(ctx, envelope("r", 2, 1, 1), 0); !errors.Is(err, boxconn.ErrFenced) {
		t.Errorf("a zombie began: %v", err)
	}
	if _, err := c.Publish(ctx, envelope("r", 3, 1, 1), 0); err != nil {
		t.Errorf("the next attempt: %v", err)
	}
	for _, want := range []string{"r/1 agent.update", "r/3 agent.update"} {
		if got := receive(t, want, kinds); got != want {
			t.Errorf("ingested %s, want %s", got, want)
		}
	}
}

func TestIngestKeepsOrderBehindAFailure(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	db := newLedger()
	var failures atomic.Int64
	if _, err := b.Ingest(context.Background(), func(ctx context.Context, boxID string, e protocol.Envelope) error {
		switch {
		case e.Run == "slow" && e.Events[0].Seq == 4 && failures.Add(1) <= 2:
			if failures.Load() == 1 {
				panic("a bug")
			}
			return errors.New("the database is away")
		case e.Run == "bad":
			return fmt.Errorf("%w: unknown run", bus.ErrReject)
		}
		err := db.commit(ctx, boxID, e)
		if err != nil {
			t.Error(err)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	c := enrol(t, b, "bx").connect(t, b)
	for _, run := range []string{"bad", "slow", "fine"} {
		if err := send(testContext(t), c, run, 30, func(int64) {}); err != nil {
			t.Fatal(err)
		}
	}
	db.await(t, "bx/fine/1", 30)
	db.await(t, "bx/slow/1", 30)
	if n := failures.Load(); n != 3 {
		t.Errorf("the failing envelope was tried %d times, want 3", n)
	}
}

func TestIngestThrowsAwayWhatItCannotRead(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	x := enrol(t, b, "bx")
	token, seed := x.creds()
	nc, _, err := rawConnect(t, b.URL(), token, seed)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{`not json`, `{"v":1,"run":"foreign","attempt":1,"events":[{"seq":1}]}`,
		`{"v":1,"run":"r","attempt":1,"events":[]}`, `{"v":99,"run":"r","attempt":1,"events":[{"seq":1}]}`} {
		if err := nc.Publish(protocol.EventSubject("bx", "r", 1), []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Publish(protocol.EventSubject("bx", "r", 1), []byte(`{"v":1,"run":"r","attempt":1,"events":[{"seq":1,"kind":"preparing"}]}`)); err != nil {
		t.Fatal(err)
	}
	got := make(chan protocol.Envelope, 10)
	stopIngest, err := b.Ingest(context.Background(), func(_ context.Context, _ string, e protocol.Envelope) error {
		got <- e
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stopIngest()
	if e := receive(t, "the one good envelope", got); e.Events[0].Kind != "preparing" {
		t.Errorf("ingested %+v", e)
	}
}
