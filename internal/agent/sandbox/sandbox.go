// Package sandbox runs an agent where it can do little harm: it sees a task
// folder, a home folder and the installed tools, an environment made for it,
// and none of the box. There are three levels, best first: Bubblewrap
// (namespaces of its own, no network but the forwarded ports), Landlock (the
// kernel refuses files outside, the network stays the host's) and None. At
// every level all processes that the agent leaves behind are found and killed.
//
// Start runs the program's own binary again as the shim ("sandbox-exec", see
// Main), inside the sandbox. The shim gets its orders over a pipe, so that
// neither the environment nor a token shows in an argument list; the end of
// that pipe is the death of everything it started, however the box died.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Level is how much a sandbox isolates.
type Level string

// The levels, best first.
const (
	Bubblewrap Level = "bubblewrap" // user, mount, pid, ipc, uts and net namespaces
	Landlock   Level = "landlock"   // files outside are refused; the network and the process table are the host's
	None       Level = "none"       // an own environment, and everything dies with Kill; nothing else
)

var levels = []Level{Bubblewrap, Landlock, None}

// AtLeast tells whether l isolates as much as minimum does. An unknown level
// isolates nothing and satisfies nothing.
func (l Level) AtLeast(minimum Level) bool {
	have, want := slices.Index(levels, l), slices.Index(levels, minimum)
	return have >= 0 && want >= 0 && have <= want
}

// Forward makes a Unix socket of the host reachable as 127.0.0.1:Port. Under
// Bubblewrap the port is the sandbox's own; at the other levels it is taken on
// the host's loopback, so that each run needs another one.
type Forward struct {
	Port   int
	Socket string
}

// Limits are resource limits of each process; zero means the box's own.
type Limits struct {
	Processes uint64 // processes and threads of the agent's user, which at the lower levels counts the box's own user's
	FileBytes uint64 // the largest file that can be written
}

// Spec says what to run and what it may see. All paths are absolute.
type Spec struct {
	Level      Level
	Task, Home string            // the two folders of the host that the agent may write; the first is its working directory
	Argv       []string          // looked up in the PATH of Env
	Env        map[string]string // the whole environment, over defaults for PATH, HOME, USER, LANG, TERM and TMPDIR
	ReadOnly   []string          // more files and folders of the host to show, at their own paths
	Forward    []Forward
	Limits     Limits

	// Piped makes the agent's input and output pipes, see Process.Stdin and
	// Process.Stdout; the two fields below must then be nil.
	Piped  bool
	Stdin  io.Reader // nil is empty input
	Stdout io.Writer // nil discards
	Stderr io.Writer // nil discards
}

// Where the folders are inside a Bubblewrap sandbox: the same on every box, so
// that a session copied with its home can be opened elsewhere.
const (
	TaskDir = "/task"
	HomeDir = "/home/agent"
)

// nobody is whom an agent runs as when the box runs as root.
const nobody = 65534

// ErrUnavailable is what Start answers when this machine cannot provide the
// level that was asked for.
var ErrUnavailable = errors.New("the isolation level is not available")

func (s *Spec) check() error {
	switch {
	case !slices.Contains(levels, s.Level):
		return fmt.Errorf("sandbox: unknown level %q", s.Level)
	case len(s.Argv) == 0:
		return errors.New("sandbox: nothing to run")
	case s.Piped && (s.Stdin != nil || s.Stdout != nil):
		return errors.New("sandbox: Piped excludes Stdin and Stdout")
	}
	for _, f := range s.Forward {
		if f.Port < 1 || f.Port > 65535 {
			return fmt.Errorf("sandbox: forward port %d is out of range", f.Port)
		}
	}
	for _, dir := range []string{s.Task, s.Home} {
		if !filepath.IsAbs(dir) {
			return fmt.Errorf("sandbox: %q is not an absolute path", dir)
		}
		if st, err := os.Lstat(dir); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		} else if !st.IsDir() {
			return fmt.Errorf("sandbox: %s is not a folder", dir)
		}
	}
	for _, p := range s.ReadOnly {
		if !filepath.IsAbs(p) {
			return fmt.Errorf("sandbox: %q is not an absolute path", p)
		}
	}
	return nil
}

// probeTimeout bounds the trial of one level.
const probeTimeout = 20 * time.Second

// Probe tells which levels hold on this machine, best first; None is always the
// last. It tries each: a process is started that must be able to write its own
// folders and unable to read a file outside them.
func Probe(ctx context.Context) []Level {
	var held []Level
	for _, l := range levels {
		if l == None || tryLevel(ctx, l) == nil {
			held = append(held, l)
		}
	}
	return held
}

func tryLevel(ctx context.Context, l Level) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	root, err := os.MkdirTemp("", "sandbox-probe-")
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	defer os.RemoveAll(root)
	if err := os.Chmod(root, 0o755); err != nil { // a root box runs the probe as somebody else
		return fmt.Errorf("sandbox: %w", err)
	}
	canary, task, home := filepath.Join(root, "canary"), filepath.Join(root, "task"), filepath.Join(root, "home")
	err = errors.Join(os.WriteFile(canary, []byte("x"), 0o644), os.Mkdir(task, 0o755), os.Mkdir(home, 0o755))
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	const script = `cat "$0" >/dev/null 2>&1 && exit 1; echo x >probe && echo x >"$HOME/probe"`
	p, err := Start(ctx, Spec{Level: l, Task: task, Home: home, Argv: []string{"/bin/sh", "-c", script, canary}})
	if err != nil {
		return err
	}
	return p.Wait()
}
