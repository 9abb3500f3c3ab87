package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"yardmaster/internal/agent/modelproxy"
	"yardmaster/internal/agent/sandbox"
	"yardmaster/internal/agent/selftest"
	"yardmaster/internal/agent/worktree"
	"yardmaster/internal/protocol"
)

// testWait bounds a test of the machine.
const testWait = 30 * time.Second

// test starts this program in a sandbox as agents get it, in folders beside
// theirs, and has it do what every run does. What fails is an *UnfitError.
func (g *ground) test(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, testWait)
	defer cancel()
	if err := checkTools(); err != nil {
		return err
	}
	if err := g.room(); err != nil {
		return err
	}
	root, err := os.MkdirTemp(g.work, "selftest-")
	if err != nil {
		return unusable(g.work, "--work", err)
	}
	defer func() { _ = worktree.RemoveTree(root) }() // what stays is removed at the next start
	task, home, shown := filepath.Join(root, "task"), filepath.Join(root, "home"), filepath.Join(root, "shown")
	err = errors.Join(os.Chmod(root, 0o711), os.Mkdir(task, 0o755), os.Mkdir(home, 0o755), os.Mkdir(shown, 0o755), os.WriteFile(filepath.Join(shown, "file"), []byte("selftest\n"), 0o644))
	if err != nil {
		return unusable(g.work, "--work", err)
	}
	door, err := openDoor(filepath.Join(g.data, "selftest.sock"))
	if err != nil {
		return &UnfitError{Reason: "the box cannot serve its agents: " + err.Error()}
	}
	defer door.Close()
	level := g.levels[0]
	var said, complaint bytes.Buffer
	spec := sandbox.Spec{
		Level: level, Task: task, Home: home, Program: g.program, Argv: []string{g.program, selftest.Command},
		ReadOnly: []string{g.program, shown}, Env: map[string]string{}, Stdout: &said, Stderr: &complaint,
	}
	in := selftest.Request{Read: []string{filepath.Join(shown, "file")}, Proxies: []string{"http://" + door.address}}
	if level == sandbox.Bubblewrap {
		spec.Forward = []sandbox.Forward{{Port: proxyPort, Socket: door.socket}}
		in.Proxies = []string{fmt.Sprintf("http://127.0.0.1:%d", proxyPort)}
	}
	request, err := json.Marshal(in)
	if err != nil {
		return err
	}
	spec.Env[selftest.Variable] = string(request)
	p, err := sandbox.Start(ctx, spec)
	if err != nil {
		return g.unfit(err)
	}
	ended := p.Wait()
	var r selftest.Result
	switch err := json.Unmarshal(said.Bytes(), &r); {
	case ctx.Err() != nil:
		return &UnfitError{Reason: fmt.Sprintf("a test of the %s sandbox took longer than %s: the machine is too slow or hangs", level, testWait)}
	case err != nil:
		return &UnfitError{Reason: fmt.Sprintf("a test of the %s sandbox did not end well (%v): %s", level, ended, firstLine(complaint.String()))}
	case r.Error != "":
		return g.failedStep(r)
	}
	return nil
}

// unfit says why a sandbox does not start.
func (g *ground) unfit(err error) error {
	var closed *sandbox.ClosedError
	switch {
	case errors.As(err, &closed):
		return g.shut(closed)
	case errors.Is(err, sandbox.ErrUnavailable):
		return &UnfitError{Reason: fmt.Sprintf("%s isolates agents here no more (%s): make it work again, or start the box anew, which then offers what there is", g.levels[0], plain(err))}
	case errors.Is(err, context.DeadlineExceeded):
		return &UnfitError{Reason: fmt.Sprintf("a test of the %s sandbox took longer than %s: the machine is too slow or hangs", g.levels[0], testWait)}
	}
	return &UnfitError{place: true, Reason: fmt.Sprintf("agents cannot be started in %s as the user %s: %s", g.work, sandbox.AgentUser(), plain(err))}
}

// failedStep says in a sentence what agents cannot do here.
func (g *ground) failedStep(r selftest.Result) error {
	user := "agents of this box, who run as the user " + sandbox.AgentUser() + ","
	say := func(place bool, format string, a ...any) error {
		return &UnfitError{place: place, Reason: fmt.Sprintf(format, a...)}
	}
	switch r.Step {
	case selftest.Git:
		return say(false, "%s cannot work with git: %s: install git where all users find it", user, r.Error)
	case selftest.Proxy:
		return say(false, "%s do not reach the box's own proxy: %s: let programs of this machine connect to each other on loopback", user, r.Error)
	case selftest.Clock:
		return say(false, "the clock of this machine is wrong, %s: set it, or no certificate is accepted", r.Error)
	}
	return say(true, "%s cannot use their folders in %s: %s: choose another folder with --work", user, g.work, r.Error)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// door is a model proxy that knows no run, at an address and on a socket.
type door struct {
	*modelproxy.Proxy
	address, socket string
}

func openDoor(socket string) (*door, error) {
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
	d := &door{modelproxy.New(modelproxy.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}), tcp.Addr().String(), socket}
	for _, l := range []net.Listener{tcp, unix} {
		go func() {
			if err := d.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				l.Close()
			}
		}()
	}
	return d, nil
}

// blame tells a fault of the box from one of the run: when a run fails before
// its agent has begun, the box tests itself, and if it fails too, it is unfit.
func (b *box) blame(a *attempt, r result) result {
	switch r.kind {
	case "setup_failed", "checkout_failed", "storage_failed":
	default:
		return r
	}
	if isDone(a.asked) {
		return r
	}
	reason := b.examine(b.life)
	if reason == "" {
		return r
	}
	a.log.Warn("the box is unfit, the run is not to blame", "kind", r.kind, "detail", r.detail)
	r.kind, r.detail = protocol.FailureBoxUnfit, reason
	return r
}

// examine tests the machine, notes what is wrong with it, and answers that.
func (b *box) examine(ctx context.Context) (reason string) {
	b.examining.Lock()
	defer b.examining.Unlock()
	err := b.ground.test(ctx)
	if ctx.Err() != nil {
		return ""
	}
	if err != nil {
		reason = cutFront(plain(err), protocol.MaxUnfit)
	}
	b.mu.Lock()
	before := b.unfit
	b.unfit = reason
	b.mu.Unlock()
	switch {
	case before == reason:
	case reason != "":
		b.log.Error("the box is unfit and takes no work", "reason", reason)
		nudge(b.ailing)
	default:
		b.log.Info("the box is fit again")
	}
	nudge(b.beat)
	nudge(b.freed)
	return reason
}

// longestAilment is the longest pause between two tests of an unfit box.
const longestAilment = 5 * time.Minute

// keepFit tests an unfit box again and again, until it is fit.
func (b *box) keepFit(ctx context.Context) {
	pause := b.cfg.Timing.Beat
	for ctx.Err() == nil {
		if b.ailment() == "" {
			pause = b.cfg.Timing.Beat
			select {
			case <-ctx.Done():
			case <-b.ailing:
			}
			continue
		}
		sleep(ctx, pause)
		if ctx.Err() == nil {
			b.examine(ctx)
		}
		pause = min(2*pause, longestAilment)
	}
}

// ill is ailment, or that there is no room: that comes and goes without a test.
func (b *box) ill() string {
	if reason := b.ailment(); reason != "" {
		return reason
	}
	if err := b.ground.room(); err != nil {
		return err.Error()
	}
	return ""
}

// ailment is why the box can carry out nothing; empty if it can.
func (b *box) ailment() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.unfit
}

// cutFront keeps the beginning of a text.
func cutFront(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}
