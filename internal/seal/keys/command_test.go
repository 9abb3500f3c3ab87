package keys

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"yardmaster/internal/proof/patience"
	"yardmaster/internal/seal"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	ring := seal.New()
	key := strings.TrimSpace(ring.Reveal())
	dir := t.TempDir()
	file := filepath.Join(dir, "the key")
	if err := os.WriteFile(file, []byte(ring.Reveal()), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Command(t.Context(), []string{"cat", file}); err != nil || got.ID() != ring.ID() {
		t.Errorf("%v, %v", got, err)
	}
	for name, c := range map[string]struct{ script, want, never string }{
		"it fails": {"echo " + key + "; echo first >&2; echo 'access denied: " + key + " (expired)' >&2; exit 3",
			"exit status 3: access denied: (hidden) (expired)", "first"},
		"it says nothing":         {"exit 1", "ended with exit status 1", ":  "},
		"it writes control codes": {`printf 'a\033[31mb\n' >&2; exit 1`, "a [31mb", "\x1b"},
		"it prints no key":        {"echo nothing of use", "64 hex digits", "nothing of use"},
		"it prints nothing":       {"true", "there is no master key", ""},
		"it prints too much":      {"yes " + key + " | head -c 100000", "printed more than 65536 bytes", ""},
		"it is killed":            {"kill -9 $$", "signal: killed", ""},
	} {
		_, err := Command(t.Context(), []string{"sh", "-c", c.script})
		if err == nil {
			t.Errorf("%s: a key was found", name)
			continue
		}
		said := strings.SplitN(err.Error(), ": ", 2)[1] // behind the command itself
		if !strings.Contains(said, c.want) || strings.Contains(said, key[:32]) || c.never != "" && strings.Contains(said, c.never) {
			t.Errorf("%s: %q", name, said)
		}
	}
	if _, err := Command(t.Context(), []string{filepath.Join(dir, "nowhere")}); err == nil ||
		!strings.Contains(err.Error(), "cannot be started: no such file") || strings.Contains(err.Error(), "fork") {
		t.Errorf("no such program: %v", err)
	}
}

// late is a context whose time is over when the test says so.
type late struct {
	context.Context
	over chan struct{}
}

func (l *late) Done() <-chan struct{} { return l.over }

func (l *late) Err() error {
	select {
	case <-l.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// A program that does not end is killed, and what it has started with it.
func TestCommandThatHangs(t *testing.T) {
	t.Parallel()
	pid := filepath.Join(t.TempDir(), "pid")
	if err := syscall.Mkfifo(pid, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, child := &late{t.Context(), make(chan struct{})}, make(chan int, 1)
	go func() {
		defer close(ctx.over)
		b, err := os.ReadFile(pid) // comes back when the program has written it
		n, err2 := strconv.Atoi(strings.TrimSpace(string(b)))
		if err := errors.Join(err, err2); err != nil {
			t.Error(err)
		}
		child <- n
	}()
	_, err := command(ctx, []string{"sh", "-c", "sleep 86400 & echo $! > " + pid + "; wait"}, time.Hour)
	if err == nil || err.Error() != "did not end within 1h0m0s" {
		t.Errorf("%v", err)
	}
	// The child is nobody's any more; whoever has taken it over buries it.
	at := <-child
	patience.Until(t, "its child has ended", func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(at) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ") || syscall.Kill(at, 0) != nil
	})
	if _, err := command(t.Context(), []string{"sleep", "86400"}, time.Millisecond); err == nil || err.Error() != "did not end within 1ms" {
		t.Errorf("%v", err)
	}
}
