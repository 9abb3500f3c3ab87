package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"yardmaster/internal/client"
)

// values answer what a plain argument or a flag may be. words are the plain arguments
// before it, begun is its beginning. A tab ends a value and begins its description.
type values func(ctx context.Context, words []string, begun string) []string

// completionTime is the longest that a person waits for values.
const completionTime = 10 * time.Second

func fixed(all ...string) values {
	return func(context.Context, []string, string) []string { return all }
}

// namesOf are the names of the objects of a noun, for those who write them.
func namesOf(n *noun) values {
	return func(ctx context.Context, _ []string, begun string) []string {
		c, err := connect()
		if err != nil {
			return nil
		}
		in := n.within(ctx, "")
		of := n
		if n.perRepo && in == nil {
			if n.name != "pr" {
				return nil
			}
			of = nounCalled("question")
		}
		if _, known := filters(one(of.list))["id"]; known && partOf.MatchString(begun) {
			in = append(in, given{name: "filter", text: "id:" + begun})
		}
		rows, _, err := of.rows(ctx, c, in, 100)
		if err != nil {
			return nil
		}
		if len(rows) == 0 && len(in) > 0 && in[len(in)-1].name == "filter" { // begun is the middle of one
			if rows, _, err = of.rows(ctx, c, in[:len(in)-1], 100); err != nil {
				return nil
			}
		}
		var all []string
		for _, r := range rows {
			var row map[string]any
			if json.Unmarshal(r, &row) != nil {
				continue
			}
			// A shell puts what is chosen into its line: it must be one plain word.
			name := part(of.id(row), 12)
			if of.key != "" {
				name = of.id(row)
			}
			if name != "" && name[0] != '-' && client.Inert(name) == name && !strings.ContainsAny(name, " \t$`\"'\\;&|<>(){}*?!#~") {
				all = append(all, name+"\t"+described(of, row))
			}
		}
		return all
	}
}

// described is what a completion says of an object: inert, and without what shells read.
func described(n *noun, row map[string]any) string {
	var words []string
	for _, at := range []string{"status", "state", n.label} {
		if text := plainText(row[at]); text != "" {
			words = append(words, text)
		}
	}
	return client.Inert(strings.Join(words, " "))
}

func contextNames(context.Context, []string, string) []string {
	all, err := client.ReadLogins()
	if err != nil {
		return nil
	}
	var out []string
	for _, name := range all.Names() {
		out = append(out, name+"\t"+all.Logins[name].URL)
	}
	return out
}

func pageNouns(context.Context, []string, string) (all []string) {
	for _, n := range nouns() {
		if n.page != "" {
			all = append(all, n.name)
		}
	}
	return all
}

func capabilities(context.Context, []string, string) (all []string) {
	for _, id := range sorted(ops()) {
		all = append(all, id+"\t"+ops()[id].Summary)
	}
	return all
}

func inputsOfCall(_ context.Context, words []string, _ string) (all []string) {
	if len(words) == 0 || ops()[words[0]] == nil {
		return nil
	}
	for _, in := range ops()[words[0]].Inputs() {
		all = append(all, in.Name+"=\t"+in.Doc)
	}
	return all
}

// completeWith is values for a shell.
func completeWith(from values) cobra.CompletionFunc {
	return func(c *cobra.Command, words []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx := c.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		ctx, cancel := context.WithTimeout(ctx, completionTime)
		defer cancel()
		var out []string
		directive := cobra.ShellCompDirectiveNoFileComp
		for _, v := range from(ctx, words, begun) {
			value, about, _ := strings.Cut(v, "\t")
			if !strings.HasPrefix(value, begun) {
				continue
			}
			if strings.HasSuffix(value, "=") {
				directive |= cobra.ShellCompDirectiveNoSpace
			}
			if about != "" {
				value += "\t" + client.Inert(strings.ReplaceAll(about, "\t", " "))
			}
			out = append(out, value)
		}
		return out, directive
	}
}

// complete completes the plain arguments of a command.
func (c *command) complete(cc *cobra.Command, words []string, begun string) ([]string, cobra.ShellCompDirective) {
	want := c.wants()
	if len(want) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	at := want[min(len(words), len(want)-1)]
	if len(words) >= len(want) && !strings.Contains(at, "…") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	name := strings.Trim(at, "[]…")
	switch {
	case c.values[name] != nil:
		return completeWith(c.values[name])(cc, words, begun)
	case len(words) == 0 && c.of != nil:
		return completeWith(namesOf(c.of))(cc, words, begun)
	case name == "FILE" || name == "DIR" || name == "PATH|URL" || name == "PATH":
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// subcommands are the words that may follow others.
func subcommands(root *cobra.Command, words []string, begun string) (all []string) {
	at, _, err := root.Find(words)
	if err != nil {
		return nil
	}
	for _, c := range at.Commands() {
		if !c.Hidden && strings.HasPrefix(c.Name(), begun) {
			all = append(all, c.Name()+"\t"+c.Short)
		}
	}
	return all
}

// completions has the program's own command for scripts take the place of the library's.
func completions(root *cobra.Command) { root.CompletionOptions.DisableDefaultCmd = true }

func runCompletion(_ context.Context, plain []string) error {
	root := tree()
	switch plain[0] {
	case "bash":
		return root.GenBashCompletionV2(os.Stdout, true)
	case "zsh":
		return root.GenZshCompletion(os.Stdout)
	case "fish":
		return root.GenFishCompletion(os.Stdout, true)
	}
	return misused("there is no script for %q, but for bash, zsh and fish", plain[0])
}

// runMan writes the manual pages.
func runMan(_ context.Context, plain []string) error {
	dir := filepath.Clean(plain[0])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := tree()
	root.DisableAutoGenTag = true
	day := time.Unix(0, 0).UTC() // the pages depend on the program alone
	if err := doc.GenManTree(root, &doc.GenManHeader{Title: "YARDMASTER", Section: "1",
		Source: "yardmaster " + version, Date: &day}, dir); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(dir, "yardmaster*.1"))
	if err != nil {
		return err
	}
	fmt.Printf("%d pages are in %s; `man -M` wants them in a folder man1 of its argument.\n", len(pages), dir)
	return nil
}
