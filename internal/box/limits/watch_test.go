package limits

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"yardmaster/internal/proof/patience"
	"yardmaster/internal/unixfile"
)

// started is a run of a script, and what ends it.
type started struct {
	*Run
	cmd    *exec.Cmd
	broken chan *Breach
}

// start runs a script held to limits, with all of it in folders of its own.
func start(t *testing.T, w *Watch, name, script string) *started {
	t.Helper()
	task, home := t.TempDir(), t.TempDir()
	r, err := w.Begin(name, task, home)
	must(t, err)
	s := &started{Run: r, cmd: exec.Command("/bin/sh", "-c", script), broken: make(chan *Breach, 1)}
	s.cmd.Dir, s.cmd.SysProcAttr = task, &syscall.SysProcAttr{Setpgid: true}
	if g := r.Group(); g != nil {
		s.cmd.SysProcAttr.UseCgroupFD, s.cmd.SysProcAttr.CgroupFD = true, int(g.Fd())
	}
	must(t, s.cmd.Start())
	t.Cleanup(func() { _ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL); _ = s.cmd.Wait() })
	r.Follow(s.cmd.Process.Pid, false, func(b *Breach) {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		s.broken <- b
	})
	return s
}

// watching is a watch at work.
func watching(t *testing.T, cfg Config) *Watch {
	t.Helper()
	cfg.Slots, cfg.Name = 2, fmt.Sprintf("test-%d", os.Getpid())
	if cfg.Work == "" {
		cfg.Work = t.TempDir()
	}
	w := New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { w.Run(ctx); close(ended) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// A run has its limits from its beginning: what it takes before anybody follows it is
// found by whoever looks.
func TestUseIsKnownBeforeTheRunIsFollowed(t *testing.T) {
	w := watching(t, Config{Limits: Limits{Disk: 1 << 20}, Watch: true})
	task, home := t.TempDir(), t.TempDir()
	r, err := w.Begin("early", task, home)
	must(t, err)
	defer r.Close()
	if b := r.Check(); b != nil {
		t.Fatalf("an empty run has broken a limit: %v", b)
	}
	must(t, os.WriteFile(filepath.Join(home, "big"), make([]byte, 2<<20), 0o600))
	if b := r.Check(); b == nil || b.Resource != Disk {
		t.Errorf("a run that has taken twice its space has broken %v", b)
	}
}

// TestLimitsAreHeld exceeds each limit with control groups, as far as this machine
// has them, and without. No run gets beyond a limit that the kernel holds.
func TestLimitsAreHeld(t *testing.T) {
	l := Limits{Processes: 40, Memory: 100 << 20, OpenFiles: 300, Disk: 8 << 20, Inodes: 500}
	for _, watch := range []bool{false, true} {
		for _, c := range []struct {
			resource Resource
			script   string
		}{
			{Processes, `i=0; while [ $i -lt 150 ]; do sleep 86400 & i=$((i+1)); done; wait`},
			{Memory, `for i in 1 2 3 4; do head -c 40000000 /dev/zero | tail | sleep 86400 & done; wait`},
			{OpenFiles, `exec 3</dev/null 4<&3 5<&3 6<&3 7<&3 8<&3 9<&3; i=0; while [ $i -lt 35 ]; do sleep 86400 & i=$((i+1)); done; wait`},
			{Disk, `i=0; while [ $i -lt 20 ]; do head -c 1000000 /dev/zero >f$i; i=$((i+1)); done; sleep 86400`},
			{Inodes, `seq 1 900 | xargs touch; sleep 86400`},
		} {
			t.Run(fmt.Sprintf("%s, watch %t", c.resource, watch), func(t *testing.T) {
				w := watching(t, Config{Limits: l, Watch: watch})
				s := start(t, w, "run.1", c.script)
				var b *Breach
				select {
				case b = <-s.broken:
				case <-patience.Over(t):
					t.Fatalf("nothing ended it; held: %v (%s)", w.Held(), w.reason)
				}
				how := w.Held()[c.resource]
				t.Logf("%s: %v", how, b)
				if b.Resource != c.resource || b.Limit != l.of(c.resource) || how == ByKernel && b.Used > b.Limit || how != ByKernel &&
					b.Used < b.Limit {
					t.Errorf("held by %s, and ended for %+v", how, b)
				}
				if watch && how != ByWatch {
					t.Errorf("held by %s", how)
				}
				if again := s.Check(); again != b {
					t.Errorf("a second look finds %+v", again)
				}
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				if waits := w.Settle(ended); waits {
					t.Error("an ended wait has waited")
				}
				free := make(chan bool)
				go func() { free <- w.Settle(t.Context()) }()
				s.Freed()
				<-free
				must(t, s.Close())
			})
		}
	}
}

// TestCheckAfterTheEnd holds that Check distinguishes a run that the kernel has
// ended from one that failed by itself, also without a measurement in between.
func TestCheckAfterTheEnd(t *testing.T) {
	l := Limits{Processes: 100, Memory: 100 << 20, FileBytes: 1 << 20, Disk: 8 << 20, Inodes: 500}
	w := New(Config{Limits: l, Slots: 1, Name: fmt.Sprintf("test-%d", os.Getpid()), Work: t.TempDir()}) // and it does not watch
	defer w.Close()
	s := start(t, w, "good.1", `echo a >a`)
	_ = s.cmd.Wait()
	if b := s.Check(); b != nil {
		t.Errorf("a run that did nothing has broken %+v", b)
	}
	must(t, s.Close())
	s = start(t, w, "full.1", `i=0; while [ $i -lt 20 ]; do head -c 1000000 /dev/zero >f$i; i=$((i+1)); done`)
	_ = s.cmd.Wait()
	if b := s.Check(); b == nil || b.Resource != Disk {
		t.Errorf("a run that filled its folder has broken %+v", b)
	}
	must(t, s.Close())
	s = start(t, w, "long.1", `head -c 2000000 /dev/zero >f`)
	_ = s.cmd.Wait()
	if b := s.Check(); b == nil || b.Resource != FileBytes {
		t.Errorf("a run with a long file has broken %+v", b)
	}
	must(t, s.Close())
}

// TestGroupHoldsWhatLeaves holds that a run's processes stay in its group, however
// they leave their parent, and end with it, and that the next box ends those of a
// dead box.
func TestGroupHoldsWhatLeaves(t *testing.T) {
	name := fmt.Sprintf("test-%d", os.Getpid())
	tree, err := OpenTree(name)
	if err != nil && os.Geteuid() != 0 {
		return // an ordinary user without a group of its own, whose runs are watched
	}
	must(t, err)
	g, err := tree.group("run.1", Limits{CPU: 500})
	must(t, err)
	if tree.has("cpu") {
		text, err := os.ReadFile(filepath.Join(g.dir, "cpu.max"))
		if err != nil || strings.TrimSpace(string(text)) != "50000 100000" {
			t.Errorf("half a processor is %q, %v", text, err)
		}
	}
	cmd := exec.Command("/bin/sh", "-c", `sleep 86400 & setsid sleep 86400 & (setsid sh -c 'sleep 86400 & exec sleep 86400' &); exec sleep 86400`)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(g.folder.Fd())}
	must(t, cmd.Start())
	patience.Until(t, "all are in the group", func() bool { return len(g.pids()) == 5 })
	pids := g.pids()
	g.folder.Close()
	next, err := OpenTree(name) // the box that had it is dead
	must(t, err)
	_ = cmd.Wait()
	for _, pid := range pids {
		if p := fmt.Sprintf("/proc/%d/stat", pid); strings.Contains(readFile(p), ") S ") {
			t.Errorf("%d lives", pid)
		}
	}
	must(t, next.Close())
	if _, err := os.Stat(tree.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the group is left: %v", err)
	}
}

func readFile(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}

// TestOnlyWhoFillsTheDiskIsBlamed holds that only the run that has filled the disk
// is ended, and neither a run that has written little nor one whose end would not
// help.
func TestOnlyWhoFillsTheDiskIsBlamed(t *testing.T) {
	w := New(Config{Limits: Limits{}, Watch: true, Work: t.TempDir(), Reserve: func(int64) int64 { return 50 << 20 }})
	r := &Run{w: w, baseline: &use{bytes: 10 << 20, inodes: 100}}
	for _, c := range []struct {
		name string
		d    unixfile.Space
		u    use
		want Resource
	}{
		{"there is room", unixfile.Space{Free: 200 << 20}, use{bytes: 80 << 20}, ""},
		{"it has written most", unixfile.Space{Free: 60 << 20}, use{bytes: 80 << 20}, Disk},
		{"it has written little", unixfile.Space{Free: 60 << 20}, use{bytes: 20 << 20}, ""},
		{"it was large before", unixfile.Space{Free: 60 << 20}, use{bytes: 30 << 20}, ""},
		{"its end would not help", unixfile.Space{Free: 1 << 20}, use{bytes: 80 << 20}, ""},
		{"it has made most files", unixfile.Space{Free: 200 << 20, Files: 100_000, FreeFiles: 15_000}, use{inodes: 30_000}, Inodes},
		{"it has made few files", unixfile.Space{Free: 200 << 20, Files: 100_000, FreeFiles: 15_000}, use{inodes: 3000}, ""},
		{"nobody counts files", unixfile.Space{Free: 200 << 20}, use{inodes: 30_000}, ""},
	} {
		got := Resource("")
		if w.nearlyFull(c.d) {
			if b := r.filledDisk(c.d, c.u); b != nil {
				got = b.Resource
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestCeilingLeavesOthersRunning holds that the ceiling limits a run's forks and does
// not stop other programs of its user.
func TestCeilingLeavesOthersRunning(t *testing.T) {
	w := New(Config{Limits: Limits{Processes: 100}, Slots: 3, Watch: true, Work: t.TempDir()})
	r := &Run{w: w}
	var read reader
	have := threads(read.table())
	if have < 1 {
		t.Fatal("no process is seen")
	}
	if f := int64(r.ProcessCeiling()); f < 3*100+headroom || f > have+3*100+headroom+5000 {
		t.Errorf("fence %d with %d threads on the machine", f, have)
	}
	w.cfg.Limits.Processes = 0
	if f := r.ProcessCeiling(); f != 0 {
		t.Errorf("a fence of %d without a limit", f)
	}
}

// TestNamelessFilesAreFound holds that nameless files are found, on the disk and in
// memory.
func TestNamelessFilesAreFound(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "f"))
	must(t, err)
	defer f.Close()
	_, err = f.Write(make([]byte, 1<<20))
	must(t, errors.Join(err, os.Remove(f.Name())))
	fd, err := unix.MemfdCreate("m", 0)
	must(t, err)
	defer unix.Close(fd)
	_, err = unix.Write(fd, make([]byte, 2<<20))
	must(t, err)
	onDisk, inMemory := nameless(dir, []int{os.Getpid()})
	if onDisk < 1<<20 || onDisk > 2<<20 || inMemory < 2<<20 || inMemory > 3<<20 {
		t.Errorf("%d bytes on disk, %d in memory", onDisk, inMemory)
	}
}
