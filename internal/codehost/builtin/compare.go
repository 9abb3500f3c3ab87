package builtin

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"yardmaster/internal/codehost"
)

// emptyTree is the SHA of the tree without entries, which every repository has.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// fewestDigits is the least number of digits with which Commit finds a commit.
const fewestDigits = 7

// Commit implements codehost.Host. It does not look for a branch named digits.
func (h *Host) Commit(ctx context.Context, r codehost.Repo, digits string) (string, error) {
	dir, err := h.open(r)
	if err != nil {
		return "", err
	}
	if len(digits) < fewestDigits || strings.Trim(digits, "0123456789abcdef") != "" {
		return "", codehost.ErrNotFound
	}
	found, err := h.output(ctx, dir, "rev-parse", "--disambiguate="+digits)
	if err != nil {
		return "", err
	}
	kinds, err := h.filter(ctx, dir, found, nil, "cat-file", "--batch-check=%(objecttype) %(objectname)")
	if err != nil {
		return "", err
	}
	var sha string
	for line := range strings.Lines(kinds) {
		commit, is := strings.CutPrefix(strings.TrimSpace(line), "commit ")
		switch {
		case is && sha != "":
			return "", codehost.ErrAmbiguous
		case is:
			sha = commit
		}
	}
	if sha == "" {
		return "", codehost.ErrNotFound
	}
	return sha, nil
}

// Compare implements codehost.Host.
func (h *Host) Compare(ctx context.Context, r codehost.Repo, base, head string) (codehost.Comparison, error) {
	dir, err := h.open(r)
	if err != nil {
		return codehost.Comparison{}, err
	}
	c, err := h.fork(ctx, dir, base, head)
	if err != nil {
		return codehost.Comparison{}, err
	}
	from := c.MergeBase
	if from == "" {
		from = emptyTree
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		out, err := h.output(ctx, dir, "rev-list", "--count", c.BaseSHA+".."+c.HeadSHA)
		if err != nil {
			return err
		}
		c.Ahead, err = strconv.Atoi(strings.TrimSpace(out))
		return err
	})
	g.Go(func() error {
		out, err := h.output(ctx, dir, "diff-tree", "-r", "-z", "--no-renames", "--name-only", from, c.HeadSHA)
		c.Paths = fields(out)
		slices.Sort(c.Paths)
		return err
	})
	g.Go(func() error {
		id, err := h.patchID(ctx, dir, from, c.HeadSHA)
		c.PatchID = id
		return err
	})
	if err := g.Wait(); err != nil {
		return codehost.Comparison{}, fmt.Errorf("compare %s in %s: %w", head, r, err)
	}
	return c, nil
}

// fork resolves two revs and finds their merge base.
func (h *Host) fork(ctx context.Context, dir, base, head string) (codehost.Comparison, error) {
	shas, err := h.resolve(ctx, dir, base, head)
	if err != nil {
		return codehost.Comparison{}, err
	}
	c := codehost.Comparison{BaseSHA: shas[0], HeadSHA: shas[1]}
	out, err := h.output(ctx, dir, "merge-base", c.BaseSHA, c.HeadSHA)
	if exited(err, 1) {
		return c, nil
	}
	c.MergeBase = strings.TrimSpace(out)
	return c, err
}

// patchID pipes the difference of two trees through git patch-id --verbatim, whose
// result is stable and depends on white space.
func (h *Host) patchID(ctx context.Context, dir, from, to string) (string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer r.Close()
	diff := h.command(ctx, dir, "diff-tree", "-p", "--binary", "--full-index", "--no-renames", from, to)
	diff.Stdout = w
	id := h.command(ctx, dir, "patch-id", "--verbatim")
	id.Stdin = r
	var out strings.Builder
	id.Stdout = &out

	var g errgroup.Group
	g.Go(func() error {
		defer w.Close()
		return run(ctx, diff, "diff-tree")
	})
	g.Go(func() error {
		defer r.Close()
		return run(ctx, id, "patch-id")
	})
	if err := g.Wait(); err != nil {
		return "", err
	}
	sha, _, _ := strings.Cut(out.String(), " ")
	return sha, nil
}

// Mergeable implements codehost.Host.
func (h *Host) Mergeable(ctx context.Context, r codehost.Repo, base, head string) (bool, []string, error) {
	dir, err := h.open(r)
	if err != nil {
		return false, nil, err
	}
	c, err := h.fork(ctx, dir, base, head)
	if err != nil || c.MergeBase == "" {
		return false, nil, err
	}
	tree, conflicts, err := h.mergeTree(ctx, dir, c.BaseSHA, c.HeadSHA)
	return tree != "", conflicts, err
}

// mergeTree merges two commits that have a common ancestor into a tree. An empty
// tree means a conflict in the answered paths.
func (h *Host) mergeTree(ctx context.Context, dir, base, head string) (tree string, conflicts []string, err error) {
	out, err := h.output(ctx, dir, "merge-tree", "--write-tree", "--no-messages", "--name-only", "-z", base, head)
	if err != nil && !exited(err, 1) {
		return "", nil, err
	}
	f := fields(out)
	if len(f) == 0 || !codehost.ValidSHA(f[0]) {
		return "", nil, fmt.Errorf("git merge-tree printed no tree: %w", err)
	}
	if err == nil {
		return f[0], nil, nil
	}
	return "", f[1:], nil
}
