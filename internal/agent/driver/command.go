package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"yardmaster/internal/agent/acp"
)

const (
	keptOutput  = 16 << 10
	killAfter   = 5 * time.Second
	strayOutput = 2 * time.Second // for output of processes that outlive the command
)

// CommandOutcome is how a command ended. ExitCode is -1 if a signal ended it.
type CommandOutcome struct {
	ExitCode  int
	Output    string // the last 16 KiB of both outputs, as they came
	Cancelled bool
}

// RunCommand runs a program that is no agent: cmd, which the caller has set up
// but not started, with no input and both outputs together passed to Update as
// chunks of an agent's message. The end of ctx terminates its process group,
// and kills it five seconds later. An error means that it could not be run; a
// code other than 0 is an outcome.
func RunCommand(ctx context.Context, cmd *exec.Cmd, h Hooks) (CommandOutcome, error) {
	out := &output{update: h.Update}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, out, out // one writer for both keeps their order
	cmd.WaitDelay = strayOutput
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	if err := cmd.Start(); err != nil {
		return CommandOutcome{}, fmt.Errorf("start %s: %w", cmd.Path, err)
	}

	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = terminate(cmd.Process.Pid, killAfter, ended)
	}
	out.flush()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return CommandOutcome{}, fmt.Errorf("wait for %s: %w", cmd.Path, err)
	}
	return CommandOutcome{ExitCode: cmd.ProcessState.ExitCode(), Output: out.last(), Cancelled: ctx.Err() != nil}, nil
}

func terminate(group int, grace time.Duration, ended <-chan error) error {
	_ = syscall.Kill(-group, syscall.SIGTERM)
	select {
	case err := <-ended:
		_ = syscall.Kill(-group, syscall.SIGKILL) // what of the group ignored the first
		return err
	case <-time.After(grace):
		_ = syscall.Kill(-group, syscall.SIGKILL)
		return <-ended
	}
}

// output passes bytes on as updates whose text is whole runes, and keeps the
// last of them.
type output struct {
	update func(json.RawMessage)

	mu   sync.Mutex
	part []byte // the start of a rune whose end has not come
	kept []byte
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = append(o.kept, p...)
	if over := len(o.kept) - keptOutput; over > 0 {
		o.kept = append(o.kept[:0], o.kept[over:]...)
	}
	text := append(o.part, p...)
	whole := wholeRunes(text)
	o.emit(text[:whole])
	o.part = append([]byte(nil), text[whole:]...)
	return len(p), nil
}

func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.emit(o.part)
	o.part = nil
	o.update = nil // a stray process may still write; nobody listens any more
}

func (o *output) emit(text []byte) {
	if o.update == nil || len(text) == 0 {
		return
	}
	// Marshal replaces bytes that are no UTF-8, so that any output can be shown.
	raw, err := json.Marshal(map[string]any{"sessionUpdate": acp.UpdateMessageChunk, "content": acp.Text(string(text))})
	if err == nil {
		o.update(raw)
	}
}

func (o *output) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	from := 0
	for from < min(len(o.kept), utf8.UTFMax) && !utf8.RuneStart(o.kept[from]) {
		from++
	}
	return string([]rune(string(o.kept[from:])))
}

// wholeRunes is the length of b without a rune that is cut off at its end.
func wholeRunes(b []byte) int {
	for i := 1; i <= min(len(b), utf8.UTFMax); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return len(b) - i
			}
			break
		}
	}
	return len(b)
}
