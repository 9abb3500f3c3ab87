package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
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
