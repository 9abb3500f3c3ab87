//go:build environments

package environments

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keepCommand makes the test binary a keeper: a process that runs one program and
// reports its outcome. The keeper inherits every process that the program leaves
// behind, whatever its session, user or parent; it finds, names and ends them. The
// end of its standard input ends the program.
const keepCommand = "keep"

// reportFD is the file descriptor of the keeper's report.
const reportFD = 3

// order tells a keeper what to do.
type order struct {
	Argv    []string
	Input   string // the program's standard input
	Session bool   // start a session of its own, without a terminal; otherwise a process group
	// Limit is the patience of the row: how long the program may run, how long it may take
	// to end when it is asked to, and how long its processes may remain afterwards. Those
	// that it has ended disappear a moment later, of whatever length on this machine.
	Limit time.Duration
	Owner int      // the user made for the row; 0 for none
	Temp  []string // folders that must be empty afterwards
	Data  string   // a folder that the program keeps
}

// report is the outcome of an order.
type report struct {
	Trouble string // of the keeper
	Code    int    // exit code, or 128 and the signal
	Late    bool   // the program was ended at the limit
	Killed  bool   // the program did not end when asked to
	Seconds float64

	Processes  []string // left behind
	Left       []string // folders left behind
	Own        []string // folders that its processes used when the keeper asked it to end
	Open       []string // private files that others can read
	Identities int      // number of identity files that were checked
	Logs       map[string]string
}

// keep carries an order out.
func keep(text string) int {
	syscall.CloseOnExec(reportFD)
	var o order
	var r report
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = o.carry(&r)
	}
	if err != nil {
		r.Trouble = err.Error()
	}
	if err := json.NewEncoder(os.NewFile(reportFD, "report")).Encode(r); err != nil {
		fmt.Fprintln(os.Stderr, "keeper:", err)
		return 1
	}
	return 0
}

func (o *order) carry(r *report) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	before := o.marked()
	started := time.Now()
	child, err := o.start()
	if err != nil {
		return err
	}
	deaths := make(chan death)
	go bury(deaths)
	asked := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(asked)
	}()

	limit := time.After(o.Limit)
	var overdue <-chan time.Time
	for ended := false; !ended; {
		select {
		case d := <-deaths:
			if ended = d.pid == child; ended {
				r.Code = d.code
			}
		case <-asked:
			asked = nil
			o.claim(before, r)
			terminate(child)
			overdue = time.After(o.Limit)
		case <-limit:
			r.Late = true
			o.claim(before, r)
			terminate(child)
			overdue = time.After(o.Limit)
		case <-overdue:
			r.Killed = true
			killDescendants()
			overdue = time.After(o.Limit)
		}
	}
	r.Seconds = time.Since(started).Seconds()

	// The channel closes after the last descendant has ended.
	late := time.After(o.Limit)
	for more := true; more; {
		select {
		case _, more = <-deaths:
		case <-late:
			for _, p := range descendants() {
				r.Processes = append(r.Processes, p.String())
			}
			killDescendants()
			late = time.After(o.Limit)
		}
	}
	o.look(before, r)
	return nil
}

// start runs the program.
func (o *order) start() (pid int, err error) {
	path, err := exec.LookPath(o.Argv[0])
	if err != nil {
		return 0, err
	}
	in, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer in.Close()
	_, err = w.WriteString(o.Input) // far below the capacity of a pipe
	w.Close()
	if err == nil && o.Input == "" {
		in.Close()
		in, err = os.Open(os.DevNull)
	}
	if err != nil {
		return 0, err
	}
	return syscall.ForkExec(path, o.Argv, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{in.Fd(), 1, 2},
		Sys: &syscall.SysProcAttr{Setsid: o.Session, Setpgid: !o.Session},
	})
}

// death is the end of a child, or of an adopted process.
type death struct{ pid, code int }

// bury reports deaths until no descendant is left.
func bury(deaths chan<- death) {
	defer close(deaths)
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return
		case ws.Signaled():
			deaths <- death{pid, 128 + int(ws.Signal())}
		default:
			deaths <- death{pid, ws.ExitStatus()}
		}
	}
}

// terminate asks the program to end. It signals the child of `su`, because `su` gives
// its child only two seconds.
func terminate(pid int) {
	all := processes()
	for all[pid].name == "su" {
		next := 0
		for _, p := range all {
			if p.parent == pid {
				next = p.pid
			}
		}
		if next == 0 {
			break
		}
		pid = next
	}
	_ = syscall.Kill(pid, syscall.SIGTERM)
}

// process is a process of the machine.
type process struct {
	pid, parent int
	name, state string
}

func (p process) String() string {
	argv, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
	line := strings.TrimSpace(strings.ReplaceAll(string(argv), "\x00", " "))
	return fmt.Sprintf("%d %s (%s) %.200s", p.pid, p.name, p.state, line)
}

func processes() map[int]process {
	out := map[int]process{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		var p process
		if _, err := fmt.Sscan(e.Name(), &p.pid); err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // the process has ended
		}
		// The name is in parentheses, and may contain any character.
		open, end := strings.IndexByte(string(stat), '('), strings.LastIndexByte(string(stat), ')')
		if open < 0 || end < open {
			continue
		}
		p.name = string(stat[open+1 : end])
		fmt.Sscan(string(stat[end+1:]), &p.state, &p.parent)
		out[p.pid] = p
	}
	return out
}

// descendants are all processes below this one.
func descendants() (found []process) {
	all := processes()
	below := map[int]bool{os.Getpid(): true}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if below[p.parent] && !below[p.pid] {
				below[p.pid], grown = true, true
				found = append(found, p)
			}
		}
	}
	return found
}

func killDescendants() {
	for _, p := range descendants() {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
}
