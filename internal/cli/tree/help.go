package tree

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// Describe prints what a command is for, its flags and examples. Of a noun, and of the
// whole, it lists the commands.
func Describe(w io.Writer, c *cobra.Command) {
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
	fmt.Fprintf(w, "usage: %s\n\n", Usage(c))
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
		if f.NoOptDefVal == "true" && f.Value.Type() == "string" { // it takes nothing, or =false after it
			kind = ""
			doc += "; --" + f.Name + "=false says no"
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

// Usage is the command line of a command: its words and arguments.
func Usage(c *cobra.Command) string {
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

// unknown answers the error for words that are no command of c.
func unknown(c *cobra.Command, plain []string) error {
	words := plain
	if c.HasParent() {
		words = append(strings.Fields(c.CommandPath())[1:], plain...)
	}
	if len(words) == 0 {
		Describe(c.OutOrStdout(), c)
		return nil
	}
	if len(plain) == 0 {
		return Lost{fmt.Sprintf("which command of %s?", strings.Join(words, " ")), c}
	}
	text := fmt.Sprintf("there is no command %q; `yardmaster help` lists them", client.Escape(strings.Join(words, " ")))
	c.SuggestionsMinimumDistance = min(2, len(plain[0])/2) // two letters of three are another word
	if near := c.SuggestionsFor(plain[0]); len(near) > 0 {
		text += "\nDid you mean " + strings.Join(near, " or ") + "?"
	}
	return Lost{text, c}
}

// Lost is the misuse of words that are no command.
type Lost struct {
	Text string
	At   *cobra.Command
}

func (l Lost) Error() string { return l.Text }

// wrongFlag puts an error about a flag into words.
func (l Line) wrongFlag(c *cobra.Command, err error) string {
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
		if known := l.fieldsOf(c); name == "json" && len(known) > 0 {
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

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }
