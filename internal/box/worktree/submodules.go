package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"yardmaster/internal/gitmodules"
)

// Gitlink is a submodule of a commit.
type Gitlink struct {
	Path   string // of its folder
	URL    string // as .gitmodules has it; it is never followed
	Commit string
}

// Gitlinks are the submodules of a commit that its .gitmodules names.
func (c *Cache) Gitlinks(ctx context.Context, sha string) ([]Gitlink, error) {
	out, err := c.git("ls-tree", "-z", "-l", sha, "--", gitmodules.Name).run(ctx)
	if err != nil {
		return nil, err
	}
	for _, line := range fields(out) {
		meta, _, _ := strings.Cut(line, "\t")
		f := strings.Fields(meta)
		if len(f) != 4 || f[0] != "100644" && f[0] != "100755" {
			continue
		}
		if n, err := strconv.Atoi(f[3]); err != nil || n > gitmodules.MaxBytes {
			continue
		}
		text, err := c.git("cat-file", "blob", f[2]).run(ctx)
		if err != nil {
			return nil, err
		}
		return c.gitlinks(ctx, sha, gitmodules.Parse(text))
	}
	return nil, nil
}

func (c *Cache) gitlinks(ctx context.Context, sha string, named []gitmodules.Module) (all []Gitlink, err error) {
	if len(named) == 0 {
		return nil, nil
	}
	args := []string{"--literal-pathspecs", "ls-tree", "-z", sha, "--"}
	urls := map[string]string{}
	for _, m := range named {
		args = append(args, m.Path)
		urls[m.Path] = m.URL
	}
	out, err := c.git(args...).run(ctx)
	for _, line := range fields(out) {
		meta, name, _ := strings.Cut(line, "\t")
		if f := strings.Fields(meta); len(f) == 3 && f[0] == "160000" && urls[name] != "" {
			all = append(all, Gitlink{Path: name, URL: urls[name], Commit: f[2]})
		}
	}
	return all, err
}

// Has tells whether the cache has a commit.
func (c *Cache) Has(ctx context.Context, sha string) bool {
	_, err := c.git("cat-file", "-e", sha+"^{commit}").run(ctx)
	return err == nil
}

// FetchCommit fetches a commit that may be on no branch. It returns ErrNoRev if the
// repository does not give it.
func (c *Cache) FetchCommit(ctx context.Context, url, token, sha string) error {
	cmd, err := remote(url, token, c.Authorities)
	if err != nil {
		return err
	}
	if !fullName.MatchString(sha) {
		return fmt.Errorf("%w: %.100s", ErrNoRev, sha)
	}
	release, err := lock(ctx, c.lockFile())
	if err != nil {
		return err
	}
	defer release()
	cmd.gitDir = c.dir
	cmd.args = []string{"-c", "protocol.version=2", "fetch", "-q", "--no-tags", "--no-write-fetch-head", "--end-of-options", url, sha}
	_, err = cmd.run(ctx)
	var failed *GitError
	if errors.As(err, &failed) &&
		(strings.Contains(failed.Output, "not our ref") || strings.Contains(failed.Output, "unadvertised object")) {
		return fmt.Errorf("%w: %s", ErrNoRev, sha)
	}
	return err
}

// NamesModules tells whether a fresh checkout may have submodules: whether it has .gitmodules.
func (w *Checkout) NamesModules() bool {
	_, err := os.Lstat(filepath.Join(w.dir, gitmodules.Name))
	return err == nil
}

// Folder prepares the folder of a submodule in a fresh checkout for a checkout of its own, and
// returns where it is. It fails unless git has made it: an empty folder, behind no link.
func (w *Checkout) Folder(name string) (string, error) {
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if !gitmodules.ValidPath(name) {
		return "", errors.New("its path is not valid")
	}
	for dir := name; dir != "."; dir = path.Dir(dir) {
		if st, err := root.Lstat(dir); err != nil || !st.IsDir() {
			return "", errors.New("there is something else in the place of its folder")
		}
	}
	return filepath.Join(w.dir, filepath.FromSlash(name)), nil
}

// AtRemote tells whether a commit is on a branch of the remote, as the cache knows it.
func (c *Cache) AtRemote(ctx context.Context, sha string) bool {
	out, err := c.git("rev-list", "--max-count=1", sha, "--not", "--glob="+heads+"*").run(ctx)
	return err == nil && len(out) == 0
}
