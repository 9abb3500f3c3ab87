package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/app"
	"yardmaster/internal/cli/exit"
)

// written finds a command line in a document: in a block of shell commands, or between
// backticks.
var written = regexp.MustCompile("(?m)^(?:\\./)?yardmaster .*$|`(?:\\./)?yardmaster [^`]*`")

// word is one word of a command line: letters and quoted parts.
var word = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)

// copied finds a command line in the source of what shows it to people, who copy it.
var copied = regexp.MustCompile(`"yardmaster [^"\\]*"`)

// Every command line of the documents, of the dashboard and of the first steps begins with a command that there is, and calls
// capabilities with inputs that they have.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	sources := []string{"../../internal/domain/onboarding/onboarding.go"}
	for _, folder := range []string{"home", "cards", "pages", "pages/platform", "pages/settings"} {
		found, err := filepath.Glob("../../internal/web/src/" + folder + "/*.tsx")
		if err != nil || len(found) == 0 {
			t.Fatal("the dashboard has no ", folder, err)
		}
		sources = append(sources, found...)
	}
	calls, root := 0, wholeTree()
	for _, page := range slices.Concat(pages, []string{"../../README.md", "../../CONTRIBUTING.md"}, sources) {
		lines := written
		if slices.Contains(sources, page) {
			lines = copied
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines.FindAllString(string(text), -1) {
			if line = strings.Trim(line, "`"); slices.Contains(sources, page) {
				line = strings.Trim(line, `" `)
			}
			words := word.FindAllString(line, -1)[1:]
			if end := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "#") || w == ">" }); end >= 0 {
				words = words[:end]
			}
			words = slices.DeleteFunc(words, func(w string) bool { return w == "…" })
			if slices.Contains([]string{"help", "astray"}, words[0]) {
				continue // it is run before the list is looked at
			}
			words = commandLine().Spelled(words)
			c, args, err := root.Find(words)
			if err != nil || c == root && !strings.HasPrefix(words[0], "-") {
				t.Errorf("%s: there is no such command: %s", page, line)
				continue
			}
			for _, w := range words {
				name, _, _ := strings.Cut(strings.TrimPrefix(strings.Trim(w, `[]'"`), "--"), "=")
				if strings.HasPrefix(strings.TrimLeft(w, "["), "--") && name != "" && c.Flags().Lookup(name) == nil &&
					root.PersistentFlags().Lookup(name) == nil {
					t.Errorf("%s: %s has no flag --%s: %s", page, c.CommandPath(), name, line)
				}
			}
			if flag := slices.IndexFunc(args, func(w string) bool { return strings.HasPrefix(w, "-") }); flag >= 0 {
				args = args[:flag] // flags come last in these pages
			}
			if c.CommandPath() != "yardmaster call" || len(args) == 0 {
				continue
			}
			calls++
			i := slices.IndexFunc(app.Ops(), func(o app.Op) bool { return o.ID == args[0] })
			if i < 0 {
				t.Errorf("%s: there is no such capability: %s", page, line)
				continue
			}
			o := app.Ops()[i]
			for _, a := range args[1:] {
				name, _, ok := strings.Cut(strings.Trim(a, `'"`), "=")
				if _, known := o.Input()[strings.TrimSuffix(name, ":")]; !ok || !known {
					t.Errorf("%s: %s has no input %s: %s", page, o.ID, a, line)
				}
			}
		}
	}
	if calls < 12 {
		t.Errorf("only %d calls were found in the documents", calls)
	}
}

// docs/cli.md has every exit code and every command.
func TestCommandsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []int{0, exit.CodeFailed, exit.CodeMisused, exit.CodeRefused, exit.CodeNoAnswer, exit.CodeNoLogin,
		exit.CodeNotFound, exit.CodeInterrupted} {
		if !strings.Contains(string(page), fmt.Sprintf("\n| %d | ", code)) {
			t.Errorf("docs/cli.md does not say what the exit code %d means", code)
		}
	}
	verbs := map[string][]string{}
	var order []string
	for _, c := range commands() {
		noun, verb, _ := strings.Cut(c.Words, " ")
		if verbs[noun] == nil {
			order = append(order, noun)
		}
		if verb == "" {
			verb = "itself"
		}
		verbs[noun] = append(verbs[noun], "`"+verb+"`")
	}
	want := ""
	for _, noun := range order {
		want += "| `" + noun + "` | " + strings.ReplaceAll(strings.Join(verbs[noun], ", "), "`itself`", "by itself") + " |\n"
	}
	if !strings.HasSuffix(string(page), "\n| --- | --- |\n"+want) {
		t.Errorf("docs/cli.md does not end with these commands:\n%s", want)
	}
	signing, err := os.ReadFile("../../docs/terminal.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, variable := range []string{"YARDMASTER_URL", "YARDMASTER_TOKEN", "YARDMASTER_CONTEXT", "YARDMASTER_KEYRING", "NO_COLOR"} {
		if !strings.Contains(string(signing), "`"+variable+"`") {
			t.Errorf("docs/terminal.md does not explain %s", variable)
		}
	}
}

// shown finds a command line that the dashboard shows.
var shown = regexp.MustCompile(`(?:<code>|<Code text=")yardmaster ([^<"]*)`)

// Every command line that the dashboard shows begins with a command that there is.
func TestDashboardCommands(t *testing.T) {
	t.Parallel()
	root, seen := wholeTree(), 0
	if err := filepath.WalkDir("../../internal/web/src", func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".tsx" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range shown.FindAllStringSubmatch(string(text), -1) {
			seen++
			c, rest, err := root.Find(word.FindAllString(m[1], -1))
			if err != nil || c == root || c.HasSubCommands() {
				t.Errorf("%s: there is no such command: yardmaster %s %q", path, m[1], rest)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if seen < 8 {
		t.Errorf("only %d commands were found in the dashboard", seen)
	}
}
