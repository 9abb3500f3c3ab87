package limits

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Tree is a box's part of the control groups of version 2: a group of its own,
// and below it one for each run. See the kernel's
// Documentation/admin-guide/cgroup-v2.rst, which names the files used here.
type Tree struct {
	dir         string
	controllers []string // those that are in force for runs
	missing     error    // why the others are not
}

// controllers that runs are limited with.
var wanted = []string{"memory", "pids", "cpu"}

// leaf is the group that a box moves itself into: a group with processes of its
// own cannot pass controllers on.
const leaf = "box"

// ownGroup is the group of version 2 that this process is in, below the folder
// where the hierarchy is mounted.
func ownGroup() (group, mount string, err error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", "", err
	}
	found := false
	for line := range strings.Lines(string(text)) {
		if group, found = strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); found {
			break
		}
	}
	if !found {
		return "", "", errors.New("the kernel has no control groups of version 2")
	}
	if text, err = os.ReadFile("/proc/self/mountinfo"); err != nil {
		return "", "", err
	}
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(line, " - ")
		f := strings.Fields(before)
		if !strings.HasPrefix(after, "cgroup2 ") || len(f) < 5 {
			continue
		}
		root, at := f[3], f[4]
		if below, ok := strings.CutPrefix(group+"/", strings.TrimSuffix(root, "/")+"/"); ok && !strings.Contains(group, "..") {
			return filepath.Join("/", below), at, nil
		}
	}
	return "", "", errors.New("the control groups of version 2 are not mounted")
}

// OpenTree makes the box's group beside this process, which it moves if it has
// to, and ends what an earlier box of that name has left there. Without the
// right to make groups, as for most who log in, there is no Tree.
func OpenTree(name string) (*Tree, error) {
	own, mount, err := ownGroup()
	if err != nil {
		return nil, err
	}
	at := filepath.Join(mount, own)
	_, err = os.Stat(filepath.Join(at, "cgroup.type")) // the root of the hierarchy has none, and may have processes
	root := errors.Is(err, fs.ErrNotExist)
	moved := root
	if !root && filepath.Base(at) == leaf {
		at, moved = filepath.Dir(at), true // another box of this process, or systemd's DelegateSubgroup
	}
	t := &Tree{dir: filepath.Join(at, name)}
	if err := removeGroup(t.dir); err != nil {
		return nil, fmt.Errorf("what an earlier box has left: %w", err)
	}
	if err := os.Mkdir(t.dir, 0o755); err != nil {
		return nil, err
	}
	if !moved {
		if err := moveSelf(at); err != nil {
			return nil, errors.Join(err, os.Remove(t.dir))
		}
	}
	for _, c := range wanted {
		err := enable(at, c)
		if err == nil {
			err = enable(t.dir, c)
		}
		if err != nil {
			t.missing = errors.Join(t.missing, fmt.Errorf("controller %s: %w", c, plainly(err)))
			continue
		}
		t.controllers = append(t.controllers, c)
	}
	if len(t.controllers) == 0 && !moved {
		// Others are in our group, and it stays as it was.
		if err := writeGroup(at, "cgroup.procs", strconv.Itoa(os.Getpid())); err == nil {
			os.Remove(filepath.Join(at, leaf))
		}
	}
	if err := t.try(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// moveSelf puts this process into the leaf below a group.
func moveSelf(at string) error {
	dir := filepath.Join(at, leaf)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := writeGroup(dir, "cgroup.procs", strconv.Itoa(os.Getpid())); err != nil {
		os.Remove(dir)
		return err
	}
	return nil
}

// enable lets a group limit its children with a controller.
func enable(dir, controller string) error {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(string(text)), controller) {
		return errors.New("this control group does not have it")
	}
	return writeGroup(dir, "cgroup.subtree_control", "+"+controller)
}

// plainly explains the one error that says nothing to a reader.
func plainly(err error) error {
	if errors.Is(err, syscall.EBUSY) {
		return errors.New("other processes are in the control group of the box: run it as a service of its own, with Delegate=yes")
	}
	return err
}

// try starts a program in a group: kernels before 5.7 and some filters of
// system calls do not let one be started there.
func (t *Tree) try() error {
	g, err := t.group("trial", Limits{})
	if err != nil {
		return err
	}
	defer g.close()
	git, err := exec.LookPath("git")
	if err != nil {
		return err
	}
	cmd := exec.Command(git, "--version")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(g.folder.Fd())}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("start a program in a control group: %w", err)
	}
	return nil
}

// has tells whether a controller limits runs.
func (t *Tree) has(controller string) bool {
	return t != nil && slices.Contains(t.controllers, controller)
}

// Close removes the box's group, with all that runs in it.
func (t *Tree) Close() error { return removeGroup(t.dir) }

// group is the control group of one run.
type group struct {
	tree   *Tree
	dir    string
	folder *os.File
}

// period of the processor's share, in microseconds: the kernel's own.
const period = 100_000

func (t *Tree) group(name string, l Limits) (*group, error) {
	g := &group{tree: t, dir: filepath.Join(t.dir, name)}
	if err := removeGroup(g.dir); err != nil {
		return nil, err
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, err
	}
	for _, set := range []struct {
		controller, file string
		limit            int64
		text             string
		optional         bool // the kernel may have been built without
	}{
		{"memory", "memory.max", l.Memory, strconv.FormatInt(l.Memory, 10), false},
		{"memory", "memory.swap.max", l.Memory, "0", true},
		{"memory", "memory.oom.group", l.Memory, "1", false},
		{"pids", "pids.max", l.Processes, strconv.FormatInt(l.Processes, 10), false},
		{"cpu", "cpu.max", l.CPU, fmt.Sprintf("%d %d", l.CPU*period/1000, period), false},
	} {
		if set.limit == 0 || !t.has(set.controller) {
			continue
		}
		if err := writeGroup(g.dir, set.file, set.text); err != nil && !(set.optional && errors.Is(err, fs.ErrNotExist)) {
			return nil, errors.Join(err, os.Remove(g.dir))
		}
	}
	var err error
	if g.folder, err = os.Open(g.dir); err != nil {
		return nil, errors.Join(err, os.Remove(g.dir))
	}
	return g, nil
}

// breach is the limit that the kernel has held against the run, nil if none.
func (g *group) breach(l Limits) *Breach {
	if n := g.event("memory.events", "oom_kill"); n > 0 && l.Memory > 0 {
		return &Breach{Resource: Memory, Limit: l.Memory, Used: max(g.number("memory.current"), g.number("memory.peak"))}
	}
	if n := g.event("pids.events", "max"); n > 0 && l.Processes > 0 {
		return &Breach{Resource: Processes, Limit: l.Processes, Used: max(g.number("pids.current"), g.number("pids.peak"))}
	}
	return nil
}

func (g *group) number(file string) int64 {
	return kernelNumber(filepath.Join(g.dir, file), 0)
}

// event is one counter of a file of several.
func (g *group) event(file, name string) int64 {
	text, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte(name+" ")); ok {
			n, _ := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
			return n
		}
	}
	return 0
}

// pids are the processes of the run.
func (g *group) pids() []int { return groupPids(g.dir) }

func groupPids(dir string) (out []int) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	for _, f := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(f); err == nil && pid > 0 {
			out = append(out, pid)
		}
	}
	return out
}

// kill ends all processes of the run at once, also those that are being forked.
func (g *group) kill() { killGroup(g.dir) }

func (g *group) close() error {
	g.folder.Close()
	return removeGroup(g.dir)
}

func killGroup(dir string) {
	if writeGroup(dir, "cgroup.kill", "1") == nil {
		return
	}
	for _, pid := range groupPids(dir) { // kernels before 5.14
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// removeWait is how long the processes of a group may take to die.
const removeWait = 10 * time.Second

// removeGroup ends all that is in a group and removes it, and what is below it.
func removeGroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeGroup(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	for deadline := time.Now().Add(removeWait); ; time.Sleep(2 * time.Millisecond) {
		killGroup(dir)
		err := os.Remove(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) || !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return err
		}
	}
}

// writeGroup writes to a file of a group, which must be there.
func writeGroup(dir, file, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
