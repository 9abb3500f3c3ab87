package prepared

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// make makes a result whole and gives it back.
func (s *Store) make(t *testing.T, key string) {
	t.Helper()
	e, err := s.Take(t.Context(), key)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(e.Dir, "file"), []byte(key), 0o644))
	must(t, e.Keep(Note{Bytes: int64(len(key))}))
	must(t, e.Release())
}

func (s *Store) names(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(s.Dir, "*"))
	must(t, err)
	for i := range all {
		all[i] = filepath.Base(all[i])
	}
	return all
}

// Whoever comes while a result is made waits for it, makes it if it did not come to be, and may
// give up.
func TestOneMakesAResult(t *testing.T) {
	t.Parallel()
	s := &Store{Dir: filepath.Join(t.TempDir(), "results")}
	first, err := s.Take(t.Context(), "k")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(first.Dir, "half"), nil, 0o644))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Take(gone, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("who gives up is told %v", err)
	}
	second := make(chan *Entry)
	go func() {
		e, err := s.Take(t.Context(), "k")
		if err != nil {
			t.Error(err)
		}
		second <- e
	}()
	must(t, first.Release())
	e := <-second
	if left, err := os.ReadDir(e.Dir); e.Whole || err != nil || len(left) > 0 {
		t.Errorf("what the first one left half: whole %t, %v, %v", e.Whole, left, err)
	}
	must(t, e.Keep(Note{Bytes: 7, Env: map[string]string{"A": "b"}}))
	again, err := (&Store{Dir: s.Dir}).Take(t.Context(), "k") // another process
	must(t, err)
	if !again.Whole || again.Bytes != 7 || again.Env["A"] != "b" {
		t.Errorf("read again: %+v", again)
	}
	must(t, errors.Join(e.Release(), again.Release()))
}

// The least used go first; those that are held stay, and what has no mark is nothing.
func TestSweep(t *testing.T) {
	t.Parallel()
	s := &Store{Dir: t.TempDir()}
	now := time.Now()
	for i := range 4 {
		key := fmt.Sprint(i)
		s.make(t, key)
		at := now.Add(-time.Duration(i) * time.Hour)
		if i == 3 {
			at = now.Add(-Unused)
		}
		must(t, os.Chtimes(s.mark(key), at, at))
	}
	held, err := s.Take(t.Context(), "2")
	must(t, err)
	at := now.Add(-2 * time.Hour)
	must(t, os.Chtimes(s.mark("2"), at, at))
	must(t, os.Mkdir(filepath.Join(s.Dir, "half"), 0o755))
	s.Sweep(Most)
	if got := fmt.Sprint(s.names(t)); got != "[0 0.json 1 1.json 2 2.json]" {
		t.Errorf("after what is old and half: %s", got)
	}
	s.Sweep(1)
	if got := fmt.Sprint(s.names(t)); got != "[0 0.json 2 2.json]" {
		t.Errorf("but one: %s", got)
	}
	must(t, held.Release())
	s.Sweep(0)
	if got := s.names(t); len(got) > 0 {
		t.Errorf("all: %s", got)
	}
}
