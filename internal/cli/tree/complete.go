package tree

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/client"
)

// Values answer what a plain argument or a flag may be. words are the plain arguments
// before it, begun is its beginning. A tab ends a value and begins its description.
type Values func(ctx context.Context, words []string, begun string) []string

// completionTime is the longest that a person waits for values.
const completionTime = 10 * time.Second

// Fixed are values that are always the same.
func Fixed(all ...string) Values {
	return func(context.Context, []string, string) []string { return all }
}

// ContextNames are the contexts that are stored, with their servers.
func ContextNames(context.Context, []string, string) []string {
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

// completeWith is values for a shell.
func completeWith(from Values) cobra.CompletionFunc {
	return func(c *cobra.Command, words []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx := c.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		ctx, cancel := context.WithTimeout(client.Telling(ctx, nil), completionTime) // who completes a word is told nothing else
		defer cancel()
		var out []string
		directive := cobra.ShellCompDirectiveNoFileComp
		for _, v := range from(ctx, words, begun) {
			value, about, _ := strings.Cut(v, "\t")
			if !strings.HasPrefix(value, begun) {
				continue
			}
			if strings.HasSuffix(value, "=") || strings.HasSuffix(value, "#") { // more belongs to the word
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
func (c *Command) complete(cc *cobra.Command, words []string, begun string) ([]string, cobra.ShellCompDirective) {
	want := c.Wants()
	if len(want) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	at := want[min(len(words), len(want)-1)]
	if len(words) >= len(want) && !strings.Contains(at, "…") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	name := strings.Trim(at, "[]…")
	switch {
	case c.Values[name] != nil:
		return completeWith(c.Values[name])(cc, words, begun)
	case len(words) == 0 && c.Of != nil:
		return completeWith(c.Of.Begun)(cc, words, begun)
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

// Listed are values of which several may be given, with commas between: the last is completed.
func Listed(of Values) Values {
	return func(ctx context.Context, words []string, begun string) (out []string) {
		before := begun[:strings.LastIndexByte(begun, ',')+1]
		taken := strings.Split(before, ",")
		for _, v := range of(ctx, words, begun[len(before):]) {
			if value, _, _ := strings.Cut(v, "\t"); !slices.Contains(taken, value) {
				out = append(out, before+v)
			}
		}
		return out
	}
}

// completes has the values of a flag completed.
func (l Line) completes(c *cobra.Command, flag string, from Values) {
	if l.Completes {
		_ = c.RegisterFlagCompletionFunc(flag, completeWith(from))
	}
}

// valuesOfFlags completes the flags that many commands have.
func (l Line) valuesOfFlags(c *Command, cc *cobra.Command) {
	all := maps.Clone(l.Values)
	all["json"] = Listed(func(context.Context, []string, string) []string { return l.fieldsOf(cc) })
	all["output"] = Fixed("table", "json", "yaml")
	for name, from := range all {
		f := cc.Flags().Lookup(name)
		if f == nil || c.Values[name] != nil {
			continue
		}
		if kind, _ := flag.UnquoteUsage(f); kind != "TEMPLATE" { // which is a text for an answer, and no name
			l.completes(cc, name, from)
		}
	}
	cc.Flags().VisitAll(func(f *flag.Flag) {
		if f.NoOptDefVal == "true" && f.Value.Type() == "string" && c.Values[f.Name] == nil {
			l.completes(cc, f.Name, Fixed("true", "false"))
		}
	})
}

// fieldsOf are the members of what a command answers, for --json.
func (l Line) fieldsOf(c *cobra.Command) []string {
	words := strings.TrimPrefix(c.CommandPath(), "yardmaster ")
	for _, of := range l.Commands() {
		if of.Words != words {
			continue
		}
		if of.Members != nil {
			return of.Members
		}
		id := of.Answers
		switch {
		case id == "" && of.Does != nil:
			id = of.Does.Capability()
		case words == "call":
			id = c.Flags().Arg(0)
		}
		if capability.One(id) == nil || capability.One(id).Output() == nil {
			return nil
		}
		if of.Rows {
			return capability.Members(capability.RowOf(capability.One(id).Output()))
		}
		return capability.Members(capability.One(id).Output())
	}
	return nil
}

// known fails with misuse if --json names a field that what a command answers does not have, before
// the command has changed anything. A list says so by its rows, and what calls any capability by
// its answer.
func (l Line) known(c *cobra.Command, of Command) error {
	f := c.Flags().Lookup("json")
	if f == nil || !f.Changed || of.Rows || of.Words == "call" || f.Value.String() == "*" {
		return nil
	}
	fields := l.fieldsOf(c)
	for name := range strings.SplitSeq(f.Value.String(), ",") {
		first, _, _ := strings.Cut(strings.TrimSpace(name), ".")
		if len(fields) > 0 && !slices.Contains(fields, first) {
			return exit.Misused("there is no field %q; there are %s", strings.TrimSpace(name), strings.Join(fields, ", "))
		}
	}
	return nil
}
