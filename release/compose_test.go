package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
)

// TestComposeFile has the library of compose itself read the file: its schema, what refers to what,
// and the version, which has no default. A key that is misspelt and a volume that is not there are
// refused, so that its word is worth something.
func TestComposeFile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("files/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, old, new, version, want string }{
		{"as it is", "", "", "1.2.3", ""},
		{"without a version", "", "", "", "say the version"},
		{"with a misspelt key", "read_only:", "readonly:", "1.2.3", "readonly"},
		{"with a volume that is nowhere", "data:/data", "date:/data", "1.2.3", "date"},
	} {
		path := filepath.Join(t.TempDir(), "compose.yaml")
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), c.old, c.new, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		var env []string
		if c.version != "" {
			env = []string{"YARDMASTER_VERSION=" + c.version}
		}
		o, err := cli.NewProjectOptions([]string{path}, cli.WithEnv(env))
		if err != nil {
			t.Fatal(err)
		}
		p, err := o.LoadProject(t.Context())
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, not %q", c.what, err, c.want)
			}
		case err != nil:
			t.Errorf("%s: %v", c.what, err)
		case p.Services["server"].Image != "yardmaster-server:1.2.3" || !p.Services["server"].ReadOnly:
			t.Errorf("%s: %+v", c.what, p.Services["server"])
		}
	}
}
