package box_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"yardmaster/internal/box"
	"yardmaster/internal/box/sandbox"
	"yardmaster/internal/protocol"
)

// ordinary is the id of an ordinary user.
const ordinary = 65534

// place is where a hog runs: the user of the box, and the level.
type place struct {
	name  string
	user  int
	level sandbox.Level
	watch bool // without control groups
	alone bool // in a control group that was delegated to it, as a service is
}

// places lists the combinations that this process can make: root can be any user.
func places() (out []place) {
	for _, level := range []sandbox.Level{sandbox.Bubblewrap, sandbox.Landlock} {
		if os.Geteuid() != 0 {
			out = append(out, place{name: "user " + string(level), user: os.Geteuid(), level: level})
			continue
		}
		out = append(out, place{name: "root " + string(level), level: level},
			place{name: "root watched " + string(level), level: level, watch: true},
			place{name: "root alone " + string(level), level: level, alone: true},
			place{name: "user " + string(level), user: ordinary, level: level},
			place{name: "user alone " + string(level), user: ordinary, level: level, alone: true})
	}
	return out
}

// small is a set of limits so low that exceeding them does no harm.
const small = "memory=256MiB,processes=100,open-files=300,file=64MiB,disk=96MiB,inodes=3000"

// box runs a box as a process of its own, limited to a few thousand processes
// whatever happens to its limits.
func (p *plane) box(cfg *box.Config, at place) *exec.Cmd {
	p.t.Helper()
	cfg.Logger = nil
	cfg.WatchOnly = at.watch
	cfg.Self = openProgram(p.t)
	config, err := json.Marshal(cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	path := os.Getenv("PATH")
	if at.level != sandbox.Bubblewrap {
		path = programs(p.t, "bwrap")
		must(p.t, os.Chmod(path, 0o755))
	}
	cmd := exec.Command("/bin/bash", "-c", `ulimit -u 4000; exec "$0"`, cfg.Self)
	cmd.Env = append(os.Environ(), "BOX_CONFIG="+string(config), "PATH="+path, "HOME="+cfg.DataDir)
	cmd.Dir, cmd.Stderr = cfg.DataDir, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if at.alone {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(delegated(p.t, at.user).Fd())
	}
	if at.user != os.Geteuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(at.user), Gid: uint32(at.user)}
		must(p.t, filepath.WalkDir(cfg.DataDir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, at.user, at.user)
		}))
	}
	must(p.t, cmd.Start())
	p.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait(); removeGroups(*cfg) })
	return cmd
}

// delegated makes a control group for a user as systemd does for a service with
// Delegate=yes, with the controllers that there are.
func delegated(t *testing.T, user int) *os.File {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	must(t, err)
	root := ""
	for line := range strings.Lines(string(mounts)) {
		if before, after, _ := strings.Cut(line, " - "); strings.HasPrefix(after, "cgroup2 ") {
			root = strings.Fields(before)[4]
		}
	}
	if root == "" {
		t.Fatal("there are no control groups of version 2 on this machine, which this test needs")
	}
	for _, c := range []string{"+memory", "+pids", "+cpu"} {
		_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte(c), 0) // where version 1 has it, this one does not
	}
	dir, err := os.MkdirTemp(root, "delegated-")
	must(t, err)
	t.Cleanup(func() {
		for _, dir := range []string{filepath.Join(dir, "box"), dir} { // the box is dead by now
			if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("control group left: %v", err)
			}
		}
	})
	must(t, errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, user, user)))
	for _, name := range []string{"cgroup.procs", "cgroup.threads", "cgroup.subtree_control"} {
		must(t, os.Chown(filepath.Join(dir, name), user, user))
	}
	f, err := os.Open(dir)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// hog is an agent that takes too much: a limited amount, if nothing stops it. None ends by
// itself within the time of a test.
type hog struct {
	name   string
	script string
	prompt string // instead of a script
	says   string
	only   sandbox.Level
	main   bool // set off everywhere, the others where the means differ
	forks  bool // of one user only one at a time
}

// The kernel counts the processes of a user, whichever box they are of: two boxes whose runs
// fork at the same time would take what either's other run needs.
var (
	forkers     = map[int]*sync.Mutex{}
	forkersLock sync.Mutex
)

// forkingAs is held while a run of a user forks.
func forkingAs(user int) *sync.Mutex {
	forkersLock.Lock()
	defer forkersLock.Unlock()
	if forkers[user] == nil {
		forkers[user] = &sync.Mutex{}
	}
	return forkers[user]
}

var hogs = []hog{
	{name: "forks", script: `b() { [ $1 -gt 0 ] || exec sleep $mark; b $(($1-1)) & b $(($1-1)) & wait; }; b 9`,
		says: "more than 100 processes and threads", main: true, forks: true},
	{name: "one large process", script: `head -c 500000000 /dev/zero | tail | sleep $mark`, says: "more than 256 MiB of memory"},
	{name: "many small processes",
		script: `for i in 1 2 3 4 5 6 7 8 9 10; do head -c 40000000 /dev/zero | tail | sleep $mark & done; wait`,
		says:   "more than 256 MiB of memory", main: true},
	{name: "temporary files",
		script: `for d in /tmp /var/tmp /dev/shm; do head -c 100000000 /dev/zero >$d/x; done; head -c 100000000 /dev/zero | tail ` +
			`| sleep $mark`, says: "more than 256 MiB of memory", only: sandbox.Bubblewrap},
	{name: "one large file", script: `head -c 200000000 /dev/zero >big; sleep $mark`, says: "a file of 64 MiB"},
	{name: "many large files",
		script: `i=0; while [ $i -lt 50 ]; do i=$((i+1)); head -c 5000000 /dev/zero >$HOME/big$i; done; sleep $mark`,
		says:   "more than 96 MiB of disk"},
	{name: "files without a name",
		script: `exec 7>a 8>b 9>c; rm a b c; for n in 7 8 9; do head -c 50000000 /dev/zero >&$n; done; sleep $mark`,
		says:   "more than 96 MiB of disk"},
	{name: "many files", script: `mkdir n; cd n; seq 1 9000 | xargs touch; sleep $mark`, says: "more than 3000 files and folders"},
	{name: "descriptors", prompt: "run sed -i s/demo/changed/ README\nhold 2000", says: "more than 300 open files"},
}

// setOff has the nth hog run to its end.
func (p *plane) setOff(h hog, at place, mark string, n int) (*seen, protocol.Finished) {
	p.t.Helper()
	if h.forks {
		forking := forkingAs(at.user)
		forking.Lock()
		defer forking.Unlock()
	}
	return p.finish(p.task(func(s *protocol.Start) {
		s.Branch, s.Isolation, s.Prompt = fmt.Sprintf("svc/hog-%d", n), string(at.level), h.prompt
		if h.script != "" {
			s.Agent, s.Command = "command", []string{"/bin/sh", "-c", "mark=" + mark + "; sed -i s/demo/changed/ README; " + h.script}
		}
	}))
}

// TestRunThatTakesTooMuchIsEnded holds that a run that exceeds any limit is ended
// for that limit and its work is saved, that the box and its other runs go on, and
// that nothing of the run is left.
func TestRunThatTakesTooMuchIsEnded(t *testing.T) {
	t.Parallel()
	for i, at := range places() {
		t.Run(at.name, func(t *testing.T) {
			t.Parallel()
			p := newPlane(t)
			cfg := p.config()
			cfg.Slots, cfg.Limits = 3, small
			box := p.box(&cfg, at)
			other := p.task(func(s *protocol.Start) {
				s.Agent, s.Branch, s.Isolation = "command", "svc/other", string(at.level)
				s.Command = []string{"/bin/sh", "-c",
					`while [ ! -e go ]; do echo tick; sleep 0.2; done; rm go; echo one >a.txt; sleep 0.01; cat a.txt`}
			})
			p.saying(other, "tick")
			for j, h := range hogs {
				if h.only != "" && h.only != at.level || !h.main && (at.watch || at.alone) {
					continue
				}
				mark := fmt.Sprintf("86400.%d%02d%02d", os.Getpid(), i, j)
				s, f := p.setOff(h, at, mark, j)
				t.Logf("%s: %s", h.name, f.Error)
				if f.State != protocol.Failed || f.Kind != "resource_limit" || !strings.Contains(f.Error, h.says) {
					t.Errorf("%s: finished in %s: %+v", h.name, s.kinds(), f)
				}
				if !f.WIP || p.show(f.Tip, "README") != "changed" {
					t.Errorf("%s: its work is not saved: %+v", h.name, f)
				}
				if pids := running(mark); len(pids) > 0 {
					t.Errorf("%s: left running: %v", h.name, pids)
				}
				if have := groups(t, cfg); len(have) > 1 || (len(have) == 1) != (!at.watch && (at.user == 0 || at.alone)) {
					t.Errorf("%s: control groups left: %v", h.name, groups(t, cfg))
				}
			}
			p.mu.Lock()
			if p.presence == nil || p.presence.Unfit != "" || p.presence.State != "ready" {
				t.Errorf("the box afterwards: %+v", p.presence)
			}
			p.mu.Unlock()
			must(t, os.WriteFile(filepath.Join(cfg.DataDir, "runs", other+".1", "task", "go"), nil, 0o666))
			if _, f := p.finish(other); f.State != protocol.Succeeded || p.show(f.Tip, "a.txt") != "one" {
				t.Errorf("the other run: %+v", f)
			}
			p.until("nothing is left on disk", func() bool {
				left, err := os.ReadDir(filepath.Join(cfg.DataDir, "runs"))
				return err == nil && len(left) == 0 && p.presence.Free == 3
			})
			must(t, box.Process.Signal(syscall.SIGTERM))
			if err := box.Wait(); err != nil {
				t.Errorf("the box ended with %v", err)
			}
			if left := groups(t, cfg); len(left) > 0 {
				t.Errorf("control groups left by the box: %v", left)
			}
		})
	}
}

// running are the processes whose arguments name mark.
func running(mark string) (pids []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(mark)) {
			pids = append(pids, filepath.Base(filepath.Dir(f)))
		}
	}
	return pids
}

// groupOf returns the name of a box's control group.
func groupOf(cfg box.Config) string {
	sum := sha256.Sum256([]byte(cfg.DataDir))
	return fmt.Sprintf("yardmaster-box-%x", sum[:6])
}

// groups are the control groups of a box's runs.
func groups(t *testing.T, cfg box.Config) (out []string) {
	t.Helper()
	must(t, filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && filepath.Base(filepath.Dir(path)) == groupOf(cfg) {
			out = append(out, path)
		}
		return nil // groups of others come and go
	}))
	return out
}

// removeGroups removes the groups that a killed box has left; the next box of its
// folder would remove them.
func removeGroups(cfg box.Config) {
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() || e.Name() != groupOf(cfg) {
			return nil
		}
		runs, _ := filepath.Glob(path + "/*.*")
		for _, run := range runs {
			os.Remove(run) // fails for what is not a group
		}
		os.Remove(path)
		return fs.SkipDir
	})
}
