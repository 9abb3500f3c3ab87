package sandbox

import (
	"os"
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

// process is what the table of processes says of one.
type process struct {
	pid, parent int
	alive       bool
}

// descendants lists the living processes below root.
func descendants(root int) []int {
	children := map[int][]process{}
	for _, p := range table() {
		children[p.parent] = append(children[p.parent], p)
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
