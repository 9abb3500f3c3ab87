package worktree

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"yardmaster/internal/unixfile"
)

// agentIndex is the index of the agent's own git, read as data. It is what the agent
// says of its files, and is believed where that can only leave out a change of its own.
type agentIndex map[string]agentEntry

type agentEntry struct {
	entry
	hidden bool // not to be in the checkout, as "git sparse-checkout" arranges it
	stat   [7]int64
}

// readAgentIndex reads the agent's index; nil if it cannot be read.
func (s *snapshot) readAgentIndex() agentIndex {
	repo, err := openRepo(s.root)
	if err != nil {
		return nil
	}
	defer repo.Close()
	from, err := openRegular(repo, "index")
	if err != nil {
		return nil
	}
	defer from.Close()
	to, err := os.Create(filepath.Join(s.scratch, "agent"))
	if err != nil {
		return nil
	}
	_, err = io.Copy(to, io.LimitReader(from, maxOutput))
	if errors.Join(err, to.Close()) != nil {
		return nil
	}
	out, err := s.gitIn("agent", s.dir, "ls-files", "-z", "-t", "--stage", "--debug").run(s.ctx)
	if err != nil {
		return nil
	}
	return parseAgentIndex(out)
}

// parseAgentIndex reads git's list of an index: each entry ends with a NUL byte, and has
// the five lines of its state after that.
func parseAgentIndex(out []byte) agentIndex {
	index := agentIndex{}
	line, rest, more := bytes.Cut(out, []byte{0})
	for more {
		meta, name, _ := strings.Cut(string(line), "\t")
		var next []byte
		next, rest, more = bytes.Cut(rest, []byte{0})
		state := bytes.SplitN(next, []byte{'\n'}, 6)
		if len(state) < 6 {
			return index
		}
		line = state[5]
		e := agentEntry{hidden: strings.HasPrefix(meta, "S ")}
		if part := strings.Fields(meta); len(part) == 4 && part[3] == "0" { // a conflict has other stages
			e.entry = entry{part[1], part[2]}
		}
		var uid, gid int64
		_, err := fmt.Sscanf(string(bytes.Join(state[:5], []byte{' '})), " ctime: %d:%d mtime: %d:%d dev: %d ino: %d uid: %d gid: %d size: %d",
			&e.stat[0], &e.stat[1], &e.stat[2], &e.stat[3], &e.stat[4], &e.stat[5], &uid, &gid, &e.stat[6])
		if err != nil {
			e.stat = [7]int64{}
		}
		index[name] = e
	}
	return index
}

// hides tells whether a file is not on disk because the agent's git keeps it away.
func (x agentIndex) hides(name string) bool { return x[name].hidden }

// added lists the files that the agent has added although a rule excludes them: those
// that are neither in a commit nor among the untracked.
func (x agentIndex) added(tracked map[string]entry, untracked []string) (names []string) {
	listed := map[string]bool{}
	for _, name := range untracked {
		listed[name] = true
	}
	for name, e := range x {
		if _, old := tracked[name]; !old && !listed[name] && e.mode != modeGitlink && filepath.IsLocal(name) {
			names = append(names, name)
		}
	}
	return names
}

// clean tells whether the agent's git has found a file to be as in its index, and the
// file is the same since. Times have to be finer than a second.
func (x agentIndex) clean(name string, st *syscall.Stat_t) bool {
	e, has := x[name]
	changed, modified := unixfile.Times(st)
	return has && e.stat[1] != 0 && e.stat[3] != 0 && e.stat == [7]int64{changed.Sec, changed.Nsec, modified.Sec, modified.Nsec,
		int64(uint32(st.Dev)), int64(uint32(st.Ino)), int64(uint32(st.Size))}
}

// same tells whether a file is certainly as it is in the commit: the agent's git says so
// and nothing has touched it since, or it has the very bytes. Its mode is looked at too.
func (s *snapshot) same(name string, e entry) bool {
	if e.mode != modeFile && e.mode != modeProgram {
		return false
	}
	info, err := s.root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || (info.Mode()&0o100 != 0) != (e.mode == modeProgram) {
		return false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && s.agent[name].entry == e && s.agent.clean(name, st) {
		return true
	}
	return s.hash(name, info.Size(), len(e.sha)) == e.sha
}

// hash is the name that git would give to the bytes of a file, in the length of another
// name; "" if it cannot be read.
func (s *snapshot) hash(name string, size int64, length int) string {
	f, err := openRegular(s.root, name)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := hashOf(length)
	h.Write([]byte("blob " + strconv.FormatInt(size, 10) + "\x00"))
	if n, err := io.Copy(h, f); err != nil || n != size {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// change is a path in which the index differs from the commit.
type change struct {
	old, now entry
	path     string
}

// changes lists in what the index differs from the commit.
func (s *snapshot) changes() (list []change, err error) {
	out, err := s.git("diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", s.head).run(s.ctx)
	if err != nil {
		return nil, err
	}
	for parts := fields(out); len(parts) >= 2; parts = parts[2:] {
		meta := strings.Fields(strings.TrimPrefix(parts[0], ":"))
		if len(meta) != 5 {
			return nil, fmt.Errorf("git diff-index: %q", parts[0])
		}
		list = append(list, change{old: entry{meta[0], meta[2]}, now: entry{meta[1], meta[3]}, path: parts[1]})
	}
	return list, nil
}

// attributes is the name of the files that say how git converts others.
const attributes = ".gitattributes"

// withoutUnchanged takes those changes back that are none: git reads the file otherwise
// than it is in the commit, and yet a checkout of the commit writes these bytes. So it is
// with line endings that were never normalised, keywords, and encodings. Both the
// attributes of the commit and those of the files may have been in force.
func (s *snapshot) withoutUnchanged(changes []change) ([]change, error) {
	doubt := map[string]change{}
	ruled := false
	for _, c := range changes {
		ruled = ruled || path.Base(c.path) == attributes
		if regular(c.old.mode) && regular(c.now.mode) && c.old.sha != c.now.sha {
			doubt[c.path] = c
		}
	}
	if len(doubt) == 0 {
		return changes, nil
	}
	rules := []string{s.head}
	if s.base != s.head {
		paths, err := s.cache.Changed(s.ctx, s.base, s.head)
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			if path.Base(p) == attributes {
				rules = append(rules, s.base)
				break
			}
		}
	}
	if ruled {
		tree, err := s.git("write-tree").line(s.ctx)
		if err != nil {
			return nil, err
		}
		rules = append(rules, tree)
	}
	unchanged := map[string]bool{}
	for _, tree := range rules {
		if err := s.compare(tree, doubt, unchanged); err != nil {
			return nil, err
		}
	}
	if len(unchanged) == 0 {
		return changes, nil
	}
	return s.only(changes, unchanged)
}

func regular(mode string) bool { return mode == modeFile || mode == modeProgram }

// compareBytes is how much is checked out at once to be compared.
const compareBytes = 64 << 20

// compare checks files out, as they are in the commit but by the attributes of a tree, and
// moves those that are the same on disk from one list to the other.
func (s *snapshot) compare(tree string, doubt map[string]change, unchanged map[string]bool) error {
	out := filepath.Join(s.scratch, "out")
	if _, err := s.gitIn("compared", s.dir, "read-tree", tree).run(s.ctx); err != nil {
		return err
	}
	var put bytes.Buffer
	var names []string
	for name, c := range doubt {
		if tree != s.head && path.Base(name) == attributes {
			continue // the rules of the tree are in its own
		}
		put.WriteString(c.old.mode + " " + c.old.sha + "\t" + name + "\x00")
		names = append(names, name)
	}
	c := s.gitIn("compared", s.dir, "update-index", "-z", "--index-info")
	c.stdin = &put
	if _, err := c.run(s.ctx); err != nil {
		return err
	}
	for len(names) > 0 {
		var size int64
		n := 0
		for ; n < len(names) && size < compareBytes; n++ {
			if st, err := s.root.Lstat(names[n]); err == nil {
				size += st.Size()
			}
		}
		if err := os.Mkdir(out, 0o700); err != nil {
			return err
		}
		c := s.gitIn("compared", out, "checkout-index", "-q", "-f", "-z", "--stdin")
		c.stdin = strings.NewReader(strings.Join(names[:n], "\x00") + "\x00")
		if _, err := c.run(s.ctx); err != nil && (s.ctx.Err() != nil || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) {
			return err
		} // otherwise the files that git cannot write have changed
		written, err := os.OpenRoot(out)
		if err != nil {
			return err
		}
		for _, name := range names[:n] {
			if sameBytes(s.root, written, name) {
				unchanged[name] = true
				delete(doubt, name)
			}
		}
		written.Close()
		if err := os.RemoveAll(out); err != nil {
			return err
		}
		names = names[n:]
	}
	return nil
}

// sameBytes tells whether a file is the same in two folders.
func sameBytes(a, b *os.Root, name string) bool {
	one, err := openRegular(a, name)
	if err != nil {
		return false
	}
	defer one.Close()
	two, err := openRegular(b, name)
	if err != nil {
		return false
	}
	defer two.Close()
	x, y := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errOne := io.ReadFull(one, x)
		m, errTwo := io.ReadFull(two, y)
		if !bytes.Equal(x[:n], y[:m]) {
			return false
		}
		if errOne != nil || errTwo != nil {
			ended := func(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
			return ended(errOne) && ended(errTwo)
		}
	}
}

// only makes the index anew, of the commit and of the changes but for the content of some
// files, and returns the changes that are left.
func (s *snapshot) only(changes []change, unchanged map[string]bool) (left []change, err error) {
	if _, err := s.git("read-tree", s.head).run(s.ctx); err != nil {
		return nil, err
	}
	var gone, put bytes.Buffer
	for _, c := range changes {
		if unchanged[c.path] {
			if c.now.mode == c.old.mode {
				continue
			}
			c.now.sha = c.old.sha
		}
		to := &put
		if strings.Trim(c.now.mode, "0") == "" {
			to = &gone
		}
		to.WriteString(c.now.mode + " " + c.now.sha + "\t" + c.path + "\x00")
		left = append(left, c)
	}
	for _, lines := range []*bytes.Buffer{&gone, &put} { // a folder may have replaced a file
		c := s.git("update-index", "-z", "--index-info")
		c.stdin = lines
		if _, err := c.run(s.ctx); err != nil {
			return nil, err
		}
	}
	return left, nil
}
