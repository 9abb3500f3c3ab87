package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ClosedError reports a file or folder that agents need and that their user cannot
// reach. Path is the closed file or folder itself, For the path behind it.
type ClosedError struct {
	Path string
	Mode fs.FileMode // of Path
	For  string      // the path that agents need
}

func (e *ClosedError) Error() string {
	what := fmt.Sprintf("the user %s, whom agents run as, cannot enter %s (mode %#o)", AgentUser(), e.Path, e.Mode.Perm())
	switch {
	case !e.Mode.IsDir():
		return fmt.Sprintf("the user %s, whom agents run as, cannot run %s (mode %#o)", AgentUser(), e.Path, e.Mode.Perm())
	case e.Path != e.For:
		what += ", a folder above " + e.For
	}
	return what
}

// AgentUser returns the name of the user as whom agents run on this machine.
func AgentUser() string {
	if Separate() {
		return "nobody (" + strconv.Itoa(nobody) + ")"
	}
	return strconv.Itoa(os.Geteuid())
}

// Admit closes a folder of the box to all other users except the agents' user, who
// may pass through it. If agents run as this process's own user, it closes the
// folder to everybody else.
func Admit(dir string) error {
	mode := os.FileMode(0o700)
	if Separate() {
		mode = 0o710
		if err := os.Chown(dir, -1, nobody); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	if err := os.Chmod(dir, mode); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	return nil
}

// Closed returns a *ClosedError for the first folder on the way to path that the
// agents' user may not enter, or for path itself. path must exist. Closed reads
// only modes; a trial in a sandbox also covers access lists and mounts. It returns
// nil if nothing is closed, or if agents run as this process's own user.
func Closed(path string) error {
	if !Separate() {
		return nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	return checkPath(real, func(p string, info fs.FileInfo) (open bool) {
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return true
		}
		mode := uint32(info.Mode().Perm())
		switch {
		case st.Uid == nobody:
			mode >>= 6
		case st.Gid == nobody:
			mode >>= 3
		}
		if info.IsDir() {
			return mode&1 != 0
		}
		return mode&5 == 5
	})
}

// checkPath follows a path from the root down and returns a *ClosedError for the first
// part that is not open.
func checkPath(path string, open func(p string, info fs.FileInfo) bool) error {
	at := "/"
	parts := strings.Split(strings.Trim(filepath.Clean(path), "/"), "/")
	for i := -1; i < len(parts); i++ {
		if i >= 0 {
			at = filepath.Join(at, parts[i])
		}
		info, err := os.Stat(at)
		if err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
		if !open(at, info) {
			return &ClosedError{Path: at, Mode: info.Mode(), For: path}
		}
	}
	return nil
}

// enterable is Closed from within the agent's own process: it asks the kernel.
func enterable(folder string) error {
	return checkPath(folder, func(p string, info fs.FileInfo) bool {
		return !info.IsDir() || !errors.Is(unix.Access(p, unix.X_OK), unix.EACCES)
	})
}
