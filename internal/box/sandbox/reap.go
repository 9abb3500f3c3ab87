package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// reapPause is between two looks at the process table.
const reapPause = 2 * time.Millisecond

// killDescendants kills every process below root and returns when none is
// alive. They cannot hide: what loses its parent is given to the subreaper
// root. Processes may fork while they are looked for, so it looks again. All
// are stopped first: one that is killed makes room for another, so that among
// processes that only fork the killing alone would never end.
func killDescendants(root int) {
	stopDescendants(root)
	for {
		pids := descendants(root)
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if root == os.Getpid() {
			bury()
		}
		time.Sleep(reapPause)
	}
}

// stopRounds bound how often stopDescendants looks; another user's processes
// and what wakes the stopped up do not keep it.
const stopRounds = 50

// stopDescendants stops the processes below root until a look finds none that
// was not stopped before. As each keeps its place in the user's limit of
// processes, those that fork run out of it.
func stopDescendants(root int) {
	stopped := map[int]bool{}
	for range stopRounds {
		found := false
		for _, pid := range descendants(root) {
			if !stopped[pid] {
				found = true
				stopped[pid] = syscall.Kill(pid, syscall.SIGSTOP) == nil
			}
		}
		if !found {
			return
		}
	}
}

// bury takes the exit status of every child that has ended.
func bury() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
	}
}

// descendants lists the living processes below root.
func descendants(root int) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	type process struct {
		pid   int
		alive bool
	}
	children := map[int][]process{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended meanwhile
		}
		pid, ppid, state, ok := parseStat(b)
		if ok {
			children[ppid] = append(children[ppid], process{pid, state != 'Z' && state != 'X'})
		}
	}
	var out []int
	var walk func(int)
	walk = func(parent int) {
		for _, c := range children[parent] {
			if c.alive {
				out = append(out, c.pid)
			}
			walk(c.pid)
		}
	}
	walk(root)
	return out
}

// parseStat reads "pid (name) state ppid …"; the name may hold anything.
func parseStat(b []byte) (pid, ppid int, state byte, ok bool) {
	open, shut := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || shut < open {
		return 0, 0, 0, false
	}
	f := bytes.Fields(b[shut+1:])
	if len(f) < 2 || len(f[0]) != 1 {
		return 0, 0, 0, false
	}
	pid, err1 := strconv.Atoi(string(bytes.TrimSpace(b[:open])))
	ppid, err2 := strconv.Atoi(string(f[1]))
	return pid, ppid, f[0][0], err1 == nil && err2 == nil
}
