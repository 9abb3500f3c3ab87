// Package scrub removes secrets from what a box writes down or sends: output
// of agents, logs, errors. It knows a secret not only as it is but in the forms
// in which tools print one: escaped, in base64 at every alignment (a token
// inside a longer header), hex, dumps, numbers; wrapped, indented and quoted.
// What matches becomes "[redacted]"; all other bytes stay as they are.
// docs/secrets.md says what is covered and what is not.
//
// Several views look at the same stream: the bytes as they are, the text that
// is left when escapes and white space are gone, the same without the margins
// of its lines, digits of base 16, those of a dump, and numbers. Each feeds an
// automaton, so that the time depends on the length of the stream alone.
package scrub

import (
	"errors"
	"io"
	"slices"
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

// MinLoose is the length from which a secret is also removed with white space
// between its characters: that "1234 5678" is no secret though "12345678" is
// one leaves ordinary text alone. Secrets that have white space are removed
// whatever white space a text has there, and so are all encoded forms.
const MinLoose = 16

// MinLine is the length in bytes of the shortest line of a secret of several
// lines that is removed where it stands alone.
const MinLine = 16

// Scrubber removes a growing set of secrets. It is safe for concurrent use.
type Scrubber struct {
	mu       sync.Mutex
	secrets  map[string]bool
	compiled atomic.Pointer[compiled] // nil while there are secrets that it lacks
}

// New makes a scrubber of secrets, see Add.
func New(secrets ...string) *Scrubber {
	s := &Scrubber{secrets: map[string]bool{}}
	s.Add(secrets...)
	return s
}

// Add makes more secrets known, also to writers that exist. White space around
// a secret is not part of it. Those shorter than MinLength are ignored.
func (s *Scrubber) Add(secrets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range secrets {
		if x = strings.TrimSpace(x); len(x) >= MinLength && !s.secrets[x] {
			s.secrets[x] = true
			s.compiled.Store(nil)
		}
	}
}

// load is what to look for all secrets with. It is made when it is first
// needed: secrets come one after the other.
func (s *Scrubber) load() *compiled {
	if c := s.compiled.Load(); c != nil {
		return c
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.compiled.Load()
	if c == nil {
		c = compile(s.secrets)
		s.compiled.Store(c)
	}
	return c
}

// Bytes returns b without secrets: b itself if there are none in it, else a copy.
func (s *Scrubber) Bytes(b []byte) []byte {
	c := s.load()
	scan := c.scanners.Get().(*scanner)
	defer c.scanners.Put(scan)
	scan.clear(0)
	scan.feed(b)
	scan.finish()
	if !scan.any() {
		return b
	}
	var r redaction
	out, _ := r.write(make([]byte, 0, len(b)), b, 0, scan.spans(), int64(len(b)))
	return out
}

// String is Bytes for text.
func (s *Scrubber) String(text string) string { return string(s.Bytes([]byte(text))) }

// Writer returns a writer that passes on to dst what it is given, without
// secrets, also those that are split over several writes. It holds back only
// what could be the start of a secret: of each of its characters the longest
// way to write it, and at most 128 bytes of white space or margin between two.
// Up to three characters of a form that is wrapped, or numbers of one, are not
// held back where a piece ends: each line would have to wait for the next.
// Close writes that and does not close dst. A writer is for one goroutine.
func (s *Scrubber) Writer(dst io.Writer) io.WriteCloser { return &writer{s: s, dst: dst} }

type writer struct {
	s     *Scrubber
	dst   io.Writer
	known *compiled // what scan looks for
	scan  *scanner
	held  []byte // not decided yet, behind what is written
	head  int    // of held that is written
	begin int64  // position of held
	done  redaction
	out   []byte // reused
	err   error
}

func (w *writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	w.flush(p, false)
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
		w.flush(nil, true)
	}
	err := w.err
	w.err = io.ErrClosedPipe
	return err
}

func (w *writer) flush(p []byte, last bool) {
	if w.head > len(w.held)/2 { // seldom enough that each byte moves once
		w.begin += int64(w.head)
		w.held, w.head = append(w.held[:0], w.held[w.head:]...), 0
	}
	if c := w.s.load(); c != w.known {
		// What is held may be the beginning of a new secret.
		var found []span
		if w.scan != nil {
			found = slices.Clone(w.scan.spans())
		}
		w.known, w.scan = c, newScanner(c)
		w.scan.clear(w.begin + int64(w.head))
		w.scan.found = append(w.scan.found, found...)
		w.scan.feed(w.held[w.head:])
	}
	w.held = append(w.held, p...)
	w.scan.feed(p)
	limit := w.scan.end
	if last {
		w.scan.finish()
	} else {
		limit = w.scan.undecided()
	}
	var left []span
	w.out, left = w.done.write(w.out[:0], w.held, w.begin, w.scan.spans(), limit)
	w.scan.found = append(w.scan.found[:0], left...)
	w.head = int(limit - w.begin)
	if len(w.out) > 0 {
		_, w.err = w.dst.Write(w.out)
	}
}
