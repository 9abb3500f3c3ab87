package cli

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
)

// saysNothing are the commands that change something and print neither their undo nor a next
// step, with the reason.
var saysNothing = map[string]string{
	"repo ask":           "it reads, and spends what a model costs",
	"call":               "it makes any call, and prints what the server answers for programs",
	"task watch":         "it shows what happens until the task ends; TestWatchIsAnsweredThere plays what is typed there",
	"session watch":      "it reads alone, until the session ends",
	"box join":           "it runs as a box until it is stopped",
	"box run":            "it runs as a box until it is stopped",
	"box agents":         "it looks at the programs of this machine",
	"login":              "auth login under another name",
	"auth login":         "its undo is auth logout, its next step what the person came for",
	"operator token":     "it prints the token, for another command to take, and keeps nothing",
	"man":                "it writes files into the folder that was named",
	"git-credential":     "git calls it, and reads its output",
	"simulate":           "nothing has changed: it computes what would have been",
	"session replay":     "nothing has changed: it computes what would have been decided",
	"repo add":           "TestCloneKnowsItsRepository plays it with a real repository",
	"demo":               "its server is thrown away",
	"chaos":              "its server is thrown away",
	"simulate fleet":     "its server is thrown away",
	"serve":              "it runs until it is stopped",
	"keys rotate":        "TestRotationKilledAgainAndAgain holds that it names keys forget",
	"keys forget":        "a key that is forgotten holds nothing, and cannot be had again",
	"keys new":           "it prints a key and keeps nothing",
	"audit accept":       "what is accepted stays in the record: it has no undo, and nothing has to follow",
	"doctor":             "it looks, and changes nothing",
	"box agents install": "it needs npm; box agents shows what came of it",
}

// words that a real answer may have, for members whose text means something to a command.
const plainAnswer = "word"

// nextStep is a command line to copy, of this program, of git or of a shell.
var nextStep = regexp.MustCompile("(?:^|[`\\s])(?:yardmaster [a-z]|git [a-z])")

// noting is a server that answers each capability with an object of its type, and notes the
// calls that may change something.
type noting struct {
	mu      sync.Mutex
	changes []string
	answers []answered
}

type answered struct {
	method string
	path   *regexp.Regexp
	body   []byte
}

func newNoting(t *testing.T) *noting {
	t.Helper()
	n := &noting{}
	for _, o := range capability.All() {
		body := any(map[string]any{})
		if o.Output() != nil {
			body = filledWith(o.Output(), plainAnswer, 0)
		}
		if m, ok := body.(map[string]any); ok {
			for _, name := range []string{"id", "task_id", "planId", "plan_id", "askId"} {
				if _, has := m[name]; has {
					m[name] = someID
				}
			}
			m["next_cursor"] = nil
		}
		b, err := object.Encode(body)
		if err != nil {
			t.Fatal(err)
		}
		path := regexp.MustCompile(`\\\{[^}]*\\\}`).ReplaceAllString(regexp.QuoteMeta(o.Path), "[^/]+")
		n.answers = append(n.answers, answered{o.Method, regexp.MustCompile("^" + path + "$"), b})
	}
	return n
}

func (n *noting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r.Method != http.MethodGet {
		n.changes = append(n.changes, r.Method+" "+r.URL.Path)
	}
	for _, of := range n.answers {
		if of.method == r.Method && of.path.MatchString(r.URL.EscapedPath()) {
			_, _ = w.Write(of.body)
			return
		}
	}
	_, _ = w.Write([]byte("{}"))
}

// made are the changes since the last call.
func (n *noting) made() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.changes
	n.changes = nil
	return all
}

// files are the files of a folder with their sizes and times, but not what commands remember
// of what they have shown.
func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.Contains(path, "cache") {
			return err
		}
		b, err := os.ReadFile(path)
		all = append(all, path+" "+string(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Each command of the tree that changes something, at a server or in the person's own files,
// prints a command that undoes it or comes next. Which commands change something is seen when
// they are run: they make a call other than GET, or a file differs.
func TestChangesSayWhatComesNext(t *testing.T) {
	n := newNoting(t)
	h := httptest.NewServer(n)
	defer h.Close()
	home := t.TempDir()
	for name, value := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": filepath.Join(home, "config"),
		"XDG_CACHE_HOME": filepath.Join(home, "cache"), "YARDMASTER_URL": h.URL, "YARDMASTER_TOKEN": "t", "YARDMASTER_KEYRING": "off",
		"BROWSER": "true", "EDITOR": "true", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": filepath.Join(home, "gitconfig")} {
		t.Setenv(name, value)
	}
	t.Chdir(home)
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("plan/overview.md", "# Plan\n")
	write("plan/01-first.md", "# First\n")
	write("value.txt", "long-enough-value\n")
	stdout, stdin, stderr := os.Stdout, os.Stdin, os.Stderr
	defer func() { os.Stdout, os.Stdin, os.Stderr, signin.Context = stdout, stdin, stderr, "" }()
	changing := map[string]bool{}
	for _, c := range commands() {
		if saysNothing[c.Words] != "" && c.Words != "session replay" {
			continue
		}
		write("config/yardmaster/login.json", `{"current": "one", "contexts": {"one": {"url": "`+h.URL+
			`", "token": "t"}, "two": {"url": "http://127.0.0.1:1", "token": "t"}}}`)
		args := argumentsOf(t, &c)
		typed, err := os.Open(filepath.Join(home, "value.txt"))
		if err != nil {
			t.Fatal(err)
		}
		os.Stdin = typed
		before := files(t, home)
		n.made()
		said := printed(t, args)
		_ = typed.Close()
		calls := n.made()
		if len(calls) == 0 && slices.Equal(before, files(t, home)) {
			if c.Does != nil && capability.All()[c.Does.Capability()].Method != http.MethodGet {
				t.Errorf("%q makes no call: %s", args, said)
			}
			continue
		}
		changing[c.Words] = true
		if !nextStep.MatchString(said) && saysNothing[c.Words] == "" {
			t.Errorf("%q changes something (%q) and prints no command that undoes it or comes next:\n%s", args, calls, said)
		}
	}
	for _, words := range []string{"repo create", "key add", "task create", "task cancel", "task reassign", "task redispatch", "pr approve",
		"pr skip", "pr merge", "pr ask-again", "ask file", "plan file", "blocker fill", "github redeliver", "auth use", "auth git",
		"auth logout", "secret set", "budget set", "setup"} {
		if !changing[words] {
			t.Errorf("%s changed nothing when it was run", words)
		}
	}
	if len(changing) < 70 {
		t.Errorf("only %d commands change something", len(changing))
	}
	known := map[string]bool{}
	for _, c := range commands() {
		known[c.Words] = true
	}
	for words := range saysNothing {
		if !known[words] {
			t.Errorf("%s is an exception and no command", words)
		}
	}
}

// argumentsOf is a command line of a command that a server takes: its plain arguments, and the
// flags that it cannot be without.
func argumentsOf(t *testing.T, c *tree.Command) []string {
	t.Helper()
	args := strings.Fields(c.Words)
	for _, name := range c.Wants() {
		word := someID
		switch {
		case c.Words == "plan file":
			word = "plan"
		case c.Words == "auth use":
			word = "two"
		case c.Words == "key price" && name == "PRICE":
			word = "null"
		case strings.HasPrefix(name, "[") && strings.Contains(name, "NAME=VALUE"):
			word = "word=value"
		case strings.Contains(name, "NAME") && strings.Contains(name, "/"):
			word = "acme/web"
		case name == "USD", name == "CALLS", name == "PRIORITY":
			word = "5"
		case name == "[ADDRESS]":
			word = "bob@example.com"
		case name == "ROLE":
			word = "member"
		}
		args = append(args, word)
	}
	if c.Words == "mail" {
		args = []string{"mail", "--retry", someID}
	}
	flags := flagsOf(c.Words)
	has := func(name string) bool { return slices.Contains(flags, name) }
	if has("repo") {
		args = append(args, "--repo=acme/web")
	}
	if c.Words == "setup" {
		args = append(args, "--token=word", "--login=ada", "--email=ada@example.com", "--account=acme")
	}
	if c.Words == "key add" {
		args = append(args, "--provider=openai")
	}
	if c.Does == nil {
		return args
	}
	if c.Does.(*act.Act).Text == "yml" {
		args = append(args, "--file=value.txt")
	}
	for _, in := range capability.All()[c.Does.Capability()].Inputs() {
		name := strings.ReplaceAll(in.Name, "_", "-")
		if !has(name) || !in.Required || name == "repo" {
			continue
		}
		value := plainAnswer
		if in.Kind == "number" {
			value = "5"
		}
		args = append(args, "--"+name+"="+value)
	}
	return args
}
