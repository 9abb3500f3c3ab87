package sandbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// probeTimeout limits the trial of all levels.
const probeTimeout = 20 * time.Second

// Probe finds out which levels this machine offers and which protections each
// gives. It returns a Finding for each level, the best first. None is always
// available, protects nothing, and is not tried. For the other levels Probe starts
// a target in a new folder under dir: a process outside of any sandbox, as the
// agents' user, with everything that an agent must not reach. Then it starts
// program (see Spec.Program) in a sandbox of each level, where it tries to reach
// these things. Agents must be able to run program. An empty dir means the system's
// folder for temporary files.
func Probe(ctx context.Context, dir, program string) []Finding {
	return probe(ctx, dir, program, kernel{}, levels...)
}

// ProbeLevel is Probe for one level.
func ProbeLevel(ctx context.Context, l Level, dir, program string) Finding {
	return probe(ctx, dir, program, kernel{}, l)[0]
}

// probe tries levels, with the features in less switched off as on a kernel that
// lacks them.
func probe(ctx context.Context, dir, program string, less kernel, of ...Level) []Finding {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	out := make([]Finding, len(of))
	t, err := newTrial(ctx, dir, program)
	if err == nil {
		defer t.close()
		t.less = less
	}
	var all sync.WaitGroup
	for i, l := range of {
		switch {
		case l == None:
			out[i] = Finding{Level: l}
		case err != nil:
			out[i] = Finding{Level: l, Err: err}
		default:
			all.Go(func() { out[i] = t.try(ctx, l) })
		}
	}
	all.Wait()
	return out
}

// trial is the environment in which the levels are tried.
type trial struct {
	root, program, token string
	less                 kernel
	reached              []net.Listener // agents must reach these: a loopback port and a socket
	target               *runningTarget
}

func newTrial(ctx context.Context, dir, program string) (*trial, error) {
	root, err := os.MkdirTemp(dir, "sandbox-probe-")
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	t := &trial{root: root, program: program, token: rand.Text()}
	if err := t.prepare(ctx); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// reachedSocket is the name of the socket in the trial's folder.
const reachedSocket = "s"

func (t *trial) prepare(ctx context.Context) (err error) {
	if t.program == "" {
		if t.program, err = (&Spec{}).program(); err != nil {
			return err
		}
	}
	// In a root box the trial runs as another user, whatever the umask is.
	if err := os.Chmod(t.root, 0o755); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	folder, err := os.Open(t.root)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	defer folder.Close()
	for _, at := range [][2]string{
		{"tcp", "127.0.0.1:0"},
		{"unix", fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), reachedSocket)}, // works for a folder path of any length
	} {
		ln, err := net.Listen(at[0], at[1])
		if err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
		t.reached = append(t.reached, ln)
		go greet(ln, t.token)
	}
	if err := os.Chmod(filepath.Join(t.root, reachedSocket), 0o666); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	spec, err := t.spec(None, "target")
	if err != nil {
		return err
	}
	spec.Argv = []string{t.program, Command, targetArgument}
	t.target, err = startTarget(ctx, spec, targetRequest{Dir: spec.Task, Token: t.token, Port: t.port()})
	return err
}

func (t *trial) port() int { return t.reached[0].Addr().(*net.TCPAddr).Port }

func (t *trial) close() {
	if t.target != nil {
		t.target.end()
	}
	for _, ln := range t.reached {
		ln.Close()
	}
	_ = os.RemoveAll(t.root) // a remainder is removed at the next start
}

// spec returns the specification of a process of the trial, with folders of its
// own.
func (t *trial) spec(l Level, name string) (Spec, error) {
	at := filepath.Join(t.root, name)
	s := Spec{
		Level:   l,
		Task:    filepath.Join(at, "task"),
		Home:    filepath.Join(at, "home"),
		Program: t.program,
		Env:     map[string]string{},
		less:    t.less,
	}
	for _, dir := range []string{at, s.Task, s.Home} {
		if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755)); err != nil {
			return s, fmt.Errorf("sandbox: %w", err)
		}
	}
	return s, nil
}

// try runs an attempt in a sandbox of a level.
func (t *trial) try(ctx context.Context, l Level) (f Finding) {
	f.Level = l
	s, err := t.spec(l, string(l))
	if err != nil {
		f.Err = err
		return f
	}
	sig := signalOf(l)
	request, err := json.Marshal(attemptRequest{Target: t.target.targetFacts, Token: t.token, Port: t.port(), Signal: int(sig)})
	if err != nil {
		f.Err = fmt.Errorf("sandbox: %w", err)
		return f
	}
	var said, complaint bytes.Buffer
	s.Argv, s.ReadOnly, s.Env[requestVariable] = []string{t.program, Command, attempt}, []string{t.program}, string(request)
	if l == Bubblewrap {
		s.Forward = []Forward{{Port: t.port(), Socket: filepath.Join(t.root, reachedSocket)}}
	} else {
		s.Reach = []int{t.port()}
	}
	s.Stdout, s.Stderr = &said, &complaint
	p, err := Start(ctx, s)
	if err != nil {
		f.Err = err
		return f
	}
	ended := p.Wait()
	var a attemptAnswer
	switch err := json.Unmarshal(said.Bytes(), &a); {
	case err != nil:
		f.Err = fmt.Errorf("sandbox: %s does not hold here: %w: %s", l, errors.Join(ended, err), strings.TrimSpace(complaint.String()))
		return f
	case a.Error != "":
		f.Err = fmt.Errorf("sandbox: %s does not work here: %s", l, a.Error)
		return f
	}
	signals, err := t.target.signals()
	switch {
	case err != nil:
		a.Possible[Processes] = append(a.Possible[Processes], "end a process outside")
	case slices.Contains(signals, int(sig)):
		a.Possible[Processes] = append(a.Possible[Processes], "signal a process outside")
	}
	f.Holds, f.Open = holding(l, a.Possible)
	return f
}

// greet writes a text to every connection, and discards the input.
func greet(ln net.Listener, text string) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(probeTimeout))
			_, _ = io.WriteString(c, text)
			_, _ = io.Copy(io.Discard, c)
		}()
	}
}
