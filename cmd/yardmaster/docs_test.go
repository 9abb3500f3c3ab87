package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/app"
)

// written finds a command line in a document: in a block of shell commands, or between
// backticks.
var written = regexp.MustCompile("(?m)^(?:\\./)?yardmaster .*$|`(?:\\./)?yardmaster [^`]*`")

// word is one word of a command line: letters and quoted parts.
var word = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)

// Every command line of the documents begins with a command that there is, and calls
// capabilities with inputs that they have.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range written.FindAllString(string(text), -1) {
			line = strings.Trim(line, "`")
			words := word.FindAllString(line, -1)[1:]
			if end := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "#") || w == ">" }); end >= 0 {
				words = words[:end]
			}
			words = slices.DeleteFunc(words, func(w string) bool { return w == "…" })
			if slices.Contains([]string{"help", "astray"}, words[0]) {
				continue // it is run before the list is looked at
			}
			root := tree()
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
			args = slices.DeleteFunc(args, func(w string) bool { return strings.HasPrefix(w, "-") })
			if c.CommandPath() != "yardmaster call" || len(args) == 0 {
				continue
			}
			calls++
			i := slices.IndexFunc(app.Ops(), func(o app.Op) bool { return o.ID == args[0] })
			if i < 0 {
				t.Errorf("%s: there is no such capability: %s", page, line)
				continue
			}
			args = slices.DeleteFunc(args[1:], func(w string) bool { return w == "-h" })
			o := app.Ops()[i]
			for _, a := range args {
				name, _, ok := strings.Cut(strings.Trim(a, `'"`), "=")
				if _, known := o.Input()[strings.TrimSuffix(name, ":")]; !ok || !known {
					t.Errorf("%s: %s has no input %s: %s", page, o.ID, a, line)
				}
			}
		}
	}
	if calls < 30 {
		t.Errorf("only %d calls were found in the documents", calls)
	}
}
