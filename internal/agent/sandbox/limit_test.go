package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// What is limited holds for whatever the agent starts, and cannot be taken back.
func TestLimitsHoldForAllThatIsStarted(t *testing.T) {
	every(t, func(t *testing.T, l Level) {
		s := folders(t, l, `sh -c 'ulimit -n; ulimit -Hn; grep processes /proc/self/limits | tr -s " " | cut -d" " -f3,4; cat /proc/self/oom_score_adj; nice; ulimit -n 5000 2>/dev/null || echo no'`)
		s.Limits = Limits{OpenFiles: 200, Processes: 20_000, Nice: 5}
		out, err := output(t, s)
		if want := "200\n200\n20000 20000\n1000\n5\nno\n"; out != want || err != nil {
			t.Errorf("%q, %v, want %q", out, err, want)
		}
	})
}

// The temporary folders of a sandbox of its own are memory, so each ends where
// its limit is, and there is no other place like them.
func TestTemporaryFoldersHaveAnEnd(t *testing.T) {
	if reason := withheld(t, Bubblewrap); reason != nil {
		t.Fatal(reason)
	}
	s := folders(t, Bubblewrap, `for d in /tmp /var/tmp /dev/shm; do head -c 2000000 /dev/zero 2>/dev/null >$d/x; stat -c %s $d/x; done
		for d in / /dev /etc /run /var /home; do touch $d/x 2>/dev/null && echo $d; done; echo . >/dev/null && head -c 1 /dev/zero | wc -c`)
	s.Limits = Limits{TempBytes: 1 << 20}
	out, err := output(t, s)
	if want := strings.Repeat("1048576\n", 3) + "1\n"; out != want || err != nil {
		t.Errorf("%q, %v, want %q", out, err, want)
	}
}

// A process of a control group has all its children there.
func TestSandboxBeginsInItsGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		return // who may make groups is for another package to find out
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	at := ""
	for line := range strings.Lines(string(mounts)) {
		if before, after, _ := strings.Cut(line, " - "); strings.HasPrefix(after, "cgroup2 ") {
			at = strings.Fields(before)[4]
		}
	}
	dir, err := os.MkdirTemp(at, "sandbox-test-")
	if err != nil {
		t.Fatalf("this test needs control groups of version 2: %v", err)
	}
	defer os.Remove(dir)
	group, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	every(t, func(t *testing.T, l Level) {
		m := mark()
		s := folders(t, l, leave+"exec sleep $1", m)
		s.Group = group
		p, err := Start(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the agent runs", func() bool { return len(sleeping(m)) == left+1 })
		for _, pid := range sleeping(m) {
			if b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup")); err != nil || !bytes.Contains(b, []byte("/"+filepath.Base(dir)+"\n")) {
				t.Errorf("process %d is in %s, %v", pid, b, err)
			}
		}
		p.Kill()
	})
}

// A program that forks without end: its processes live for a moment, and there
// are two hundred at a time.
const endless = `
b() { [ $1 -gt 0 ] || exit 0; b $(($1-1)) & b $(($1-1)) & wait; }
while :; do b 6; done & b 6; while :; do b 6; done`

func TestForksWithoutEndAreKilled(t *testing.T) {
	every(t, func(t *testing.T, l Level) {
		m := mark()
		s := folders(t, l, endless, m)
		s.Limits = Limits{Processes: 1500}
		p, err := Start(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "it forks", func() bool { return len(alive(m)) > 20 })
		p.Kill()
		if pids := alive(m); len(pids) != 0 {
			t.Errorf("alive after the end: %v", pids)
		}
	})
}

// What was stopped for the killing is killed, also if it had stopped itself.
func TestStoppedProcessesAreKilled(t *testing.T) {
	every(t, func(t *testing.T, l Level) {
		m := mark()
		s := folders(t, l, leave+"exec sleep $1", m)
		p, err := Start(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the agent runs", func() bool { return len(sleeping(m)) == left+1 })
		for _, pid := range sleeping(m) {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
		}
		p.Kill()
		if pids := alive(m); len(pids) != 0 {
			t.Errorf("alive after the end: %v", pids)
		}
	})
}
