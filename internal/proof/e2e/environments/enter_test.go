//go:build environments

package environments

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// enterCommand makes the test binary the last step before the program: running as the
// row's user, it removes the features that the row must lack, and replaces itself by
// the program.
const enterCommand = "enter"

// scene is the environment that the program finds.
type scene struct {
	Clear      bool // of all of the environment
	Set        []string
	Unset      []string
	Dir        string // empty: the folder of the login
	Umask      int
	NoLandlock bool
	Argv       []string
}

// enter replaces the process by the program. It returns only on failure.
func enter(text string) int {
	var s scene
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		err = s.enter()
	}
	fmt.Fprintln(os.Stderr, "enter:", err)
	return 125
}

func (s *scene) enter() error {
	runtime.LockOSThread() // the program inherits the filter of this thread
	env := []string{}
	if !s.Clear {
		env = os.Environ()
	}
	env = without(append(env, s.Set...), s.Unset)
	syscall.Umask(s.Umask)
	if s.Dir != "" {
		if err := os.Chdir(s.Dir); err != nil {
			return err
		}
	}
	path, err := exec.LookPath(s.Argv[0])
	if err != nil {
		return err
	}
	if s.NoLandlock {
		if err := hideLandlock(); err != nil {
			return fmt.Errorf("hide Landlock: %w", err)
		}
	}
	return fmt.Errorf("execute %s: %w", path, syscall.Exec(path, s.Argv, env))
}

// without removes variables from an environment.
func without(env, names []string) []string {
	// Of a variable that is set twice, the later value counts.
	value := map[string]string{}
	for _, kv := range env {
		for i := range kv {
			if kv[i] == '=' {
				value[kv[:i]] = kv
				break
			}
		}
	}
	for _, n := range names {
		delete(value, n)
	}
	out := make([]string, 0, len(value))
	for _, kv := range value {
		out = append(out, kv)
	}
	return out
}

// hideLandlock makes the kernel answer this thread, and the program that it becomes,
// as a kernel without Landlock would. The calls have the same numbers on both
// architectures; on another one the filter would pass everything, which the check at
// the end detects.
func hideLandlock() error {
	const number, architecture = 0, 4 // offsets in the data that a filter sees
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	jump := func(test uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jt: yes, Jf: no, K: k}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	filter := []unix.SockFilter{
		load(architecture),
		jump(unix.BPF_JEQ, unix.AUDIT_ARCH_X86_64, 1, 0),
		jump(unix.BPF_JEQ, unix.AUDIT_ARCH_AARCH64, 0, 4),
		load(number),
		jump(unix.BPF_JGE, unix.SYS_LANDLOCK_CREATE_RULESET, 0, 2),
		jump(unix.BPF_JGT, unix.SYS_LANDLOCK_RESTRICT_SELF, 1, 0),
		answer(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)),
		answer(unix.SECCOMP_RET_ALLOW),
	}
	// Without no_new_privs, only root may install a filter.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, err := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); err != 0 {
		return fmt.Errorf("install the filter: %w", err)
	}
	if _, _, err := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); err != unix.ENOSYS {
		return errors.New("the filter does not filter: it knows amd64 and arm64")
	}
	return nil
}
