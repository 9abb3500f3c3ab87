package coder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"
)

const (
	defaultTimeout = 120 * time.Second
	maxTimeout     = 30 * time.Minute
	headOutput     = 8 << 10 // bytes kept of the beginning of a long output
	tailOutput     = 24 << 10
	strayOutput    = 500 * time.Millisecond // for the output of processes that outlive the command
)

func parseShell(s *session, raw json.RawMessage) (action, error) {
	var args struct {
		Command string
		Timeout int `json:"timeout_s"`
	}
	if err := decodeArgs(raw, &args); err != nil {
		return action{}, err
	}
	if strings.TrimSpace(args.Command) == "" {
		return action{}, errors.New("command is required")
	}
	limit := defaultTimeout
	if args.Timeout > 0 {
		limit = time.Duration(min(args.Timeout, int(maxTimeout/time.Second))) * time.Second
	}
	return action{title: clip(args.Command), do: func(ctx context.Context) (output, error) {
		return s.shell(ctx, args.Command, limit)
	}}, nil
}

// shell runs a command in a process group of its own, which is killed at the limit
// and on cancel. If the command ends by itself, a process that it left in the
// background with its output elsewhere goes on.
func (s *session) shell(ctx context.Context, command string, limit time.Duration) (output, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("killed after the limit of %s", limit))
	defer cancel()
	var kept ends
	cmd := exec.CommandContext(ctx, "bash", "-lc", command)
	cmd.Dir, cmd.Env = s.cwd, s.cfg.shellEnv
	seen := &live{tell: s.live}
	both := io.MultiWriter(&kept, seen)
	cmd.Stdout, cmd.Stderr = both, both
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = strayOutput
	err := cmd.Run()
	seen.end() // the output of remaining processes is dropped from here on

	out := output{text: kept.String()}
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out, fmt.Errorf("[%s]", exit.ProcessState)
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return out, err
	}
	if out.text == "" {
		out.text = "[exit status 0, no output]"
	}
	return out, nil
}

// liveOutput limits the output that is sent while a command runs, in bytes. The
// result has both ends of a longer output.
const liveOutput = 64 << 10

// live sends the text that is written to it as it arrives.
type live struct {
	tell func(text string) // nil: the text is dropped

	mu   sync.Mutex
	part []byte // the beginning of a character that is not complete yet
	told int
}

func (l *live) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tell == nil || l.told >= liveOutput {
		return len(p), nil
	}
	text := append(l.part, p...)
	whole := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if end := text[len(text)-n:]; utf8.RuneStart(end[0]) {
			if !utf8.FullRune(end) {
				whole -= n
			}
			break
		}
	}
	l.part = append([]byte(nil), text[whole:]...)
	if whole > 0 {
		l.told += whole
		l.tell(strings.ToValidUTF8(string(text[:whole]), "?"))
	}
	return len(p), nil
}

func (l *live) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tell = nil
}

// ends keeps the beginning and the end of the bytes that are written to it.
type ends struct {
	mu         sync.Mutex
	head, tail []byte
	dropped    int
}

func (e *ends) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(p)
	if left := headOutput - len(e.head); left > 0 {
		take := min(left, len(p))
		e.head = append(e.head, p[:take]...)
		p = p[take:]
	}
	e.tail = append(e.tail, p...)
	if over := len(e.tail) - tailOutput; over > 0 {
		e.dropped += over
		e.tail = append(e.tail[:0], e.tail[over:]...)
	}
	return n, nil
}

func (e *ends) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	text := string(e.head) + string(e.tail)
	if e.dropped > 0 {
		text = fmt.Sprintf("%s\n[%d bytes dropped]\n%s", e.head, e.dropped, e.tail)
	}
	return strings.ToValidUTF8(text, "?")
}
