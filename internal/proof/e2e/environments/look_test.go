//go:build environments

package environments

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// grounds are the folders in which the program may keep temporary data and work.
var grounds = []string{"/var/lib", "/var/tmp", "/tmp"}

var (
	// ours are the names that the program gives to its folders.
	ours = regexp.MustCompile(`yardmaster|^sandbox-`)
	// fresh are the names of folders that belong to one process.
	fresh = regexp.MustCompile(`[0-9a-f]{6,}$`)
)

// marked lists the program's possible folders on the grounds, and the entries of
// folders that it shares.
func (o *order) marked() map[string]bool {
	found := map[string]bool{}
	for _, ground := range grounds {
		for _, e := range entries(ground) {
			path := filepath.Join(ground, e.Name())
			if !o.may(e) {
				continue
			}
			found[path] = true
			if e.IsDir() && !fresh.MatchString(path) {
				for _, inner := range entries(path) {
					found[filepath.Join(path, inner.Name())] = true
				}
			}
		}
	}
	return found
}

// may tells whether the row may have made an entry: for a row's own user, any entry
// of that user; for root, any entry with a name of the program.
func (o *order) may(e fs.DirEntry) bool {
	by := owner(e)
	if o.Owner != 0 {
		return by == o.Owner
	}
	return ours.MatchString(e.Name()) && (by == os.Geteuid() || by == nobody)
}

func entries(dir string) []fs.DirEntry {
	found, _ := os.ReadDir(dir) // a folder that cannot be listed counts as empty
	return found
}

func owner(e fs.DirEntry) int {
	info, err := e.Info()
	if err != nil {
		return -1 // the entry has disappeared
	}
	return int(info.Sys().(*syscall.Stat_t).Uid)
}

// look finds what the program has left behind.
func (o *order) look(before map[string]bool, r *report) {
	// Others may run the program on this machine, and have such folders as well. A
	// new folder that a living process uses is theirs, because the processes of this
	// row have ended. One that nobody uses yet may be theirs as well: tidy waits for those.
	for path := range o.marked() {
		if !before[path] && !used(path, everybody()) {
			r.Left = append(r.Left, path)
		}
	}
	slices.Sort(r.Left)
	r.Left = slices.DeleteFunc(r.Left, func(path string) bool { return slices.Contains(r.Left, filepath.Dir(path)) })
	for _, dir := range o.Temp {
		for _, e := range entries(dir) {
			r.Left = append(r.Left, filepath.Join(dir, e.Name()))
		}
	}
	if o.Data != "" {
		o.lookAtData(r)
	}
}

// claim records the row's own folders while its processes use them: a process that
// has to be killed does not remove them.
func (o *order) claim(before map[string]bool, r *report) {
	for path := range o.marked() {
		if !before[path] && used(path, descendants()) {
			r.Own = append(r.Own, path)
		}
	}
}

func everybody() []process { return slices.Collect(maps.Values(processes())) }

// used tells whether one of the processes uses a path.
func used(path string, by []process) bool {
	for _, p := range by {
		if p.pid == os.Getpid() {
			continue
		}
		proc := fmt.Sprintf("/proc/%d/", p.pid)
		argv, _ := os.ReadFile(proc + "cmdline")
		for arg := range strings.SplitSeq(string(argv), "\x00") {
			// The data folder of a box has a link to its work folder.
			work, _ := os.Readlink(filepath.Join(arg, "work"))
			if strings.Contains(arg, path) || filepath.IsAbs(arg) && work == path {
				return true
			}
		}
		links := []string{proc + "cwd", proc + "exe"}
		for _, e := range entries(proc + "fd") {
			links = append(links, proc+"fd/"+e.Name())
		}
		for _, l := range links {
			if target, _ := os.Readlink(l); target == path || strings.HasPrefix(target, path+"/") {
				return true
			}
		}
	}
	return false
}

// lookAtData checks the data that the program keeps: whether others can read private
// files, and what the logs say.
func (o *order) lookAtData(r *report) {
	r.Logs = map[string]string{}
	_ = filepath.WalkDir(o.Data, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // an unreadable folder is not open
		}
		info, err := e.Info()
		if err != nil {
			return nil
		}
		mode := info.Mode().Perm()
		switch {
		case e.Name() == "identity.json":
			if r.Identities++; mode != 0o600 {
				r.Open = append(r.Open, fmt.Sprintf("%s has the mode %04o, not 0600", path, mode))
			}
		case path == filepath.Join(o.Data, "server") && mode&0o077 != 0:
			r.Open = append(r.Open, fmt.Sprintf("%s has the mode %04o: others can read it", path, mode))
		case filepath.Dir(path) == o.Data && strings.HasSuffix(path, ".log"):
			text, _ := os.ReadFile(path)
			r.Logs[e.Name()] = string(text[max(0, len(text)-32<<10):])
		}
		return nil
	})
}
