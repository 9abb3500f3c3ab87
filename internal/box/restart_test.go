package box_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"yardmaster/internal/box"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

// process runs a box as a process that can be killed.
func (p *plane) process(cfg box.Config, env ...string) *exec.Cmd {
	p.t.Helper()
	cfg.Logger = nil
	config, err := json.Marshal(cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "BOX_CONFIG="+string(config)), env...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait(); removeGroups(cfg) })
	return cmd
}

// apart runs a box as a process with an environment of its own, over that of the test;
// stop ends it gently. A box that does not end says what it does, and is killed.
func (p *plane) apart(cfg box.Config, env ...string) (stop func() error) {
	p.t.Helper()
	cmd := p.process(cfg, env...)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop = sync.OnceValue(func() error {
		err := cmd.Process.Signal(syscall.SIGTERM)
		end, ok := patience.Take(p.t, ended)
		if !ok {
			cmd.Process.Signal(syscall.SIGQUIT)
			end = errors.Join(errors.New("the box did not end"), <-ended)
		}
		return errors.Join(err, end)
	})
	p.t.Cleanup(func() {
		if err := stop(); err != nil {
			p.t.Error(err)
		}
	})
	return stop
}

func TestKilledBoxComesBackWithItsWork(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	first := p.process(cfg)
	mark := "mark of " + cfg.DataDir
	run := p.task(func(s *protocol.Start) {
		s.Agent, s.Command = "command", []string{"/bin/sh", "-c", ticks, mark}
	})
	p.until("some ticks", func() bool { return strings.Count(p.run(run).text(), "\n") > 20 })
	if len(running(mark)) == 0 {
		t.Fatal("the command is not seen")
	}
	if err := first.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	first.Wait()
	patience.Until(t, "the command has ended with its box", func() bool { return len(running(mark)) == 0 })
	p.start(cfg)
	_, f := p.finish(run) // the plane checks that no event is missing or twice
	if f.State != protocol.Lost || f.Kind != "box_lost" || !f.WIP || p.show("svc/t--12345678", "wip.txt") != "wip" {
		t.Errorf("finished %+v", f)
	}
	p.until("the run is gone from the box", func() bool { return p.presence != nil && len(p.presence.Runs) == 0 && p.presence.Free == 2 })
	if left, err := os.ReadDir(filepath.Join(cfg.DataDir, "runs")); err != nil || len(left) > 0 {
		t.Errorf("left on disk: %v, %v", left, err)
	}
}

func TestKilledBoxRemembersAHalt(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	cfg.Timing.Grace = time.Hour // the command ignores the signal: the halt hangs
	first := p.process(cfg)
	run := p.task(func(s *protocol.Start) {
		s.Agent, s.Command = "command", []string{"/bin/sh", "-c", ticks}
	})
	p.until("some ticks", func() bool { return strings.Count(p.run(run).text(), "\n") > 5 })
	p.send(protocol.Command{Kind: protocol.CommandHalt, Run: run, Attempt: 1, Mode: protocol.HaltGraceful, Reason: "enough"})
	p.until("the halt is an event", func() bool { return strings.Contains(p.run(run).kinds(), protocol.EventHalting) })
	if err := first.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	first.Wait()
	p.start(cfg)
	if _, f := p.finish(run); f.State != protocol.Halted || f.Error != "enough" || !f.WIP {
		t.Errorf("finished %+v", f)
	}
}

// TestBoxKilledAtAnyMoment kills boxes at moments from before the run is written
// down until after its end. Each time the run ends once, and the plane checks that
// its events are complete.
func TestBoxKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"given", protocol.EventAccepted, protocol.EventPreparing, protocol.EventPrepared,
		protocol.EventStarted, protocol.EventUpdate, protocol.EventPushed} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			p := newPlane(t)
			cfg := p.config()
			box := p.process(cfg)
			run := p.task(func(s *protocol.Start) { s.Prompt = "say hello\nwrite a.txt one\nsay done" })
			p.until("the moment", func() bool {
				return moment == "given" && !p.run(run).asked.IsZero() || strings.Contains(p.run(run).kinds(), moment)
			})
			if err := box.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			box.Wait()
			p.change(func() { p.hellos = nil })
			stop := p.apart(cfg)
			p.until("a hello", func() bool { return len(p.hellos) > 0 })
			if _, f := p.finish(run); f.State != protocol.Lost && f.State != protocol.Succeeded {
				t.Errorf("finished %+v", f)
			}
			if err := stop(); err != nil {
				t.Errorf("the second box ended with %v", err)
			}
		})
	}
}

func TestUnwantedRunOfAKilledBoxIsDropped(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	first := p.process(cfg)
	run := p.task(func(s *protocol.Start) { s.Prompt = "say ready\nhang" })
	p.saying(run, "ready")
	if err := first.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	first.Wait()
	said := 0
	p.change(func() { said, p.run(run).fenced = len(p.hellos), true })
	p.start(cfg)
	p.until("another hello and no runs", func() bool {
		return len(p.hellos) > said && len(p.hellos[said].Runs) == 1 &&
			p.presence != nil && len(p.presence.Runs) == 0 && p.presence.Free == 2
	})
	p.until("nothing is left on disk", func() bool {
		left, err := os.ReadDir(filepath.Join(cfg.DataDir, "runs"))
		return err == nil && len(left) == 0
	})
}

func TestRestartedControlPlaneChangesNoOutcome(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	run := p.task(func(s *protocol.Start) {
		s.Agent = "command"
		s.Command = []string{"/bin/sh", "-c", `i=0; while [ $i -lt 150 ]; do i=$((i+1)); echo $i; sleep 0.01; done; echo done >out.txt`}
	})
	p.until("some output", func() bool { return strings.Count(p.run(run).text(), "\n") > 10 })
	p.shutdown()
	p.boot()
	s, f := p.finish(run)
	if f.State != protocol.Succeeded || p.show(f.Tip, "out.txt") != "done" {
		t.Errorf("finished %+v", f)
	}
	var want strings.Builder
	for i := range 150 {
		fmt.Fprintln(&want, i+1)
	}
	if s.text() != want.String() {
		t.Errorf("output is missing, twice or out of order: %q", s.text())
	}
}

func TestTwoBoxesDoNotShareAFolder(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	p.start(cfg)
	p.until("a hello", func() bool { return len(p.hellos) > 0 })
	if err := box.Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "another box") {
		t.Errorf("the second box: %v", err)
	}
}

// smallDisk names a small file system to a test that had no right to mount one.
const smallDisk = "SMALL_DISK"

// onSmallDisk runs a box whose data folder is a file system of 24 MB, which dir
// is; nil when the test was run elsewhere for that.
func onSmallDisk(t *testing.T) (p *plane, dir string) {
	t.Helper()
	if os.Getenv(smallDisk) == "" && os.Geteuid() != 0 {
		againWithSmallDisk(t)
		return nil, ""
	}
	p = newPlane(t)
	cfg := p.config()
	if dir := os.Getenv(smallDisk); dir != "" {
		cfg.DataDir = dir
	} else {
		if err := syscall.Mount("tmpfs", cfg.DataDir, "tmpfs", 0, "size=24m,mode=755"); err != nil {
			t.Fatalf("mount a small file system: %v", err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(cfg.DataDir, syscall.MNT_DETACH); err != nil {
				t.Errorf("unmount: %v", err)
			}
		})
	}
	identity, err := box.Enroll(t.Context(), p.http.URL, enrollToken, box.Info{Name: "small"})
	if err != nil {
		t.Fatal(err)
	}
	if err := identity.Save(cfg.DataDir); err != nil {
		t.Fatal(err)
	}
	cfg.WorkDir, cfg.Self = cfg.DataDir, openProgram(t) // the disk has no room for a copy
	p.start(cfg)
	return p, cfg.DataDir
}

// talk is a command whose output finds no space.
const talk = `while :; do seq 1 2000; done`

// TestFullDiskEndsTheRunAndKeepsItsEvents runs an attempt on a disk that another
// program has filled.
func TestFullDiskEndsTheRunAndKeepsItsEvents(t *testing.T) {
	t.Parallel()
	p, dir := onSmallDisk(t)
	if p == nil {
		return
	}
	run := p.task(func(s *protocol.Start) {
		s.Agent, s.Command = "command",
			[]string{"/bin/sh", "-c", `echo wip >wip.txt; echo ready; while [ ! -e go ]; do sleep 0.01; done; ` +
				talk}
	})
	p.saying(run, "ready")
	must(t, os.WriteFile(filepath.Join(dir, "runs", run+".1", "task", "go"), nil, 0o644))
	others := filepath.Join(dir, "others")
	for err := error(nil); err == nil; { // until nothing at all finds room
		err = appendTo(others, make([]byte, 4096))
	}
	p.until("the run is ending", func() bool { return strings.Contains(p.run(run).kinds(), protocol.EventHalting) })
	must(t, os.Remove(others))
	s, f := p.finish(run)
	if f.State != protocol.Failed || f.Kind != "storage_failed" {
		t.Errorf("finished %+v", f)
	}
	var cut struct{ Reason string }
	s.data(t, protocol.EventTruncated, &cut)
	if cut.Reason != "disk_full" {
		t.Errorf("cut %+v, events %s", cut, s.kinds())
	}
	if !f.WIP || p.show(f.Tip, "wip.txt") != "wip" {
		t.Errorf("the work is not saved: %+v", f)
	}
}

func appendTo(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// TestRunThatFillsTheDiskIsEnded holds that a run that fills the disk is ended for
// that, and no other run.
func TestRunThatFillsTheDiskIsEnded(t *testing.T) {
	t.Parallel()
	p, dir := onSmallDisk(t)
	if p == nil {
		return
	}
	other := p.task(func(s *protocol.Start) {
		s.Branch = "svc/other"
		s.Agent, s.Command = "command",
			[]string{"/bin/sh", "-c", `while [ ! -e go ]; do echo tick; sleep 0.1; done; rm go; echo one >a.txt`}
	})
	p.saying(other, "tick")
	run := p.task(func(s *protocol.Start) {
		s.Agent, s.Command = "command", []string{"/bin/sh", "-c", `echo wip >wip.txt; cat /dev/zero >"$HOME/big" 2>/dev/null; ` + talk}
	})
	s, f := p.finish(run)
	if f.State != protocol.Failed || f.Kind != "resource_limit" || !strings.Contains(f.Error, "The disk of the box was nearly full") {
		t.Errorf("finished %+v", f)
	}
	if !strings.Contains(s.kinds(), protocol.EventHalting) || !f.WIP || p.show(f.Tip, "wip.txt") != "wip" {
		t.Errorf("the work is not saved: %+v, events %s", f, s.kinds())
	}
	if left, err := filepath.Glob(filepath.Join(dir, "runs", "*", "home", "big")); err != nil || len(left) > 0 {
		t.Errorf("the agent's home was not given up: %v, %v", left, err)
	}
	// The box takes work, and the next run and the one beside it end well.
	_, f = p.finish(p.task(func(s *protocol.Start) {
		s.Branch, s.Agent, s.Command = "svc/next", "command", []string{"/bin/sh", "-c", `echo two >b.txt`}
	}))
	if f.State != protocol.Succeeded {
		t.Errorf("the next run: %+v", f)
	}
	must(t, os.WriteFile(filepath.Join(dir, "runs", other+".1", "task", "go"), nil, 0o644))
	if _, f := p.finish(other); f.State != protocol.Succeeded || p.show(f.Tip, "a.txt") != "one" {
		t.Errorf("the run beside it: %+v", f)
	}
}

// openProgram is this program where everybody may run it.
func openProgram(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "program-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	text, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "program")
	must(t, os.Chmod(dir, 0o755))
	plant(t, path, string(text))
	return path
}

// againWithSmallDisk runs the calling test again in a namespace of its own,
// where anybody may mount, and of which the box must not be root: it could not
// make its agents another user there.
func againWithSmallDisk(t *testing.T) {
	t.Helper()
	const setUp = `mount -t tmpfs -o size=24m,mode=755 tmpfs "$SMALL_DISK" && exec unshare --user --map-user=1000 --map-group=1000 "$0" "$@"`
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", setUp, os.Args[0], "-test.run=^"+t.Name()+"$",
		"-test.v")
	cmd.Env = append(os.Environ(), smallDisk+"="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("in a user namespace: %v\n%s", err, out)
	}
}

func TestGitHostThatRestartsIsAskedAgain(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	to, err := url.Parse(p.http.URL)
	if err != nil {
		t.Fatal(err)
	}
	host := httputil.NewSingleHostReverseProxy(to)
	var asked atomic.Int64
	restarting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) <= 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		host.ServeHTTP(w, r)
	}))
	defer restarting.Close()
	run := p.task(func(s *protocol.Start) {
		s.CloneURL = restarting.URL + "/git/demo.git"
		s.Agent, s.Command = "command", []string{"/bin/sh", "-c", "echo one >a.txt"}
	})
	if _, f := p.finish(run); f.State != protocol.Succeeded || p.show(f.Tip, "a.txt") != "one" {
		t.Errorf("finished %+v", f)
	}
	if n := asked.Load(); n < 3 {
		t.Errorf("the host was asked %d times", n)
	}
}
