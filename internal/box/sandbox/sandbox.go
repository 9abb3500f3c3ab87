// Package sandbox runs an agent where it can do little harm: the agent sees a
// task folder, a home folder, the installed tools and an environment made for
// it, and nothing of the box. There are three levels, best first: Bubblewrap
// (namespaces of its own, no network but the forwarded ports), Landlock (the
// kernel refuses files outside, the network is the host's) and None. At every
// level all processes that the agent leaves behind are found and killed.
//
// Start runs the program's own binary again as the shim ("sandbox-exec", see
// Main), inside the sandbox. The shim gets its orders over a pipe, so that
// neither the environment nor a token shows in an argument list. When that pipe
// closes, the shim kills all processes it started, however the box died.
package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Level is a degree of isolation.
type Level string

// The levels, best first.
const (
	Bubblewrap Level = "bubblewrap" // user, mount, pid, ipc, uts and net namespaces
	Landlock   Level = "landlock"   // the kernel refuses files outside; the network and the process table are the host's
	None       Level = "none"       // an environment of its own, and Kill ends all processes; nothing else
)

var levels = []Level{Bubblewrap, Landlock, None}

// AtLeast tells whether l isolates at least as much as minimum. It is false if
// either level is unknown.
func (l Level) AtLeast(minimum Level) bool {
	have, want := slices.Index(levels, l), slices.Index(levels, minimum)
	return have >= 0 && want >= 0 && have <= want
}

// Forward makes a Unix socket of the host reachable as 127.0.0.1:Port. With
// Bubblewrap the port belongs to the sandbox. At the other levels it is a port of
// the host's loopback, so each run needs a different one.
type Forward struct {
	Port   int
	Socket string
}

// Spec describes a sandbox. All paths are absolute.
type Spec struct {
	Level      Level
	Task, Home string            // the host's folders that the agent may write; it starts in the first
	Argv       []string          // Argv[0] is looked up in the PATH of Env
	Env        map[string]string // the environment, over defaults for PATH, HOME, USER, LANG, TERM and TMPDIR
	Writable   []string          // more folders of the host that it may write, see Settle
	ReadOnly   []string          // more files and folders of the host that the agent may read, at their own paths
	Forward    []Forward
	// Reach lists ports of the host's loopback that the agent may connect to
	// below Bubblewrap, besides the forwarded ones.
	Reach   []int
	Limits  Limits
	Group   *os.File // folder of the control group (version 2) to start in; nil: the group of the box
	Program string   // this program, at a path where the agents' user may run it; empty: the path it was started from

	// Piped makes the agent's input and output pipes, see Process.Stdin and
	// Process.Stdout. Stdin and Stdout must then be nil.
	Piped  bool
	Stdin  io.Reader // nil is empty input
	Stdout io.Writer // nil discards
	Stderr io.Writer // nil discards

	less kernel // features that this kernel has and a test does without
	user int    // in a root box, instead of nobody: of a test that counts the processes of the agent's user
}

// kernel lists features that a kernel lacks, so that a test can simulate one.
type kernel struct {
	Landlock   int  // its highest version; 0 means the kernel's own
	Unfiltered bool // no filter of system calls
}

// The folders in a Bubblewrap sandbox are the same on every box, so that a session
// that is copied with its home can be opened elsewhere.
const (
	TaskDir = "/task"
	HomeDir = "/home/agent"
)

// nobody is the user of an agent if the box runs as root.
const nobody = 65534

// agentUser returns the user of the agent of a root box.
func (s *Spec) agentUser() int { return cmp.Or(s.user, nobody) }

// ErrUnavailable is returned by Start if this machine cannot provide the requested
// level.
var ErrUnavailable = errors.New("the isolation level is not available")

// program returns the path of the file that is run as the shim.
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
	for _, dir := range append([]string{s.Task, s.Home}, s.Writable...) {
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
