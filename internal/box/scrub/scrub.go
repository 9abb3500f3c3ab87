// Package scrub removes secrets from the bytes that a box writes or sends: output
// of agents, logs, errors. It finds a secret as it is and in the forms in which
// tools print it: escaped, in base64 at every alignment (a token inside a longer
// header), hex, dumps, numbers; wrapped, indented and quoted. It replaces matches
// by "[redacted]"; all other bytes stay as they are. docs/secrets.md says what is
// covered and what is not.
//
// Several views read the same stream: the bytes as they are, the text without
// escapes and white space, the same without the margins of its lines, digits of
// base 16, those of a dump, and numbers. Each feeds an automaton, so that the time
// depends only on the length of the stream.
package scrub

import (
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Mark replaces a secret.
const Mark = "[redacted]"

// MinLength is the length in bytes of the shortest secret that is removed. Shorter
// values ("admin", "1234567") are words of ordinary text: removing them would
// destroy that text, and the gaps would reveal them.
const MinLength = 8

// MinLoose is the length in bytes from which a secret is also removed with white
// space between its characters. For shorter secrets "1234 5678" stays although
// "12345678" is removed, so that ordinary text is kept. Secrets that contain white
// space are removed with any white space in its place, and so are all encoded forms.
const MinLoose = 16

// MinLine is the length in bytes of the shortest line of a multi-line secret that
// is removed by itself.
const MinLine = 16

// Scrubber removes a growing set of secrets. Its methods may be called
// concurrently.
type Scrubber struct {
	mu       sync.Mutex
	secrets  map[string]bool
	compiled atomic.Pointer[compiled] // nil if it lacks some secrets
}

// New returns a scrubber for secrets, see Add.
func New(secrets ...string) *Scrubber {
	s := &Scrubber{secrets: map[string]bool{}}
	s.Add(secrets...)
	return s
}

// Add adds secrets, also for existing writers. White space around a secret is not
// part of it. Secrets shorter than MinLength are ignored.
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

// load returns the automata for all secrets. It makes them when they are first
// needed, because secrets are added one by one.
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

// Bytes returns b without secrets: b itself if it contains none, else a copy.
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

// Writer returns a writer that passes its input to dst without secrets, including
// those that are split over several writes. It holds back only a possible beginning
// of a secret: for each character its longest form, and at most 128 bytes of white
// space or margin between two. It does not hold back up to three characters of a
// wrapped form, or numbers of a list, at the end of a piece, because otherwise each
// line would wait for the next. Close writes the rest and does not close dst. Only
// one goroutine may use a writer.
func (s *Scrubber) Writer(dst io.Writer) io.WriteCloser { return &writer{s: s, dst: dst} }

type writer struct {
	s     *Scrubber
	dst   io.Writer
	known *compiled // the automata of scan
	scan  *scanner
	held  []byte // undecided bytes, after some that are written
	head  int    // how many bytes of held are written
	begin int64  // position of the first byte of held
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
	if w.head > len(w.held)/2 { // rarely enough that each byte moves once
		w.begin += int64(w.head)
		w.held, w.head = append(w.held[:0], w.held[w.head:]...), 0
	}
	if c := w.s.load(); c != w.known {
		// The held bytes may begin a new secret.
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
