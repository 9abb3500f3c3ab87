package bus

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"yardmaster/internal/protocol"
)

const (
	ingestConsumer = "ingest"
	ingestWorkers  = 16
	ingestPending  = 4096             // messages delivered and not yet acknowledged
	ingestBatch    = 1024             // messages asked for at once,
	ingestBytes    = 8 << 20          // or as many as fit
	ingestWait     = 30 * time.Second // for a message to be queued and committed, before it comes again
	workerQueue    = 32
	retryFirst     = 250 * time.Millisecond
	retryLast      = 8 * time.Second
	earlyTries     = 5                     // of an envelope whose predecessors are missing, within 8 s
	retryGap       = 20 * time.Millisecond // by which later ones come after the one that failed
)

// ErrReject is wrapped by an Ingest callback for an envelope that will never be
// welcome: it is thrown away instead of being delivered again.
var ErrReject = errors.New("bus: event rejected")

// ErrEarly is wrapped by an Ingest callback for an envelope whose predecessors it
// has not seen. Another node may have them under way, so it comes again, but
// only a few times: a box that leaves gaps must not take up the room of others.
// What is thrown away an honest box sends once more, after its next hello.
var ErrEarly = errors.New("bus: event before its predecessors")

// IngestFunc takes the events of one attempt and returns nil once they are
// committed.
type IngestFunc = func(ctx context.Context, boxID string, e protocol.Envelope) error

// Ingest gives every envelope that boxes publish to fn, at least once, and
// acknowledges it only after fn has returned nil. Those of one attempt come one
// at a time and in order; different attempts come side by side, so that their
// writes can share a commit. Envelopes that fn has seen may come again after a
// crash: fn must know them by (run, attempt, seq).
//
// An error of fn brings the envelope back after a growing delay, and holds back
// the later ones of that attempt only. As at most 4,096 envelopes may wait so,
// what cannot heal must wrap ErrReject. The subject has been checked against the
// envelope's run and attempt; that the run is the box's, fn must check.
//
// One Ingest may run at a time. stop waits for the calls of fn under way; ctx
// is the context that fn gets, and its end stops Ingest as well.
func (b *Bus) Ingest(ctx context.Context, fn IngestFunc) (stop func(), err error) {
	consumer, err := b.js.CreateOrUpdateConsumer(ctx, protocol.StreamEvents, jetstream.ConsumerConfig{
		Durable:       ingestConsumer,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       ingestWait,
		MaxAckPending: ingestPending,
	})
	if err != nil {
		return nil, fmt.Errorf("bus: ingest: %w", err)
	}
	// What an earlier run left unacknowledged comes first, at once and in
	// order, instead of behind newer events when its time is up.
	if _, err := b.js.ResetConsumer(ctx, protocol.StreamEvents, ingestConsumer); err != nil {
		return nil, fmt.Errorf("bus: ingest: go back to the last acknowledged event: %w", err)
	}
	in := &ingest{bus: b, fn: fn, done: make(chan struct{}), seed: maphash.MakeSeed()}
	for i := range in.queues {
		in.queues[i] = make(chan jetstream.Msg, workerQueue)
		in.workers.Go(func() { in.work(ctx, in.queues[i]) })
	}
	consuming, err := consumer.Consume(in.route,
		jetstream.PullMaxMessagesWithBytesLimit(ingestBatch, ingestBytes),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			b.log.Warn("ingest", "error", err)
		}))
	if err != nil {
		close(in.done)
		return nil, fmt.Errorf("bus: ingest: %w", err)
	}
	halt := sync.OnceFunc(func() {
		close(in.done)
		consuming.Stop()
	})
	unhook := context.AfterFunc(ctx, halt)
	stop = func() { unhook(); halt(); in.workers.Wait() }
	b.mu.Lock()
	b.stops = append(b.stops, stop)
	b.mu.Unlock()
	return stop, nil
}

type ingest struct {
	bus     *Bus
	fn      IngestFunc
	done    chan struct{} // closed when no further message is to be touched
	seed    maphash.Seed
	queues  [ingestWorkers]chan jetstream.Msg
	workers sync.WaitGroup
}

// route hands a message to the one worker of its subject, and waits while that
// worker is busy.
func (in *ingest) route(m jetstream.Msg) {
	n := maphash.String(in.seed, m.Subject()) % ingestWorkers
	select {
	case in.queues[n] <- m:
	case <-in.done:
	}
}

func (in *ingest) work(ctx context.Context, queue <-chan jetstream.Msg) {
	held := backlog{}
	for {
		select {
		case <-in.done:
			return
		case m := <-queue:
			select {
			case <-in.done:
				return
			default:
				in.take(ctx, held, m)
			}
		}
	}
}

// take settles one message: acknowledged, thrown away, or sent back for later.
func (in *ingest) take(ctx context.Context, held backlog, m jetstream.Msg) {
	log, subject := in.bus.log, m.Subject()
	meta, err := m.Metadata()
	if err != nil {
		log.Error("event without metadata", "subject", subject, "error", err)
		return
	}
	seq := meta.Sequence.Stream
	if wait := held.wait(subject, seq); wait > 0 {
		held.add(subject, seq)
		in.settled(m, m.NakWithDelay(wait))
		return
	}
	switch err := in.deliver(ctx, m); {
	case err == nil:
		held.remove(subject, seq)
		in.settled(m, m.Ack())
	case errors.Is(err, ErrReject):
		held.remove(subject, seq)
		log.Warn("event thrown away", "subject", subject, "seq", seq, "error", err)
		in.settled(m, m.Term())
	case errors.Is(err, ErrEarly) && held.early(subject, seq) >= earlyTries:
		held.drop(subject, seq)
		log.Warn("event thrown away", "subject", subject, "seq", seq, "error", err)
		in.settled(m, m.Term())
	default:
		delay, failures := held.fail(subject, seq)
		if failures == 1 {
			log.Warn("event not ingested, will try again", "subject", subject, "seq", seq, "error", err)
		}
		in.settled(m, m.NakWithDelay(delay))
	}
}

func (in *ingest) settled(m jetstream.Msg, err error) {
	if err != nil {
		in.bus.log.Warn("settle an event", "subject", m.Subject(), "error", err)
	}
}

// deliver gives a message to the callback, unless it is a tombstone. A panic is
// an error like others: the message would come again and end each new process.
func (in *ingest) deliver(ctx context.Context, m jetstream.Msg) (err error) {
	boxID, envelope, err := decodeEvent(m.Subject(), m.Data())
	if err != nil {
		return fmt.Errorf("%w: malformed: %w", ErrReject, err)
	}
	if isTombstone(envelope) {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return in.fn(ctx, boxID, envelope)
}

// backlog holds, by subject, the messages that were sent back. Only the first of
// a subject may be tried, so that order is kept.
type backlog map[string]*heldBack

type heldBack struct {
	seqs     []uint64  // stream sequences, ascending
	failures int       // of the first one
	early    int       // how often in a row the first one's predecessors were missing
	due      time.Time // when the first one comes again
}

// wait tells how long a message must be sent back for because an earlier one of
// its subject was; zero lets it pass.
func (l backlog) wait(subject string, seq uint64) time.Duration {
	held := l[subject]
	if held == nil || held.seqs[0] >= seq {
		return 0
	}
	return max(time.Until(held.due), 0) + retryGap
}

// fail notes that the first message of a subject failed once more, and tells
// after how long to try again.
func (l backlog) fail(subject string, seq uint64) (delay time.Duration, failures int) {
	held := l.add(subject, seq)
	delay = min(retryFirst<<min(held.failures, 10), retryLast)
	held.failures++
	held.due = time.Now().Add(delay)
	return delay, held.failures
}

// early notes that the first message of a subject came before its predecessors,
// and tells how often that was so in a row. Those behind it have the same gap
// before them: the count goes on until one is taken.
func (l backlog) early(subject string, seq uint64) int {
	held := l.add(subject, seq)
	held.early++
	return held.early
}

func (l backlog) add(subject string, seq uint64) *heldBack {
	held := l[subject]
	if held == nil {
		held = new(heldBack)
		l[subject] = held
	}
	if at, found := slices.BinarySearch(held.seqs, seq); !found {
		held.seqs = slices.Insert(held.seqs, at, seq)
	}
	return held
}

func (l backlog) remove(subject string, seq uint64) {
	if held := l[subject]; held != nil {
		held.failures, held.early = 0, 0
		l.drop(subject, seq)
	}
}

// drop is remove for a message that was not taken.
func (l backlog) drop(subject string, seq uint64) {
	held := l[subject]
	if at, found := slices.BinarySearch(held.seqs, seq); found {
		held.seqs = slices.Delete(held.seqs, at, at+1)
	}
	if len(held.seqs) == 0 {
		delete(l, subject)
	}
}

// decodeEvent reads a message of the events stream and holds it against its
// subject.
func decodeEvent(subject string, data []byte) (boxID string, e protocol.Envelope, err error) {
	if err := json.Unmarshal(data, &e); err != nil {
		return "", e, err
	}
	token := strings.Split(subject, ".")
	switch {
	case len(token) != 4 || token[2] != e.Run || token[3] != strconv.Itoa(e.Attempt):
		return "", e, fmt.Errorf("run %q, attempt %d do not fit the subject", e.Run, e.Attempt)
	case e.V != protocol.Version:
		return "", e, fmt.Errorf("version %d is unknown", e.V)
	case len(e.Events) == 0:
		return "", e, errors.New("no events")
	}
	return token[1], e, nil
}

func isTombstone(e protocol.Envelope) bool { return e.Events[0].Kind == protocol.EventClosed }

// Tombstone ends the subject of an attempt: its box published with the sequence
// that it knew as the last one, so whatever a box that was cut off publishes
// from here on is refused. When it returns, every event that made it is in the
// stream before the tombstone. It may be repeated. Only honest boxes are stopped
// so: one that publishes without that sequence is stopped by the attempt number.
func (b *Bus) Tombstone(ctx context.Context, boxID, run string, attempt int) error {
	if err := errors.Join(checkToken("box id", boxID), checkToken("run id", run)); err != nil {
		return err
	}
	body, err := json.Marshal(protocol.Envelope{
		V: protocol.Version, Run: run, Attempt: attempt,
		Events: []protocol.Event{{Kind: protocol.EventClosed}},
	})
	if err != nil {
		return fmt.Errorf("bus: tombstone: %w", err)
	}
	subject := protocol.EventSubject(boxID, run, attempt)
	// No message id: a box could use it up beforehand.
	if _, err := b.js.Publish(ctx, subject, body); err != nil {
		return fmt.Errorf("bus: tombstone of %s: %w", subject, err)
	}
	return nil
}
