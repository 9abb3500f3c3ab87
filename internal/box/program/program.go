// Package program keeps the programs that a box was given in place of the installed one, and
// starts the one that is to run. What a box is told to take is verified before it is moved to its
// place; it runs on trial until the box has done a run of its own; and the program of before is
// kept, and runs again if the trial fails. At most two are kept.
//
// Every step is a change of one file, which is written whole or not at all: whatever is killed,
// and when, the next start finds a program that works.
//
//   - program.go: what is kept, and its steps
//   - fetch.go: how a program comes here, and what is verified
//   - supervise.go: how it is started, and when the box goes back
package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"yardmaster/internal/protocol"
)

// Variable is set for a program that Supervise has started: the SHA-256 of its file.
const Variable = "YARDMASTER_BOX_PROGRAM"

// lockName is the file that the process holds which starts the programs.
const lockName = "lock"

// Copy is a program in the folder.
type Copy struct {
	Command string          `json:"command"` // which said to take it
	Of      protocol.Update `json:"of"`
}

// Failure is why a program was not taken, and when it may be tried again.
type Failure struct {
	Copy
	Why   string    `json:"why"`
	Tries int       `json:"tries"`
	Again time.Time `json:"again"`
}

// Trial is a program that has yet to prove itself.
type Trial struct {
	Copy
	Starts int    `json:"starts"`
	Why    string `json:"why,omitempty"` // what it said last of what keeps it from its trial
}

// State is what the folder is about. At most one of Wanted, Ready and Trial is set.
type State struct {
	Current  *Copy    `json:"current,omitempty"`  // runs for good; nil: the installed one
	Previous *Copy    `json:"previous,omitempty"` // of before Current; nil: the installed one, or none
	Wanted   *Copy    `json:"wanted,omitempty"`   // has yet to be fetched
	Ready    *Copy    `json:"ready,omitempty"`    // is verified and in its place
	Trial    *Trial   `json:"trial,omitempty"`
	Failed   *Failure `json:"failed,omitempty"` // the last that was not taken
	Last     *Copy    `json:"last,omitempty"`   // the last that was taken for good
}

// Store is the folder of programs of one box. One process at a time changes it.
type Store struct {
	dir string
	mu  sync.Mutex
}

// Open answers the store in the data folder of a box. It makes nothing.
func Open(dataDir string) *Store { return &Store{dir: filepath.Join(dataDir, "programs")} }

func (s *Store) statePath() string { return filepath.Join(s.dir, "state.json") }

// Path is where a program is.
func (s *Store) Path(c Copy) string { return filepath.Join(s.dir, c.Of.SHA256, "yardmaster") }

// State reads what is stored. A folder that is not there is empty.
func (s *Store) State() (State, error) {
	var out State
	text, err := os.ReadFile(s.statePath())
	if errors.Is(err, os.ErrNotExist) {
		return out, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return out, fmt.Errorf("read which program is to run: %w", err)
	}
	return out, nil
}

// change applies a step and stores the state. Files that no program of the state has are removed.
func (s *Store) change(step func(*State) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.State()
	if err != nil {
		return err
	}
	if err := step(&now); err != nil {
		return err
	}
	text, err := json.Marshal(now)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o711); err != nil {
		return err
	}
	if err := writeFile(s.statePath(), text); err != nil {
		return err
	}
	return s.sweep(now)
}

// sweep removes what no program of the state is.
func (s *Store) sweep(now State) error {
	keep := map[string]bool{"state.json": true, lockName: true}
	for _, c := range []*Copy{now.Current, now.Previous, now.Ready} {
		if c != nil {
			keep[c.Of.SHA256] = true
		}
	}
	if now.Trial != nil {
		keep[now.Trial.Of.SHA256] = true
	}
	if now.Wanted != nil {
		keep[now.Wanted.Of.SHA256+part] = true
	}
	entries, err := os.ReadDir(s.dir)
	for _, e := range entries {
		if !keep[e.Name()] {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.dir, e.Name())))
		}
	}
	return err
}

// Want notes the program that a command says to take, in place of one that is not on trial yet.
// The one of before the current one is removed: two are kept.
func (s *Store) Want(command string, u protocol.Update) error {
	return s.change(func(now *State) error {
		if now.Trial != nil {
			return errors.New("another program is on trial")
		}
		now.Wanted, now.Ready, now.Previous = &Copy{Command: command, Of: u}, nil, nil
		return nil
	})
}

// Forget gives up what is not on trial yet.
func (s *Store) Forget() error {
	return s.change(func(now *State) error {
		now.Wanted, now.Ready = nil, nil
		return nil
	})
}

// Try puts the program that is ready on trial, from the next start on.
func (s *Store) Try() error {
	return s.change(func(now *State) error {
		if now.Ready == nil {
			return errors.New("no program is ready")
		}
		now.Trial, now.Ready = &Trial{Copy: *now.Ready}, nil
		return nil
	})
}

// Complain notes what keeps the program on trial from its trial.
func (s *Store) Complain(why string) error {
	return s.change(func(now *State) error {
		if now.Trial != nil {
			now.Trial.Why = clip(why)
		}
		return nil
	})
}

// Good ends the trial of a program: it runs for good.
func (s *Store) Good() error {
	return s.change(func(now *State) error {
		if now.Trial == nil {
			return nil
		}
		c := now.Trial.Copy
		now.Previous, now.Current, now.Last = now.Current, &c, &c
		now.Trial, now.Failed = nil, nil
		return nil
	})
}

// Fail notes why a program is not taken: what was wanted, or what was on trial.
func (s *Store) Fail(c Copy, why string, at time.Time) error {
	return s.change(func(now *State) error {
		f := &Failure{Copy: c, Why: clip(why), Tries: 1}
		if now.Failed != nil && now.Failed.Of.SHA256 == c.Of.SHA256 {
			f.Tries = now.Failed.Tries + 1
		}
		f.Again = at.Add(wait(f.Tries))
		now.Failed, now.Wanted, now.Ready, now.Trial = f, nil, nil, nil
		return nil
	})
}

// Refuse notes that a command names a program that this box may not take. What is under way goes on.
func (s *Store) Refuse(c Copy, why string, at time.Time) error {
	return s.change(func(now *State) error {
		if now.Wanted == nil && now.Ready == nil && now.Trial == nil {
			now.Failed = &Failure{Copy: c, Why: clip(why), Tries: 1, Again: at}
		}
		return nil
	})
}

// The wait after a program that was not taken: longer each time.
const (
	firstWait = time.Minute
	mostWait  = 24 * time.Hour
)

func wait(tries int) time.Duration {
	d := firstWait
	for ; tries > 1 && d < mostWait; tries-- {
		d *= 4
	}
	return min(d, mostWait)
}

// Report is what the box says of its updates.
func (now State) Report(keys int) protocol.UpdateReport {
	out := protocol.UpdateReport{State: protocol.UpdateNone, Keys: keys}
	tell := func(state string, c Copy) {
		out.State, out.Command, out.Release, out.Version = state, c.Command, c.Of.Release, c.Of.Version
	}
	switch {
	case now.Trial != nil:
		tell(protocol.UpdateTrying, now.Trial.Copy)
		out.Why = now.Trial.Why
	case now.Ready != nil:
		tell(protocol.UpdateReady, *now.Ready)
	case now.Wanted != nil:
		tell(protocol.UpdateFetching, *now.Wanted)
	case now.Failed != nil:
		tell(protocol.UpdateFailed, now.Failed.Copy)
		out.Why = now.Failed.Why
	case now.Last != nil:
		tell(protocol.UpdateGood, *now.Last)
	}
	return out
}

func clip(s string) string { return s[:min(len(s), protocol.MaxUpdateText)] }

// writeFile replaces a file, so that a loss of power leaves the one of before or the new one.
func writeFile(path string, text []byte) error {
	f, err := os.OpenFile(path+".next", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".next", path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
