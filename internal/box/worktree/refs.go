package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// mostLoose is how many branches and tags may be files of their own in a cache. Git
// reads each such file at each fetch.
const mostLoose = 64

// packRefs moves the branches and tags of the remote to one file if they are many. The
// caller holds the cache's lock. What is kept stays in files, whose times count.
func (c *Cache) packRefs(ctx context.Context) error {
	folders := []string{c.refFile(heads), c.refFile(tags)}
	n := 0
	for _, dir := range folders {
		err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				if n++; n > mostLoose {
					return fs.SkipAll
				}
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("worktree: %w", err)
		}
	}
	if n <= mostLoose {
		return nil
	}
	if _, err := c.git("pack-refs", "--all", "--no-prune").run(ctx); err != nil {
		return err
	}
	for _, dir := range folders {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("worktree: %w", err)
		}
	}
	return nil
}

// knowsRemote tells whether the cache has fetched before.
func (c *Cache) knowsRemote() bool {
	for _, name := range []string{strings.TrimSuffix(heads, "/"), "packed-refs"} {
		if _, err := os.Lstat(filepath.Join(c.dir, name)); err == nil {
			return true
		}
	}
	return false
}

// namedRefs turns the fetch of a new cache into one of the commits that its remote's refs
// name now, and returns those refs by their names in the cache. Git would write a file for
// each ref, which takes a slow disk long where there are thousands. It changes nothing if
// there are none.
func (c *command) namedRefs(ctx context.Context, url string) (refs map[string]string, err error) {
	list := *c
	list.args = []string{"ls-remote", "-q", "--refs", "--end-of-options", url, "refs/heads/*", tags + "*"}
	out, err := list.run(ctx)
	if err != nil {
		return nil, err
	}
	refs = map[string]string{}
	named := map[string]bool{}
	var wanted strings.Builder
	for line := range strings.Lines(string(out)) {
		sha, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !fullName.MatchString(sha) || strings.Contains(ref, "..") || strings.Contains(ref, "//") || strings.ContainsFunc(ref, inNoRef) {
			continue // no git makes such a ref
		}
		if name, ok := strings.CutPrefix(ref, localHeads); ok {
			ref = heads + name
		} else if !strings.HasPrefix(ref, tags) {
			continue
		}
		refs[ref] = sha
		if !named[sha] {
			named[sha] = true
			wanted.WriteString(sha + "\n")
		}
	}
	if len(refs) > 0 {
		c.args = []string{"fetch", "-q", "--no-tags", "--no-write-fetch-head", "--stdin", "--end-of-options", url}
		c.stdin = strings.NewReader(wanted.String())
	}
	return refs, nil
}

// inNoRef tells whether a character is in the name of no ref.
func inNoRef(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`~^:?*[\`, r) }

// adopt gives a new cache its refs, as one file.
func (c *Cache) adopt(named map[string]string) error {
	refs := bytes.NewBufferString("# pack-refs with: sorted \n")
	for _, ref := range slices.Sorted(maps.Keys(named)) {
		refs.WriteString(named[ref] + " " + ref + "\n")
	}
	fresh := filepath.Join(c.dir, "packed-refs.new")
	err := errors.Join(os.WriteFile(fresh, refs.Bytes(), 0o644), os.Rename(fresh, filepath.Join(c.dir, "packed-refs")))
	if err != nil {
		return fmt.Errorf("worktree: %w", err)
	}
	return nil
}

// packedRefs returns the remote's branches and tags in the format of git's file
// packed-refs. A checkout that borrows the cache's objects needs no more to have them,
// however many they are.
func (c *Cache) packedRefs(ctx context.Context) ([]byte, error) {
	out, err := c.git("show-ref", "--dereference").run(ctx)
	var code *exec.ExitError
	if err != nil && !(errors.As(err, &code) && code.ExitCode() == 1 && len(out) == 0) { // there is none
		return nil, err
	}
	refs := bytes.NewBufferString("# pack-refs with: peeled fully-peeled sorted \n")
	for line := range strings.Lines(string(out)) {
		sha, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !strings.HasPrefix(ref, heads) && !strings.HasPrefix(ref, tags) {
			continue
		}
		if strings.HasSuffix(ref, "^{}") {
			refs.WriteString("^" + sha + "\n")
		} else {
			refs.WriteString(sha + " " + ref + "\n")
		}
	}
	return refs.Bytes(), nil
}
