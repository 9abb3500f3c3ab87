package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A server to which boxes of other machines would connect in the clear does not start,
// says what to do, and has made nothing.
func TestServeRefusesTheClear(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	code, _, errs := yardmaster(t, "serve", "--data", dir, "--listen", "127.0.0.1:0", "--nats-tls", "off",
		"--nats-url", "nats://bus.example.com:4222")
	for _, want := range []string{"nats-tls (from --nats-tls)", "in the clear", "Leave nats-tls out", "nats-insecure: on"} {
		if code == 0 || !strings.Contains(errs, want) {
			t.Errorf("exit code %d, and it does not say %q:\n%s", code, want, errs)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data folder: %v", err)
	}
}
