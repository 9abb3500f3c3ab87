package gitfolder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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

// Commit answers as codehost.Host says. It does not look for a branch named digits.
func (dir Folder) Commit(ctx context.Context, digits string) (string, error) {
	if len(digits) < fewestDigits || strings.Trim(digits, "0123456789abcdef") != "" {
		return "", codehost.ErrNotFound
	}
	found, err := dir.Output(ctx, "rev-parse", "--disambiguate="+digits)
	if err != nil {
		return "", err
	}
	kinds, err := dir.Filter(ctx, found, nil, "cat-file", "--batch-check=%(objecttype) %(objectname)")
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

// Compare answers as codehost.Host says.
func (dir Folder) Compare(ctx context.Context, base, head string) (codehost.Comparison, error) {
	f, err := dir.fork(ctx, base, head, nil)
	if err != nil {
		return codehost.Comparison{}, err
	}
	c := f.Comparison
	from := c.MergeBase
	if from == "" {
		from = emptyTree
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		out, err := dir.Output(ctx, "rev-list", "--count", c.BaseSHA+".."+c.HeadSHA)
		if err != nil {
			return err
		}
		c.Ahead, err = strconv.Atoi(strings.TrimSpace(out))
		return err
	})
	g.Go(func() error {
		out, err := dir.Output(ctx, "diff-tree", "-r", "-z", "--no-renames", "--name-only", from, c.HeadSHA)
		c.Paths = fields(out)
		slices.Sort(c.Paths)
		return err
	})
	g.Go(func() error {
		if c.MergeBase == "" {
			return nil
		}
		raw, err := dir.Output(ctx, "diff-tree", "-r", "-z", "--raw", "--numstat", "--no-abbrev", "--no-renames",
			"--ignore-submodules=none", c.MergeBase, c.HeadSHA)
		if err != nil {
			return err
		}
		entries := fields(raw)
		of := 0 // entries begin with the raw ones, two fields each
		for of+1 < len(entries) && strings.HasPrefix(entries[of], ":") {
			of += 2
		}
		if c.Added, c.Deleted, err = lines(entries[of:]); err != nil {
			return err
		}
		c.Change, err = change(entries[:of])
		return err
	})
	g.Go(func() error {
		id, err := dir.patchID(ctx, from, c.HeadSHA)
		c.PatchID = id
		return err
	})
	if err := g.Wait(); err != nil {
		return codehost.Comparison{}, fmt.Errorf("compare %s in %s: %w", head, dir, err)
	}
	return c, nil
}

// change is the codehost.Comparison.Change of a raw difference: ":MODE MODE BLOB BLOB KIND"
// and the path, in turn. The kind follows from the rest.
func change(raw []string) (string, error) {
	if len(raw)%2 != 0 {
		return "", errors.New("git diff-tree printed half an entry")
	}
	entries := make([]string, 0, len(raw)/2)
	for i := 0; i < len(raw); i += 2 {
		head, colon := strings.CutPrefix(raw[i], ":")
		f := strings.Fields(head)
		if !colon || len(f) != 5 {
			return "", fmt.Errorf("git diff-tree printed %q", raw[i])
		}
		entries = append(entries, strings.Join(f[:4], " ")+" "+raw[i+1]+"\x00")
	}
	if len(entries) == 0 {
		return "", nil
	}
	slices.Sort(entries)
	sum := sha256.New()
	for _, e := range entries {
		sum.Write([]byte(e))
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// lines adds up what git says of the lines of files: "ADDED\tDELETED\tPATH", with a dash
// for the numbers of a file that has no lines.
func lines(numstat []string) (added, deleted int, err error) {
	for _, e := range numstat {
		f := strings.SplitN(e, "\t", 3)
		if len(f) != 3 {
			return 0, 0, fmt.Errorf("git diff-tree printed %q", e)
		}
		if f[0] == "-" {
			continue
		}
		a, err := strconv.Atoi(f[0])
		if err != nil {
			return 0, 0, fmt.Errorf("git diff-tree printed %q", e)
		}
		d, err := strconv.Atoi(f[1])
		if err != nil {
			return 0, 0, fmt.Errorf("git diff-tree printed %q", e)
		}
		added, deleted = added+a, deleted+d
	}
	return added, deleted, nil
}

// patchID pipes the difference of two trees through git patch-id --verbatim, whose
// result is stable and depends on white space.
func (dir Folder) patchID(ctx context.Context, from, to string) (string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer r.Close()
	diff := dir.Command(ctx, "diff-tree", "-p", "--binary", "--full-index", "--no-renames", from, to)
	diff.Stdout = w
	id := dir.Command(ctx, "patch-id", "--verbatim")
	id.Stdin = r
	var out strings.Builder
	id.Stdout = &out

	var g errgroup.Group
	g.Go(func() error {
		defer w.Close()
		return Run(ctx, diff, "diff-tree")
	})
	g.Go(func() error {
		defer r.Close()
		return Run(ctx, id, "patch-id")
	})
	if err := g.Wait(); err != nil {
		return "", err
	}
	sha, _, _ := strings.Cut(out.String(), " ")
	return sha, nil
}

// Mergeable answers as codehost.Host says.
func (dir Folder) Mergeable(ctx context.Context, base, head string) (bool, []string, error) {
	f, err := dir.fork(ctx, base, head, nil)
	if err != nil || f.MergeBase == "" {
		return false, nil, err
	}
	tree, conflicts, err := dir.mergeTree(ctx, f.onto, f.HeadSHA)
	return tree != "", conflicts, err
}

// mergeTree merges two commits that have a common ancestor into a tree. An empty
// tree means a conflict in the answered paths.
func (dir Folder) mergeTree(ctx context.Context, base, head string) (tree string, conflicts []string, err error) {
	out, err := dir.Output(ctx, "merge-tree", "--write-tree", "--messages", "--name-only", "-z", base, head)
	if err != nil && !Exited(err, 1) {
		return "", nil, err
	}
	tree, rest, _ := strings.Cut(out, "\x00")
	if !codehost.ValidSHA(tree) {
		return "", nil, fmt.Errorf("git merge-tree printed no tree: %w", err)
	}
	names, messages, found := strings.Cut(rest, "\x00\x00")
	if clean, ok := strings.CutPrefix(rest, "\x00"); ok || !found {
		names, messages = "", clean
	}
	// git 2.39 calls it clean where a rename with a conflict meets another file of that name,
	// and leaves the marks of the conflict in the tree. What it says of that is true.
	conflicts = append(fields(names), inConflict(messages)...)
	if slices.Sort(conflicts); err == nil && len(conflicts) == 0 {
		return tree, nil, nil
	}
	return "", slices.Compact(conflicts), nil
}

// inConflict are the paths of messages about conflicts. Each message is, ended by zeros, a
// number of paths, the paths, its type and a text (git-merge-tree(1), "Informational messages").
func inConflict(messages string) (paths []string) {
	for f := fields(messages); len(f) > 0; {
		n, err := strconv.Atoi(f[0])
		if err != nil || n < 0 || len(f) < n+3 {
			return paths
		}
		if strings.HasPrefix(f[n+1], "CONFLICT") {
			paths = append(paths, f[1:n+1]...)
		}
		f = f[n+3:]
	}
	return paths
}
