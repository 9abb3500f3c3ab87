package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// minLandlock is the first version of the kernel's interface that also guards
// truncation; below it a file outside could be emptied.
const minLandlock = 3

// become is the last step: it gives up what the agent must not have and
// replaces itself by the agent's program. It returns only to say why not.
func become(o *orders) error {
	// Files that the agent makes are readable to the box whoever runs it.
	unix.Umask(0o022)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
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
	return fmt.Errorf("execute %s: %w", path, unix.Exec(path, o.Argv, o.Env))
}

// restrict lets this process and its children see the system's tools and write
// the given folders only. Where the kernel can, they also lose abstract
// sockets and signals to processes outside.
func restrict(o *orders) error {
	abi, err := llsys.LandlockGetABIVersion()
	switch {
	case errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%w: the kernel was built or booted without Landlock", ErrUnavailable)
	case err != nil:
		return fmt.Errorf("%w: ask for Landlock: %w", ErrUnavailable, err)
	case abi < minLandlock:
		return fmt.Errorf("%w: the kernel's Landlock is version %d, %d is needed", ErrUnavailable, abi, minLandlock)
	}
	rules := []landlock.Rule{
		landlock.RODirs("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/etc", "/proc", "/sys",
			"/run/systemd/resolve").IgnoreIfMissing(),
		landlock.RODirs("/dev"),
		landlock.RWFiles("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom").IgnoreIfMissing(),
		landlock.RWFiles("/dev/tty", "/dev/ptmx").WithIoctlDev().IgnoreIfMissing(),
		landlock.RWDirs("/dev/pts").WithIoctlDev().IgnoreIfMissing(),
		landlock.RWDirs(o.Writable...).WithRefer(), // renames between folders
	}
	for _, p := range o.ReadOnly {
		st, err := os.Stat(p)
		switch {
		case err != nil:
			return fmt.Errorf("show %s: %w", p, err)
		case st.IsDir():
			rules = append(rules, landlock.RODirs(p))
		default:
			rules = append(rules, landlock.ROFiles(p))
		}
	}
	if err := landlock.V6.BestEffort().RestrictPaths(rules...); err != nil {
		return fmt.Errorf("restrict the agent's files: %w", err)
	}
	if err := landlock.V6.BestEffort().RestrictScoped(); err != nil {
		return fmt.Errorf("restrict the agent's signals: %w", err)
	}
	return nil
}
