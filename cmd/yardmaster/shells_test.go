package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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
		for line, want := range lines {
			script := `source "$HOME/_yardmaster"
line=$1; COMP_LINE=$line; COMP_POINT=${#line}; read -ra COMP_WORDS <<<"$line"; COMP_CWORD=$((${#COMP_WORDS[@]}-1)); COMP_TYPE=9
_get_comp_words_by_ref() { cur=${COMP_WORDS[COMP_CWORD]}; prev=${COMP_WORDS[COMP_CWORD-1]}; words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; }
__start_yardmaster; printf '%s\n' "${COMPREPLY[@]}"`
			shown, _ := p.program([]string{"bash", "--norc", "-c", script, "bash", line})
			if !strings.Contains(shown, want) {
				t.Errorf("%q is completed to %q, not %s", line, shown, want)
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
