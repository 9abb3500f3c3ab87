package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// reapPause is the pause between two readings of the process table.
const reapPause = 2 * time.Millisecond

// killDescendants kills every process below root and returns when none is alive. No
// process can escape, because a process that loses its parent goes to the subreaper
// root. Processes may fork during the search, so it repeats the search. It stops
// all of them first: a killed process frees a place for another one, so among
// processes that only fork, killing alone would never end.
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
			reapChildren()
		}
		time.Sleep(reapPause)
	}
}

// stopRounds limits the searches of stopDescendants, because another user's
// processes and stopped processes that are continued could keep it going.
const stopRounds = 50

// stopDescendants stops the processes below root until a search finds no new one.
// Stopped processes still count against the user's limit of processes, so those
// that fork reach it.
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

// reapChildren takes the exit status of every child that has ended.
func reapChildren() {
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

// parseStat reads "pid (name) state ppid …"; the name may contain any character.
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
