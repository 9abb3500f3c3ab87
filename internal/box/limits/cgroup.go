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

// Tree is the part of a box in the control groups of version 2: a group for the
// box, and below it one for each run. The kernel's
// Documentation/admin-guide/cgroup-v2.rst describes the files used here.
type Tree struct {
	dir         string
	controllers []string // controllers that limit runs
	missing     error    // why the other controllers do not; nil if all do
}

// wanted lists the controllers that limit runs.
var wanted = []string{"memory", "pids", "cpu"}

// leaf is the group into which a box moves itself, because a group with processes
// of its own cannot enable controllers for its children.
const leaf = "box"

// ownGroup returns the version 2 group of this process, below mount, the folder
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

// OpenTree makes the box's group beside this process, which it moves if necessary,
// and removes the group that an earlier box of that name has left, with its
// processes. It fails without the right to make groups, which most users lack.
func OpenTree(name string) (*Tree, error) {
	if refusal != nil {
		return nil, refusal
	}
	own, mount, err := ownGroup()
	if err != nil {
		return nil, err
	}
	at := filepath.Join(mount, own)
	_, err = os.Stat(filepath.Join(at, "cgroup.type")) // the root of the hierarchy has no such file, and may have processes
	root := errors.Is(err, fs.ErrNotExist)
	moved := root
	if !root && filepath.Base(at) == leaf {
		at, moved = filepath.Dir(at), true // another box of this process, or systemd's DelegateSubgroup, has made the leaf
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
			t.missing = errors.Join(t.missing, fmt.Errorf("controller %s: %w", c, explain(err)))
			continue
		}
		t.controllers = append(t.controllers, c)
	}
	if len(t.controllers) == 0 && !moved {
		// Other processes share this group; the process moves back into it.
		if err := writeGroup(at, "cgroup.procs", strconv.Itoa(os.Getpid())); err == nil {
			os.Remove(filepath.Join(at, leaf))
		}
	}
	if err := t.try(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// moveSelf moves this process into the leaf below a group.
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

// enable enables a controller for the children of a group.
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

// explain replaces EBUSY, which tells the reader nothing, by an explanation.
func explain(err error) error {
	if errors.Is(err, syscall.EBUSY) {
		return errors.New("other processes are in the control group of the box: run it as a service of its own, with Delegate=yes")
	}
	return err
}

// try starts a program in a group. Kernels before 5.7 and some filters of system
// calls refuse that.
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
	cmd.SysProcAttr = inGroup(g.folder)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("start a program in a control group: %w", err)
	}
	return nil
}

// has tells whether runs are limited with a controller.
func (t *Tree) has(controller string) bool {
	return t != nil && slices.Contains(t.controllers, controller)
}

// Close removes the box's group and ends all processes in it.
func (t *Tree) Close() error { return removeGroup(t.dir) }

// group is the control group of one run.
type group struct {
	tree   *Tree
	dir    string
	folder *os.File
}

// period is the period of cpu.max in microseconds, the kernel's default.
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
		optional         bool // the kernel may have been built without the file
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

// breach returns the limit at which the kernel has stopped the run, nil if none.
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

// event returns one counter of a file with several.
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

// pids lists the processes of the run.
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

// kill ends all processes of the run at once, including those being forked.
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

// removeWait limits how long the processes of a group may take to die.
const removeWait = 10 * time.Second

// removeGroup ends all processes of a group and removes the group and those below
// it.
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

// writeGroup writes to an existing file of a group.
func writeGroup(dir, file, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
