package machine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is for trials is built of a checkout: of the one that the folder is in. Elsewhere it is said what to do.
func TestTrialsAreBuiltOfACheckout(t *testing.T) { // alone: it sets the folder of the process
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err := checkout(); err != nil || dir != root {
		t.Errorf("the checkout is %q, not %q: %v", dir, root, err)
	}
	t.Chdir(t.TempDir())
	for _, mod := range []string{"", "module other\n", "module yardmaster\n"} {
		if mod != "" {
			if err := os.WriteFile("go.mod", []byte(mod), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := handOver(t.Context(), "demo --github")
		if err == nil || !strings.Contains(err.Error(), "is in no checkout") ||
			!strings.Contains(err.Error(), "go run ./cmd/yardmaster demo --github") {
			t.Errorf("with a go.mod of %q: %v", mod, err)
		}
	}
}

// Without Go it is said that it takes Go.
func TestTrialsTakeGo(t *testing.T) { // alone: it sets the environment of the process
	t.Setenv("PATH", t.TempDir())
	if err := handOver(t.Context(), "chaos"); err == nil || !strings.Contains(err.Error(), "with Go, which is not here") {
		t.Errorf("without Go: %v", err)
	}
}
