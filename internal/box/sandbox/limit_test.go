package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"yardmaster/internal/proof/patience"
)

// TestLimitsHoldForAllThatIsStarted holds that limits apply to all processes that
// the agent starts, and cannot be raised again.
func TestLimitsHoldForAllThatIsStarted(t *testing.T) {
	every(t, func(t *testing.T, l Level) {
		s := folders(t, l, `sh -c 'ulimit -n; ulimit -Hn; grep processes /proc/self/limits | tr -s " " | cut -d" " -f3,4; cat `+
			`/proc/self/oom_score_adj; nice; ulimit -n 5000 2>/dev/null || echo no'`)
		s.Limits = Limits{OpenFiles: 200, Processes: 20_000, Nice: 5}
		out, err := output(t, s)
		nice := strconv.Itoa(max(5, ownNice(t))) // a test that is nice itself makes none less so
		if want := "200\n200\n20000 20000\n1000\n" + nice + "\nno\n"; out != want || err != nil {
			t.Errorf("%q, %v, want %q", out, err, want)
		}
	})
}

func ownNice(t *testing.T) int {
	t.Helper()
	n, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	return 20 - n
}

// TestTemporaryFoldersHaveAnEnd holds that each temporary folder of a Bubblewrap
// sandbox, which is in memory, is limited, and that there is no other place like
// them.
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

// TestSandboxBeginsInItsGroup holds that all processes of a sandbox are in its
// control group.
func TestSandboxBeginsInItsGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		return // another package tests whether groups can be made
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
		patience.Until(t, "the agent runs", func() bool { return len(sleeping(m)) == left+1 })
		for _, pid := range sleeping(m) {
			if b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup")); err != nil ||
				!bytes.Contains(b, []byte("/"+filepath.Base(dir)+"\n")) {
				t.Errorf("process %d is in %s, %v", pid, b, err)
			}
		}
		p.Kill()
	})
}

// endless is a program whose processes all fork without end while the file run exists.
// Perl comes with git.
const endless = `>run; exec perl -e 'while (-e "run") { fork }' "$1"`

func TestForksWithoutEndAreKilled(t *testing.T) {
	every(t, func(t *testing.T, l Level) {
		m := mark()
		s := folders(t, l, endless, m)
		s.user = 20_000 + os.Getpid()%10_000 // all agents of this machine are nobody, and come and go
		s.Limits = Limits{Processes: threadsOf(t, s) + 60, Nice: 10}
		t.Cleanup(func() { os.Remove(filepath.Join(s.Task, "run")) })
		p, err := Start(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		patience.Until(t, "it forks", func() bool { return len(alive(m)) > 20 })
		p.Kill()
		if pids := alive(m); len(pids) != 0 {
			t.Errorf("alive after the end: %v", pids)
		}
	})
}

// threadsOf counts the threads that the user of a sandbox runs already; they count against
// the limit, too.
func threadsOf(t *testing.T, s Spec) (n uint64) {
	t.Helper()
	user := os.Geteuid()
	if Separate() {
		user = s.agentUser()
	}
	files, err := filepath.Glob("/proc/[0-9]*/task/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		var st syscall.Stat_t
		if syscall.Stat(f, &st) == nil && int(st.Uid) == user {
			n++
		}
	}
	return n
}

// TestStoppedProcessesAreKilled holds that stopped processes are killed, also those
// that have stopped themselves.
func TestStoppedProcessesAreKilled(t *testing.T) {
	every(t, func(t *testing.T, l Level) {
		m := mark()
		s := folders(t, l, leave+"exec sleep $1", m)
		p, err := Start(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		patience.Until(t, "the agent runs", func() bool { return len(sleeping(m)) == left+1 })
		for _, pid := range sleeping(m) {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
		}
		p.Kill()
		if pids := alive(m); len(pids) != 0 {
			t.Errorf("alive after the end: %v", pids)
		}
	})
}
