package cli

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/cli/object"
	"yardmaster/internal/domain/webhook"
)

// Each shell completes nouns, verbs, values of flags and what the server has. zsh is typed
// to, bash and fish are asked by their own functions.
func TestShellsComplete(t *testing.T) {
	t.Parallel()
	y := yard(t)
	if err := y.Push("acme/website", map[string]string{"a": "a\n"}); err != nil {
		t.Fatal(err)
	}
	// Names of strangers reach the shell as words alone.
	for name, want := range map[string]int{"calm": 200, "evil$(touch owned)": 400} {
		resp, body := y.Send("PUT", "/v1/templates/"+strings.NewReplacer("$", "%24", " ", "%20").Replace(name), y.Owner, "{}")
		if resp.StatusCode != want {
			t.Fatalf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	begin := func(t *testing.T, shell string) *person {
		p := newPerson(t, "YARDMASTER_URL="+y.URL, "YARDMASTER_TOKEN="+y.Owner)
		bin := filepath.Join(p.home, "bin")
		if err := os.MkdirAll(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(self, filepath.Join(bin, "yardmaster")); err != nil {
			t.Fatal(err)
		}
		for i, e := range p.env {
			if rest, ok := strings.CutPrefix(e, "PATH="); ok {
				p.env[i] = "PATH=" + bin + ":" + rest
			}
		}
		cmd := exec.CommandContext(t.Context(), self, "completion", shell)
		cmd.Env = p.env
		script, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(p.home, "_yardmaster"), script, 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	lines := map[string]string{
		"yardmaster task wat":                         "watch",
		"yardmaster task create --repo acme/w":        "acme/website",
		"yardmaster task create --template c":         "calm",
		"yardmaster task list --status awaiting_r":    "awaiting_review",
		"yardmaster call template.s":                  "template.set",
		"yardmaster template view ca":                 "calm",
		"yardmaster completion z":                     "zsh",
		"yardmaster key add --provider anth":          "anthropic",
		"yardmaster pr list --repo acme/w":            "acme/website",
		"yardmaster help budg":                        "budget",
		"yardmaster plan list --bucket st":            "stalled",
		"yardmaster member invite --role vi":          "viewer",
		"yardmaster template set calm --agent openco": "opencode",
	}
	t.Run("bash", func(t *testing.T) {
		p := begin(t, "bash")
		p.env = append(p.env, "PS1=first> ", "INPUTRC=/dev/null")
		if shown, code := p.terminal([]string{"task", "create", "--repo", "acme/website", "Mend it."}); code != 0 {
			t.Fatal(shown)
		}
		all := map[string]string{
			"yardmaster task list --json id,titl":             "id,title",
			"yardmaster task list -o ya":                      "yaml",
			"yardmaster token create --scopes read:tas":       "read:tasks",
			"yardmaster webhook create --events pr.merg":      "pr.merged",
			"yardmaster source connect --kind sen":            "sentry",
			"yardmaster member role ad":                       "ada",
			"yardmaster member role ada vie":                  "viewer",
			"yardmaster call template.get name=ca":            "name=calm",
			"yardmaster task view @la":                        "@last",
			"yardmaster webhook list --context x --json form": "format",
		}
		maps.Copy(all, lines)
		for line, want := range all {
			// A real line editor, without the package bash-completion.
			shown, _ := p.program([]string{"bash", "--norc", "--noprofile", "-i"},
				step{"first> ", "bind 'set enable-bracketed-paste off'; source ~/_yardmaster; PS1='rea''dy> '\r"},
				step{"ready> ", line + "\t"}, step{strings.TrimPrefix(want, last(line)), "\x15exit\r"})
			if !strings.Contains(shown, want) || strings.Contains(shown, "not found") {
				t.Errorf("%q is not completed to %s:\n%s", line, want, shown)
			}
		}
	})
	t.Run("fish", func(t *testing.T) {
		p := begin(t, "fish")
		for line, want := range lines {
			shown, _ := p.program([]string{"fish", "--no-config", "-c", `source $HOME/_yardmaster; complete -C "$argv[1]"`, line})
			if !strings.Contains(shown, want) {
				t.Errorf("%q is completed to %q, not %s", line, shown, want)
			}
		}
	})
	t.Run("zsh", func(t *testing.T) {
		p := begin(t, "zsh")
		p.env = append(p.env, "PS1=first> ")
		for line, want := range lines {
			// A real line editor: the line is typed, Tab pressed, and the line sent.
			shown, _ := p.program([]string{"zsh", "-f", "-i"},
				step{"first> ",
					"autoload -Uz compinit && compinit -u -D; source ~/_yardmaster; compdef _yardmaster yardmaster; PS1='rea''dy> '\r"},
				step{"ready> ", line + "\t"}, step{strings.TrimPrefix(want, last(line)), "\x15exit\r"})
			if strings.Contains(shown, "owned") {
				t.Errorf("%q ran something:\n%s", line, shown)
			}
		}
	})
}

func last(line string) string { return line[strings.LastIndexByte(line, ' ')+1:] }

// Pull requests are completed by their numbers, and ids as inputs of a call.
func TestNumbersAreCompleted(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{
		"GET /v1/repos/acme/web/prs": `{"data": [{"id": "` + someID + `", "number": 3, "title": "Mend it"}]}`,
		"GET /v1/tasks":              `{"data": [{"id": "` + otherID + `", "title": "Mend it"}]}`,
	})
	for line, want := range map[string]string{"pr view acme/web#": "acme/web#3", "task view acme/web#": "acme/web#3",
		"call task.run_status id=": "id=" + otherID} {
		_, out, errs := yardmasterAt(t, f.URL, append([]string{"__complete"}, strings.Fields(line)...)...)
		if !strings.Contains(out, want) {
			t.Errorf("%s: %q %s", line, out, errs)
		}
	}
}

// An object is completed by whatever names it, and a list by values that it does not have yet.
func TestNamesAreCompleted(t *testing.T) {
	t.Parallel()
	pulls := `{"data": [{"id": "` + someID + `", "number": 3, "repo": "acme/web", "title": "Mend it", "head_ref": "acme/way"}]}`
	f := newFake(t, map[string]string{
		"GET /v1/repos":              `{"data": [{"full_name": "acme/web"}, {"full_name": "other/way"}]}`,
		"GET /v1/repos/acme/web/prs": pulls, "GET /v1/prs": pulls,
		"GET /v1/runners": `{"data": [{"id": "` + someID + `", "name": "builder"}, {"id": "` + otherID + `", "name": "twice"},
			{"id": "12345678-1234-4234-8234-123456789abd", "name": "twice"}]}`,
		"GET /v1/tasks": `{"data": [{"id": "` + otherID + `", "title": "Mend it"}]}`,
	})
	for line, want := range map[string]string{
		"pr view acme/w":                             "acme/way acme/web#3",
		"pr approve acme/we":                         "acme/web#3",
		"task view acme/w":                           "acme/web#3",
		"open pr acme/we":                            "acme/web#3",
		"open box b":                                 "builder",
		"open pr " + someID[:4]:                      object.Part(someID, 12),
		"box view t":                                 "",
		"task list --box b":                          "builder",
		"task list --status failed,he":               "failed,held",
		"task list --status failed,f":                "",
		"audit list --kind template.s":               "template.set",
		"task create --after x," + otherID[:4]:       "x," + object.Part(otherID, 12),
		"task list --template b":                     "",
		"check list --pr acme/we":                    "acme/web#3",
		"box list --presence online,stale,of":        "online,stale,offline",
		"notification list --kind approval,block":    "",
		"pr list --state merged,op":                  "",
		"session list --outcome succeeded,inter":     "succeeded,interrupted",
		"webhook create --events pr.merged,issue.ha": "pr.merged,issue.handoff",
	} {
		_, out, errs := yardmasterAt(t, f.URL, append([]string{"__complete"}, strings.Fields(line)...)...)
		var got []string
		for line := range strings.Lines(out) {
			if value, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); !strings.HasPrefix(value, ":") {
				got = append(got, value)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, not %q %s", line, got, want, errs)
		}
	}
}

// What is offered as events of a webhook are those that it may ask for.
func TestEventsOfWebhooks(t *testing.T) {
	t.Parallel()
	offered := slices.Sorted(slices.Values(eventTypes(t.Context(), nil, "")))
	if want := slices.Sorted(slices.Values(webhook.Types())); !slices.Equal(offered, want) {
		t.Errorf("%q is offered, not %q", offered, want)
	}
}
