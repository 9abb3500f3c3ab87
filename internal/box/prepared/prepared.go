// Package prepared keeps what prepare scripts have made on the disk of a box: a folder for
// each result, by a key that says what it was made of. A folder counts once its mark is
// there, so that a box that dies amid the work leaves nothing that is taken for whole.
package prepared

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/box/worktree"
)

// Most is how many results a box keeps beyond those in use, and Unused is after which time
// without a use one goes.
const (
	Most   = 10
	Unused = 14 * 24 * time.Hour
)

// Store is the folder of the results. The zero Store with a Dir is usable.
type Store struct {
	Dir   string
	Ready func(dir string) error // makes a folder of results one that agents may enter

	mu   sync.Mutex
	used map[string]*use
}

// use counts who holds a result, or waits for it.
type use struct {
	holders int
	making  chan struct{} // has room for the one that makes it
}

// Note is what is remembered about a result.
type Note struct {
	Bytes int64             `json:"bytes"`
	Env   map[string]string `json:"env,omitempty"` // variables of those who use it
	Bin   bool              `json:"bin,omitempty"` // it has programs, in the folder bin
}

// Entry is a result that is held: it stays until Release.
type Entry struct {
	Note
	Dir   string // of the result
	Whole bool   // it is there; else it is empty, and whoever holds it makes it

	store *Store
	key   string
	mine  bool // nobody else may make it meanwhile
}

// Take holds the result of a key. If somebody makes it just now, Take waits for that.
func (s *Store) Take(ctx context.Context, key string) (*Entry, error) {
	s.mu.Lock()
	if s.used == nil {
		s.used = map[string]*use{}
	}
	u := s.used[key]
	if u == nil {
		u = &use{making: make(chan struct{}, 1)}
		s.used[key] = u
	}
	u.holders++
	s.mu.Unlock()
	e := &Entry{Dir: filepath.Join(s.Dir, key), store: s, key: key}
	select {
	case u.making <- struct{}{}:
		e.mine = true
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), e.Release())
	}
	var err error
	if e.Whole, err = s.read(e); err == nil && !e.Whole {
		err = s.begin(e.Dir)
	}
	if err != nil {
		return nil, errors.Join(err, e.Release())
	}
	if e.Whole {
		e.yield()
	}
	return e, nil
}

// yield lets the next one have a look.
func (e *Entry) yield() {
	if !e.mine {
		return
	}
	e.mine = false
	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	<-e.store.used[e.key].making
}

func (s *Store) mark(key string) string { return filepath.Join(s.Dir, key+".json") }

// read reads the mark of a result, and notes its use.
func (s *Store) read(e *Entry) (whole bool, err error) {
	text, err := os.ReadFile(s.mark(e.key))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("prepared: %w", err)
	}
	info, err := os.Lstat(e.Dir)
	if json.Unmarshal(text, &e.Note) != nil || err != nil || !info.IsDir() {
		return false, os.Remove(s.mark(e.key))
	}
	now := time.Now()
	return true, os.Chtimes(s.mark(e.key), now, now)
}

// begin makes an empty folder in the place of a result.
func (s *Store) begin(dir string) error {
	if err := os.MkdirAll(s.Dir, 0o711); err != nil {
		return fmt.Errorf("prepared: %w", err)
	}
	if s.Ready != nil {
		if err := s.Ready(s.Dir); err != nil {
			return err
		}
	}
	s.Sweep(Most - 1)
	if err := worktree.RemoveTree(dir); err != nil {
		return fmt.Errorf("prepared: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("prepared: %w", err)
	}
	return nil
}

// Keep marks the result as whole.
func (e *Entry) Keep(n Note) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	next := e.store.mark(e.key) + ".next"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err == nil {
		err = os.Rename(next, e.store.mark(e.key))
	}
	if err != nil {
		return fmt.Errorf("prepared: %w", err)
	}
	e.Note, e.Whole = n, true
	e.yield()
	return nil
}

// Release gives the result back. What was not made whole is deleted.
func (e *Entry) Release() (err error) {
	if e.mine && !e.Whole {
		err = worktree.RemoveTree(e.Dir)
	}
	e.yield()
	s := e.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.used[e.key]; u != nil {
		if u.holders--; u.holders == 0 {
			delete(s.used, e.key)
		}
	}
	return err
}

// Sweep deletes what nobody holds: results that were not used for long, those that were not
// made whole, and the least used beyond most.
func (s *Store) Sweep(most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return
	}
	last := map[string]time.Time{}
	for _, e := range entries {
		key, _, _ := strings.Cut(e.Name(), ".")
		if s.used[key] != nil {
			continue
		}
		at := last[key]
		if info, err := e.Info(); err == nil && e.Name() == key+".json" {
			at = info.ModTime()
		}
		last[key] = at
	}
	keys := make([]string, 0, len(last))
	for key := range last {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { // the newest first
		if c := last[b].Compare(last[a]); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	for i, key := range keys {
		if i < most && time.Since(last[key]) < Unused {
			continue
		}
		if os.Remove(s.mark(key)) != nil && !last[key].IsZero() {
			continue // it counts as long as its mark is there
		}
		_ = os.Remove(s.mark(key) + ".next")
		_ = worktree.RemoveTree(filepath.Join(s.Dir, key)) // tried again by the next sweep
	}
}
