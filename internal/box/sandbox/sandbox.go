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
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
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

// Spec says what to run and what it may see. All paths are absolute.
type Spec struct {
	Level      Level
	Task, Home string            // the two folders of the host that the agent may write; the first is its working directory
	Argv       []string          // looked up in the PATH of Env
	Env        map[string]string // the whole environment, over defaults for PATH, HOME, USER, LANG, TERM and TMPDIR
	ReadOnly   []string          // more files and folders of the host to show, at their own paths
	Forward    []Forward
	Reach      []int // ports of the host's loopback that the agent may connect to below Bubblewrap, besides the forwarded ones
	Limits     Limits
	Group      *os.File // folder of the control group (version 2) to start in; nil: the box's own
	Program    string   // this program, where the agents' user may run it; empty: where it was started from

	// Piped makes the agent's input and output pipes, see Process.Stdin and
	// Process.Stdout; the two fields below must then be nil.
	Piped  bool
	Stdin  io.Reader // nil is empty input
	Stdout io.Writer // nil discards
	Stderr io.Writer // nil discards

	less kernel // than this machine has
}

// kernel is what a kernel lacks, so that a test can have one that does.
type kernel struct {
	Landlock   int  // its version at most; 0 is what the kernel has
	Unfiltered bool // there is no filter of system calls
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

// program is the file that is run as the shim.
func (s *Spec) program() (string, error) {
	if s.Program != "" {
		return s.Program, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("sandbox: the path of this program: %w", err)
	}
	return self, nil
}

func (s *Spec) check() error {
	switch {
	case !slices.Contains(levels, s.Level):
		return fmt.Errorf("sandbox: unknown level %q", s.Level)
	case len(s.Argv) == 0:
		return errors.New("sandbox: nothing to run")
	case s.Piped && (s.Stdin != nil || s.Stdout != nil):
		return errors.New("sandbox: Piped excludes Stdin and Stdout")
	}
	ports := slices.Clone(s.Reach)
	for _, f := range s.Forward {
		ports = append(ports, f.Port)
	}
	for _, port := range ports {
		if port < 1 || port > 65535 {
			return fmt.Errorf("sandbox: port %d is out of range", port)
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
