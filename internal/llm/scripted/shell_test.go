package scripted

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"yardmaster/internal/proof/executable"
)

// An agent that offers only a shell can do every step.
func TestStepsByShellAlone(t *testing.T) {
	const before = "a 'quoted' \\n line\nwc -l | tr -d ' '\nwc -l | tr -d ' '\nlast"
	for name, test := range map[string]struct {
		step  step
		fails bool
		want  string
	}{
		"edit": {step{Edit: &editStep{"it's.sh", "wc -l | tr -d ' '\n", "wc -w \\\n  & \\1 'x'\n"}}, false,
			"a 'quoted' \\n line\nwc -w \\\n  & \\1 'x'\nwc -l | tr -d ' '\nlast"},
		"edit, to empty":  {step{Edit: &editStep{"it's.sh", before, ""}}, false, ""},
		"edit, not found": {step{Edit: &editStep{"it's.sh", "no such text", "x"}}, true, before},
		"write":           {step{Write: &writeStep{"it's.sh", "END_OF_FILE\n$HOME `x`\n"}}, false, "END_OF_FILE\n$HOME `x`\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "it's.sh")
			if err := executable.Write(path, []byte(before), 0o755); err != nil {
				t.Fatal(err)
			}
			agent := turn{tools: []tool{{name: "shell", schema: schema{Properties: map[string]property{"command": {Type: "string"}}}}}}
			call, err := agent.plan(test.step)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "-c", call.args["command"].(string))
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); (err != nil) != test.fails {
				t.Fatalf("%v: %s\n%s", err, call.args["command"], out)
			}
			got, err := os.ReadFile(path)
			if err != nil || string(got) != test.want {
				t.Errorf("the file is %q (%v), want %q", got, err, test.want)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("the mode is %v (%v)", info.Mode(), err)
			}
		})
	}
}
