package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/machine"
)

// runMan writes the manual pages.
func runMan(_ context.Context, plain []string) error {
	dir := filepath.Clean(plain[0])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, day, pages := wholeTree(), builtOn(), 0
	var write func(c *cobra.Command) error
	write = func(c *cobra.Command) error {
		for _, sub := range c.Commands() {
			if sub.Hidden {
				continue
			}
			if err := write(sub); err != nil {
				return err
			}
		}
		name := strings.ReplaceAll(c.CommandPath(), " ", "-")
		c.DisableAutoGenTag = true
		var b strings.Builder
		if err := doc.GenMan(c, &doc.GenManHeader{Title: strings.ToUpper(name), Section: "1", Source: "yardmaster " + machine.This.Version,
			Manual: "Yardmaster", Date: &day}, &b); err != nil {
			return err
		}
		pages++
		return os.WriteFile(filepath.Join(dir, name+".1"), []byte(manual(c, b.String())), 0o644)
	}
	if err := write(root); err != nil {
		return err
	}
	fmt.Printf("%d pages are in %s; `man -M` wants them in a folder man1 of its argument.\n", pages, dir)
	return nil
}

// builtOn is the day of the program: that of SOURCE_DATE_EPOCH, of its commit, or of its file.
func builtOn() time.Time {
	if n, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		return time.Unix(n, 0).UTC()
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if at, err := time.Parse(time.RFC3339, s.Value); err == nil && s.Key == "vcs.time" {
				return at.UTC()
			}
		}
	}
	if self, err := os.Executable(); err == nil {
		if info, err := os.Stat(self); err == nil {
			return info.ModTime().UTC()
		}
	}
	return time.Now().UTC()
}

// variables are those of the environment, and what they mean.
var variables = [][2]string{
	{"YARDMASTER_URL, YARDMASTER_TOKEN", "server and token, before any context"},
	{"YARDMASTER_CONTEXT", "the context to use; --context comes before it"},
	{"YARDMASTER_KEYRING", "off: tokens are kept in a file"},
	{"NO_COLOR", "set: no colours"},
	{"PAGER, NO_PAGER", "what shows a long text page by page; the latter set: nothing does"},
	{"VISUAL, EDITOR", "the editor for texts"},
	{"BROWSER", "what opens a page"},
}

// manual adds to a page what the library does not write: the flags in the synopsis, how objects
// are named, the variables and the exit codes.
func manual(c *cobra.Command, page string) string {
	line := c.UseLine()
	words := []string{`\fB` + roff(line) + `\fP`}
	c.LocalNonPersistentFlags().VisitAll(func(f *flag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		text := "--" + f.Name
		if kind, _ := flag.UnquoteUsage(f); kind != "" {
			if strings.ToLower(kind) == kind {
				kind = "VALUE"
			}
			text += " " + kind
		}
		words = append(words, "["+roff(text)+"]")
	})
	if before, after, found := strings.Cut(page, ".SH SYNOPSIS\n"); found {
		_, rest, _ := strings.Cut(after, "\n")
		page = before + ".SH SYNOPSIS\n" + strings.Join(words, " ") + "\n" + rest
	}
	var more strings.Builder
	if strings.Contains(line, " ID") || strings.Contains(line, " [ID]") {
		more.WriteString("\n.SH NAMES\n" + roff("An ID is the whole id, its beginning or end of at least 4 characters, @last (what was shown, "+
			"made or acted on last), the address of its page, OWNER/NAME#NUMBER or in a clone #NUMBER for a pull request, an issue and the "+
			"task of a pull request, a branch for a task and a pull request, the name of a box, token, webhook, source or schedule, or the "+
			"login of a member. Left out on a terminal, it is picked from a list.") + "\n")
	}
	more.WriteString("\n.SH ENVIRONMENT\n")
	for _, v := range variables {
		more.WriteString(".TP\n\\fB" + roff(v[0]) + "\\fP\n" + roff(v[1]) + "\n")
	}
	more.WriteString("\n.SH EXIT STATUS\n")
	for _, v := range []struct {
		code int
		text string
	}{{0, "it is done"}, {exit.CodeFailed, "it failed"}, {exit.CodeMisused, "the command line was wrong, and nothing was tried"},
		{exit.CodeRefused, "the server refused"}, {exit.CodeNoAnswer, "the server did not answer"}, {exit.CodeNoLogin, "not signed in"},
		{exit.CodeNotFound, "there is no such object"}, {exit.CodeInterrupted, "interrupted"}} {
		fmt.Fprintf(&more, ".TP\n\\fB%d\\fP\n%s\n", v.code, roff(v.text))
	}
	if before, after, found := strings.Cut(page, "\n.SH SEE ALSO"); found {
		return before + more.String() + "\n.SH SEE ALSO" + after
	}
	return page + more.String()
}

// roff is text for a page.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}
