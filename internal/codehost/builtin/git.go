package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"yardmaster/internal/rlimit"
)

// What one git process may take, so that a small push that unpacks to much, or
// a tree that names itself again and again, costs no more than itself.
const (
	maxMemory  = 2 << 30  // bytes that it may write to
	maxReceive = 1 << 30  // the same of one that takes a push
	maxOutput  = 64 << 20 // bytes that it may print for us
)

// settings hold for every git process and win over what a repository's own
// configuration says. They travel in the environment, so that a repository on
// disk has nothing that could go stale.
var settings = [][2]string{
	{"safe.directory", "*"}, // everything under the root is ours, whoever owns the volume
	{"core.hooksPath", "/dev/null"},
	{"core.fsync", "committed"}, // a push we announced survives a power cut
	{"core.fsyncMethod", "batch"},
	{"gc.auto", "0"}, // see Host.Maintain
	{"maintenance.auto", "false"},
	{"receive.autogc", "false"},
	{"receive.fsckObjects", "true"},
	{"receive.maxInputSize", strconv.FormatInt(maxBody, 10)},
	{"receive.denyDeleteCurrent", "refuse"},
	{"core.bigFileThreshold", "64m"}, // larger ones are neither compared nor kept in memory where git can do without
	{"pack.windowMemory", "128m"},    // for each thread
	{"uploadpack.allowFilter", "true"},
	{"uploadpackfilter.sparse:oid.allow", "false"}, // patterns are the client's, the time is ours
}

// environment is the whole environment of a git process: nothing of the
// server's own but PATH, no configuration of the machine or of a user.
func environment() []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=/nonexistent",
		"LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_NO_REPLACE_OBJECTS=1", // a pushed refs/replace/ must not change what a SHA means
		"GIT_CONFIG_COUNT=" + strconv.Itoa(len(settings)),
	}
	for i, s := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	return env
}

// command prepares git in a process group of its own; when ctx ends, the whole
// group is killed: git leaves its real work to children.
func (h *Host) command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	if dir != "" {
		args = append([]string{"--git-dir=" + dir}, args...)
	}
	c := exec.CommandContext(ctx, h.git, args...)
	c.Dir = h.root
	c.Env = h.env
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error {
		err := syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
	c.WaitDelay = 5 * time.Second
	return c
}

// exitError is git saying no.
type exitError struct {
	verb   string
	code   int // -1 if it was killed
	stderr string
}

func (e *exitError) Error() string {
	return fmt.Sprintf("git %s: exit %d: %s", e.verb, e.code, e.stderr)
}

// Unwrap finds in what git printed that there was no room to store something.
func (e *exitError) Unwrap() error {
	for _, no := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		if strings.Contains(strings.ToLower(e.stderr), no.Error()) {
			return no
		}
	}
	return nil
}

// exited tells whether err is git ending with this code.
func exited(err error, code int) bool {
	var e *exitError
	return errors.As(err, &e) && e.code == code
}

// begin starts c and bounds its memory, and that of the processes it will have.
func begin(c *exec.Cmd) error {
	most := uint64(maxMemory)
	if slices.Contains(c.Args, "receive-pack") {
		most = maxReceive
	}
	return rlimit.Start(c, most)
}

// run executes c and names its failure.
func run(ctx context.Context, c *exec.Cmd, verb string) error {
	stderr := &rlimit.Output{Most: 4 << 10}
	c.Stderr = stderr
	err := begin(c)
	if err == nil {
		err = c.Wait()
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("git %s: %w", verb, context.Cause(ctx))
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &exitError{verb, exit.ExitCode(), strings.TrimSpace(stderr.String())}
	}
	return fmt.Errorf("git %s: %w", verb, err)
}

// output runs git in a repository and answers what it prints. What it printed
// before a failure comes along with the error.
func (h *Host) output(ctx context.Context, dir string, args ...string) (string, error) {
	return h.filter(ctx, dir, "", nil, args...)
}

// filter is output with a standard input and further environment variables.
func (h *Host) filter(ctx context.Context, dir, stdin string, env []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTransfer)
	defer cancel()
	out := rlimit.Output{Most: maxOutput, Whole: true}
	c := h.command(ctx, dir, args...)
	c.Stdin = strings.NewReader(stdin)
	c.Stdout = &out
	c.Env = append(c.Env[:len(c.Env):len(c.Env)], env...)
	err := run(ctx, c, args[0])
	return out.String(), err
}

// fields splits NUL-terminated records, as git's -z prints them.
func fields(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\x00"), "\x00")
}
