package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// maxFile is the size in bytes above which a file is left out of a snapshot. Code
// hosts warn about such files or refuse them.
const maxFile = 50 << 20

// snapshot writes the files of the checkout as a tree, starting from the tree of
// the commit head. Git lists and reads single files with the cache's configuration
// and an index of the box's own. It never enters a nested repository, as "git add"
// or "git status" would.
func (w *Checkout) snapshot(ctx context.Context, root *os.Root, index, head string) (tree string, skipped []Skipped, err error) {
	git := func(args ...string) command {
		c := w.cache.git(append([]string{"--work-tree=" + w.dir}, args...)...)
		c.dir, c.env = w.dir, []string{"GIT_INDEX_FILE=" + index}
		return c
	}
	if _, err := git("read-tree", head).run(ctx); err != nil {
		return "", nil, err
	}
	tracked, err := git("ls-files", "-z", "--stage").run(ctx)
	if err != nil {
		return "", nil, err
	}
	untracked, err := git("ls-files", "-z", "--others", "--exclude-standard").run(ctx)
	if err != nil {
		return "", nil, err
	}
	var gone, present bytes.Buffer
	classify := func(name string, isTracked bool) {
		switch state, reason := inspect(root, name); {
		case state == taken:
			present.WriteString(name + "\x00")
		case state == absent && isTracked:
			gone.WriteString("0 " + strings.Repeat("0", len(head)) + "\t" + name + "\x00")
		case state == refused:
			skipped = append(skipped, Skipped{Path: name, Reason: reason})
		}
	}
	for _, entry := range fields(tracked) {
		meta, name, _ := strings.Cut(entry, "\t")
		if strings.HasPrefix(meta, "160000 ") {
			continue // a submodule stays as it is in the commit
		}
		classify(name, true)
	}
	added := fields(untracked)
	if w.Frugal && !few(root, added) {
		reason := fmt.Sprintf("more than %d new files, or %d MB of them", mostNew, mostNewBytes>>20)
		skipped = append(skipped, Skipped{Path: ".", Reason: reason})
		added = nil
	}
	for _, name := range added {
		if strings.HasSuffix(name, "/") {
			skipped = append(skipped, Skipped{Path: strings.TrimSuffix(name, "/"), Reason: "a repository of its own"})
			continue
		}
		classify(name, false)
	}
	for _, step := range []struct {
		names *bytes.Buffer
		args  []string
	}{
		{&gone, []string{"update-index", "-z", "--index-info"}}, // first, because a folder may have replaced a file
		{&present, []string{"update-index", "--add", "--replace", "-z", "--stdin"}},
	} {
		c := git(step.args...)
		c.stdin = step.names
		if _, err := c.run(ctx); err != nil {
			return "", nil, err
		}
	}
	if tree, err = git("write-tree").line(ctx); err != nil {
		return "", nil, err
	}
	slices.SortFunc(skipped, func(a, b Skipped) int { return strings.Compare(a.Path, b.Path) })
	return tree, skipped, nil
}

// The limits of the new files in a frugal checkout.
const (
	mostNew      = 5000
	mostNewBytes = 64 << 20
)

// few tells whether new files are within the limits of a frugal checkout. Files
// that are too large or special do not count.
func few(root *os.Root, names []string) bool {
	if len(names) > mostNew {
		return false
	}
	var sum int64
	for _, name := range names {
		if st, err := root.Lstat(name); err == nil && st.Mode().IsRegular() && st.Size() <= maxFile {
			sum += st.Size()
		}
	}
	return sum <= mostNewBytes
}

type state int

const (
	taken   state = iota
	absent        // missing, or behind a link
	refused       // cannot be taken
)

// inspect tells what to do with one path. It follows no links.
func inspect(root *os.Root, name string) (state, string) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if st, err := root.Lstat(dir); err == nil && !st.IsDir() {
			return absent, ""
		}
	}
	st, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return absent, ""
	case err != nil:
		return refused, "it cannot be read"
	case st.IsDir():
		return absent, "" // its files are paths of their own
	case st.Mode()&fs.ModeSymlink != 0:
		return taken, ""
	case !st.Mode().IsRegular():
		return refused, "not a regular file"
	case st.Size() > maxFile:
		return refused, fmt.Sprintf("larger than %d MB", maxFile>>20)
	}
	f, err := openRegular(root, name)
	if err != nil {
		return refused, "it cannot be read"
	}
	f.Close()
	return taken, ""
}
