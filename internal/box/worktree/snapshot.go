package worktree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"yardmaster/internal/lazy"
)

// maxFile is the size in bytes above which a file is left out of a snapshot. Code
// hosts warn about such files or refuse them.
const maxFile = 50 << 20

// The modes of a tree's entries.
const (
	modeFile    = "100644"
	modeProgram = "100755"
	modeGitlink = "160000" // a commit of another repository
)

// snapshot is the work of adding the files of a checkout to the tree of a commit. Git
// lists and reads single files with the cache's configuration and an index of the
// box's own. It never enters a nested repository, as "git add" or "git status" would.
// It takes nothing that is as a checkout of the commit writes it.
type snapshot struct {
	*Checkout
	ctx     context.Context
	root    *os.Root
	scratch string // a folder of the box's own
	head    string
	agent   agentIndex
	folders map[string]bool // the folders that were looked at, and whether they are no links
	skipped []Skipped
	bad     int // files that git could not take
}

// entry is a file in a tree.
type entry struct{ mode, sha string }

// snapshot writes the files of the checkout as a tree, starting from the tree of the
// commit head. The tree is "" if nothing differs from that. scratch is an empty folder
// of the box's own.
func (w *Checkout) snapshot(ctx context.Context, root *os.Root, scratch, head string) (tree string, skipped []Skipped, err error) {
	s := &snapshot{Checkout: w, ctx: ctx, root: root, scratch: scratch, head: head, folders: map[string]bool{".": true}}
	if _, err := s.git("read-tree", head).run(ctx); err != nil {
		return "", nil, err
	}
	if err := s.takeFiles(); err != nil {
		return "", nil, err
	}
	changes, err := s.changes()
	if err != nil {
		return "", nil, err
	}
	if changes, err = s.withoutUnchanged(changes); err != nil {
		return "", nil, err
	}
	slices.SortFunc(s.skipped, func(a, b Skipped) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Reason, b.Reason))
	})
	if len(changes) == 0 {
		return "", s.skipped, nil
	}
	tree, err = s.git("write-tree").line(ctx)
	return tree, s.skipped, err
}

// git returns a command on the snapshot's index and the checkout's files.
func (s *snapshot) git(args ...string) command { return s.gitIn("index", s.dir, args...) }

// gitIn returns a command on an index in the scratch folder and the files in a folder.
func (s *snapshot) gitIn(index, files string, args ...string) command {
	c := s.cache.git(append([]string{"--work-tree=" + files}, args...)...)
	c.dir, c.env = files, []string{"GIT_INDEX_FILE=" + filepath.Join(s.scratch, index)}
	return c
}

// tracked lists what an index in the scratch folder has.
func (s *snapshot) tracked(index string) (names []string, entries map[string]entry, err error) {
	out, err := s.gitIn(index, s.dir, "ls-files", "-z", "--stage").run(s.ctx)
	if err != nil {
		return nil, nil, err
	}
	entries = map[string]entry{}
	for _, line := range fields(out) {
		meta, name, _ := strings.Cut(line, "\t")
		mode, sha, _ := strings.Cut(meta, " ")
		sha, _, _ = strings.Cut(sha, " ")
		names = append(names, name)
		entries[name] = entry{mode, sha}
	}
	return names, entries, nil
}

// closedFolder matches what git says of a folder that it cannot list.
var closedFolder = lazy.New(`(?m)^warning: could not open directory '(.*?)/?': `)

// untracked lists the files of the checkout that are not in the index and that no rule
// excludes. A repository of its own ends with a slash.
func (s *snapshot) untracked() ([]string, error) {
	c := s.git("ls-files", "-z", "--others", "--exclude-standard")
	// What the agent has excluded for itself alone, as agents do with files of their own.
	if repo, err := openRepo(s.root); err == nil {
		if rules, err := readFile(repo, "info/exclude"); err == nil && len(rules) > 0 {
			at := filepath.Join(s.scratch, "exclude")
			if err := os.WriteFile(at, rules, 0o600); err != nil {
				repo.Close()
				return nil, err
			}
			c.args = append(c.args, "--exclude-from="+at)
		}
		repo.Close()
	}
	var said string
	c.said = &said
	out, err := c.run(s.ctx)
	for _, m := range closedFolder.FindAllStringSubmatch(said, -1) {
		s.skip(m[1], "it cannot be read")
	}
	return fields(out), err
}

func (s *snapshot) skip(name, reason string) {
	s.skipped = append(s.skipped, Skipped{Path: name, Reason: reason})
}

// takeFiles brings into the index what may differ from the commit.
func (s *snapshot) takeFiles() error {
	names, entries, err := s.tracked("index")
	if err != nil {
		return err
	}
	untracked, err := s.untracked()
	if err != nil {
		return err
	}
	s.agent = s.readAgentIndex()
	var gone bytes.Buffer
	var present []string
	for _, name := range names {
		e := entries[name]
		if e.mode == modeGitlink {
			continue // a submodule stays as it is in the commit
		}
		switch state, reason := s.inspect(name); {
		case state == absent && !s.agent.hides(name):
			gone.WriteString("0 " + strings.Repeat("0", len(s.head)) + "\t" + name + "\x00")
		case state == absent, s.same(name, e):
		case state == refused:
			s.skip(name, reason)
		default:
			present = append(present, name)
		}
	}
	for _, name := range s.agent.added(entries, untracked) {
		if state, _ := s.inspect(name); state != absent {
			untracked = append(untracked, name)
		}
	}
	if s.Frugal && !few(s.root, untracked) {
		s.skip(".", fmt.Sprintf("more than %d new files, or %d MB of them", mostNew, mostNewBytes>>20))
		untracked = nil
	}
	for _, name := range untracked {
		if strings.HasSuffix(name, "/") {
			s.skip(strings.TrimSuffix(name, "/"), Repository)
			continue
		}
		switch state, reason := s.inspect(name); state {
		case taken:
			present = append(present, name)
		case refused:
			s.skip(name, reason)
		}
	}
	if gone.Len() > 0 { // first, because a folder may have replaced a file
		c := s.git("update-index", "-z", "--index-info")
		c.stdin = &gone
		if _, err := c.run(s.ctx); err != nil {
			return err
		}
	}
	if err := s.add(present); err != nil {
		return err
	}
	return s.nameIgnored(present, entries)
}

// mostBad limits how many files are found out one by one that git cannot take.
const mostBad = 100

// add adds files to the index. It leaves out those that git cannot take, each for
// itself: one of them would cost the work of the whole run.
func (s *snapshot) add(names []string) error {
	if len(names) == 0 {
		return nil
	}
	c := s.git("update-index", "--add", "--replace", "-z", "--stdin")
	c.stdin = strings.NewReader(strings.Join(names, "\x00") + "\x00")
	_, err := c.run(s.ctx)
	var failure *GitError
	if err == nil || s.ctx.Err() != nil || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || !errors.As(err, &failure) {
		return err
	}
	if err := os.Remove(filepath.Join(s.scratch, "index.lock")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(names) > 1 && s.bad < mostBad {
		return errors.Join(s.add(names[:len(names)/2]), s.add(names[len(names)/2:]))
	}
	// Is it the file, or can the cache take nothing?
	probe := s.cache.git("hash-object", "-w", "--stdin")
	probe.stdin = strings.NewReader(s.scratch)
	if _, broken := probe.run(s.ctx); broken != nil {
		return broken
	}
	for _, name := range names {
		s.bad++
		s.skip(name, "git cannot take it"+complaint(failure.Output))
	}
	return nil
}

var fatal = lazy.New(`(?m)^(?:fatal|error): (.+)$`)

// complaint is what git said first, to be put after a sentence.
func complaint(said string) string {
	if m := fatal.FindStringSubmatch(said); m != nil {
		return ": " + m[1]
	}
	return ""
}

// nameIgnored names the new files that git has passed over: it takes none of some names.
func (s *snapshot) nameIgnored(present []string, before map[string]entry) error {
	added := slices.DeleteFunc(slices.Clone(present), func(name string) bool { _, old := before[name]; return old })
	if len(added) == 0 {
		return nil
	}
	_, after, err := s.tracked("index")
	if err != nil {
		return err
	}
	for _, name := range added {
		told := func(k Skipped) bool { return k.Path == name }
		if _, in := after[name]; !in && !slices.ContainsFunc(s.skipped, told) {
			s.skip(name, "git takes no file of this name")
		}
	}
	return nil
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
func (s *snapshot) inspect(name string) (state, string) {
	if !s.inFolder(path.Dir(name)) {
		return absent, ""
	}
	st, err := s.root.Lstat(name)
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
	f, err := openRegular(s.root, name)
	if err != nil {
		return refused, "it cannot be read"
	}
	f.Close()
	return taken, ""
}

// inFolder tells whether a folder is not behind a link. One that is missing is not.
func (s *snapshot) inFolder(dir string) bool {
	real, known := s.folders[dir]
	if !known {
		real = s.inFolder(path.Dir(dir))
		if st, err := s.root.Lstat(dir); real && err == nil {
			real = st.IsDir()
		}
		s.folders[dir] = real
	}
	return real
}
