package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// misuse is an error in the command line: nothing was tried.
type misuse struct{ text string }

func (m misuse) Error() string { return m.text }

func misused(format string, a ...any) error { return misuse{fmt.Sprintf(format, a...)} }

// flags makes the flag set of a command.
func flags(name string) *flag.FlagSet {
	fl := flag.NewFlagSet(name, flag.ContinueOnError)
	fl.SetOutput(io.Discard) // parse reports errors
	fl.Usage = func() {}
	return fl
}

// parse accepts flags before and after the plain arguments, which it answers. want
// names the plain arguments: an optional one is in brackets, and a last one that ends
// with an ellipsis may be repeated. parse fails with misuse.
func parse(fl *flag.FlagSet, args []string, want ...string) ([]string, error) {
	var plain []string
	for {
		err := fl.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			describe(os.Stdout, fl)
			return nil, err
		}
		if err != nil {
			return nil, misuse{dashes.Replace(err.Error())}
		}
		rest := fl.Args()
		if used := len(args) - len(rest); used > 0 && args[used-1] == "--" {
			plain, rest = append(plain, rest...), nil
		}
		if len(rest) == 0 {
			break
		}
		plain, args = append(plain, rest[0]), rest[1:]
	}
	for i, w := range want {
		if i >= len(plain) && !strings.HasPrefix(w, "[") {
			return nil, misused("%s is missing", strings.TrimSuffix(w, "…"))
		}
	}
	if n := len(want); len(plain) > n && (n == 0 || !strings.HasSuffix(want[n-1], "…")) {
		return nil, misused("there is no argument %q", plain[n])
	}
	return plain, nil
}

// dashes rewrites messages of the flag package with two dashes before a flag.
var dashes = strings.NewReplacer(
	"flag provided but not defined: -", "there is no flag --",
	"flag needs an argument: -", "a value is missing for --",
	"for flag -", "for --",
	": parse error", "",
)

// describe prints the description of a command and its flags.
func describe(w io.Writer, fl *flag.FlagSet) {
	c, _ := find(strings.Fields(fl.Name()))
	fmt.Fprintf(w, "usage: %s\n\n%s\n", c.usage(), strings.ToUpper(c.summary[:1])+c.summary[1:]+".")
	first := true
	fl.VisitAll(func(f *flag.Flag) {
		if first {
			fmt.Fprintln(w)
		}
		first = false
		kind, doc := flag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" {
			doc += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		switch kind {
		case "string":
			kind = "VALUE"
		case "int", "uint", "float":
			kind = "N"
		}
		fmt.Fprintf(w, "  %s\n      %s\n", strings.TrimSpace("--"+f.Name+" "+kind), doc)
	})
}

// width is the number of columns of the terminal on standard output; 0 if it is no
// terminal.
func width() int {
	n, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return n
}
