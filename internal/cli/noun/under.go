package noun

import (
	"context"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/tree"
)

// Under lists what belongs to an object.
func (n *Noun) Under(ctx context.Context, l *Listing, input, id string) error {
	of := *n
	of.About = []capability.Given{{Name: input, Text: id}}
	return of.RunList(ctx, l)
}

// ListUnder is a command that lists what belongs to an object.
func (n *Noun) ListUnder(words, summary string, of *Noun, input string) tree.Command {
	c := n.ListCommand(summary, "yardmaster "+words+" @last")
	c.Words, c.Args, c.Of = words, "ID", of.Kind()
	c.Define = func(fl *flag.FlagSet) tree.Action {
		l := &Listing{}
		l.Skip = input
		l.Add(fl, n)
		n.AddValues(c.Values)
		return func(ctx context.Context, plain []string) error { return n.Under(ctx, l, input, plain[0]) }
	}
	return c
}
