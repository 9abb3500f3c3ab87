package box_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"yardmaster/internal/box"
	"yardmaster/internal/client"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

func TestMessagesBecomeTurns(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	run := p.task(func(s *protocol.Start) { s.Prompt = "say first\nhang" })
	p.saying(run, "first")
	p.send(protocol.Command{Kind: protocol.CommandMessage, Run: run, Attempt: 1, Text: "say second", ID: "m1"})
	p.until("the message is an event", func() bool { return strings.Contains(p.run(run).kinds(), protocol.EventMessage) })
	p.send(protocol.Command{Kind: protocol.CommandMessage, Run: run, Attempt: 1, Text: "say urgent", Interrupt: true, ID: "m2"})
	s, f := p.finish(run)
	if f.State != protocol.Succeeded || s.text() != "first\nurgent\nsecond\n" {
		t.Errorf("%+v, said %q", f, s.text())
	}
	var got []protocol.UserMessage
	for _, e := range s.events {
		if e.Kind == protocol.EventMessage {
			var m protocol.UserMessage
			if err := json.Unmarshal(e.Data, &m); err != nil {
				t.Fatal(err)
			}
			got = append(got, m)
		}
	}
	// Each came twice, at once and durably.
	want := []protocol.UserMessage{
		{ID: "m1", State: protocol.MessageQueued, Text: "say second"}, {ID: "m2", State: protocol.MessageQueued, Text: "say urgent"},
		{ID: "m2", State: protocol.MessageDelivered}, {ID: "m2", State: protocol.MessageRead, Reply: "urgent"},
		{ID: "m1", State: protocol.MessageDelivered}, {ID: "m1", State: protocol.MessageRead, Reply: "second"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestHaltSavesTheWorkUnlessItIsNow(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	for _, c := range []struct {
		mode string
		wip  bool
	}{{protocol.HaltGraceful, true}, {protocol.HaltNow, false}} {
		run := p.task(func(s *protocol.Start) {
			s.Branch = "svc/" + c.mode
			s.Prompt = "write a.txt one\nsay ready\nhang"
		})
		p.saying(run, "ready")
		p.send(protocol.Command{Kind: protocol.CommandHalt, Run: run, Attempt: 1, Mode: c.mode, Reason: "enough"})
		s, f := p.finish(run)
		if f.State != protocol.Halted || f.Error != "enough" || f.WIP != c.wip || (f.Tip != "") != c.wip {
			t.Errorf("%s: %+v", c.mode, f)
		}
		if !strings.Contains(s.kinds(), protocol.EventHalting) {
			t.Errorf("%s: events %s", c.mode, s.kinds())
		}
		if c.wip && p.show("svc/"+c.mode, "a.txt") != "one" {
			t.Errorf("%s: the work is not on the branch", c.mode)
		}
	}
}

func TestDrainGivesBackAndResumeTakesAgain(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	cfg.Timing.ClaimWait = time.Hour
	p.start(cfg)
	hang := func(s *protocol.Start) { s.Prompt = "write a.txt one\nsay ready\nhang" }
	run := p.task(hang)
	p.saying(run, "ready")
	p.until("a claim waits", func() bool { return p.waiting == 1 })
	p.send(protocol.Command{Kind: protocol.CommandDrain})
	p.until("the box drains", func() bool { return p.presence != nil && p.presence.State == "draining" && p.presence.Free == 0 })
	// That claim still waits: the run that it brings is given back at once.
	late := p.task(func(s *protocol.Start) {
		s.Branch, s.Prompt, s.LeaseMS = "svc/late", "hang", time.Hour.Milliseconds() // it may have waited for long
	})
	if _, f := p.finish(late); f.State != protocol.Lost || f.Kind != "box_drained" {
		t.Errorf("claimed while draining: %+v", f)
	}
	waiting := p.task(func(s *protocol.Start) { s.Branch, s.Prompt = "svc/other", "say hello" })
	p.send(protocol.Command{Kind: protocol.CommandDrain, Mode: protocol.HaltGraceful})
	if _, f := p.finish(run); f.State != protocol.Lost || f.Kind != "box_drained" || !f.WIP {
		t.Errorf("given back: %+v", f)
	}
	p.until("the box is drained", func() bool { return p.presence != nil && p.presence.State == "drained" })
	p.mu.Lock()
	left := len(p.queue)
	p.mu.Unlock()
	if left != 1 {
		t.Errorf("%d tasks in the queue of a drained box", left)
	}
	p.send(protocol.Command{Kind: protocol.CommandResume})
	if _, f := p.finish(waiting); f.State != protocol.Succeeded {
		t.Errorf("after the resume: %+v", f)
	}
}

func TestStoppedBoxGivesItsWorkBack(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	stop := p.start(p.config())
	run := p.task(func(s *protocol.Start) { s.Prompt = "write a.txt one\nsay ready\nhang" })
	p.saying(run, "ready")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	// Run returns only after the control plane has heard of it.
	p.mu.Lock()
	f, ok := p.run(run).finished()
	p.mu.Unlock()
	if !ok || f.State != protocol.Lost || f.Kind != "box_drained" || !f.WIP || p.show(f.Tip, "a.txt") != "one" {
		t.Errorf("finished %v: %+v", ok, f)
	}
}

// ticks makes a command say the time, in nanoseconds, until it is killed.
const ticks = `trap "" TERM; echo wip >wip.txt; while :; do date +%s%N; sleep 0.02; done`

func lastTick(t *testing.T, s *seen) time.Time {
	t.Helper()
	lines := strings.Fields(s.text())
	n, err := strconv.ParseInt(lines[len(lines)-1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(0, n)
}

func TestLostLeaseKillsBeforeTheRunIsGivenToAnother(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.lease = 20 * time.Second
	p.start(p.config())
	run := p.task(func(s *protocol.Start) { s.Agent, s.Command = "command", []string{"/bin/sh", "-c", ticks} })
	p.until("some ticks", func() bool { return strings.Count(p.run(run).text(), "\n") > 5 })
	p.change(func() { p.silent = true })
	s, f := p.finish(run)
	p.change(func() { p.silent = false })
	if f.State != protocol.Lost || f.Kind != "lease_expired" || !strings.HasSuffix(s.kinds(), "run.lease_lost run.finished") {
		t.Errorf("finished %+v, events %s", f, s.kinds())
	}
	// The control plane gives the task away 1.25 lease times after it last heard.
	if late := lastTick(t, s).Sub(s.asked.Add(p.lease * 5 / 4)); late > 0 {
		t.Errorf("the command lived %s after its task was given away", late)
	}
	ref := "refs/wip/" + run + "/1"
	if p.show(ref, "wip.txt") != "wip" || f.Tip != git(t, p.repo, "rev-parse", ref) {
		t.Errorf("the work is not at %s: %+v", ref, f)
	}
	if branches := git(t, p.repo, "branch", "--format=%(refname:short)"); branches != "main" {
		t.Errorf("branches that may be another box's: %s", branches)
	}
}

// lines is a log that is written and read at once.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestUnknownCommandsAreRefused(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	var log lines
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	p.start(cfg)
	run := p.task(func(s *protocol.Start) { s.Prompt = "say first\nhang" })
	p.saying(run, "first")
	p.send(protocol.Command{Kind: "permission.answer", Run: run, Attempt: 1, ID: "c1"})
	p.send(protocol.Command{Kind: protocol.CommandUpdate, ID: "c2"})
	p.until("both are struck", func() bool { return len(p.commands) == 0 })
	for _, want := range []string{`"command refused" box=` + boxID + ` id=c1 kind=permission.answer`, `"command refused" box=` + boxID +
		` id=c2 kind=` + protocol.CommandUpdate} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, log.String())
		}
	}
	p.send(protocol.Command{Kind: protocol.CommandHalt, Run: run, Attempt: 1, Mode: protocol.HaltNow})
	s, _ := p.finish(run)
	var r protocol.CommandRefused
	s.data(t, protocol.EventUnknown, &r)
	if r.ID != "c1" || r.Kind != "permission.answer" || r.Reason == "" {
		t.Errorf("refused %+v", r)
	}
}

func TestFencedRunIsKilledAndForgotten(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	cfg.Timing.Renew = 4 * time.Second // an answer that is late is asked for again
	p.start(cfg)
	run := p.task(func(s *protocol.Start) { s.Agent, s.Command = "command", []string{"/bin/sh", "-c", ticks} })
	p.until("some ticks", func() bool { return strings.Count(p.run(run).text(), "\n") > 5 })
	p.change(func() { p.run(run).fenced = true })
	p.until("the slot is free", func() bool { return p.presence != nil && p.presence.Free == 2 && len(p.presence.Runs) == 0 })
	p.mu.Lock()
	defer p.mu.Unlock()
	if kinds := p.run(run).kinds(); strings.Contains(kinds, "pushed") || strings.Contains(kinds, "finished") {
		t.Errorf("a fenced run said %s", kinds)
	}
	if p.show("refs/wip/"+run+"/1", "wip.txt") != "wip" {
		t.Error("the work of a fenced run is not saved")
	}
	if branches := git(t, p.repo, "branch", "--format=%(refname:short)"); branches != "main" {
		t.Errorf("branches that may be another box's: %s", branches)
	}
	if left, err := os.ReadDir(filepath.Join(cfg.DataDir, "runs")); err != nil || len(left) > 0 {
		t.Errorf("left on disk: %v, %v", left, err)
	}
}

func TestClosedAttemptEndsTheRun(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	run := p.task(func(s *protocol.Start) { s.Agent, s.Command = "command", []string{"/bin/sh", "-c", ticks} })
	p.until("some ticks", func() bool { return strings.Count(p.run(run).text(), "\n") > 5 })
	p.change(func() { p.run(run).closed = true })
	p.until("the slot is free", func() bool { return p.presence != nil && p.presence.Free == 2 && len(p.presence.Runs) == 0 })
}

// TestRefusedEventsComeAgain holds that a box whose events are refused temporarily
// loses none of them, and that its run goes on.
func TestRefusedEventsComeAgain(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.full = 8
	p.start(p.config())
	run := p.task(func(s *protocol.Start) {
		s.Agent, s.Command = "command", []string{"/bin/sh", "-c", "i=0; while [ $i -lt 500 ]; do echo line-$i; i=$((i+1)); done"}
	})
	seen, f := p.finish(run)
	if f.State != protocol.Succeeded || !strings.Contains(seen.text(), "line-0\n") || !strings.Contains(seen.text(), "line-499\n") {
		t.Errorf("finished %+v, having said %d bytes", f, len(seen.text()))
	}
	if p.full != 0 {
		t.Errorf("%d refusals were not met", p.full)
	}
}

func TestSilentAgentIsStalled(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	clock := held(&cfg)
	p.start(cfg)
	run := p.task(func(s *protocol.Start) { s.Prompt = "write a.txt one\nsay written\nhang" })
	p.saying(run, "written")
	if n := clock.over(cfg.Timing.Stall); n != 1 {
		t.Errorf("%d runs are watched", n)
	}
	if _, f := p.finish(run); f.State != protocol.Failed || f.Kind != "run_stalled" || !f.WIP {
		t.Errorf("finished %+v", f)
	}
}

func TestEnrollment(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	_, err := box.Enroll(context.Background(), p.http.URL, "dev_enr_spent", box.Info{Name: "x"})
	var refused *client.Problem
	if !errors.As(err, &refused) || refused.Slug() != "enrollment-token-invalid" || !strings.Contains(err.Error(), "The token is spent.") {
		t.Errorf("a spent token: %v", err)
	}
	if err := box.Run(context.Background(), box.Config{DataDir: t.TempDir()}); !errors.Is(err, box.ErrNotEnrolled) {
		t.Errorf("without an identity: %v", err)
	}
	cfg := p.config()
	info, err := os.Stat(filepath.Join(cfg.DataDir, "identity.json"))
	if err != nil || info.Mode() != fs.FileMode(0o600) {
		t.Errorf("the identity has mode %v, error %v", info.Mode(), err)
	}
	id, err := box.LoadIdentity(cfg.DataDir)
	if err != nil || id.Box != boxID || id.Account != "acc-1" || id.RunToken.Value != runToken || !strings.HasPrefix(id.Seed, "SU") {
		t.Errorf("identity of box %q, error %v", id.Box, err)
	}
}

// TestCredentialsAreRenewed holds that credentials of a short life are renewed over the
// connection or, as here, over HTTPS once that has failed.
func TestCredentialsAreRenewed(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.life = 4 * time.Second // if it ends before the box has connected, it is renewed all the same
	cfg := p.config()
	p.start(cfg)
	first, err := box.LoadIdentity(cfg.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	p.until("two reissues, and the connection was asked", func() bool { return p.reissues >= 2 && p.renewals > 0 })
	p.change(func() { p.life = 24 * time.Hour })
	p.until("a credential that stays", func() bool { return p.issued == 24*time.Hour })
	run := p.task(func(s *protocol.Start) { s.Prompt = "say hello" })
	if _, f := p.finish(run); f.State != protocol.Succeeded {
		t.Errorf("finished %+v", f)
	}
	if now, err := box.LoadIdentity(cfg.DataDir); err != nil || now.NATSJWT.Value == first.NATSJWT.Value {
		t.Errorf("the credential on disk is the first one, error %v", err)
	}
}

func TestExpiredCredentialIsReissued(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	id, err := box.LoadIdentity(cfg.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	id.NATSJWT.Value += "x" // as good as one that has expired
	id.NATSJWT.From, id.NATSJWT.Until = time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour)
	if err := id.Save(cfg.DataDir); err != nil {
		t.Fatal(err)
	}
	p.start(cfg)
	p.until("a hello", func() bool { return len(p.hellos) > 0 })
}

// TestForgedRevocation holds that a box that is told over the bus that it is
// revoked stops only after the control plane has said so over HTTPS.
func TestForgedRevocation(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	p.start(cfg)
	run := p.task(func(s *protocol.Start) { s.Agent, s.Command = "command", []string{"/bin/sh", "-c", ticks} })
	p.until("some ticks", func() bool { return strings.Count(p.run(run).text(), "\n") > 2 })
	for _, verb := range []string{protocol.NudgeProve, "revoke", "drain", "halt", protocol.NudgeCommands} {
		p.bus.Nudge(boxID, verb)
	}
	p.until("the box has asked", func() bool { return p.reissues > 0 })
	var ticked int
	p.until("a tick", func() bool { ticked = strings.Count(p.run(run).text(), "\n"); return ticked > 0 })
	p.until("more ticks", func() bool { return strings.Count(p.run(run).text(), "\n") > ticked+3 })
	if _, err := box.LoadIdentity(cfg.DataDir); err != nil {
		t.Error(err)
	}
	p.change(func() {
		if p.presence.State != "ready" {
			t.Errorf("the box is %s", p.presence.State)
		}
	})
}

func TestRevokedBoxStopsForGood(t *testing.T) {
	t.Parallel()
	for name, revoke := range map[string]func(*plane){
		"nudged": func(p *plane) {
			p.change(func() { p.refuse = fault.New(fault.Forbidden, "box-revoked", "This box was revoked.") })
			p.bus.Nudge(boxID, protocol.NudgeProve)
		},
		"shut out": func(p *plane) {
			p.change(func() {
				p.refuse, p.seatGone = fault.New(fault.Forbidden, "box-revoked", "This box was revoked."), true
			})
			if err := p.bus.Shut(context.Background(), p.seat); err != nil {
				p.t.Error(err)
			}
		},
		"refused": func(p *plane) {
			p.change(func() { p.refuse = fault.New(fault.Forbidden, "box-revoked", "This box was revoked.") })
			p.send(protocol.Command{Kind: protocol.CommandRotate})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlane(t)
			cfg := p.config()
			ended := make(chan error, 1)
			go func() { ended <- box.Run(context.Background(), cfg) }()
			run := p.task(func(s *protocol.Start) { s.Prompt = "say ready\nhang" })
			p.saying(run, "ready")
			revoke(p)
			if err := patience.Receive(t, "the end of the box", ended); !errors.Is(err, box.ErrRevoked) {
				t.Errorf("Run returned %v", err)
			}
			if _, err := box.LoadIdentity(cfg.DataDir); !errors.Is(err, box.ErrNotEnrolled) {
				t.Errorf("credentials are still there: %v", err)
			}
			if left, err := os.ReadDir(filepath.Join(cfg.DataDir, "runs")); err != nil || len(left) > 0 {
				t.Errorf("left on disk: %v, %v", left, err)
			}
		})
	}
}

// TestSealedToAnotherProcess holds that the box notices when a late hello of an
// earlier process, or of a thief, makes the control plane seal to another process,
// and that it gets the same run sealed anew.
func TestSealedToAnotherProcess(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	p.until("the box waits for work", func() bool { return p.waiting > 0 })
	other, err := seal.NewRecipient()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		p.change(func() { p.hellos = append(p.hellos, protocol.Hello{Key: other.Public()}) })
		run := p.task(func(s *protocol.Start) { s.Prompt, s.Branch = "say hello", fmt.Sprint("svc/", i) })
		if _, f := p.finish(run); f.State != protocol.Succeeded {
			t.Errorf("finished %+v", f)
		}
	}
}

// TestLostPushToken holds that the work is pushed even if the answer with a push
// token was lost and the token before has expired.
func TestLostPushToken(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	run := p.task(func(s *protocol.Start) { s.Prompt = "write a.txt one\nsay ready" })
	p.change(func() { p.lost = 1 })
	if _, f := p.finish(run); f.State != protocol.Succeeded || f.Tip == "" || p.show("svc/t--12345678", "a.txt") != "one" {
		t.Errorf("finished %+v", f)
	}
}

// TestCommandThatFails holds that a command that fails repeatedly does not delay
// commands about something else.
func TestCommandThatFails(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	cfg.Timing.Grace = time.Hour // the command ignores the signal: the halt hangs
	p.start(cfg)
	run := p.task(func(s *protocol.Start) { s.Agent, s.Command = "command", []string{"/bin/sh", "-c", ticks} })
	p.until("some ticks", func() bool { return strings.Count(p.run(run).text(), "\n") > 5 })
	if err := os.Mkdir(filepath.Join(cfg.DataDir, "runs", run+".1", "halt.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.change(func() {
		p.commands = append(p.commands,
			protocol.Command{ID: "h", Kind: protocol.CommandHalt, Run: run, Attempt: 1, Mode: protocol.HaltGraceful},
			protocol.Command{ID: "d", Kind: protocol.CommandDrain})
	})
	p.until("the drain is done", func() bool { return len(p.commands) == 1 && p.commands[0].ID == "h" })
	p.send(protocol.Command{ID: "n", Kind: protocol.CommandHalt, Run: run, Attempt: 1, Mode: protocol.HaltNow})
}

// TestExposureIsReported holds that a box reports its exposure at each start until
// the report is taken.
func TestExposureIsReported(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	p.until("the report is sent again", func() bool { return len(p.exposure) == 2 && p.exposure[1] != "" })
}
