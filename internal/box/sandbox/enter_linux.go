package sandbox

import (
	"errors"
	"fmt"
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// minLandlock is the first version of the kernel's interface that also guards
// truncation. Below it an agent could empty files outside.
const minLandlock = 3

// giveUpPrivileges keeps this process and its children from gaining any by what they execute.
func giveUpPrivileges() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }

// closeOthers closes descriptors that the box was started with and does not know.
func closeOthers() error {
	err := unix.CloseRange(ordersFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
		err = nil
	}
	return err
}

// filterCalls installs the filter of system calls. It comes last, because the steps
// before it may need the calls that it refuses.
func filterCalls(o *orders) error {
	listener, err := filterOf(o.Level, o.Asked).install(o.Asked)
	if err == nil && o.Asked {
		err = handOver(listener)
	}
	return err
}

// landlocks lists what each version of the kernel's interface can restrict,
// beginning with minLandlock. Nothing here needs the additions of later versions.
var landlocks = []landlock.Config{
	landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7, landlock.V8, landlock.V9, landlock.V10,
}

// landlockVersion returns the version to use, at most most unless most is 0. It
// returns ErrUnavailable if the kernel's version is below minLandlock.
func landlockVersion(most int) (int, error) {
	version, err := llsys.LandlockGetABIVersion()
	if most > 0 {
		version = min(version, most)
	}
	switch {
	case errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP):
		return 0, fmt.Errorf("%w: the kernel was built or booted without Landlock", ErrUnavailable)
	case err != nil:
		return 0, fmt.Errorf("%w: ask for Landlock: %w", ErrUnavailable, err)
	case version < minLandlock:
		return 0, fmt.Errorf("%w: the kernel's Landlock is version %d, %d is needed", ErrUnavailable, version, minLandlock)
	}
	return min(version, minLandlock+len(landlocks)-1), nil
}

// restrict limits this process and its children to reading the system's tools and
// writing the given folders. Where the kernel can, they also lose TCP (from version
// 4), and abstract sockets and signals to processes outside (from version 6).
func restrict(o *orders) error {
	version, err := landlockVersion(o.Less.Landlock)
	if err != nil {
		return err
	}
	rules := []landlock.Rule{
		landlock.RODirs("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/etc", "/proc", "/sys",
			"/run/systemd/resolve").IgnoreIfMissing(),
		// /dev gives nothing else: its shared memory and terminals belong to other
		// processes, too.
		landlock.RWFiles("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom").IgnoreIfMissing(),
		landlock.RWDirs(o.Writable...).WithRefer(), // allows renames between folders
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
	if !o.Asked && version >= 4 { // else the gate connects
		for _, port := range o.Ports {
			rules = append(rules, landlock.ConnectTCP(uint16(port)))
		}
	}
	if err := landlocks[version-minLandlock].Restrict(rules...); err != nil {
		return fmt.Errorf("restrict the agent: %w", err)
	}
	return nil
}
