package cli

import (
	"context"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/tree"
)

// under lists what belongs to an object.
func (n *noun) under(ctx context.Context, l *listing, input, id string) error {
	of := *n
	of.about = []capability.Given{{Name: input, Text: id}}
	return of.runList(ctx, l)
}

// listUnder is a command that lists what belongs to an object.
func (n *noun) listUnder(words, summary string, of *noun, input string) tree.Command {
	c := n.listCommand(summary, "yardmaster "+words+" @last")
	c.Words, c.Args, c.Of = words, "ID", of.kind()
	c.Define = func(fl *flag.FlagSet) tree.Action {
		l := &listing{}
		l.skip = input
		l.add(fl, n)
		n.addValues(c.Values)
		return func(ctx context.Context, plain []string) error { return n.under(ctx, l, input, plain[0]) }
	}
	return c
}
