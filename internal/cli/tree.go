package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/draft"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// command is one subcommand: what it is called, what it takes and what it does.
type command struct {
	words    string   // its name: "repo add"
	args     string   // its plain arguments: an optional one is in brackets, one with an ellipsis may be repeated
	summary  string   // a sentence without a full stop
	more     string   // further sentences
	examples []string // command lines
	// define declares the flags, and answers what the command does.
	define func(fl *flag.FlagSet) action
	// of is the noun that the first plain argument is one of; it is found by any of its
	// names, and picked from a list if it is missing.
	of *noun
	// values complete a plain argument or the value of a flag, by their names.
	values map[string]values
	does   *act // what it does, if that is one call
	// answers is the capability whose answer programs get, rows if that has such.
	answers string
	rows    bool
	// members are those of an answer that is no capability's, for --json.
	members []string
	// here is the object that is meant where none is named, by the folder; "" if it tells none.
	here func(ctx context.Context) (string, error)
	// picks has a person pick the first plain argument where that is no object of the noun by
	// itself. repo is the value of --repo.
	picks func(ctx context.Context, prompt, repo string) (string, error)
}

// action does what a command does, with its plain arguments.
type action func(ctx context.Context, plain []string) error

// section is a heading of the help, and the commands below it.
type section struct {
	title    string
	commands []command
}

// nothing is the definition of a command without flags.
func nothing(do action) func(*flag.FlagSet) action { return func(*flag.FlagSet) action { return do } }

// tree is the whole command line.
func tree() *cobra.Command { return treeFor("") }

// treeFor is the command line with the flags of the commands alone whose first word is
// the one given; of all if that is "". To declare them all takes longer than a call.
func treeFor(first string) *cobra.Command {
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
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return exit.Misuse(wrongFlag(c, err)) })
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		if c.CommandPath() == "yardmaster call" {
			id := c.Flags().Arg(0)
			if o := capability.One(id); o != nil {
				_ = describeOp(o)
				return
			}
			if id != "" {
				fmt.Fprintf(c.ErrOrStderr(), "yardmaster call: there is no capability %q%s\n\n", id, capability.Meant(id, "", object.Sorted(capability.All())))
			}
		}
		describe(c.OutOrStdout(), c)
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
	_ = root.RegisterFlagCompletionFunc("context", completeWith(contextNames))
	for _, s := range sections() {
		root.AddGroup(&cobra.Group{ID: s.title, Title: s.title})
		for _, c := range s.commands {
			graft(root, s.title, c, first == "" || strings.HasPrefix(c.words+" ", first+" "))
		}
	}
	completions(root)
	return root
}

// graft adds a command to the tree, and the nouns that its words begin with. Without flags
// it has its name and summary alone.
func graft(root *cobra.Command, group string, of command, flags bool) {
	parent := root
	words := strings.Fields(of.words)
	for i, word := range words[:len(words)-1] {
		next := child(parent, word)
		if next == nil {
			about := heads[strings.Join(words[:i+1], " ")]
			next = &cobra.Command{Use: word, Short: about, Args: cobra.ArbitraryArgs, RunE: unknown}
			if parent == root {
				next.GroupID = group
			}
			parent.AddCommand(next)
		}
		parent = next
	}
	c := &cobra.Command{
		Use: strings.TrimSpace(words[len(words)-1] + " " + of.args), Short: of.summary,
		Long: strings.TrimSpace(sentence(of.summary) + "\n" + of.more), Example: strings.Join(of.examples, "\n"),
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
	do := of.define(c.Flags())
	c.Flags().SortFlags = false
	c.RunE = func(c *cobra.Command, plain []string) error {
		ctx := c.Context()
		repo := ""
		if f := c.Flags().Lookup("repo"); f != nil {
			repo = f.Value.String()
		}
		plain, err := of.checked(ctx, plain, repo)
		if err != nil {
			return err
		}
		ctx, text := draft.With(ctx)
		if err := text.End(do(ctx, plain)); err != nil {
			return err
		}
		if of.of != nil && len(plain) > 0 && !of.deletes() {
			of.of.seen(plain[0])
		}
		return nil
	}
	c.ValidArgsFunction = of.complete
	for name, from := range of.values {
		if c.Flags().Lookup(name) != nil {
			_ = c.RegisterFlagCompletionFunc(name, completeWith(from))
		}
	}
	of.valuesOfFlags(c)
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

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }

// wants are the names of the plain arguments.
func (c *command) wants() []string { return strings.Fields(c.args) }

// deletes tells whether the object is gone afterwards.
func (c *command) deletes() bool {
	return c.does != nil && capability.One(c.does.op).Method == http.MethodDelete
}

// checked holds the plain arguments against those that the command wants, and finds the
// object that the first one names.
func (c *command) checked(ctx context.Context, plain []string, repo string) ([]string, error) {
	want := c.wants()
	if n := len(want); len(plain) > n && (n == 0 || !strings.Contains(want[n-1], "…")) {
		return nil, exit.Misused("there is no argument %q", plain[n])
	}
	pick := false
	for i, w := range want {
		if i < len(plain) || strings.HasPrefix(w, "[") {
			continue
		}
		if i == 0 && (c.of != nil || c.picks != nil) {
			if c.here != nil {
				if id, err := c.here(ctx); id != "" || err != nil {
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
	if c.of != nil && len(plain) > 0 {
		id, err := c.of.find(ctx, plain[0])
		if err != nil {
			return nil, err
		}
		plain = slices.Clone(plain)
		plain[0] = id
	}
	return plain, nil
}

// pick has a person choose what the first plain argument is to be.
func (c *command) pick(ctx context.Context, repo string) (string, error) {
	if c.picks != nil {
		return c.picks(ctx, "yardmaster "+c.words, repo)
	}
	return c.of.pick(ctx, "yardmaster "+c.words, repo, fitting(c.words))
}

// unknown answers the error for words that are no command of c.
func unknown(c *cobra.Command, plain []string) error {
	words := plain
	if c.HasParent() {
		words = append(strings.Fields(c.CommandPath())[1:], plain...)
	}
	if len(words) == 0 {
		describe(c.OutOrStdout(), c)
		return nil
	}
	if len(plain) == 0 {
		return lost{fmt.Sprintf("which command of %s?", strings.Join(words, " ")), c}
	}
	text := fmt.Sprintf("there is no command %q; `yardmaster help` lists them", client.Escape(strings.Join(words, " ")))
	c.SuggestionsMinimumDistance = min(2, len(plain[0])/2) // two letters of three are another word
	if near := c.SuggestionsFor(plain[0]); len(near) > 0 {
		text += "\nDid you mean " + strings.Join(near, " or ") + "?"
	}
	return lost{text, c}
}

// lost is the misuse of words that are no command.
type lost struct {
	text string
	at   *cobra.Command
}

func (l lost) Error() string { return l.text }

// wrongFlag puts an error about a flag into words.
func wrongFlag(c *cobra.Command, err error) string {
	var none *flag.NotExistError
	var bare *flag.ValueRequiredError
	var bad *flag.InvalidValueError
	switch {
	case errors.As(err, &none):
		name := none.GetSpecifiedName()
		if none.GetSpecifiedShortnames() != "" {
			return "there is no flag -" + name
		}
		var known []string
		c.Flags().VisitAll(func(f *flag.Flag) {
			if !f.Hidden {
				known = append(known, f.Name)
			}
		})
		return "there is no flag --" + name + capability.Meant(name, "--", known)
	case errors.As(err, &bare):
		name := bare.GetFlag().Name
		text := "a value is missing for --" + name
		if known := fieldsOf(c); name == "json" && len(known) > 0 {
			text += ": some of " + strings.Join(known, ", ")
		}
		return text
	case errors.As(err, &bad) && errors.Is(err, errTwice):
		return fmt.Sprintf("--%s is given twice: it takes one value", bad.GetFlag().Name)
	case errors.As(err, &bad):
		return fmt.Sprintf("invalid value %q for --%s", bad.GetValue(), bad.GetFlag().Name)
	}
	return err.Error()
}

// describe prints what a command is for, its flags and examples. Of a noun, and of the
// whole, it lists the commands.
func describe(w io.Writer, c *cobra.Command) {
	s := terminal.Of(os.Stdout, os.Getenv)
	switch {
	case !c.HasParent():
		fmt.Fprintf(w, "%s\n\nusage: yardmaster COMMAND\n", c.Short)
		for _, g := range c.Groups() {
			fmt.Fprintf(w, "\n%s\n", s.Paint(terminal.Strong, g.ID))
			list(w, s, slices.DeleteFunc(slices.Clone(c.Commands()), func(c *cobra.Command) bool { return c.GroupID != g.ID }), false)
		}
		fmt.Fprintln(w)
		screen.Wrapped(w, s, "", "`yardmaster help COMMAND` tells more of one, and lists the commands of a noun.\n"+
			"Client commands use the login of `yardmaster auth login`, or YARDMASTER_URL and YARDMASTER_TOKEN.")
		return
	case len(c.Commands()) > 0 && c.Example == "" && c.Long == "":
		fmt.Fprintf(w, "usage: %s COMMAND\n\n%s\n\n", c.CommandPath(), sentence(c.Short))
		list(w, s, c.Commands(), true)
		shown := 0
		for _, sub := range c.Commands() {
			if sub.Example != "" && shown < 6 {
				if shown++; shown == 1 {
					fmt.Fprintf(w, "\n%s\n", s.Paint(terminal.Strong, "examples"))
				}
				example, _, _ := strings.Cut(sub.Example, "\n")
				fmt.Fprintln(w, "  "+example)
			}
		}
		return
	}
	fmt.Fprintf(w, "usage: %s\n\n", usage(c))
	screen.Wrapped(w, s, "", c.Long)
	if subs := c.Commands(); len(subs) > 0 {
		fmt.Fprintln(w)
		list(w, s, subs, true)
	}
	first := true
	c.Flags().VisitAll(func(f *flag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "context" || f.Name == "no-pager" {
			return
		}
		if first {
			fmt.Fprintln(w)
		}
		first = false
		kind, doc := flag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" {
			doc += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		switch kind {
		case "string", "strings", "stringArray", "value", "duration":
			kind = "VALUE"
		case "int", "uint", "float", "uint64", "float64":
			kind = "N"
		}
		short := ""
		if f.Shorthand != "" {
			short = "-" + f.Shorthand + ", "
		}
		fmt.Fprintf(w, "  %s\n", strings.TrimSpace(short+"--"+f.Name+" "+kind))
		screen.Wrapped(w, s, "      ", doc)
	})
	if c.Example != "" {
		fmt.Fprintf(w, "\n%s\n", s.Paint(terminal.Strong, "examples"))
		for line := range strings.SplitSeq(c.Example, "\n") {
			fmt.Fprintln(w, "  "+line)
		}
	}
}

// usage is the command line of a command: its words and arguments.
func usage(c *cobra.Command) string {
	line := c.UseLine()
	flags := false
	c.LocalNonPersistentFlags().VisitAll(func(f *flag.Flag) { flags = flags || f.Name != "help" })
	if flags {
		line += " [flags]"
	}
	return line
}

// list prints commands and their summaries, all of those below a noun if deep is set.
func list(w io.Writer, s terminal.Screen, of []*cobra.Command, deep bool) {
	type line struct{ words, about string }
	var lines []line
	var add func(c *cobra.Command)
	add = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		if deep && (len(c.Commands()) == 0 || c.Long != "") {
			lines = append(lines, line{strings.TrimPrefix(c.UseLine(), "yardmaster "), c.Short})
		} else if !deep {
			about := c.Short
			if subs := c.Commands(); len(subs) > 0 && c.Long == "" {
				var names []string
				for _, sub := range subs {
					names = append(names, sub.Name())
				}
				about += ": " + strings.Join(names, ", ")
			}
			lines = append(lines, line{c.Name(), about})
		}
		if deep {
			for _, sub := range c.Commands() {
				add(sub)
			}
		}
	}
	for _, c := range of {
		add(c)
	}
	widest := 0
	for _, l := range lines {
		widest = max(widest, min(terminal.Width(l.words), 34))
	}
	for _, l := range lines {
		pad := widest - terminal.Width(l.words)
		if pad < 0 { // the summary stands below long words
			fmt.Fprintf(w, "  %s\n", l.words)
			l.words, pad = "", widest
		}
		for part := range client.Broken(l.about, s.Width-widest-4) {
			fmt.Fprintf(w, "  %s%s  %s\n", l.words, strings.Repeat(" ", pad), part)
			l.words, pad = "", widest
		}
	}
}

// answers is the definition of a command without flags of its own, whose answer programs can have.
func answers(do func(ctx context.Context, plain []string, o *output.Flags) error) func(*flag.FlagSet) action {
	return func(fl *flag.FlagSet) action {
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

// fieldsOf are the members of what a command answers, for --json.
func fieldsOf(c *cobra.Command) []string {
	words := strings.TrimPrefix(c.CommandPath(), "yardmaster ")
	for _, of := range commands() {
		if of.words != words {
			continue
		}
		if of.members != nil {
			return of.members
		}
		id := of.answers
		switch {
		case id == "" && of.does != nil:
			id = of.does.op
		case words == "call":
			id = c.Flags().Arg(0)
		}
		if capability.One(id) == nil || capability.One(id).Output() == nil {
			return nil
		}
		if of.rows {
			return capability.Members(capability.RowOf(capability.One(id).Output()))
		}
		return capability.Members(capability.One(id).Output())
	}
	return nil
}
