package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// probeCommand is the argument that makes the test binary probe a level, as a root that
// may not act for processes of other users, and print the finding.
const probeCommand = "play-probe"

// finding is a Finding that can be sent over a pipe.
type finding struct {
	Err   string
	Holds []Protection
	Open  []string
}

func playProbe(program string) int {
	const again = "again"
	if len(os.Args) < 4 {
		runtime.LockOSThread() // what a thread drops, that thread alone has dropped
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_PTRACE, 0, 0, 0); err != nil && os.Geteuid() == 0 {
			return codeFailed
		}
		_ = unix.Exec("/proc/self/exe", append(os.Args, again), os.Environ()) // of root: without that capability
		return codeFailed
	}
	f := ProbeLevel(context.Background(), Landlock, "", program)
	out := finding{Holds: f.Holds, Open: f.Open}
	if f.Err != nil {
		out.Err = f.Err.Error()
	}
	if json.NewEncoder(os.Stdout).Encode(out) != nil {
		return codeFailed
	}
	return 0
}

func TestProbeSaysWhatHolds(t *testing.T) {
	program := openProgram(t)
	findings := Probe(t.Context(), "", program)
	if held := Held(findings); !slices.Equal(held, levels) {
		t.Fatalf("not all levels are to be had: %+v", findings)
	}
	for _, f := range findings {
		want := tried
		if f.Level == None {
			want = nil
		}
		if !slices.Equal(f.Holds, want) || len(f.Open) > 0 {
			t.Errorf("%+v", f)
		}
		if f := ProbeLevel(t.Context(), f.Level, "", program); !slices.Equal(f.Holds, want) {
			t.Errorf("alone: %+v", f)
		}
	}
}

// TestAttemptsSucceedOutside holds that without a sandbox every attempt succeeds,
// so that each of them is a real test.
func TestAttemptsSucceedOutside(t *testing.T) {
	trial, err := newTrial(t.Context(), "", openProgram(t))
	if err != nil {
		t.Fatal(err)
	}
	defer trial.close()
	f := trial.try(t.Context(), None)
	want := []string{
		"read a file outside", "read shared memory", "write a file outside", "cut a file outside", "make a file outside",
		"read the environment of a process outside", "signal a process outside",
		"connect to a Unix socket", "connect to an abstract socket", "send a datagram to a Unix socket",
		"send a datagram of a pair to a Unix socket",
		"connect to a port of this machine", "connect to a forwarded port's number elsewhere", "connect with multipath TCP",
		"connect by sending (TCP fast open)", "send datagrams", "choose a port", "listen to other machines",
		"make a user namespace", "use the keyrings", "set up an io_uring",
	}
	if f.Err != nil || len(f.Holds) != 0 || !slices.Equal(f.Open, want) {
		t.Errorf("%+v", f)
	}
	if entries, err := os.ReadDir(trial.root); err != nil || len(entries) == 0 {
		t.Error(entries, err)
	}
	trial.close()
	if _, err := os.Stat(trial.root); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestUnansweredIsNotRefused holds that an attempt that nobody has answered counts as one
// that was possible: nothing has prevented it.
func TestUnansweredIsNotRefused(t *testing.T) {
	dir := t.TempDir()
	full, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(full)
	at := &unix.SockaddrUnix{Name: dir + "/full"}
	if err := errors.Join(unix.Bind(full, at), unix.Listen(full, 0)); err != nil {
		t.Fatal(err)
	}
	for err = nil; err == nil; {
		var fd int
		if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0); err == nil {
			defer unix.Close(fd)
			err = unix.Connect(fd, at)
		}
	}
	if !errors.Is(err, unix.EAGAIN) || !connects("unix", at.Name) {
		t.Errorf("a socket that takes no more (%v) counts as closed", err)
	}
	if connects("unix", dir+"/none") {
		t.Error("a socket that is not there counts as open")
	}
	for err, want := range map[error]bool{
		nil: true, unix.EINPROGRESS: true, os.ErrDeadlineExceeded: true,
		unix.EACCES: false, unix.EPERM: false, unix.ECONNREFUSED: false,
	} {
		if could(err) != want {
			t.Errorf("%v: %t", err, !want)
		}
	}
}

// TestOlderLandlockHoldsLess holds that the trial shows the fewer protections of an
// older Landlock: signals are closed from version 6 on.
func TestOlderLandlockHoldsLess(t *testing.T) {
	program := openProgram(t)
	for version, want := range map[int][]Protection{
		3: {Files, UnixSockets, Network, Kernel},
		4: {Files, UnixSockets, Network, Kernel},
		5: {Files, UnixSockets, Network, Kernel},
		6: tried,
	} {
		if f := probe(t.Context(), "", program, kernel{Landlock: version}, Landlock)[0]; f.Err != nil || !slices.Equal(f.Holds, want) {
			t.Errorf("version %d: %+v", version, f)
		}
	}
	if f := probe(t.Context(), "", program, kernel{Landlock: 2}, Landlock)[0]; !errors.Is(f.Err, ErrUnavailable) || len(f.Holds) > 0 {
		t.Errorf("version 2: %+v", f)
	}
}

// TestWithoutAFilterLessIsHeld holds that without a filter of system calls
// namespaces give all protections except Kernel, and that Landlock alone protects
// neither daemons nor the network.
func TestWithoutAFilterLessIsHeld(t *testing.T) {
	program := openProgram(t)
	for l, want := range map[Level][]Protection{
		Bubblewrap: {Files, Processes, UnixSockets, Network},
		Landlock:   {Files, Processes},
	} {
		f := probe(t.Context(), "", program, kernel{Unfiltered: true}, l)[0]
		if f.Err != nil || !slices.Equal(f.Holds, want) {
			t.Errorf("%+v", f)
		}
		t.Logf("%s: %q", l, f.Open)
	}
}

// TestNetworkIsNotClaimedWhereNobodyIsAsked holds that the level Landlock is
// available without a gate, and does not claim the network, because Landlock's
// rules know only ports.
func TestNetworkIsNotClaimedWhereNobodyIsAsked(t *testing.T) {
	program := openProgram(t)
	// Agents of an ordinary user are the shim's own, for whom it may act.
	holds, open := tried, []string(nil)
	if Separate() {
		holds, open = []Protection{Files, Processes, UnixSockets, Kernel}, []string{"connect to a forwarded port's number elsewhere"}
	}
	out, err := exec.Command(program, probeCommand, program).Output()
	var f finding
	if err == nil {
		err = json.Unmarshal(out, &f)
	}
	if err != nil || f.Err != "" || !slices.Equal(f.Holds, holds) || !slices.Equal(f.Open, open) {
		t.Errorf("%v: %+v", err, f)
	}
}

// TestNothingIsClaimedUntried holds that protections that cannot be tried are not
// claimed.
func TestNothingIsClaimedUntried(t *testing.T) {
	for _, f := range Probe(t.Context(), "", "/nonexistent") {
		if (f.Err == nil) != (f.Level == None) || len(f.Holds) > 0 {
			t.Errorf("%+v", f)
		}
	}
}
