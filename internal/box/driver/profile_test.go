package driver

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func job(t *testing.T, agent string) Job {
	return Job{
		Agent: agent, Model: "vendor/m-1", ModelURL: "http://127.0.0.1:9", ModelToken: "run-token",
		Task: "/task", Home: "/home/agent", HostHome: t.TempDir(), Self: "/opt/self",
	}
}

func TestPrepareEveryProfile(t *testing.T) {
	for _, p := range Profiles() {
		t.Run(p.Name, func(t *testing.T) {
			j := job(t, p.Name)
			l, err := Prepare(j, Found{Name: p.Name, Version: "1.2.3", Argv: []string{"/opt/bin/" + p.Bin}, ReadOnly: []string{"/opt/bin"}})
			if err != nil {
				t.Fatal(err)
			}
			program := "/opt/bin/" + p.Bin
			if p.Bin == "" {
				program = "/opt/self"
			}
			if l.Argv[0] != program || len(l.Argv) != 1+len(p.Args) || l.Dir != "/task" || l.Version != "1.2.3" || l.Mode != p.Mode {
				t.Errorf("%+v", l)
			}
			if l.Env["HOME"] != "/home/agent" {
				t.Errorf("HOME is %q", l.Env["HOME"])
			}
			// The model, the gateway and the token must each reach the agent, by
			// one way or another, and the token never by a file or an argument.
			var env []string
			for _, v := range l.Env {
				env = append(env, v)
			}
			files := readAll(t, j.HostHome)
			all := strings.Join(append(env, l.Argv...), "\n") + files
			for _, want := range []string{"vendor/m-1", "http://127.0.0.1:9"} {
				if !strings.Contains(all, want) {
					t.Errorf("%s reaches the agent nowhere", want)
				}
			}
			if !slices.Contains(env, "run-token") || strings.Contains(files+strings.Join(l.Argv, " "), "run-token") {
				t.Error("the token must be in the environment, and only there")
			}
		})
	}
}

func readAll(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		out.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPrepareRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Job, *Found)
		want   string
	}{
		"an unknown agent":       {func(j *Job, _ *Found) { j.Agent = "x" }, `no agent is called "x"`},
		"another agent":          {func(_ *Job, f *Found) { f.Name = "goose" }, "goose was found instead"},
		"no agent":               {func(_ *Job, f *Found) { *f = Found{} }, "not installed"},
		"no model":               {func(j *Job, _ *Found) { j.Model = "" }, "a model"},
		"an unknown option":      {func(j *Job, _ *Found) { j.Options = map[string]string{"speed": "1"} }, `no option "speed"`},
		"a codex home under tmp": {func(j *Job, _ *Found) { j.Home = "/tmp/home" }, "temporary folder"},
	} {
		j, f := job(t, "codex"), Found{Name: "codex", Argv: []string{"/x"}}
		tc.change(&j, &f)
		if _, err := Prepare(j, f); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConfigurationStaysInTheHome(t *testing.T) {
	j := job(t, "codex")
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(j.HostHome, ".codex")); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(j, Found{Name: "codex", Argv: []string{"/x"}}); err == nil {
		t.Error("a planted link was followed out of the home")
	}
	if got := readAll(t, outside); got != "" {
		t.Errorf("written outside: %s", got)
	}
}

func TestOpencodeConfiguration(t *testing.T) {
	j := job(t, "opencode")
	j.Options = map[string]string{"small_model": "tiny", "context_tokens": "1000"}
	l, err := Prepare(j, Found{Name: "opencode", Argv: []string{"/x"}})
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Model      string
		SmallModel string `json:"small_model"`
		Provider   map[string]struct {
			Models map[string]struct{ Limit struct{ Context int } }
		}
		Permission map[string]string
	}
	if err := json.Unmarshal([]byte(l.Env["OPENCODE_CONFIG_CONTENT"]), &c); err != nil {
		t.Fatal(err)
	}
	if c.Model != "box/vendor/m-1" || c.SmallModel != "box/tiny" || len(c.Provider["box"].Models) != 2 ||
		c.Provider["box"].Models["tiny"].Limit.Context != 1000 || c.Permission["bash"] != "allow" {
		t.Errorf("%+v", c)
	}
}

// TestPinnedVersionsAgree holds that the versions fetched on demand are those of
// `make e2e-agents` and of the documents.
func TestPinnedVersionsAgree(t *testing.T) {
	text, err := os.ReadFile("../../proof/e2e/agents/package.json")
	if err != nil {
		t.Fatal(err)
	}
	var tried struct{ Dependencies map[string]string }
	if err := json.Unmarshal(text, &tried); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Profiles() {
		if p.Version == "" {
			continue
		}
		if tried.Dependencies[p.Package] != p.Version {
			t.Errorf("%s %s is fetched, and %q tried", p.Package, p.Version, tried.Dependencies[p.Package])
		}
		if row := fmt.Sprintf("| `%s` %s, Node.js %d |", p.Package, p.Version, p.Node); !strings.Contains(string(page), row) {
			t.Errorf("docs/agents.md does not say %s", row)
		}
	}
}
