package box_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/box"
	"yardmaster/internal/box/sandbox"
	"yardmaster/internal/protocol"
)

// The other tests run agents at the best level of the machine. These run at a given
// level, or not at all.
func TestRunInBubblewrap(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	f, s := p.runAt(p.start, sandbox.Bubblewrap, sandbox.TaskDir+":"+sandbox.HomeDir)
	if s.text() != p.http.URL+"/nothing: 404 Not Found\ndone\n" || p.show(f.Tip, "a.txt") != "one" {
		t.Errorf("said %q, finished %+v", s.text(), f)
	}
}

// TestRunInLandlock holds that at the level Landlock the model, the hosts of
// --egress and git work through the box's ports, and nothing else of the machine is
// reachable.
func TestRunInLandlock(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer other.Close()
	reached := make(chan struct{}, 16)
	go func() {
		for {
			c, err := other.Accept()
			if err != nil {
				return
			}
			c.Close()
			reached <- struct{}{}
		}
	}()
	f, s := p.runAt(p.apartWithout("bwrap"), sandbox.Landlock, "$PWD:$HOME", "run ! git ls-remote http://"+other.Addr().String()+"/x")
	if s.text() != p.http.URL+"/nothing: 404 Not Found\ndone\n" || p.show(f.Tip, "a.txt") != "one" {
		t.Errorf("said %q, finished %+v", s.text(), f)
	}
	if len(reached) > 0 {
		t.Error("a port of the machine was reached")
	}
}

// apartWithout is apart without some programs in the PATH.
func (p *plane) apartWithout(programs ...string) func(box.Config) func() error {
	return func(cfg box.Config) func() error { return p.apart(cfg, without(p.t, programs...)) }
}

// runAt starts a box and in it an agent at a level with all that agents use, and checks the
// reports of the run and of the box.
func (p *plane) runAt(start func(box.Config) func() error, level sandbox.Level, folders string, more ...string) (protocol.Finished, *seen) {
	p.t.Helper()
	cfg := p.config()
	cfg.Egress = []string{strings.TrimPrefix(p.http.URL, "http://")}
	start(cfg)
	run := p.task(func(s *protocol.Start) {
		s.Isolation = string(level)
		s.Prompt = strings.Join(append(append([]string{"run test $PWD:$HOME = " + folders, "model"}, more...),
			"fetch "+p.http.URL+"/nothing",
			"write a.txt one", "commit a", "say done"), "\n")
	})
	s, f := p.finish(run)
	if f.Kind == "policy_refused" {
		p.t.Fatalf("%s is not to be had on this machine (%s)", level, f.Error)
	}
	if f.State != protocol.Succeeded || f.Usage.InputTokens != 7 {
		p.t.Errorf("finished %+v", f)
	}
	var started protocol.Started
	s.data(p.t, protocol.EventStarted, &started)
	if started.Isolation != string(level) || !protocol.Keeps(started.Isolation, started.Holds) {
		p.t.Errorf("started %+v", started)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if holds := p.hellos[0].Holds; !slices.Equal(holds[string(level)], started.Holds) ||
		!slices.Equal(holds["none"], []string{"memory", "disk"}) {
		p.t.Errorf("the box says that its levels hold %v", holds)
	}
	return f, s
}

// TestLevelThatFailsOnceIsOffered holds that a level that fails once at the start
// is tried again, because the box would otherwise do without it until its next
// start.
func TestLevelThatFailsOnceIsOffered(t *testing.T) {
	t.Parallel()
	bwrap, err := exec.LookPath("bwrap")
	must(t, err)
	bin, failed := programs(t, "bwrap"), filepath.Join(t.TempDir(), "failed")
	script := "for a; do case $a in sandbox-exec) [ -e " + failed + " ] || { : >" + failed +
		"; echo 'Text file busy' >&2; exit 1; };; esac; done\nexec " + bwrap + " \"$@\"\n"
	program(t, filepath.Join(bin, "bwrap"), script)
	p := newPlane(t)
	p.apart(p.config(), "PATH="+bin)
	p.until("a hello", func() bool { return len(p.hellos) > 0 })
	if _, err := os.Stat(failed); err != nil {
		t.Errorf("nothing failed: %v", err)
	}
	p.change(func() {
		if levels := p.hellos[0].Isolation; levels[0] != string(sandbox.Bubblewrap) {
			t.Errorf("the box offers %v", levels)
		}
	})
}
