package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"yardmaster/internal/proof/patience"
)

// alive lists the processes of the machine whose arguments hold mark.
func alive(mark string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if b, err := os.ReadFile(f); err == nil && pid != os.Getpid() && bytes.Contains(b, []byte(mark)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// leave starts processes in every way in which an agent leaves them behind: in the
// background, in sessions of their own, and as orphans of orphans. Each has $1 as its
// argument.
const leave = `
sleep "$1" &
setsid sleep "$1" &
(setsid sh -c 'sleep "$1" & exec sleep "$1"' sh "$1" &)
(trap "" TERM INT HUP; nohup sleep "$1" >/dev/null 2>&1 &)
`

const left = 5

var mark = func() func() string {
	n := 0
	return func() string { n++; return fmt.Sprintf("%d.%09d", 86400+n, os.Getpid()) }
}()

func TestNothingSurvives(t *testing.T) {
	every(t, func(t *testing.T, l Level) {
		for name, end := range map[string]func(*Process, context.CancelFunc){
			"kill":    func(p *Process, _ context.CancelFunc) { p.Kill() },
			"context": func(_ *Process, cancel context.CancelFunc) { cancel() },
			"exit":    func(p *Process, _ context.CancelFunc) { p.Stdin().Close() },
		} {
			t.Run(name, func(t *testing.T) {
				m := mark()
				s := folders(t, l, leave+"echo ready; cat; exit 0", m)
				s.Piped = true
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				p, err := Start(ctx, s)
				if err != nil {
					t.Fatal(err)
				}
				patience.Until(t, "the agent leaves processes", func() bool { return len(sleeping(m)) == left })
				end(p, cancel)
				err = p.Wait()
				if pids := alive(m); len(pids) != 0 {
					t.Errorf("alive after the end: %v", pids)
				}
				if want := map[bool]error{true: nil, false: ErrKilled}[name == "exit"]; !errors.Is(err, want) {
					t.Errorf("ended with %v", err)
				}
			})
		}
	})
}

// sleeping lists the processes of alive without the shells.
func sleeping(mark string) []int {
	return slices.DeleteFunc(alive(mark), func(pid int) bool {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return !bytes.HasPrefix(b, []byte("sleep\x00"))
	})
}

func TestKillOvercomesAStoppedShim(t *testing.T) {
	m := mark()
	s := folders(t, None, leave+"exec sleep $1", m)
	p, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the agent runs", func() bool { return len(sleeping(m)) == left+1 })
	if err := syscall.Kill(p.pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.grace = 10 * time.Millisecond
	p.Kill()
	if pids := alive(m); len(pids) != 0 {
		t.Errorf("alive: %v", pids)
	}
}

// playBox starts a sandbox as a box does; its arguments are level, task, home and mark.
func playBox(args []string) int {
	_, err := Start(context.Background(), Spec{Level: Level(args[0]), Task: args[1], Home: args[2], Stderr: os.Stderr,
		Argv: []string{"/bin/sh", "-c", leave + "exec sleep $1", "sh", args[3]}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("running")
	select {}
}

func TestNothingSurvivesTheBox(t *testing.T) {
	every(t, func(t *testing.T, l Level) {
		m := mark()
		s := folders(t, l, "")
		box := exec.Command(os.Args[0], boxCommand, string(l), s.Task, s.Home, m)
		box.Stderr = os.Stderr
		if err := box.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = box.Process.Kill() }()
		patience.Until(t, "the agent runs", func() bool { return len(sleeping(m)) == left+1 })
		if err := box.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = box.Wait()
		patience.Until(t, "everything is gone", func() bool { return len(alive(m)) == 0 })
	})
}

// TestAsAnOrdinaryUser runs the tests once more as an ordinary user if they run as
// root, as for the box of such a user.
func TestAsAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		return // all tests did
	}
	tmp := t.TempDir()
	if err := errors.Join(os.Chmod(tmp, 0o777), os.Chmod(filepath.Dir(tmp), 0o755)); err != nil {
		t.Fatal(err)
	}
	bin := openProgram(t)
	// A level that root cannot have here fails the test below; it need not fail
	// the test in the child as well.
	absent := []string{"-"} // and no level is called that
	for _, l := range levels {
		if withheld(t, l) != nil {
			absent = append(absent, string(l))
		}
	}
	cmd := exec.CommandContext(t.Context(), bin, "-test.v", "-test.skip=/^("+strings.Join(absent, "|")+")$")
	cmd.Dir = tmp
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + tmp, "HOME=" + tmp}
	user := uint32(30_000 + os.Getpid()%10_000) // whose processes are counted, see TestForksWithoutEndAreKilled
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	every(t, func(t *testing.T, l Level) {
		if !bytes.Contains(out, []byte("--- PASS: TestNothingSurvives/"+string(l))) {
			t.Errorf("%s holds for root, not for an ordinary user", l)
		}
	})
}
