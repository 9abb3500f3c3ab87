package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"yardmaster/internal/protocol"
)

// write adds an event to the newest segment. The caller holds mu.
func (s *Spool) write(kind string, data json.RawMessage) error {
	switch {
	case s.broken != nil:
		return s.broken
	case s.closed:
		return fmt.Errorf("spool: %w", os.ErrClosed)
	case s.lastKind == protocol.EventFinished:
		return ErrEnded
	}
	now := time.Now()
	e := protocol.Event{
		Seq: s.last + 1, T: now.UnixMilli(), Mono: now.Sub(s.began).Milliseconds(),
		Kind: kind, Data: data,
	}
	if err := s.rotate(); err != nil {
		return err
	}
	if err := s.tail().write(e); err != nil {
		return err
	}
	s.last, s.lastKind = e.Seq, kind
	return nil
}

// rotate begins a new segment when the newest is long enough. It first syncs the
// old one, so that only the newest can be torn.
func (s *Spool) rotate() error {
	old := s.tail()
	if old.size < s.o.Segment || len(old.offsets) == 0 {
		return nil
	}
	if err := old.sync(); err != nil {
		return err
	}
	next, err := createSegment(s.dir, s.last+1)
	if diskFull(err) {
		return nil // the old one takes the event, or fails itself
	}
	if err != nil {
		return err
	}
	s.durable = s.last
	s.segments = append(s.segments, next)
	return nil
}

// writeState adds an event that must not be lost: it uses the reserve if the disk
// is full. The caller holds mu.
func (s *Spool) writeState(kind string, data json.RawMessage) error {
	err := s.write(kind, data)
	if diskFull(err) {
		s.noteFull(err)
		if err = s.write(kind, data); diskFull(err) && s.useReserve() {
			err = s.write(kind, data)
		}
	}
	switch {
	case err == nil:
		s.notify()
		return nil
	case diskFull(err):
		return fmt.Errorf("%w for %s: %w", ErrFull, kind, err)
	case s.closed, errors.Is(err, ErrEnded):
		return err
	}
	s.fail(err)
	return s.broken
}

// writeText adds output of an agent. On a full disk it drops the output and records
// that. The caller holds mu.
func (s *Spool) writeText(kind string, data json.RawMessage) {
	if s.full || s.broken != nil || s.closed || s.lastKind == protocol.EventFinished {
		return
	}
	err := s.write(kind, data)
	switch {
	case err == nil:
		s.text.spooled += charge(data)
		s.notify()
	case diskFull(err):
		s.noteFull(err)
	default:
		s.fail(err)
	}
}

// noteFull begins to drop agent updates and records it once.
func (s *Spool) noteFull(cause error) {
	if s.full {
		return
	}
	s.full = true
	s.o.Logger.Error("disk full, output is dropped from here on", "dir", s.dir, "error", cause)
	go s.o.OnFull(fmt.Errorf("%w: %w", ErrFull, cause))
	s.truncated(Truncated{Reason: "disk_full"})
}

// Truncated is the data of the event that reports a cut in the output.
type Truncated struct {
	Reason string `json:"reason"`          // text_limit, event_limit or disk_full
	Bytes  int64  `json:"bytes,omitempty"` // bytes cut out of the update before it, for event_limit
}

const reasonCap = "text_limit"

func isCap(data json.RawMessage) bool {
	var t Truncated
	return json.Unmarshal(data, &t) == nil && t.Reason == reasonCap
}

func (s *Spool) truncated(t Truncated) {
	data, err := json.Marshal(t)
	if err == nil {
		err = s.writeState(protocol.EventTruncated, data)
	}
	if err != nil {
		s.o.Logger.Error("a cut in the output is not recorded", "dir", s.dir, "error", err)
	}
}

func diskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// useReserve turns the reserve into the newest segment. The blocks stay allocated
// to the file, so no other process can take them on the full disk. It tells whether
// there was a reserve.
func (s *Spool) useReserve() bool {
	g, err := s.promoteReserve()
	if err != nil {
		s.o.Logger.Error("no reserve for state events", "dir", s.dir, "error", err)
		return false
	}
	s.durable = s.last
	s.segments = append(s.segments, g)
	return true
}

func (s *Spool) promoteReserve() (*segment, error) {
	if err := s.tail().sync(); err != nil {
		return nil, err
	}
	path := segmentPath(s.dir, s.last+1)
	if err := os.Rename(s.reserve(), path); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &segment{path: path, file: file, first: s.last + 1, allocated: s.o.Reserve}, syncDir(s.dir)
}

// fillReserve allocates the reserve on the disk.
func (s *Spool) fillReserve() error {
	if info, err := os.Stat(s.reserve()); err == nil && info.Size() == s.o.Reserve {
		return nil
	}
	f, err := os.OpenFile(s.reserve(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	// The zeros are written, because a sparse file would allocate nothing.
	_, err = f.Write(make([]byte, s.o.Reserve))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(s.reserve()))
	}
	return nil
}
