package arch

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// shipped lists the modules of others that the released program links.
const shipped = "testdata/modules.txt"

// TestShippedProgram holds what a release has in it: the modules that testdata/modules.txt lists, and nothing of
// internal/proof, which is for tests and trials.
func TestShippedProgram(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}}{{with .Module}} {{.Path}}{{end}}", "./cmd/yardmaster")
	cmd.Dir = "../../.."
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0") // what is released first
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var modules []string
	for line := range strings.Lines(string(out)) {
		path, module, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(path, "yardmaster/internal/proof") {
			t.Errorf("the released program has %s in it: cmd/yardmaster-lab is the place for that", path)
		}
		if module != "" && module != "yardmaster" && !slices.Contains(modules, module) {
			modules = append(modules, module)
		}
	}
	slices.Sort(modules)
	b, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Fields(string(b))
	for _, m := range modules {
		if !slices.Contains(listed, m) {
			t.Errorf("the released program links %s, which %s does not list: say in docs/libraries.md what it is for, and list it", m, shipped)
		}
	}
	for _, m := range listed {
		if !slices.Contains(modules, m) {
			t.Errorf("%s lists %s, which the released program does not link", shipped, m)
		}
	}
}

// TestPasswordsCostWhatTheyShall holds that nobody but the main function of tests makes
// passwords cheap.
func TestPasswordsCostWhatTheyShall(t *testing.T) {
	t.Parallel()
	var cheap []string
	for _, f := range files(t) {
		if f.uses("yardmaster/internal/seal", "ForTests") {
			cheap = append(cheap, f.path)
		}
	}
	if !slices.Equal(cheap, []string{"internal/db/dbtest/dbtest.go"}) {
		t.Errorf("seal.ForTests is called in %v", cheap)
	}
}
