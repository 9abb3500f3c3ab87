// Package worktree is the git side of a box. A trusted bare cache holds one
// repository as far as the box knows it; each task gets a checkout that borrows
// the cache's objects and belongs to the agent from then on. The agent's work is
// collected without running git on anything that the agent could have configured:
// its objects are copied as data and checked like a push of an unknown user, its
// files are added with the cache's configuration and an index of the box's own.
//
// No function here runs hooks, reads a configuration outside of the cache, or puts
// a token where an agent could read it.
package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"yardmaster/internal/lazy"
	"yardmaster/internal/rlimit"
)

// ErrNoRev means that the cache does not have a revision.
var ErrNoRev = errors.New("worktree: no such revision")

// ErrAuth means that the remote refused the token.
var ErrAuth = errors.New("worktree: the remote refused the credential")

// ErrMissing means that the remote knows no such repository.
var ErrMissing = errors.New("worktree: the remote has no such repository")

// ErrBusy means that the remote could not be reached, or answered that it cannot now.
var ErrBusy = errors.New("worktree: the remote does not answer now")

// busyRemote matches what git says of a remote that gives no answer or, by the relay, of
// a code host that gives none.
var busyRemote = lazy.New(`returned error: (429|5\d\d)|Failed to connect|Couldn't connect|Could not connect|Could not resolve host|` +
	`Connection (refused|reset|timed out)|Empty reply from server|Operation too slow|Recv failure|Send failure`)

// GitError reports a git command that failed. errors.Is finds syscall.ENOSPC or
// EDQUOT in it if git reported a full disk, ErrAuth if the remote refused the
// token, ErrMissing if it answered 404, and ErrBusy if another try may fare better.
type GitError struct {
	Command string // the subcommand
	Output  string // output of git, without the token
	err     error
}

func (e *GitError) Error() string {
	s := "worktree: git " + e.Command + ": " + e.err.Error()
	if e.Output != "" {
		s += ": " + e.Output
	}
	return s
}

func (e *GitError) Unwrap() error { return e.err }

// settings apply to every command. They turn off hooks, the file system monitor and
// background maintenance, whatever a repository's configuration says.
var settings = []string{
	"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.untrackedCache=false", "core.attributesFile=/dev/null",
	"core.excludesFile=/dev/null", "core.logAllRefUpdates=false", "core.quotePath=false",
	"gc.auto=0", "maintenance.auto=false", "submodule.recurse=false",
	"fetch.recurseSubmodules=false", "push.recurseSubmodules=no", "safe.directory=*", "advice.detachedHead=false",
	"http.lowSpeedLimit=1000", "http.lowSpeedTime=60",
}

// passedVariables lists the environment variables that git gets from the box: those for
// reaching the network.
var passedVariables = []string{
	"PATH", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH",
}

// command is one run of git.
type command struct {
	gitDir   string // empty for init only
	dir      string // working directory, default /
	env      []string
	protocol string // protocols that git may use: "", "file" or "http:https"
	token    string // the answer of the credential helper
	alive    string // a lock file that git and all its children hold, shared; empty: none
	config   []string
	stdin    io.Reader
	said     *string  // gets git's error output if it succeeds
	args     []string // options of git itself, the subcommand, its arguments
}

// run runs git and returns its standard output.
func (c command) run(ctx context.Context) ([]byte, error) {
	args := []string{}
	if c.gitDir != "" {
		args = append(args, "--git-dir="+c.gitDir)
	}
	for _, s := range append(settings[:len(settings):len(settings)], c.config...) {
		args = append(args, "-c", s)
	}
	cmd := exec.CommandContext(ctx, "git", append(args, c.args...)...)
	cmd.Dir = c.dir
	if c.dir == "" {
		cmd.Dir = "/"
	}
	// No configuration of a user or the system, no prompts, no replaced objects.
	cmd.Env = append([]string{
		"HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0",
		"LC_ALL=C", "GIT_ALLOW_PROTOCOL=" + c.protocol,
	}, c.env...)
	for _, k := range passedVariables {
		if v := os.Getenv(k); v != "" {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
	}
	if c.token != "" {
		credential, err := credentialPipe(c.token)
		if err != nil {
			return nil, err
		}
		defer credential.Close()
		cmd.ExtraFiles = []*os.File{credential}
	}
	if c.alive != "" {
		held, err := openLock(ctx, c.alive, syscall.LOCK_SH)
		if err != nil {
			return nil, err
		}
		defer held.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, held)
	}
	stdout, stderr := rlimit.Output{Most: maxOutput, Whole: true}, rlimit.Output{Most: maxComplaint}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.stdin, &stdout, &stderr
	// Git starts children for the network; they are killed with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := rlimit.Start(cmd, maxMemory)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return stdout.Bytes(), c.failure(ctx, err, stderr.String())
	}
	if c.said != nil {
		*c.said = stderr.String()
	}
	return stdout.Bytes(), nil
}

// The limits of one git process: an agent can make a tree that contains itself many
// times, and objects of a few bytes that unpack to gigabytes.
const (
	maxMemory    = 2 << 30   // bytes of writable memory
	maxOutput    = 256 << 20 // bytes of output
	maxComplaint = 64 << 10  // bytes kept of its error output
)

func (c command) failure(ctx context.Context, err error, said string) *GitError {
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	switch {
	case strings.Contains(said, "No space left on device"), strings.Contains(said, "Out of diskspace"): // after a short write
		err = errors.Join(err, syscall.ENOSPC)
	case strings.Contains(said, "Disk quota exceeded"):
		err = errors.Join(err, syscall.EDQUOT)
	case strings.Contains(said, "Authentication failed"), strings.Contains(said, "could not read Username"),
		strings.Contains(said, "could not read Password"), strings.Contains(said, "returned error: 403"):
		err = errors.Join(err, ErrAuth)
	case strings.Contains(said, "fatal: repository '") && strings.Contains(said, "not found"):
		err = errors.Join(err, ErrMissing)
	case c.token != "" && busyRemote.MatchString(said):
		err = errors.Join(err, ErrBusy)
	}
	if c.token != "" {
		for _, form := range []string{c.token, url.QueryEscape(c.token), url.PathEscape(c.token)} {
			said = strings.ReplaceAll(said, form, "[redacted]")
		}
	}
	i := slices.IndexFunc(c.args, func(a string) bool { return !strings.HasPrefix(a, "-") })
	return &GitError{Command: c.args[i], Output: strings.TrimSpace(said), err: err}
}

// line runs a command and returns its output as one line.
func (c command) line(ctx context.Context) (string, error) {
	out, err := c.run(ctx)
	return strings.TrimSpace(string(out)), err
}

// credentialFD is the descriptor from which git's helper reads the answer.
const credentialFD = 3

// credentialPipe returns a pipe with a token for git to read. In contrast to an
// argument, a configuration or the environment, no other process can read it. It
// answers only once, so that git does not repeat a refused token for ever.
func credentialPipe(token string) (*os.File, error) {
	if strings.ContainsAny(token, "\n\x00") {
		return nil, errors.New("worktree: the token has a line break")
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("worktree: %w", err)
	}
	defer w.Close()
	if len(token) > 32<<10 { // a larger write would block until it is read
		r.Close()
		return nil, errors.New("worktree: the token is too long")
	}
	if _, err := io.WriteString(w, "username=x-access-token\npassword="+token+"\n"); err != nil {
		r.Close()
		return nil, fmt.Errorf("worktree: %w", err)
	}
	return r, nil
}

// LsRemote asks the repository at address for its HEAD, as a fetch begins. authorities is
// that of Cache. Errors are those of GitError.
func LsRemote(ctx context.Context, address, token, authorities string) error {
	cmd, err := remote(address, token, authorities)
	if err != nil {
		return err
	}
	cmd.args = []string{"ls-remote", "-q", "--end-of-options", address, "HEAD"}
	_, err = cmd.run(ctx)
	return err
}

// remote returns a command for a remote repository, which trusts the certificate
// authorities in a file if one is given and the box's own environment names none. The credential is bound to the
// remote's own address; a host to which it redirects gets none.
func remote(address, token, authorities string) (command, error) {
	u, err := url.Parse(address)
	if err != nil {
		return command{}, errors.New("worktree: the remote's address is malformed") // the cause would repeat the address
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return command{}, errors.New("worktree: a remote's address starts with http:// or https://")
	}
	if u.User != nil {
		return command{}, errors.New("worktree: a remote's address holds no credential")
	}
	c := command{protocol: "http:https", token: token, config: []string{"credential.helper="}}
	if authorities != "" {
		c.env = []string{"GIT_SSL_CAINFO=" + authorities} // before the passed variables: the last of a name counts
	}
	if token != "" {
		helper := "!f() { test \"$1\" = get && cat <&" + strconv.Itoa(credentialFD) + "; }; f"
		c.config = append(c.config, "credential."+u.Scheme+"://"+u.Host+".helper="+helper)
	}
	return c, nil
}
