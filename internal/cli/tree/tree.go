// Package tree makes a command line of commands: what they are called, take and do, their help, and what
// shells complete.
package tree

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/draft"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/terminal"
)

// Command is one subcommand: what it is called, what it takes and what it does.
type Command struct {
	Words    string   // its name: "repo add"
	Args     string   // its plain arguments: an optional one is in brackets, one with an ellipsis may be repeated
	Summary  string   // a sentence without a full stop
	More     string   // further sentences
	Examples []string // command lines
	// Define declares the flags, and answers what the command does.
	Define func(fl *flag.FlagSet) Action
	// Of is the noun that the first plain argument is one of; it is found by any of its
	// names, and picked from a list if it is missing.
	Of Kind
	// Values complete a plain argument or the value of a flag, by their names.
	Values map[string]Values
	Does   Doing // what it does, if that is one call
	// Answers is the capability whose answer programs get, rows if that has such.
	Answers string
	Rows    bool
	// Members are those of an answer that is no capability's, for --json.
	Members []string
	// Here is the object that is meant where none is named, by the folder; "" if it tells none.
	Here func(ctx context.Context) (string, error)
	// Picks has a person pick the first plain argument where that is no object of the noun by
	// itself. repo is the value of --repo.
	Picks func(ctx context.Context, prompt, repo string) (string, error)
}

// Action does what a command does, with its plain arguments.
type Action func(ctx context.Context, plain []string) error

// Kind is a kind of object, of which the first plain argument of a command is one.
type Kind interface {
	// Find is the id of the object that a word names.
	Find(ctx context.Context, word string) (string, error)
	// PickFor has a person choose an object with which the command of the words can do something.
	// repo, if it is not empty, is the repository that it belongs to.
	PickFor(ctx context.Context, words, repo string) (string, error)
	// Seen notes that an object was shown or made: it is @last from then on.
	Seen(id string)
	// Begun are the names of objects that a person may have begun to write.
	Begun(ctx context.Context, words []string, begun string) []string
}

// Doing is what a command does that is one call.
type Doing interface {
	// Capability is the id of the capability that is called.
	Capability() string
}

// Section is a heading of the help, and the commands below it.
type Section struct {
	Title    string
	Commands []Command
}

// Nothing is the definition of a command without flags.
func Nothing(do Action) func(*flag.FlagSet) Action { return func(*flag.FlagSet) Action { return do } }

// Line is a whole command line.
type Line struct {
	Sections []Section
	Heads    map[string]string // what the words are that commands begin with
	Values   map[string]Values // of flags that many commands have
	// Help describes what the arguments of a command name, in the place of the command; it answers
	// false if there is nothing to describe.
	Help func(c *cobra.Command) bool
	// Completes has the values of flags completed. The library never lets go of what it is told
	// of them, nor of the tree that they belong to.
	Completes bool
}

// Tree is the command line of the commands alone whose first word is the one given, with
// their flags; of all commands if that is "", and of all without flags if none begins so. To
// declare them all takes longer than a call.
func (l Line) Tree(first string) *cobra.Command {
	cobra.EnableCommandSorting = false // the most wanted come first
	root := &cobra.Command{
		Use: "yardmaster", Short: "Yardmaster is a control plane for AI developer agents.",
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, plain []string) error { return unknown(c, plain) },
	}
	root.PersistentFlags().StringVar(&signin.Context, "context", "",
		"`NAME` of the server and account to talk to, as auth list shows it (YARDMASTER_CONTEXT)")
	root.PersistentFlags().BoolVar(&screen.NoPager, "no-pager", false, "show long texts at once, not page by page (NO_PAGER)")
	root.PersistentFlags().BoolP("help", "h", false, "describe the command")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return exit.Misuse(l.wrongFlag(c, err)) })
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		if l.Help == nil || !l.Help(c) {
			Describe(c.OutOrStdout(), c)
		}
	})
	root.SetHelpCommand(&cobra.Command{
		Use: "help [COMMAND]", Short: "describe a command, or list all", Hidden: true, Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, words []string) error {
			found, rest, err := root.Find(words)
			if err != nil || len(rest) > 0 {
				return unknown(root, words)
			}
			return found.Help()
		},
		ValidArgsFunction: func(_ *cobra.Command, words []string, begun string) ([]string, cobra.ShellCompDirective) {
			return subcommands(root, words, begun), cobra.ShellCompDirectiveNoFileComp
		},
	})
	l.completes(root, "context", ContextNames)
	begins := func(c Command) bool { return first != "" && strings.HasPrefix(c.Words+" ", first+" ") }
	known := slices.ContainsFunc(l.Sections, func(s Section) bool { return slices.ContainsFunc(s.Commands, begins) })
	for _, s := range l.Sections {
		root.AddGroup(&cobra.Group{ID: s.Title, Title: s.Title})
		for _, c := range s.Commands {
			if !known || begins(c) {
				l.graft(root, s.Title, c, known || first == "")
			}
		}
	}
	completions(root)
	return root
}

// Commands are those of all sections.
func (l Line) Commands() (all []Command) {
	for _, s := range l.Sections {
		all = append(all, s.Commands...)
	}
	return all
}

// graft adds a command to the tree, and the nouns that its words begin with. Without flags
// it has its name and summary alone.
func (l Line) graft(root *cobra.Command, group string, of Command, flags bool) {
	parent := root
	words := strings.Fields(of.Words)
	for i, word := range words[:len(words)-1] {
		next := child(parent, word)
		if next == nil {
			about := l.Heads[strings.Join(words[:i+1], " ")]
			next = &cobra.Command{Use: word, Short: about, Args: cobra.ArbitraryArgs, RunE: unknown}
			if parent == root {
				next.GroupID = group
			}
			parent.AddCommand(next)
		}
		parent = next
	}
	c := &cobra.Command{
		Use: strings.TrimSpace(words[len(words)-1] + " " + of.Args), Short: of.Summary,
		Long: strings.TrimSpace(sentence(of.Summary) + "\n" + of.More), Example: strings.Join(of.Examples, "\n"),
		Args: cobra.ArbitraryArgs, DisableFlagsInUseLine: true,
	}
	if parent == root {
		c.GroupID = group
	}
	if !flags {
		c.Run = func(*cobra.Command, []string) {}
		parent.AddCommand(c)
		return
	}
	do := of.Define(c.Flags())
	c.Flags().SortFlags = false
	c.RunE = func(c *cobra.Command, plain []string) error {
		ctx := c.Context()
		repo := ""
		if f := c.Flags().Lookup("repo"); f != nil {
			repo = f.Value.String()
		}
		if err := l.known(c, of); err != nil {
			return err
		}
		plain, err := of.Checked(ctx, plain, repo)
		if err != nil {
			return err
		}
		ctx, text := draft.With(ctx)
		if err := text.End(do(ctx, plain)); err != nil {
			return err
		}
		if of.Of != nil && len(plain) > 0 && !of.deletes() {
			of.Of.Seen(plain[0])
		}
		return nil
	}
	c.ValidArgsFunction = of.complete
	for name, from := range of.Values {
		if c.Flags().Lookup(name) != nil {
			l.completes(c, name, from)
		}
	}
	l.valuesOfFlags(&of, c)
	parent.AddCommand(c)
}

func child(parent *cobra.Command, word string) *cobra.Command {
	for _, c := range parent.Commands() {
		if c.Name() == word {
			return c
		}
	}
	return nil
}

// Wants are the names of the plain arguments.
func (c *Command) Wants() []string { return strings.Fields(c.Args) }

// deletes tells whether the object is gone afterwards.
func (c *Command) deletes() bool {
	return c.Does != nil && capability.One(c.Does.Capability()).Method == http.MethodDelete
}

// Checked holds the plain arguments against those that the command wants, and finds the
// object that the first one names.
func (c *Command) Checked(ctx context.Context, plain []string, repo string) ([]string, error) {
	want := c.Wants()
	if n := len(want); len(plain) > n && (n == 0 || !strings.Contains(want[n-1], "…")) {
		return nil, exit.Misused("there is no argument %q", plain[n])
	}
	pick := false
	for i, w := range want {
		if i < len(plain) || strings.HasPrefix(w, "[") {
			continue
		}
		if i == 0 && (c.Of != nil || c.Picks != nil) {
			if c.Here != nil {
				if id, err := c.Here(ctx); id != "" || err != nil {
					return []string{id}, err
				}
			}
			if pick = terminal.Interactive(); pick {
				continue // what else is missing is told before somebody picks
			}
		}
		return nil, exit.Misused("%s is missing", strings.TrimSuffix(w, "…"))
	}
	if pick {
		id, err := c.pick(ctx, repo)
		return []string{id}, err
	}
	if c.Of != nil && len(plain) > 0 {
		id, err := c.Of.Find(ctx, plain[0])
		if err != nil {
			return nil, err
		}
		plain = slices.Clone(plain)
		plain[0] = id
	}
	return plain, nil
}

// pick has a person choose what the first plain argument is to be.
func (c *Command) pick(ctx context.Context, repo string) (string, error) {
	if c.Picks != nil {
		return c.Picks(ctx, "yardmaster "+c.Words, repo)
	}
	return c.Of.PickFor(ctx, c.Words, repo)
}

// Answers is the definition of a command without flags of its own, whose answer programs can have.
func Answers(do func(ctx context.Context, plain []string, o *output.Flags) error) func(*flag.FlagSet) Action {
	return func(fl *flag.FlagSet) Action {
		o := &output.Flags{}
		o.Add(fl)
		return func(ctx context.Context, plain []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			return do(ctx, plain, o)
		}
	}
}
