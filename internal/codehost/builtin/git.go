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

// Limits of one git process: a small push that unpacks to gigabytes, or a tree that
// contains itself many times, must not exhaust the server.
const (
	maxMemory  = 2 << 30  // bytes of writable memory
	maxReceive = 1 << 30  // the same, for a process that receives a push
	maxOutput  = 64 << 20 // bytes of output that the server keeps
)

// settings apply to every git process and override a repository's own
// configuration. They are passed in the environment, so that no repository on disk
// has outdated ones.
var settings = [][2]string{
	{"safe.directory", "*"}, // the service owns everything under the root, whoever owns the volume
	{"core.hooksPath", "/dev/null"},
	{"core.fsync", "committed"}, // an announced push survives a power cut
	{"core.fsyncMethod", "batch"},
	{"gc.auto", "0"}, // see Host.Maintain
	{"maintenance.auto", "false"},
	{"receive.autogc", "false"},
	{"receive.fsckObjects", "true"},
	{"receive.maxInputSize", strconv.FormatInt(maxBody, 10)},
	{"receive.denyDeleteCurrent", "refuse"},
	{"core.bigFileThreshold", "64m"}, // git neither compares larger files nor keeps them in memory, where it can avoid it
	{"pack.windowMemory", "128m"},    // for each thread
	{"uploadpack.allowFilter", "true"},
	{"uploadpackfilter.sparse:oid.allow", "false"}, // the client gives the patterns, the server spends the time
}

// environment is the whole environment of a git process: it has nothing of the
// server's but PATH, and no configuration of the machine or of a user.
func environment() []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=/nonexistent",
		"LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_NO_REPLACE_OBJECTS=1", // a pushed refs/replace/ must not change the meaning of a SHA
		"GIT_CONFIG_COUNT=" + strconv.Itoa(len(settings)),
	}
	for i, s := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	return env
}

// command prepares git in a process group of its own. When ctx ends, the whole
// group is killed, because git works in child processes.
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

// exitError reports that git ended with an error.
type exitError struct {
	verb   string
	code   int // -1 if it was killed
	stderr string
}

func (e *exitError) Error() string {
	return fmt.Sprintf("git %s: exit %d: %s", e.verb, e.code, e.stderr)
}

// Unwrap is ENOSPC or EDQUOT if git printed that it had no room to store a file.
func (e *exitError) Unwrap() error {
	for _, no := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		if strings.Contains(strings.ToLower(e.stderr), no.Error()) {
			return no
		}
	}
	return nil
}

// exited tells whether err reports that git ended with the code.
func exited(err error, code int) bool {
	var e *exitError
	return errors.As(err, &e) && e.code == code
}

// begin starts c, and limits its memory and that of its descendants.
func begin(c *exec.Cmd) error {
	most := uint64(maxMemory)
	if slices.Contains(c.Args, "receive-pack") {
		most = maxReceive
	}
	return rlimit.Start(c, most)
}

// run executes c. It fails with an *exitError if git ended with an error.
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

// output runs git in a repository and returns its output; on failure, too, as far
// as git had printed any.
func (h *Host) output(ctx context.Context, dir string, args ...string) (string, error) {
	return h.filter(ctx, dir, "", nil, args...)
}

// filter is output with a standard input and additional environment variables.
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

// fields splits NUL-terminated records, which git prints with -z.
func fields(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\x00"), "\x00")
}
