//go:build environments

package environments

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"yardmaster/internal/proof/patience"
)

// The users as which rows run, and the levels of isolation.
const (
	root     = "root"
	ordinary = "user"

	bubblewrap = "bubblewrap"
	landlock   = "landlock"
	none       = "none"
)

// nobody is the user as which the agents of a root box run.
const nobody = 65534

// place is the environment of one row. A row changes its property before the first
// program starts.
type place struct {
	t       *testing.T
	who     string
	level   string
	account *account // the ordinary user
	dir     string   // of the row; every user can pass through
	home    string   // no other user can enter it
	program string
	env     map[string]string
	unset   []string
	umask   int
	under   []string // the command that starts the program
	session bool
	mounts  []string // shell commands, in a mount namespace of the row
	temp    []string // folders for temporary files
	data    string   // the folder of `demo --data`; empty: temporary

	reason string
	kept   []*kept
	over   chan struct{} // closed when all its programs have ended
}

var (
	places atomic.Int64
	// running are the rows whose programs have not all ended.
	running sync.Map
)

// newPlace makes the place of a row, and waits until the row may run.
func newPlace(t *testing.T, who, level string) *place {
	t.Helper()
	t.Parallel()
	p := &place{t: t, who: who, level: level, program: program, umask: 0o022, over: make(chan struct{}),
		env: map[string]string{"PATH": paths["no bwrap"]}}
	if level == bubblewrap {
		p.env["PATH"] = paths["everything"]
	}
	started := time.Now()
	t.Cleanup(func() {
		verdict, reason := "ok", ""
		if t.Failed() {
			verdict, reason = "FAILED", ": "+p.reason
		}
		fmt.Printf("%-7s %5.1f s  %s%s\n", verdict, time.Since(started).Seconds(), t.Name(), reason)
	})
	if ctx.Err() != nil {
		p.fatalf("interrupted")
	}
	if who == root {
		p.needsRoot()
	}
	p.dir = filepath.Join(suite, strconv.FormatInt(places.Add(1), 10))
	if err := os.Mkdir(p.dir, 0o711); err != nil {
		p.fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(p.dir); err != nil {
			p.failf("%v", err)
		}
	})
	if who == ordinary && os.Geteuid() == 0 {
		p.account = newAccount(p)
		p.home = p.account.home
	} else {
		// It stands for a home that is closed to others, like root's.
		p.home = p.private("h")
		for k, v := range map[string]string{"HOME": p.home, "USER": who, "LOGNAME": who, "SHELL": "/bin/sh", "LANG": "C.UTF-8",
			"TERM": "xterm"} {
			p.env[k] = v
		}
	}
	running.Store(p, p.over)
	t.Cleanup(p.finish)
	return p
}

func (p *place) needsRoot() {
	p.t.Helper()
	if os.Geteuid() != 0 {
		p.fatalf("this row needs root: run `make environments` as root")
	}
}

func (p *place) failf(format string, a ...any) {
	p.t.Helper()
	text := fmt.Sprintf(format, a...)
	if p.reason == "" {
		p.reason, _, _ = strings.Cut(text, "\n")
	}
	p.t.Error(text)
}

func (p *place) fatalf(format string, a ...any) {
	p.t.Helper()
	p.failf(format, a...)
	p.t.FailNow()
}

func (p *place) must(err error) {
	p.t.Helper()
	if err != nil {
		p.fatalf("%v", err)
	}
}

// private makes a folder that only the row's user can enter.
func (p *place) private(name string) string {
	p.t.Helper()
	dir := filepath.Join(p.dir, name)
	p.must(os.Mkdir(dir, 0o700))
	p.own(dir)
	return dir
}

// own makes the row's user the owner of a file.
func (p *place) own(path string) {
	p.t.Helper()
	if p.account != nil {
		p.must(os.Lchown(path, p.account.id, p.account.id))
	}
}

// mount adds a command to those that make the row's mounts.
func (p *place) mount(argv ...string) {
	p.needsRoot()
	p.mounts = append(p.mounts, quoted("mount")+" "+quoted(argv...))
}

// kept is a program that a keeper runs.
type kept struct {
	p    *place
	in   io.Closer // its end ends the program
	gone chan struct{}
	report

	mu sync.Mutex
	// what it wrote, to both, to standard output and to standard error
	all, out, errs bytes.Buffer
	stopped        bool
	hopeless       func(said string) bool // ends the program when it answers true
}

// begin starts a program as the row's user, in the row's scene.
func (p *place) begin(input string, argv ...string) *kept {
	p.t.Helper()
	s := scene{Clear: p.account == nil, Unset: p.unset, Umask: p.umask, NoLandlock: p.level == none, Argv: argv}
	for k, v := range p.env {
		s.Set = append(s.Set, k+"="+v)
	}
	if p.account == nil {
		s.Dir = p.home
	}
	argv = []string{self, enterCommand, p.encode(s)}
	o := order{Input: input, Session: p.session, Limit: patience.Of(p.t), Temp: p.temp, Data: p.data, Argv: argv}
	if p.account != nil {
		// A login of its own, without anything of this process's environment. The step
		// that removes privileges comes after it.
		o.Owner, o.Argv = p.account.id, []string{"su", "-l", "-s", "/bin/sh", "-c", "exec " + quoted(argv...), p.account.name}
	}
	argv = []string{self, keepCommand, p.encode(o)}
	if len(p.mounts) > 0 {
		argv = []string{"unshare", "-m", "/bin/sh", "-c", strings.Join(p.mounts, " && ") + " && exec " + quoted(argv...)}
	}

	k := &kept{p: p, gone: make(chan struct{})}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	// Ctrl-C in the terminal goes to the suite, which then ends its rows.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr = writer{k, false}, writer{k, true}
	in, err := cmd.StdinPipe()
	p.must(err)
	answer, w, err := os.Pipe()
	p.must(err)
	defer w.Close()
	cmd.ExtraFiles = []*os.File{w} // reportFD
	p.must(cmd.Start())
	k.in = in
	cut := context.AfterFunc(ctx, k.stop)
	go func() {
		defer close(k.gone)
		defer cut()
		defer answer.Close()
		if err := json.NewDecoder(answer).Decode(&k.report); err != nil {
			k.Trouble = fmt.Sprintf("no answer from the keeper: %v", err)
		}
		_ = cmd.Wait() // the report has the outcome
	}()
	p.kept = append(p.kept, k)
	return k
}

func (p *place) encode(v any) string {
	p.t.Helper()
	b, err := json.Marshal(v)
	p.must(err)
	return string(b)
}

func quoted(argv ...string) string {
	out := make([]string, len(argv))
	for i, a := range argv {
		out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return strings.Join(out, " ")
}

// writer keeps the output of a program.
type writer struct {
	k   *kept
	err bool
}

func (w writer) Write(b []byte) (int, error) {
	k := w.k
	k.mu.Lock()
	k.all.Write(b)
	if w.err {
		k.errs.Write(b)
	} else {
		k.out.Write(b)
	}
	lost := k.hopeless != nil && k.hopeless(k.all.String())
	k.mu.Unlock()
	if lost {
		k.stop()
	}
	return len(b), nil
}

// said is all output of the program so far.
func (k *kept) said() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all.String()
}

// stdout is what a script would read of it.
func (k *kept) stdout() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.out.String()
}

func (k *kept) stderr() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.errs.String()
}

// stop asks the program to end.
func (k *kept) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.stopped {
		k.stopped = true
		k.in.Close()
	}
}

// wait waits for the end, which the keeper enforces.
func (k *kept) wait() *kept {
	<-k.gone
	return k
}

func (k *kept) ended() bool {
	select {
	case <-k.gone:
		return true
	default:
		return false
	}
}

// watch ends the program as soon as hopeless accepts its output.
func (k *kept) watch(hopeless func(said string) bool) *kept {
	k.mu.Lock()
	k.hopeless = hopeless
	k.mu.Unlock()
	if hopeless != nil && hopeless(k.said()) {
		k.stop()
	}
	return k
}

// lastLine is the last line of a program's output.
func (k *kept) lastLine() string {
	lines := strings.Split(strings.TrimSpace(k.said()), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// until waits until done answers true, or the suite is interrupted.
func (p *place) until(what string, done func() bool) {
	p.t.Helper()
	if !patience.Come(p.t, func() bool { return ctx.Err() != nil || done() }) || ctx.Err() != nil {
		p.fatalf("waited in vain: %s", what)
	}
}

// finish ends the running programs, and fails the row for everything left behind.
func (p *place) finish() {
	for _, k := range slices.Backward(p.kept) {
		k.stop()
		k.wait()
	}
	for _, k := range p.kept {
		if k.Trouble != "" {
			p.failf("%s", k.Trouble)
		}
		if k.Killed && !p.t.Failed() {
			p.failf("it did not end when it was asked to, and was killed")
		}
		if len(k.Processes) > 0 && !k.Killed {
			p.failf("processes are left behind: %s", strings.Join(k.Processes, "; "))
		}
		if len(k.Open) > 0 {
			p.failf("others can read what they must not: %s", strings.Join(k.Open, "; "))
		}
	}
	p.tidy()
	if p.t.Failed() {
		for _, k := range p.kept {
			if k.Code == 0 && !k.stopped && len(p.kept) > 1 {
				continue // a command that succeeded
			}
			p.t.Logf("--- it said (exit code %d after %.1f s):\n%s", k.Code, k.Seconds, tail(k.said()))
			for name, text := range k.Logs {
				p.t.Logf("--- the end of %s:\n%s", name, tail(text))
			}
		}
	}
}

// tidy fails the row for folders that it has left behind, and removes them.
func (p *place) tidy() {
	left, own := map[string]bool{}, map[string]bool{}
	var said strings.Builder
	killed := false // a killed program could not remove its folders
	for _, k := range p.kept {
		killed = killed || k.Killed
		said.WriteString(k.said())
		for _, text := range k.Logs {
			said.WriteString(text)
		}
		for _, path := range k.Left {
			left[path] = true
		}
		for _, path := range k.Own {
			own[path] = true
		}
	}
	for path := range left {
		// With data that is kept, a box may have kept a folder elsewhere, if the output
		// names it.
		named := strings.Contains(said.String(), path)
		if !named && !own[path] && p.account == nil && !strings.HasPrefix(path, p.dir+"/") {
			continue
		}
		delete(left, path)
		if !killed && (p.data == "" || !named) {
			p.failf("left behind: %s", path)
		}
		os.RemoveAll(path)
	}
	running.Delete(p)
	close(p.over)
	if len(left) == 0 {
		return
	}
	// Other folders may belong to the row that runs beside this one, and removes them,
	// or to another user of this machine.
	running.Range(func(_, over any) bool {
		<-over.(chan struct{})
		return true
	})
	late := time.Now().Add(patience.Of(p.t))
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for path := range left {
		gone := func() bool {
			_, err := os.Lstat(path)
			return err != nil || used(path, everybody())
		}
		for !gone() {
			if time.Now().After(late) {
				if !killed { // nor removed: it may be another program's after all
					p.failf("left behind, and nothing that was said names it: %s", path)
				}
				break
			}
			<-tick.C
		}
	}
}

// tail is the end of a text.
func tail(text string) string {
	const most = 6000
	return text[max(0, len(text)-most):]
}
