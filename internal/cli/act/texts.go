package act

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/app"
	"yardmaster/internal/cli/draft"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/terminal"
)

// Texts are the flags of a command that takes a text.
type Texts struct {
	file string
	edit bool
}

// Add declares the flags.
func (t *Texts) Add(fl *flag.FlagSet) {
	fl.StringVarP(&t.file, "file", "F", "", "read the text from `FILE`, - for standard input")
	fl.BoolVarP(&t.edit, "editor", "e", false, "write the text in an editor (VISUAL, EDITOR)")
}

// Read is the text: the words, a file, standard input, or what is written in an editor,
// which opens on a terminal when there is nothing else.
func (t *Texts) Read(ctx context.Context, words []string, what string) (string, error) {
	text := strings.TrimSpace(strings.Join(words, " "))
	file := t.file
	if text == "-" {
		text, file = "", "-"
	}
	switch {
	case text != "" && file != "":
		return "", exit.Misused("give the text or --file, not both")
	case file != "":
		b, err := exit.OfFile(terminal.Read(file))
		if err != nil {
			return "", err
		}
		text = strings.TrimSpace(string(b))
	case t.edit || text == "" && terminal.Interactive():
		return draft.Compose(ctx, os.Getenv, text, what)
	}
	if text == "" {
		return "", exit.Misused("TEXT is missing: %s", what)
	}
	return text, nil
}

// seconds is an input that is a number of seconds for a length of time such as 30m or 7d; any other input as it is.
func seconds(o *app.Op, name, text string) string {
	is := false
	for _, in := range o.Inputs() {
		is = is || in.Name == name && in.Unit == "seconds"
	}
	if !is {
		return text
	}
	if days, whole := strings.CutSuffix(text, "d"); whole {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 10_000 {
			text = strconv.Itoa(24*n) + "h"
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d%time.Second != 0 {
		return text
	}
	return strconv.Itoa(int(d / time.Second))
}

// Given tells whether the text is to come from a file or an editor.
func (t *Texts) Given() bool { return t.file != "" || t.edit }
