package worktree

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"yardmaster/internal/gitlfs"
)

// mostRewritten is how many commits of an agent are looked at for contents in the place of
// pointers.
const mostRewritten = 1000

// mostContent is the largest committed content, in bytes, that a pointer is made of: it is held
// in memory.
const mostContent = 128 << 20

// pointCommits makes commits anew in which an agent without git-lfs has committed contents
// of files of Git LFS: with pointers in their places. It returns the commit for head, and
// what head is now for each commit that was made anew. The contents go into the cache.
func (w *Checkout) pointCommits(ctx context.Context, scratch string, heads ...string) (anew map[string]string, err error) {
	anew = map[string]string{}
	raw := map[string]string{} // blob of a content -> blob of its pointer
	for _, head := range heads {
		if !w.LFS || head == "" || head == w.base || anew[head] != "" {
			continue
		}
		if uses, err := w.cache.UsesLFS(ctx, head); err != nil || !uses {
			return anew, err
		}
		out, err := w.cache.git("rev-list", "--reverse", "--topo-order", "--max-count=100000", head, "--not", w.base).run(ctx)
		if err != nil {
			return nil, err
		}
		list := strings.Fields(string(out))
		if len(list) > mostRewritten {
			return anew, nil
		}
		for _, sha := range list {
			if anew[sha] != "" {
				continue
			}
			if anew[sha], err = w.pointCommit(ctx, scratch, sha, raw, anew); err != nil {
				return nil, err
			}
		}
	}
	return anew, nil
}

// pointCommit makes one commit anew if it has contents in the place of pointers, or if a
// parent of it was made anew. It returns the commit to be used.
func (w *Checkout) pointCommit(ctx context.Context, scratch, sha string, raw, anew map[string]string) (string, error) {
	put, err := w.contents(ctx, scratch, sha, raw)
	if err != nil {
		return "", err
	}
	text, err := w.cache.git("cat-file", "commit", sha).run(ctx)
	if err != nil {
		return "", err
	}
	tree := ""
	if put.Len() > 0 { // the index of the scratch folder is that of the commit
		c := w.cache.scratchIndex(scratch, "update-index", "-z", "--index-info")
		c.stdin = put
		if _, err := c.run(ctx); err != nil {
			return "", err
		}
		if tree, err = w.cache.scratchIndex(scratch, "write-tree").line(ctx); err != nil {
			return "", err
		}
	}
	fresh, changed := otherCommit(text, tree, anew)
	if !changed {
		return sha, nil
	}
	c := w.cache.git("hash-object", "-t", "commit", "-w", "--stdin")
	c.stdin = bytes.NewReader(fresh)
	return c.line(ctx)
}

// otherCommit is a commit with another tree, unless that is "", and other parents, without
// the signature that it then has no more; false if nothing is other.
func otherCommit(text []byte, tree string, anew map[string]string) (fresh []byte, changed bool) {
	head, message, _ := bytes.Cut(text, []byte("\n\n"))
	var lines []string
	signature := false
	for line := range strings.SplitSeq(string(head), "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch {
		case key == "gpgsig", key == "gpgsig-sha256", signature && key == "":
			signature = true
			continue
		case key == "tree" && tree != "" && tree != value:
			line, changed = "tree "+tree, true
		case key == "parent" && anew[value] != "" && anew[value] != value:
			line, changed = "parent "+anew[value], true
		}
		signature = false
		lines = append(lines, line)
	}
	return append([]byte(strings.Join(lines, "\n")+"\n\n"), message...), changed
}

// contents reads a commit into the index of the scratch folder, and lists for it the files
// of Git LFS that have contents in the place of pointers.
func (w *Checkout) contents(ctx context.Context, scratch, sha string, raw map[string]string) (put *bytes.Buffer, err error) {
	put = &bytes.Buffer{}
	if _, err := w.cache.scratchIndex(scratch, "read-tree", sha).run(ctx); err != nil {
		return nil, err
	}
	// What the base has is as its people want it.
	out, err := w.cache.git("diff-tree", "-r", "-z", "--no-renames", "--diff-filter=AMT", "--no-abbrev", w.base, sha).run(ctx)
	if err != nil {
		return nil, err
	}
	type file struct{ mode, blob string }
	at := map[string]file{}
	for parts := fields(out); len(parts) >= 2; parts = parts[2:] {
		f := strings.Fields(strings.TrimPrefix(parts[0], ":"))
		if len(f) != 5 {
			return nil, fmt.Errorf("worktree: git diff-tree: %.100q", parts[0])
		}
		if f[1] == "100644" || f[1] == "100755" {
			at[parts[1]] = file{f[1], f[3]}
		}
	}
	attr := w.cache.scratchIndex(scratch, "check-attr", "--cached", "--stdin", "-z", "filter")
	lfs, err := filtered(ctx, attr, slices.Sorted(maps.Keys(at)))
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(lfs)) {
		f := at[name]
		if _, known := raw[f.blob]; !known {
			if raw[f.blob], err = w.pointBlob(ctx, f.blob); err != nil {
				return nil, err
			}
		}
		if blob := raw[f.blob]; blob != "" {
			put.WriteString(f.mode + " " + blob + "\t" + name + "\x00")
		}
	}
	return put, nil
}

// pointBlob takes the content of a blob into the cache, and returns the blob of its pointer;
// "" if it is a pointer, or empty.
func (w *Checkout) pointBlob(ctx context.Context, blob string) (string, error) {
	size, err := w.cache.git("cat-file", "-s", blob).line(ctx)
	if err != nil {
		return "", err
	}
	if n, err := strconv.Atoi(size); err != nil || n == 0 || n > mostContent {
		return "", err
	}
	text, err := w.cache.git("cat-file", "blob", blob).run(ctx)
	if err != nil {
		return "", err
	}
	if _, is := gitlfs.ParsePointer(text); is {
		return "", nil
	}
	p, err := w.cache.putObject(bytes.NewReader(text), nil)
	if err != nil {
		return "", err
	}
	c := w.cache.git("hash-object", "-w", "--stdin")
	c.stdin = strings.NewReader(p.String())
	return c.line(ctx)
}
