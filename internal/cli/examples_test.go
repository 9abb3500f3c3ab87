package cli

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/tree"
)

// exampleLine is the part of an example that is a command line of this program.
var exampleLine = regexp.MustCompile(`yardmaster [^|<>)]*`)

// Each command that a person calls has an example, which the command takes: its flags are known, and no plain
// argument is missing or too many.
func TestExamples(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, c := range commands() {
		known[c.Words] = true
		if len(c.Examples) == 0 && c.Words != "git-credential" { // which git calls
			t.Errorf("%s has no example", c.Words)
		}
		own := 0
		for _, example := range c.Examples {
			words := word.FindAllString(exampleLine.FindString(example), -1)
			if len(words) < 2 {
				t.Errorf("%s has the example %q, which is no command line", c.Words, example)
				continue
			}
			for i := range words {
				words[i] = strings.Trim(words[i], `'"`)
			}
			of, args, err := commandLine().Tree(words[1]).Find(words[1:])
			if err != nil || of.CommandPath() != "yardmaster "+c.Words {
				continue
			}
			own++
			if slices.Contains(args, "-h") {
				continue
			}
			if err := of.ParseFlags(args); err != nil {
				t.Errorf("%s does not take %q: %v", c.Words, example, err)
			}
			plain, wants := of.Flags().Args(), c.Wants()
			least := len(slices.DeleteFunc(slices.Clone(wants), func(w string) bool { return strings.HasPrefix(w, "[") }))
			if c.Here != nil || c.Picks != nil {
				least = 0
			}
			if many := strings.Contains(c.Args, "…"); len(plain) < least || len(plain) > len(wants) && !many {
				t.Errorf("%s wants %q, and has the example %q", c.Words, wants, example)
			}
		}
		if own == 0 && len(c.Examples) > 0 {
			t.Errorf("%s has no example of itself: %q", c.Words, c.Examples)
		}
	}
	for words := range examplesOf() {
		if !known[words] {
			t.Errorf("there is an example of %s, which is no command", words)
		}
	}
}

// --json with nothing after it names the members, of every command that has it.
func TestMembersAreNamed(t *testing.T) {
	t.Parallel()
	root, seen := wholeTree(), 0
	for _, c := range commands() {
		args := strings.Fields(c.Words)
		of, _, err := root.Find(args)
		if err != nil || of.Flags().Lookup("json") == nil {
			continue
		}
		seen++
		if c.Words == "call" {
			args = append(args, "task.run_status")
		}
		code, _, errs := told(append(args, "--json")...)
		if code != exit.CodeMisused || !strings.Contains(errs, "a value is missing for --json: some of ") {
			t.Errorf("%s --json: %d %s", c.Words, code, errs)
		}
	}
	if seen < 100 {
		t.Errorf("only %d commands have --json", seen)
	}
}

// The members of the status are its parts and its numbers.
func TestStatusMembers(t *testing.T) {
	t.Parallel()
	want := []string{}
	for _, p := range statusParts() {
		want = append(want, p.name)
	}
	want = append(want, "counts", "spending", "unread", "needs", "more", "at_least", "first_steps")
	if got := statusMembers(); !slices.Equal(got, want) {
		t.Errorf("the members of the status are %q", got)
	}
}

// Every command says in a line what it is for, and so does every word that commands begin with.
func TestEveryCommandIsDescribed(t *testing.T) {
	t.Parallel()
	var all func(*cobra.Command)
	all = func(c *cobra.Command) {
		if c.Short == "" {
			t.Errorf("nothing says what %s is", c.CommandPath())
			return
		}
		tree.Describe(io.Discard, c)
		for _, sub := range c.Commands() {
			all(sub)
		}
	}
	all(wholeTree())
}
