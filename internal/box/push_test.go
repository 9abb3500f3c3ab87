package box_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"yardmaster/internal/box"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

const (
	pushes  = "git-receive-pack"
	fetches = "git-upload-pack"
)

// works is a run that changes a file and says that it is done.
func (p *plane) works(change ...func(*protocol.Start)) string {
	return p.task(func(s *protocol.Start) {
		s.Prompt = "write a.txt one\nsay done"
		for _, c := range change {
			c(s)
		}
	})
}

// refused waits until some pushes were answered with 503.
func (p *plane) refused(n int) {
	p.t.Helper()
	p.until("pushes are refused", func() bool { return p.refusals >= n })
}

// continues has another attempt begin, which must begin with the work of the one before,
// and ends with both pushed.
func (p *plane) continues(attempt int) {
	p.t.Helper()
	run := p.task(func(s *protocol.Start) { s.Attempt, s.Prompt = attempt, "write b.txt two\nsay done" })
	s, f := p.finish(run)
	var prepared protocol.Prepared
	s.data(p.t, protocol.EventPrepared, &prepared)
	if f.State != protocol.Succeeded || prepared.Resume == "" || prepared.Base != prepared.Resume ||
		p.show("svc/t--12345678", "a.txt")+p.show("svc/t--12345678", "b.txt") != "onetwo" {
		p.t.Errorf("attempt %d: prepared %+v, finished %+v", attempt, prepared, f)
	}
}

// givesUp waits until the push of a run was refused again after more refusals, and ends the
// time that the push has.
func (p *plane) givesUp(clock *hand, cfg box.Config, refusals int) {
	p.t.Helper()
	p.refused(refusals)
	if n := clock.over(cfg.Timing.Wrap); n != 1 {
		p.t.Errorf("%d pushes are given up", n)
	}
}

// TestHostIsDownForEver holds that a push that is answered with 503 is given up in time,
// that the run says that the host is to blame, and that the next attempt on this box has
// the work, as often as that happens.
func TestHostIsDownForEver(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.change(func() { p.down = pushes })
	cfg := p.config()
	clock := held(&cfg)
	p.start(cfg)
	for attempt := 1; attempt <= 2; attempt++ {
		run := p.works(func(s *protocol.Start) { s.Attempt = attempt })
		p.givesUp(clock, cfg, 3*attempt) // it is tried again
		s, f := p.finish(run)
		if f.State != protocol.Failed || f.Kind != "push_rejected" || !f.Busy || f.Tip != "" || !strings.Contains(f.Error, "503") {
			t.Errorf("attempt %d: finished %+v", attempt, f)
		}
		if strings.Contains(s.kinds(), protocol.EventPushed) {
			t.Errorf("attempt %d: %s", attempt, s.kinds())
		}
	}
	p.change(func() { p.down = fetches })
	if _, f := p.finish(p.works(func(s *protocol.Start) { s.Attempt = 3 })); f.Kind != "checkout_failed" || !f.Busy {
		t.Errorf("without a checkout: finished %+v", f)
	}
	p.change(func() { p.down = "" })
	p.continues(4)
	// What was pushed is kept no longer: the branch is where another has left it.
	git(t, p.repo, "update-ref", "refs/heads/svc/t--12345678", "main")
	s, _ := p.finish(p.task(func(s *protocol.Start) { s.Attempt, s.Prompt = 5, "say nothing new" }))
	var prepared protocol.Prepared
	if s.data(t, protocol.EventPrepared, &prepared); prepared.Base != git(t, p.repo, "rev-parse", "main") {
		t.Errorf("after the push: prepared %+v", prepared)
	}
}

// TestKeptWorkIsOfItsBranch holds that work which could not be pushed is not taken up on
// top of what somebody else has done meanwhile.
func TestKeptWorkIsOfItsBranch(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.change(func() { p.down = pushes })
	cfg := p.config()
	clock := held(&cfg)
	p.start(cfg)
	run := p.works()
	p.givesUp(clock, cfg, 1)
	p.finish(run)
	theirs := git(t, p.repo, "commit-tree", "-p", "main", "-m", "by hand", "main^{tree}")
	git(t, p.repo, "update-ref", "refs/heads/svc/t--12345678", theirs)
	p.change(func() { p.down = "" })
	s, f := p.finish(p.task(func(s *protocol.Start) { s.Attempt, s.Prompt = 2, "write b.txt two\nsay done" }))
	var prepared protocol.Prepared
	s.data(t, protocol.EventPrepared, &prepared)
	if prepared.Resume != theirs || f.State != protocol.Succeeded {
		t.Errorf("prepared %+v, finished %+v", prepared, f)
	}
}

// TestOldKeptWorkIsForgotten holds that a box forgets work which nobody has asked for in
// 30 days, and goes on to keep the rest.
func TestOldKeptWorkIsForgotten(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.change(func() { p.down = pushes })
	cfg := p.config()
	clock := held(&cfg)
	stop := p.start(cfg)
	run := p.works()
	p.givesUp(clock, cfg, 1)
	p.finish(run)
	kept := func() []string {
		t.Helper()
		work := box.WorkDir(cfg.DataDir)
		if work == "" {
			work = cfg.DataDir
		}
		refs, err := filepath.Glob(filepath.Join(work, "cache", "*", "refs", "kept", "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return refs
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	refs := kept()
	if len(refs) != 1 {
		t.Fatalf("kept %q", refs)
	}
	recent := filepath.Join(filepath.Dir(filepath.Dir(refs[0])), strings.Repeat("0", 24), "none")
	text, err := os.ReadFile(refs[0])
	if err == nil {
		err = os.MkdirAll(filepath.Dir(recent), 0o755)
	}
	if err == nil {
		err = os.WriteFile(recent, text, 0o644)
	}
	if err == nil {
		err = os.Chtimes(refs[0], time.Time{}, time.Now().Add(-31*24*time.Hour))
	}
	if err != nil {
		t.Fatal(err)
	}
	p.start(cfg)
	patience.Until(t, "the old work is forgotten", func() bool { return !slices.Contains(kept(), refs[0]) })
	if !slices.Contains(kept(), recent) {
		t.Errorf("kept %q", kept())
	}
}

// TestEndOfABoxThatCannotPush holds that the work of a run is not lost with a box that is
// stopped or killed while its pushes are answered with 503, whether the run is still the
// box's when it comes back or not.
func TestEndOfABoxThatCannotPush(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"stopped": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		for whose, fenced := range map[string]bool{"it is still its own": false, "it was taken away": true} {
			t.Run(name+", "+whose, func(t *testing.T) {
				t.Parallel()
				p := newPlane(t)
				p.change(func() { p.down = pushes })
				cfg := p.config()
				cfg.Timing.Leave = 2 * time.Second
				first := p.process(cfg)
				run := p.works()
				p.refused(2)
				if err := first.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
				_ = first.Wait()
				ended := false
				p.change(func() {
					_, ended = p.run(run).finished()
					p.run(run).fenced = fenced
					p.down = ""
				})
				if ended {
					t.Fatal("the run has ended")
				}
				p.start(cfg)
				if !fenced {
					if _, f := p.finish(run); f.Tip == "" || p.show("svc/t--12345678", "a.txt") != "one" {
						t.Errorf("finished %+v", f)
					}
				}
				p.continues(2)
			})
		}
	}
}
