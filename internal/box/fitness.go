package box

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"yardmaster/internal/box/modelproxy"
	"yardmaster/internal/box/sandbox"
	"yardmaster/internal/box/selftest"
	"yardmaster/internal/box/worktree"
	"yardmaster/internal/protocol"
)

// testWait limits a test of the machine.
const testWait = 30 * time.Second

// selfTest starts this program in a sandbox like those of agents, in folders beside
// theirs, and lets it do what every run does. A failed test is an *UnfitError.
func (s *setup) selfTest(whole context.Context) error {
	ctx, cancel := context.WithTimeout(whole, testWait)
	defer cancel()
	if err := CheckTools(ctx); err != nil {
		return err
	}
	if err := s.checkSpace(); err != nil {
		return err
	}
	root, err := os.MkdirTemp(s.work, "selftest-")
	if err != nil {
		return unusable(s.work, "--work", err)
	}
	defer func() { _ = worktree.RemoveTree(root) }() // a remainder is removed at the next start
	task, home, shown := filepath.Join(root, "task"), filepath.Join(root, "home"), filepath.Join(root, "shown")
	err = errors.Join(
		os.Chmod(root, 0o711),
		os.Mkdir(task, 0o755), os.Mkdir(home, 0o755), os.Mkdir(shown, 0o755),
		os.WriteFile(filepath.Join(shown, "file"), []byte("selftest\n"), 0o644),
	)
	if err != nil {
		return unusable(s.work, "--work", err)
	}
	proxy, err := openTestProxy(filepath.Join(s.data, "selftest.sock"))
	if err != nil {
		return &UnfitError{Reason: "the box cannot open the proxy that agents use: " + err.Error()}
	}
	defer proxy.Close()
	level := s.levels[0]
	var said, complaint bytes.Buffer
	spec := sandbox.Spec{
		Level: level, Task: task, Home: home, Program: s.program, Argv: []string{s.program, selftest.Command},
		ReadOnly: []string{s.program, shown}, Env: map[string]string{}, Stdout: &said, Stderr: &complaint,
	}
	in := selftest.Request{Read: []string{filepath.Join(shown, "file")}, Proxies: []string{"http://" + proxy.address}}
	if level == sandbox.Bubblewrap {
		spec.Forward = []sandbox.Forward{{Port: proxyPort, Socket: proxy.socket}}
		in.Proxies = []string{fmt.Sprintf("http://127.0.0.1:%d", proxyPort)}
	} else {
		spec.Reach = ports(proxy.address)
	}
	request, err := json.Marshal(in)
	if err != nil {
		return err
	}
	spec.Env[selftest.Variable] = string(request)
	p, err := sandbox.Start(ctx, spec)
	if whole.Err() != nil {
		return whole.Err() // the machine is fine; the caller cancelled the test
	}
	if err != nil {
		return s.startError(err)
	}
	ended := p.Wait()
	if whole.Err() != nil {
		return whole.Err()
	}
	var r selftest.Result
	switch err := json.Unmarshal(said.Bytes(), &r); {
	case ctx.Err() != nil:
		return &UnfitError{Reason: fmt.Sprintf(testTooSlow, level, testWait)}
	case err != nil:
		return &UnfitError{Reason: fmt.Sprintf("the test of this machine failed at the isolation level %s (%v): %s",
			level, ended, firstLine(complaint.String()))}
	case r.Error != "":
		return s.stepError(r)
	}
	return nil
}

const testTooSlow = "the test of this machine at the isolation level %s took longer than %s: " +
	"the machine is overloaded, or a disk does not answer"

// startError turns a failure to start a sandbox into an *UnfitError.
func (s *setup) startError(err error) error {
	var closed *sandbox.ClosedError
	switch {
	case errors.As(err, &closed):
		return s.closedError(closed)
	case errors.Is(err, sandbox.ErrUnavailable):
		return &UnfitError{Reason: fmt.Sprintf("the isolation level %s does not work on this machine (%s): "+
			"repair it, or restart the box, which then offers only the levels that work", s.levels[0], plain(err))}
	case errors.Is(err, context.DeadlineExceeded):
		return &UnfitError{Reason: fmt.Sprintf(testTooSlow, s.levels[0], testWait)}
	}
	return &UnfitError{place: true, Reason: fmt.Sprintf("agents cannot be started in %s as the user %s (%s): "+
		"restart the box, or choose another folder with --work", s.work, sandbox.AgentUser(), plain(err))}
}

// stepError turns a failed step of the test into an *UnfitError that says what
// agents cannot do.
func (s *setup) stepError(r selftest.Result) error {
	user := "agents of this box, who run as the user " + sandbox.AgentUser() + ","
	say := func(place bool, format string, a ...any) error {
		return &UnfitError{place: place, Reason: fmt.Sprintf(format, a...)}
	}
	switch r.Step {
	case selftest.Git:
		return say(false, "%s cannot use git (%s): install git where all users can run it", user, r.Error)
	case selftest.Proxy:
		return say(false, "%s cannot reach the box's own proxy (%s): allow programs on this machine to connect to 127.0.0.1",
			user, r.Error)
	case selftest.Clock:
		return say(false, "the clock of this machine is wrong (%s): set it, because certificates are checked against it", r.Error)
	}
	return say(true, "%s cannot use their folders in %s (%s): choose another folder with --work", user, s.work, r.Error)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// testProxy is a model proxy without runs, at a loopback address and on a socket.
type testProxy struct {
	*modelproxy.Proxy
	address, socket string
}

func openTestProxy(socket string) (*testProxy, error) {
	tcp, err := modelproxy.Listen()
	if err != nil {
		return nil, err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(err, tcp.Close())
	}
	unix, err := listenUnix(socket)
	if err != nil {
		return nil, errors.Join(err, tcp.Close())
	}
	p := &testProxy{modelproxy.New(modelproxy.Config{Logger: slog.New(slog.DiscardHandler)}), tcp.Addr().String(), socket}
	for _, l := range []net.Listener{tcp, unix} {
		go func() {
			if err := p.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				l.Close()
			}
		}()
	}
	return p, nil
}

// checkBox distinguishes a fault of the box from a fault of the run. If a run fails
// before its agent has begun, the box tests itself; if that fails too, the box is
// unfit. Nor is the run to blame if something of the work folder lacked that the test
// has made again.
func (b *box) checkBox(a *attempt, r result) result {
	switch r.kind {
	case "setup_failed", "checkout_failed", "storage_failed":
	default:
		return r
	}
	if isDone(a.asked) {
		return r
	}
	b.awaitSpace(a.killed) // else the whole box would be blamed for the disk that one run has filled
	// The run itself may fill the disk: a repository that is too large here is too
	// large for the next box. Git does not always say so.
	if b.setup.checkSpace() != nil && b.setup.checkSpaceBesides(diskUse(a.work)+diskUse(a.cachePath())) == nil {
		r.kind = "storage_failed"
		return r
	}
	lacked := b.lacks()
	reason := b.retest(b.life)
	if reason == "" && lacked {
		reason = "a part of " + b.setup.work + " had been deleted; it is there again"
	}
	if reason == "" {
		return r
	}
	a.log.Warn("the box is unfit, the run is not to blame", "kind", r.kind, "detail", r.detail)
	r.kind, r.detail = protocol.FailureBoxUnfit, reason
	return r
}

// lacks tells whether something of the work folder lacks.
func (b *box) lacks() bool {
	b.retesting.Lock()
	defer b.retesting.Unlock()
	return !b.setup.whole()
}

// retest tests the machine, and notes and returns what is wrong with it; "" means
// nothing.
func (b *box) retest(ctx context.Context) (reason string) {
	b.retesting.Lock()
	defer b.retesting.Unlock()
	err := b.setup.restore(b.cfg.Self)
	if err == nil {
		err = b.setup.selfTest(ctx)
	}
	if err == nil && b.setup.retry(ctx, b.log) {
		nudge(b.online) // says hello anew
	}
	if ctx.Err() != nil {
		return ""
	}
	if err != nil {
		reason = keepStart(plain(err), protocol.MaxUnfit)
	}
	b.mu.Lock()
	before := b.unfit
	b.unfit = reason
	b.mu.Unlock()
	if reason != "" && before == "" {
		nudge(b.becameUnfit)
	}
	nudge(b.beat)
	nudge(b.freed)
	return reason
}

// longestRetest is the longest pause between two tests of an unfit box.
const longestRetest = time.Minute

// retestUnfit tests an unfit box again and again until it is fit.
func (b *box) retestUnfit(ctx context.Context) {
	pause := b.cfg.Timing.Beat
	for ctx.Err() == nil {
		if b.unfitReason() == "" {
			pause = b.cfg.Timing.Beat
			select {
			case <-ctx.Done():
			case <-b.becameUnfit:
			}
			continue
		}
		sleep(ctx, pause)
		if ctx.Err() == nil {
			b.retest(ctx)
		}
		pause = min(2*pause, longestRetest)
	}
}

// cannotRun says why the box takes no work: it is unfit, or its disk is full, which
// is checked anew at each call. It answers "" if the box takes work.
func (b *box) cannotRun() string {
	if reason := b.unfitReason(); reason != "" {
		return reason
	}
	err := b.setup.checkSpace()
	if err != nil {
		b.results.Sweep(0)
		err = b.setup.checkSpace()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// unfitReason returns what the last test found wrong; "" if nothing.
func (b *box) unfitReason() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.unfit
}

// keepStart keeps the first bytes of a text, at most as many as most.
func keepStart(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}
