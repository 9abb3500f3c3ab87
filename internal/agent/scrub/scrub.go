// Package scrub removes secrets from what a box writes down or sends: output
// of agents, logs, errors. It knows a secret not only as it is but in the forms
// in which tools print one: base64 at every alignment (a token inside a longer
// header), hex, percent-encoding and JSON strings. What matches becomes
// "[redacted]"; all other bytes stay as they are.
package scrub

import (
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
)

// Mark is what a secret becomes.
const Mark = "[redacted]"

// MinLength is the length in bytes of the shortest secret that is removed.
// Shorter values ("admin", "1234567") are words of ordinary text: to remove
// them would destroy that text and, by its holes, tell what they are.
const MinLength = 8

// Scrubber removes a growing set of secrets. It is safe for concurrent use.
type Scrubber struct {
	mu      sync.Mutex // one Add at a time
	secrets map[string]bool
	matcher atomic.Pointer[matcher]
}

// New makes a scrubber of secrets, see Add.
func New(secrets ...string) *Scrubber {
	s := &Scrubber{secrets: map[string]bool{}}
	s.matcher.Store(newMatcher(nil))
	s.Add(secrets...)
	return s
}

// Add makes more secrets known, also to writers that exist. White space around
// a secret is not part of it. Those shorter than MinLength are ignored.
func (s *Scrubber) Add(secrets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.secrets)
	for _, x := range secrets {
		if x = strings.TrimSpace(x); len(x) >= MinLength {
			s.secrets[x] = true
		}
	}
	if len(s.secrets) == before {
		return
	}
	all := map[string]bool{}
	for x := range s.secrets {
		for _, f := range forms(x) {
			all[f] = true
		}
	}
	s.matcher.Store(newMatcher(all))
}

// Bytes returns b without secrets: b itself if there are none in it, else a copy.
func (s *Scrubber) Bytes(b []byte) []byte {
	m := s.matcher.Load()
	if m.find(b, 0) < 0 {
		return b
	}
	out, _, _ := m.redact(make([]byte, 0, len(b)), b, hole{}, true)
	return out
}

// String is Bytes for text.
func (s *Scrubber) String(text string) string { return string(s.Bytes([]byte(text))) }

// Writer returns a writer that passes on to dst what it is given, without
// secrets, also those that are split over several writes. It holds back only
// what could be the start of a secret, less than the longest form; Close writes
// that and does not close dst. A writer is for one goroutine.
func (s *Scrubber) Writer(dst io.Writer) io.WriteCloser { return &writer{s: s, dst: dst} }

type writer struct {
	s    *Scrubber
	dst  io.Writer
	held []byte // not decided yet
	at   hole   // where held begins
	out  []byte // reused
	err  error
}

func (w *writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	w.held = append(w.held, p...)
	w.flush(false)
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

func (w *writer) Close() error {
	if errors.Is(w.err, io.ErrClosedPipe) {
		return nil
	}
	if w.err == nil {
		w.flush(true)
	}
	err := w.err
	w.err = io.ErrClosedPipe
	return err
}

func (w *writer) flush(last bool) {
	out, rest, at := w.s.matcher.Load().redact(w.out[:0], w.held, w.at, last)
	w.held, w.at, w.out = append(w.held[:0], rest...), at, out
	if len(out) > 0 {
		_, w.err = w.dst.Write(out)
	}
}
