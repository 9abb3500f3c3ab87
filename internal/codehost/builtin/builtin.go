// Package builtin is the built-in code host: bare repositories in a folder, served
// to git clients over smart HTTP, and read and merged with the git program.
//
// The hook Authorize decides the access of a credential; this package enforces it.
// It parses the commands of a push before git sees them, refuses in band so that
// the client prints the reason, and tells the hook Pushed afterwards which refs
// have really changed.
//
// Each question runs a git process (about 2 ms). The package keeps no state between
// two calls other than Missing's, so several servers may share the folder.
//
//   - builtin.go: repositories, revs and files; upkeep
//   - forge.go: the records beside git, of which there are none
//   - http.go, push.go, pktline.go: smart HTTP
//   - transfer.go, limit.go: limits of transfers
//   - compare.go, diff.go, outcome.go: questions about commits
//   - merge.go, files.go: merges, and commits of files
//   - git.go: the git processes
package builtin

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
)

// Config is the configuration of a Host.
type Config struct {
	Name    string // of the host in codehost.Hosts; codehost.BuiltIn if empty
	Root    string // folder of the repositories: Root/owner/name.git; made if missing
	BaseURL string // of this server, without a slash at the end
	Git     string // the git program, 2.39 or later; "git" if empty
	Logger  *slog.Logger
}

// Host implements codehost.Host and codehost.Forge. It has the repositories that
// bear its name; a repository of another host is codehost.ErrNotFound.
type Host struct {
	name, root, baseURL, git string
	env                      []string
	log                      *slog.Logger
	transferLimit            transferLimit
	lost                     sync.Map // codehost.Key -> codehost.Repo, see Missing
}

var _ codehost.Host = (*Host)(nil)

// New makes a Host. It fails unless git is installed and can merge without a work
// tree (2.39).
func New(cfg Config) (*Host, error) {
	root, err := filepath.Abs(cfg.Root)
	if err != nil {
		return nil, fmt.Errorf("code host root: %w", err)
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("code host root: %w", err)
	}
	if cfg.Git == "" {
		cfg.Git = "git"
	}
	git, err := exec.LookPath(cfg.Git)
	if err != nil {
		return nil, fmt.Errorf("the git host needs git, which is not installed or not in PATH: %w", err)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Host{
		name: cmp.Or(cfg.Name, codehost.BuiltIn), root: root, baseURL: strings.TrimSuffix(cfg.BaseURL, "/"), git: git,
		env: environment(), log: cfg.Logger,
	}

	out, err := h.output(context.Background(), "", "version")
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
	return h, nil
}

// CloneURL implements codehost.Host.
func (h *Host) CloneURL(r codehost.Repo) string {
	return h.baseURL + "/git/" + r.Owner + "/" + r.Name + ".git"
}

func (h *Host) path(r codehost.Repo) string {
	return filepath.Join(h.root, r.Owner, r.Name+".git")
}

// open returns the folder of an existing repository. It fails with
// codehost.ErrNotFound or codehost.ErrLost.
func (h *Host) open(r codehost.Repo) (string, error) {
	if r.Host != h.name || r.Validate() != nil {
		return "", codehost.ErrNotFound
	}
	dir := h.path(r)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if _, lost := h.lost.Load(r.Key()); lost {
			return "", codehost.ErrLost
		}
		return "", codehost.ErrNotFound
	} else if err != nil {
		return "", fmt.Errorf("open repository %s: %w", r, err)
	}
	return dir, nil
}

// Missing returns the repositories that have no folder, and remembers them: until
// a folder is back, Create and every read of its repository fail with
// codehost.ErrLost.
func (h *Host) Missing(all []codehost.Repo) (missing []codehost.Repo) {
	for _, r := range all {
		if _, err := os.Stat(h.path(r)); errors.Is(err, fs.ErrNotExist) {
			h.lost.Store(r.Key(), r)
			missing = append(missing, r)
		}
	}
	return missing
}

// Lost are the repositories that Missing has returned and that still have no folder.
func (h *Host) Lost() (lost []codehost.Repo) {
	h.lost.Range(func(k, v any) bool {
		r := v.(codehost.Repo)
		if _, err := h.open(r); errors.Is(err, codehost.ErrLost) {
			lost = append(lost, r)
		} else {
			h.lost.Delete(k)
		}
		return true
	})
	return lost
}

// Create implements codehost.Host. Authorize guards every repository here, so
// CreateOptions.Private changes nothing.
func (h *Host) Create(ctx context.Context, r codehost.Repo, o codehost.CreateOptions) error {
	if r.Host != h.name {
		return codehost.ErrNotFound
	}
	if err := r.Validate(); err != nil {
		return err
	}
	if o.DefaultBranch == "" {
		o.DefaultBranch = "main"
	}
	if !codehost.ValidBranch(o.DefaultBranch) {
		return fault.Field("default_branch", "is not a valid branch name")
	}
	dir := h.path(r)
	if _, err := h.open(r); errors.Is(err, codehost.ErrLost) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("create repository %s: %w", r, err)
	}
	made, err := h.initialise(ctx, o.DefaultBranch)
	if err != nil {
		return fmt.Errorf("create repository %s: %w", r, err)
	}
	defer os.RemoveAll(made)
	// The repository appears whole or not at all: renaming onto an existing one
	// fails, because its folder is not empty.
	if err := os.Rename(made, dir); errors.Is(err, fs.ErrExist) {
		return codehost.ErrExists
	} else if err != nil {
		return fmt.Errorf("create repository %s: %w", r, err)
	}
	return nil
}

// initialise makes an empty bare repository in a temporary folder, whose name is
// no valid owner.
func (h *Host) initialise(ctx context.Context, branch string) (string, error) {
	dir, err := os.MkdirTemp(h.root, ".new-")
	if err != nil {
		return "", err
	}
	if _, err := h.output(ctx, "", "init", "--quiet", "--bare", "--template=", "--object-format=sha1",
		"--initial-branch="+branch, dir); err != nil {
		os.RemoveAll(dir)
		return "", err
	}
	return dir, nil
}

// Info implements codehost.Host.
func (h *Host) Info(ctx context.Context, r codehost.Repo) (codehost.Info, error) {
	dir, err := h.open(r)
	if err != nil {
		return codehost.Info{}, err
	}
	branch, err := h.defaultBranch(ctx, dir)
	if err != nil {
		return codehost.Info{}, err
	}
	info := codehost.Info{DefaultBranch: branch}
	info.HeadSHA, err = h.resolveOne(ctx, dir, branch)
	if errors.Is(err, codehost.ErrNotFound) {
		info.Empty, err = h.empty(ctx, dir)
	}
	return info, err
}

func (h *Host) defaultBranch(ctx context.Context, dir string) (string, error) {
	out, err := h.output(ctx, dir, "symbolic-ref", "HEAD")
	return strings.TrimPrefix(strings.TrimSpace(out), "refs/heads/"), err
}

func (h *Host) empty(ctx context.Context, dir string) (bool, error) {
	out, err := h.output(ctx, dir, "for-each-ref", "--count=1", "refs/heads/")
	return out == "", err
}

// Head implements codehost.Host.
func (h *Host) Head(ctx context.Context, r codehost.Repo, branch string) (string, error) {
	dir, err := h.open(r)
	if err != nil {
		return "", err
	}
	if !codehost.ValidBranch(branch) {
		return "", codehost.ErrNotFound
	}
	return h.resolveOne(ctx, dir, branch)
}

// expand turns a rev as codehost.Host defines it into one that git cannot read as
// an option or an expression.
func expand(rev string) (string, error) {
	switch {
	case rev == "HEAD", codehost.ValidSHA(rev), codehost.ValidRef(rev):
		return rev, nil
	case codehost.ValidBranch(rev):
		return "refs/heads/" + rev, nil
	}
	return "", codehost.ErrNotFound
}

// resolve returns the commits that revs name, or codehost.ErrNotFound.
func (h *Host) resolve(ctx context.Context, dir string, revs ...string) ([]string, error) {
	var ask strings.Builder
	for _, rev := range revs {
		rev, err := expand(rev)
		if err != nil {
			return nil, err
		}
		ask.WriteString(rev + "^{commit}\n")
	}
	out, err := h.filter(ctx, dir, ask.String(), nil, "cat-file", "--batch-check=%(objectname)")
	if err != nil {
		return nil, err
	}
	shas := strings.Fields(out)
	if len(shas) != len(revs) {
		return nil, codehost.ErrNotFound // "<rev> missing" is two words
	}
	return shas, nil
}

func (h *Host) resolveOne(ctx context.Context, dir, rev string) (string, error) {
	shas, err := h.resolve(ctx, dir, rev)
	if err != nil {
		return "", err
	}
	return shas[0], nil
}

// ReadFile implements codehost.Host.
func (h *Host) ReadFile(ctx context.Context, r codehost.Repo, rev, path string) ([]byte, string, error) {
	dir, err := h.open(r)
	if err != nil {
		return nil, "", err
	}
	rev, err = expand(rev)
	if err != nil {
		return nil, "", err
	}
	if !fs.ValidPath(path) || path == "." || strings.ContainsAny(path, "\n\x00") {
		return nil, "", codehost.ErrNotFound
	}
	// The size precedes the content, so a file that is too large is never read.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := h.command(ctx, dir, "cat-file", "--batch")
	c.Stdin = strings.NewReader(rev + ":" + path + "\n")
	stdout, err := c.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := begin(c); err != nil {
		return nil, "", fmt.Errorf("git cat-file: %w", err)
	}
	content, sha, err := readObject(bufio.NewReader(stdout))
	if err != nil {
		cancel()
	}
	if waited := c.Wait(); err == nil && waited != nil {
		err = fmt.Errorf("git cat-file: %w", waited)
	}
	if err != nil {
		return nil, "", err
	}
	return content, sha, nil
}

// readObject reads one answer of cat-file --batch: "<sha> blob <size>", the
// content and a newline; or "<name> missing".
func readObject(r *bufio.Reader) ([]byte, string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, "", fmt.Errorf("git cat-file: %w", err)
	}
	f := strings.Fields(line)
	if strings.HasSuffix(line, " missing\n") || len(f) != 3 || f[1] != "blob" {
		return nil, "", codehost.ErrNotFound
	}
	size, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return nil, "", fmt.Errorf("git cat-file: %w", err)
	}
	if size > codehost.MaxFileSize {
		return nil, "", codehost.ErrTooLarge
	}
	content := make([]byte, size)
	if _, err := io.ReadFull(r, content); err != nil {
		return nil, "", fmt.Errorf("git cat-file: %w", err)
	}
	return content, f[0], nil
}

// Maintain packs a repository. It removes objects that were unreachable for two
// weeks, and ref locks that are older than an hour: a crash leaves them behind, and
// a branch with such a lock could never move again. Pushes and reads continue
// meanwhile. Git's own upkeep is off, so that no request waits for it.
func (h *Host) Maintain(ctx context.Context, r codehost.Repo, now time.Time) error {
	dir, err := h.open(r)
	if err != nil {
		return err
	}
	for _, locked := range []string{"HEAD", "packed-refs", "refs"} {
		if err := unlock(filepath.Join(dir, locked), now.Add(-time.Hour)); err != nil {
			return fmt.Errorf("maintain %s: %w", r, err)
		}
	}
	_, err = h.output(ctx, dir, "gc", "--quiet", "--prune=2.weeks.ago")
	return err
}

// unlock removes the lock of a file, or every lock in a folder, from before a time.
// No ref has a name that ends in .lock.
func unlock(path string, before time.Time) error {
	remove := func(lock string) error {
		info, err := os.Stat(lock)
		if err == nil && info.ModTime().Before(before) {
			err = os.Remove(lock)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a push has just released it
		}
		return err
	}
	if err := remove(path + ".lock"); err != nil {
		return err
	}
	return filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.Type().IsRegular() && strings.HasSuffix(path, ".lock"):
			return remove(path)
		}
		return nil
	})
}
