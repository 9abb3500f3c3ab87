// Package gitfolder answers questions about bare git repositories in folders, merges
// their branches and commits files to them, with the git program. It is what the
// built-in code host has in common with the mirrors of other hosts' repositories. A
// repository may be hostile: processes have limits of memory, time and output, an
// environment of their own, and run no hooks.
//
//   - git.go: the git processes, and Folder
//   - read.go: revs, branches and files
//   - compare.go, diff.go: questions about commits
//   - fork.go: where a head left its base
//   - outcome.go, back.go: what a merge would change, and bring back
//   - merge.go, files.go: merges, and commits of files
//   - maintain.go, pointers.go: upkeep, and which objects of Git LFS are named
package gitfolder

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

// Limits of one git process. A small push that unpacks to gigabytes, or a tree that
// contains itself many times, must not exhaust the server.
const (
	maxMemory  = 2 << 30  // bytes of writable memory
	maxReceive = 1 << 30  // the same, for a process that receives a push
	maxOutput  = 64 << 20 // bytes of output that the server keeps

	MaxInput = 2 << 30          // bytes of a pack that is received
	MaxTime  = 30 * time.Minute // of one process that answers a question
)

// settings apply to every git process and override a repository's own
// configuration. They are passed in the environment, so that no repository on disk
// has outdated ones.
var settings = [][2]string{
	{"safe.directory", "*"}, // the service owns everything under the root, whoever owns the volume
	{"core.hooksPath", "/dev/null"},
	{"core.fsync", "committed"}, // an announced push survives a power cut
	{"core.fsyncMethod", "batch"},
	{"gc.auto", "0"}, // see Folder.Maintain
	{"maintenance.auto", "false"},
	{"receive.autogc", "false"},
	{"receive.fsckObjects", "true"},
	{"receive.unpackLimit", "1"}, // what was measured is kept as it came: unpacked, each delta would have its full size
	{"receive.maxInputSize", strconv.FormatInt(MaxInput, 10)},
	{"receive.denyDeleteCurrent", "refuse"},
	{"core.bigFileThreshold", "64m"}, // git neither compares larger files nor keeps them in memory, where it can avoid it
	{"pack.windowMemory", "128m"},    // for each thread
	{"uploadpack.allowFilter", "true"},
	{"uploadpackfilter.sparse:oid.allow", "false"}, // the client gives the patterns, the server spends the time
}

// OldFaults are what git finds wrong in commits and trees that programs of earlier years
// made: names, addresses, dates and modes. Other hosts take them, and they harm nobody.
// What else git finds is refused: names of files that lead out of a checkout or into
// .git, a file twice in a folder, addresses of submodules that are options.
func OldFaults() []string {
	return []string{
		"badDate", "badDateOverflow", "badEmail", "badFilemode", "badName", "badTimezone", "missingEmail", "missingNameBeforeEmail",
		"missingSpaceBeforeDate", "missingSpaceBeforeEmail", "multipleAuthors", "zeroPaddedDate", "zeroPaddedFilemode",
	}
}

// environment is the whole environment of a git process: it has nothing of the
// server's but PATH, and no configuration of the machine or of a user.
func environment(more [][2]string) []string {
	all := slices.Concat(settings, more)
	for _, fault := range OldFaults() {
		all = append(all, [2]string{"receive.fsck." + fault, "warn"})
	}
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=/nonexistent",
		"LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_NO_REPLACE_OBJECTS=1", // a pushed refs/replace/ must not change the meaning of a SHA
		"GIT_CONFIG_COUNT=" + strconv.Itoa(len(all)),
	}
	for i, s := range all {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	return env
}

// Git is a git program and the environment of its processes. It is safe for
// concurrent use.
type Git struct {
	program, folder string
	more            [][2]string
	env             []string
}

// New finds a git program, "git" if its name is empty, and fails unless it can merge
// without a work tree (2.39). Temporary files are made in folder. more are settings of
// git beside those that every process has; they are passed in the environment.
func New(program, folder string, more ...[2]string) (*Git, error) {
	if program == "" {
		program = "git"
	}
	found, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("the git host needs git, which is not installed or not in PATH: %w", err)
	}
	g := &Git{program: found, folder: folder, more: more, env: environment(more)}
	out, err := g.At("", "").Output(context.Background(), "version")
	if err != nil {
		return nil, fmt.Errorf("code host: %w", err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(out, "git version %d.%d", &major, &minor); err != nil {
		return nil, fmt.Errorf("code host: reading %q: %w", out, err)
	}
	if major < 2 || major == 2 && minor < 39 {
		return nil, fmt.Errorf("code host needs git 2.39, found %d.%d", major, minor)
	}
	return g, nil
}

// With is the same program with more settings of git.
func (g *Git) With(more ...[2]string) *Git {
	all := slices.Concat(g.more, more)
	return &Git{program: g.program, folder: g.folder, more: all, env: environment(all)}
}

// At is the bare repository in a folder. name is what errors call it. A Folder without
// a path runs git outside of any repository.
func (g *Git) At(path, name string) Folder { return Folder{git: g, path: path, name: name} }

// Init makes an empty bare repository in a new temporary folder and answers its path.
// The folder's name begins with ".new-".
func (g *Git) Init(ctx context.Context, branch string) (string, error) {
	path, err := os.MkdirTemp(g.folder, ".new-")
	if err != nil {
		return "", err
	}
	if _, err := g.At("", "").Output(ctx, "init", "--quiet", "--bare", "--template=", "--object-format=sha1",
		"--initial-branch="+branch, path); err != nil {
		os.RemoveAll(path)
		return "", err
	}
	return path, nil
}

// Folder is a bare repository. The revs of its methods are those of codehost.Host.
type Folder struct {
	git        *Git
	path, name string
}

// String is the name of the repository.
func (dir Folder) String() string { return dir.name }

// Path is the folder of the repository.
func (dir Folder) Path() string { return dir.path }

// With is the same repository with more settings of git.
func (dir Folder) With(more ...[2]string) Folder {
	dir.git = dir.git.With(more...)
	return dir
}

// Command prepares git in a process group of its own. When ctx ends, the whole
// group is killed, because git works in child processes.
func (dir Folder) Command(ctx context.Context, args ...string) *exec.Cmd {
	if dir.path != "" {
		args = append([]string{"--git-dir=" + dir.path}, args...)
	}
	c := exec.CommandContext(ctx, dir.git.program, args...)
	c.Dir = dir.git.folder
	c.Env = slices.Clip(dir.git.env)
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

// ExitError reports that git ended with an error.
type ExitError struct {
	verb   string
	code   int // -1 if it was killed
	stderr string
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("git %s: exit %d: %s", e.verb, e.code, e.stderr)
}

// Unwrap is ENOSPC or EDQUOT if git printed that it had no room to store a file.
func (e *ExitError) Unwrap() error {
	for _, no := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		if strings.Contains(strings.ToLower(e.stderr), no.Error()) {
			return no
		}
	}
	return nil
}

// Exited tells whether err reports that git ended with the code.
func Exited(err error, code int) bool {
	var e *ExitError
	return errors.As(err, &e) && e.code == code
}

// Begin starts c, and limits its memory and that of its descendants.
func Begin(c *exec.Cmd) error {
	most := uint64(maxMemory)
	if slices.Contains(c.Args, "receive-pack") {
		most = maxReceive
	}
	return rlimit.Start(c, most)
}

// Run executes c. It fails with an *ExitError if git ended with an error.
func Run(ctx context.Context, c *exec.Cmd, verb string) error {
	stderr := &rlimit.Output{Most: 4 << 10}
	c.Stderr = stderr
	err := Begin(c)
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
		return &ExitError{verb, exit.ExitCode(), strings.TrimSpace(stderr.String())}
	}
	return fmt.Errorf("git %s: %w", verb, err)
}

// Output runs git in a repository and returns its output; on failure, too, as far
// as git had printed any.
func (dir Folder) Output(ctx context.Context, args ...string) (string, error) {
	return dir.Filter(ctx, "", nil, args...)
}

// Filter is output with a standard input and additional environment variables.
func (dir Folder) Filter(ctx context.Context, stdin string, env []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, MaxTime)
	defer cancel()
	out := rlimit.Output{Most: maxOutput, Whole: true}
	c := dir.Command(ctx, args...)
	c.Stdin = strings.NewReader(stdin)
	c.Stdout = &out
	c.Env = append(c.Env[:len(c.Env):len(c.Env)], env...)
	err := Run(ctx, c, args[0])
	return out.String(), err
}

// fields splits NUL-terminated records, which git prints with -z.
func fields(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\x00"), "\x00")
}
