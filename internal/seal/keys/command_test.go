package keys

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"yardmaster/internal/seal"
)

func TestCommand(t *testing.T) {
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

// A program that does not end is killed, and what it has started with it.
func TestCommandThatHangs(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	began := time.Now()
	_, err := command(t.Context(), []string{"sh", "-c", "sleep 600 & echo $! > " + pid + "; wait"}, time.Second)
	if err == nil || err.Error() != "did not end within 1s" || time.Since(began) > 20*time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	b, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	// The child is nobody's any more; whoever has taken it over buries it.
	for over := time.Now().Add(time.Minute); ; {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(child) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") || syscall.Kill(child, 0) != nil {
			return
		}
		if time.Now().After(over) {
			t.Fatal("its child lives on")
		}
	}
}
