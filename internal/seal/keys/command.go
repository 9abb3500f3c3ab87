package keys

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unicode"

	"yardmaster/internal/lazy"
	"yardmaster/internal/seal"
)

// Bounds of a program that prints the master keys.
const (
	longest   = 30 * time.Second
	maxOutput = 64 << 10 // bytes
	maxWord   = 300      // characters of what it complains of
)

// Command runs a program, without a shell, and takes the master keys from what
// it prints, in the form of the file. It is killed, with what it has started,
// after 30 seconds. What it prints is shown nowhere; of what it writes to
// standard error the last line is, less whatever looks like a key.
func Command(ctx context.Context, argv []string) (*seal.Keyring, error) {
	k, err := command(ctx, argv, longest)
	if err != nil {
		return nil, fmt.Errorf("master-key-command %s: %w", argv[0], err)
	}
	return k, nil
}

func command(ctx context.Context, argv []string, limit time.Duration) (*seal.Keyring, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out, complaint bounded
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &complaint
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // a child that left the group may hold the pipes
	err := cmd.Run()
	var exit *exec.ExitError
	var gone *fs.PathError // of fork and exec, which say nothing to a reader
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("did not end within %s", limit)
	case errors.As(err, &exit):
		return nil, fmt.Errorf("ended with %s%s", exit.ProcessState, complaint.last())
	case errors.As(err, &gone):
		return nil, fmt.Errorf("cannot be started: %w", gone.Err)
	case err != nil:
		return nil, err
	case out.over:
		return nil, fmt.Errorf("printed more than %d bytes", maxOutput)
	}
	return seal.Parse(out.kept.String())
}

// bounded keeps the beginning of what is written, and lets the rest go by.
type bounded struct {
	kept bytes.Buffer
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := maxOutput - b.kept.Len(); len(p) > room {
		b.over = true
		b.kept.Write(p[:room])
		return len(p), nil
	}
	return b.kept.Write(p)
}

// secret is what a key could look like, in hex or base64.
var secret = lazy.New(`[A-Za-z0-9+/=_-]{32,}`)

// last is the last line that says something, fit for a log.
func (b *bounded) last() string {
	lines := strings.Split(strings.TrimSpace(b.kept.String()), "\n")
	line := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, secret.ReplaceAllString(lines[len(lines)-1], "(hidden)"))
	if line = strings.TrimSpace(line); line == "" {
		return ""
	}
	if text := []rune(line); len(text) > maxWord {
		line = string(text[:maxWord]) + "…"
	}
	return ": " + line
}
