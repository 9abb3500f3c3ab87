package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/signin"
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
		c, err := signin.Connect()
		if err != nil {
			return nil
		}
		in := n.within(ctx)
		of := n
		if n.perRepo && in == nil {
			if of = n.wide(); of.perRepo {
				return nil
			}
		}
		if _, known := capability.Filters(capability.One(of.list))["id"]; known && partOf.MatchString(begun) {
			in = append(in, capability.Given{Name: "filter", Text: "id:" + begun})
		}
		rows, _, err := of.rows(ctx, c, in, 100)
		if err != nil {
			return nil
		}
		if len(rows) == 0 && len(in) > 0 && in[len(in)-1].Name == "filter" { // begun is the middle of one
			if rows, _, err = of.rows(ctx, c, in[:len(in)-1], 100); err != nil {
				return nil
			}
		}
		var all []string
		known := objectsOf(rows)
		for _, row := range known {
			if name := of.nameBegun(row, known, begun); name != "" {
				all = append(all, name+"\t"+described(of, row))
			}
		}
		return all
	}
}

// nameBegun is the name of an object that begins like that; "" if it has none. It is the id, or before that
// what people tell it by, if that is a name and no other of them all has it; or a name such as a branch.
func (n *noun) nameBegun(row map[string]any, all []map[string]any, begun string) string {
	id := object.Part(n.id(row), 12)
	if n.key != "" {
		id = n.id(row)
	}
	names := []string{id}
	for _, member := range n.names {
		name := object.Text(row[member])
		switch {
		case len(slices.DeleteFunc(slices.Clone(all), func(r map[string]any) bool { return object.Text(r[member]) != name })) > 1:
		case member == n.label:
			names = slices.Insert(names, 0, name)
		default:
			names = append(names, name)
		}
	}
	for _, name := range names {
		// A shell puts what is chosen into its line: it must be one plain word, which the
		// command takes for a name.
		if name != "" && strings.HasPrefix(name, begun) && !strings.ContainsAny(name[:1], "-@+") && client.Plain(name) &&
			!strings.Contains(name, "#") {
			return name
		}
	}
	return ""
}

// objectsOf are rows that are objects.
func objectsOf(rows []json.RawMessage) (all []map[string]any) {
	for _, r := range rows {
		if v, err := object.Decode(r); err == nil && object.Map(v) != nil {
			all = append(all, object.Map(v))
		}
	}
	return all
}

// described is what a completion says of an object: inert, and without what shells read.
func described(n *noun, row map[string]any) string {
	var words []string
	for _, at := range []string{"status", "state", n.label} {
		if text := object.Text(row[at]); text != "" {
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

// idsOfPage are the objects of the noun that is named before them.
func idsOfPage(ctx context.Context, words []string, begun string) []string {
	if len(words) == 0 || !slices.Contains(pageNouns(ctx, nil, ""), words[0]) {
		return nil
	}
	return namesCalled(words[0])(ctx, nil, begun)
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
	for _, id := range object.Sorted(capability.All()) {
		all = append(all, id+"\t"+capability.All()[id].Summary)
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
		return completeWith(namesBegun(c.of))(cc, words, begun)
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
