package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// become is the last step: it drops what the agent must not have and replaces this
// process by the agent's program. It returns only if it fails.
func become(o *orders) error {
	// The box must be able to read the agent's files, whichever user the agent is.
	unix.Umask(0o022)
	if err := giveUpPrivileges(); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	for _, kv := range o.Env {
		k, v, _ := strings.Cut(kv, "=")
		if err := os.Setenv(k, v); err != nil {
			return fmt.Errorf("set %s: %w", k, err)
		}
	}
	if o.Level != Bubblewrap {
		for _, path := range append(slices.Clone(o.Writable), o.ReadOnly...) {
			if err := enterable(path); err != nil {
				return err
			}
		}
		if err := os.MkdirAll(os.Getenv("TMPDIR"), 0o700); err != nil {
			return fmt.Errorf("make the agent's folder for temporary files: %w", err)
		}
	}
	if o.Level == Landlock {
		if err := restrict(o); err != nil {
			return err
		}
	}
	if err := os.Chdir(o.Dir); err != nil {
		return fmt.Errorf("enter the task folder: %w", err)
	}
	path, err := exec.LookPath(o.Argv[0])
	if err != nil {
		return fmt.Errorf("find the agent's program: %w", err)
	}
	if err := setLimits(o.Limits); err != nil {
		return err
	}
	if err := closeOthers(); err != nil {
		return fmt.Errorf("close what is open: %w", err)
	}
	if o.Filtered {
		if err := filterCalls(o); err != nil {
			return err
		}
	}
	return fmt.Errorf("execute %s: %w", path, unix.Exec(path, o.Argv, o.Env))
}
