// Package spool keeps the events of one attempt on disk until the control plane
// has committed them. It numbers them from 1 without gaps, survives the death of
// the process and of the machine, and never loses a state event: the output of an
// agent is coalesced and capped, and on a full disk only that output is dropped,
// while a reserve that was set aside takes the last state events.
//
// A spool is a folder of segments, append-only files that are named by the
// number of their first event and deleted whole once they are committed.
package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"yardmaster/internal/box/scrub"
	"yardmaster/internal/protocol"
)

// ErrFull is wrapped by an append when neither the disk nor the reserve has space.
var ErrFull = errors.New("spool: no space left")

// stateBytes limits the data of a state event, so that a message can always contain
// it. Ordinary state events are far smaller.
const stateBytes = protocol.MaxMessage - 8<<10

// ErrEnded is returned by an append after the event that ends an attempt.
var ErrEnded = errors.New("spool: the attempt has ended")

// Options are the limits of a spool; zero fields take the defaults.
type Options struct {
	TextWindow time.Duration   // pieces of text that arrive within it share an event; 100 ms
	LiveWindow time.Duration   // the same for the output of a running tool; 250 ms, growing to 2 s
	TextEvent  int             // bytes of text in one event; 16 KiB
	TextTotal  int64           // bytes of agent updates in one attempt; 8 MiB
	EventBytes int             // bytes of one event's data; 64 KiB
	Segment    int64           // bytes after which a new file is begun; 1 MiB
	Reserve    int64           // bytes set aside for state events on a full disk; 256 KiB
	Scrubber   *scrub.Scrubber // removes secrets from all events; nil removes none
	Logger     *slog.Logger

	// OnFull is called once, on a goroutine of its own, when the disk is found full
	// or broken.
	OnFull func(error)
}

func (o Options) withDefaults() Options {
	if o.TextWindow == 0 {
		o.TextWindow = 100 * time.Millisecond
	}
	if o.LiveWindow == 0 {
		o.LiveWindow = liveWindow
	}
	if o.TextEvent == 0 {
		o.TextEvent = 16 << 10
	}
	if o.TextTotal == 0 {
		o.TextTotal = 8 << 20
	}
	if o.EventBytes == 0 {
		o.EventBytes = 64 << 10
	}
	if o.Segment == 0 {
		o.Segment = 1 << 20
	}
	if o.Reserve == 0 {
		o.Reserve = 256 << 10
	}
	if o.Scrubber == nil {
		o.Scrubber = scrub.New()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OnFull == nil {
		o.OnFull = func(error) {}
	}
	return o
}

// Spool holds the events of one attempt. Its methods may be called
// concurrently.
type Spool struct {
	dir   string
	o     Options
	began time.Time // begin of the attempt, on this process's clock

	syncing sync.Mutex // held around fsync, so that concurrent appends share one; taken before mu

	mu       sync.Mutex
	segments []*segment // in order; the last one is written to
	last     int64      // number of the newest event written
	durable  int64      // number of the newest event that is synced to disk
	lastKind string
	text     text
	live     live
	full     bool  // agent updates are dropped
	broken   error // nothing can be written any more
	closed   bool
	changed  chan struct{} // closed and replaced when there is something new
}

// Open opens or begins the spool in dir. It cuts off a line that a crash has left
// incomplete, which was never readable.
func Open(dir string, o Options) (*Spool, error) {
	s := &Spool{dir: dir, o: o.withDefaults(), began: time.Now(), changed: make(chan struct{})}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	if err := s.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("spool: %w", err), s.closeFiles())
	}
	if s.lastKind != protocol.EventFinished {
		if err := s.fillReserve(); err != nil {
			// Not fatal: the attempt may end before the disk is full.
			s.o.Logger.Warn("no reserve for state events", "dir", dir, "error", err)
		}
	}
	return s, nil
}

func (s *Spool) load() error {
	segments, err := openSegments(s.dir)
	s.segments = segments
	if err != nil {
		return err
	}
	if len(segments) == 0 {
		first, err := createSegment(s.dir, 1)
		if err != nil {
			return err
		}
		s.segments = []*segment{first}
	}
	s.last = s.tail().last()
	s.durable = s.last
	for _, g := range s.segments {
		s.text.spooled += g.textBytes
		s.text.capped = s.text.capped || g.capped
	}
	if s.last >= s.tail().first {
		e, err := s.tail().event(s.last)
		if err != nil {
			return err
		}
		s.lastKind = e.Kind
		s.began = s.began.Add(-time.Duration(e.Mono) * time.Millisecond)
	}
	// The lines of a dead process may be only in the page cache. From here on they
	// count as durable, so they are synced.
	return s.tail().sync()
}

func (s *Spool) tail() *segment { return s.segments[len(s.segments)-1] }

// Append adds a state event. When it returns nil, the event is synced to disk,
// after all events added before it. It returns ErrEnded after the last event, and
// wraps ErrFull on a full disk.
func (s *Spool) Append(kind string, data any) error {
	var raw json.RawMessage
	if data != nil {
		var err error
		if raw, err = json.Marshal(data); err != nil {
			return fmt.Errorf("spool: %s: %w", kind, err)
		}
	}
	if len(raw) > stateBytes {
		raw = shorten(raw, stateBytes)
	}
	s.mu.Lock()
	s.flush(kind == protocol.EventFinished)
	s.flushLive(kind == protocol.EventFinished)
	err := s.writeState(kind, s.o.Scrubber.Bytes(raw))
	seq := s.last
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.syncTo(seq)
}

// Sync syncs all events to disk, which makes them readable.
func (s *Spool) Sync() error {
	s.mu.Lock()
	seq := s.last
	s.mu.Unlock()
	return s.syncTo(seq)
}

func (s *Spool) syncTo(seq int64) error {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	s.mu.Lock()
	done, target, tail, broken := s.durable >= seq, s.last, s.tail(), s.broken
	s.mu.Unlock()
	if done {
		return nil
	}
	if broken != nil {
		return broken
	}
	err := tail.sync()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		// After a failed fsync the state of the file is unknown.
		s.fail(err)
		return s.broken
	}
	s.durable = max(s.durable, target)
	s.notify()
	return nil
}

// notify wakes the goroutines that wait for Changed. The caller holds mu.
func (s *Spool) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// fail ends all writing. The caller holds mu.
func (s *Spool) fail(err error) {
	if s.broken == nil {
		s.broken = fmt.Errorf("spool: %w", err)
		s.o.Logger.Error("spool broken", "dir", s.dir, "error", err)
		go s.o.OnFull(s.broken)
	}
}

// Changed returns a channel that is closed when there is something new to read or
// to sync.
func (s *Spool) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Last returns the number of the newest event, 0 when there is none.
func (s *Spool) Last() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// First returns the number of the oldest event that is still stored, or of the next
// one.
func (s *Spool) First() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.segments[0].first
}

// Ended tells whether the newest event is the one that ends the attempt.
func (s *Spool) Ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastKind == protocol.EventFinished
}

// Read returns durable events beginning with number from: at most n, and at most
// size bytes, but at least one if there is one.
func (s *Spool) Read(from int64, n, size int) ([]protocol.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.segments[0].first; from < first {
		return nil, fmt.Errorf("spool: event %d is committed and gone, the first is %d", from, first)
	}
	var out []protocol.Event
	for _, g := range s.segments {
		for from <= g.last() && from <= s.durable && len(out) < n {
			if size -= g.length(from); size < 0 && len(out) > 0 {
				return out, nil
			}
			e, err := g.event(from)
			if err != nil {
				return nil, fmt.Errorf("spool: %w", err)
			}
			out = append(out, e)
			from++
		}
	}
	return out, nil
}

// Trim notes that the control plane has committed every event up to committed, and
// deletes segments that are not needed any more. The newest segment stays, because
// its name holds the count.
func (s *Spool) Trim(committed int64) error {
	s.syncing.Lock() // no sync may run on a file that is closed here
	defer s.syncing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.segments) > 1 && s.segments[0].last() <= min(committed, s.durable) {
		if err := s.segments[0].remove(); err != nil {
			return fmt.Errorf("spool: trim: %w", err)
		}
		s.segments = s.segments[1:]
	}
	return nil
}

// Bytes returns the size of the spool on disk, without its reserve.
func (s *Spool) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n int64
	for _, g := range s.segments {
		n += g.size
	}
	return n
}

// Close writes the pending output and closes the files.
func (s *Spool) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.flush(true)
	s.flushLive(true)
	s.closed = true
	s.mu.Unlock()
	err := s.Sync()
	s.syncing.Lock()
	defer s.syncing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(err, s.closeFiles())
}

func (s *Spool) closeFiles() error {
	var errs []error
	for _, g := range s.segments {
		errs = append(errs, g.close())
	}
	return errors.Join(errs...)
}

func (s *Spool) reserve() string { return filepath.Join(s.dir, "reserve") }
