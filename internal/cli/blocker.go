package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

func blockerCommands() []tree.Command {
	blocker := noun.Called("blocker")
	view := blocker.ViewCommand("one blocker: what is asked, and for which task")
	return append([]tree.Command{
		blocker.ListCommand("what runs wait for people to give, oldest first", "yardmaster blocker list",
			"yardmaster blocker list --open=false"),
		view,
		{Words: "blocker fill", Answers: "blocker.submit", Args: "ID [NAME=VALUE]…",
			Summary: "give what a run waits for, field by field; unseen where no value is given", Of: blocker,
			Define: defineBlockerFill,
			More: "NAME=@FILE reads a value from a file, NAME=- from standard input. What is given stays unread by anybody, and each field\n" +
				"is filled in once.",
			Examples: []string{"yardmaster blocker fill @last", "yardmaster blocker fill @last NPM_TOKEN=@token.txt"}},
	}, act.Commands(
		act.Act{Words: "blocker answer", Args: "ID [TEXT]…", Summary: "answer a question in words", Op: "blocker.answer",
			Of: blocker, Text: "answer",
			Done: "Answered; its task goes on.", Next: "yardmaster blocker list has what is left.",
			Examples: []string{`yardmaster blocker answer @last "Use the staging database."`}},
		act.Act{Words: "blocker withdraw", Args: "ID", Summary: "retire a blocker without an answer",
			Op: "blocker.withdraw", Of: blocker, Done: "Withdrawn.",
			Next: "Its task says what it does now: yardmaster task list"},
	)...)
}

// formField is a field of a blocker's form.
type formField struct {
	Name        string  `json:"name"`
	Kind        string  `json:"kind"`
	Environment *string `json:"environment"`
	Description string  `json:"description"`
	Landed      bool    `json:"landed"`
	Submittable bool    `json:"submittable"`
	Replaces    bool    `json:"replaces"`
}

func defineBlockerFill(fl *flag.FlagSet) tree.Action {
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		values := map[string]any{}
		for _, word := range plain[1:] {
			g, err := capability.ParseGiven(word)
			if err != nil {
				return err
			}
			if values[g.Name], err = g.Value(nil); err != nil {
				return err
			}
			if !g.JSON {
				values[g.Name] = strings.TrimRight(g.Text, "\r\n")
			}
		}
		b, err := fillBlocker(ctx, c, plain[0], values, func(prompt string) (string, error) { return signin.Ask(ctx, prompt, true) },
			os.Stderr)
		if err != nil {
			return err
		}
		if o.ForPrograms() {
			return o.Print(os.Stdout, b)
		}
		return act.Act{Done: "The fields that landed: {landed}. The blocker is {state}.",
			Next: "yardmaster blocker list has what is left."}.Say(ctx, c, b, nil, nil)
	}
}

// fillBlocker submits the fields of a blocker's form. Those that have no value yet are
// asked for.
func fillBlocker(ctx context.Context, c *client.Client, id string, values map[string]any, ask func(string) (string, error),
	out io.Writer) ([]byte, error) {
	path := "/v1/blockers/" + url.PathEscape(id)
	var spec struct {
		Question string      `json:"question"`
		State    string      `json:"state"`
		Fields   []formField `json:"fields"`
	}
	if err := c.Call(ctx, http.MethodGet, path+"/spec", nil, &spec); err != nil {
		return nil, err
	}
	if len(spec.Fields) == 0 {
		return nil, fmt.Errorf("it is a question: yardmaster blocker answer %s \"…\"\n  %s", client.Word(id), client.Inert(spec.Question))
	}
	if len(values) == 0 {
		if !terminal.Interactive() {
			return nil, exit.Misused("give NAME=VALUE for %s", strings.Join(open(spec.Fields), ", "))
		}
		fmt.Fprintln(out, client.InertLines(spec.Question))
		for _, f := range spec.Fields {
			if f.Landed || !f.Submittable {
				continue
			}
			about := client.Inert(f.Name)
			if f.Description != "" {
				about += " (" + client.Inert(f.Description) + ")"
			}
			value, err := ask(about + ", empty to leave it out")
			if err != nil {
				return nil, err
			}
			if value != "" {
				values[f.Name] = value
			}
		}
		if len(values) == 0 {
			return nil, exit.Misuse("nothing was given")
		}
	}
	return c.Fetch(ctx, http.MethodPost, path+"/submit", map[string]any{"fields": values})
}

// open are the names of the fields that can be filled in.
func open(fields []formField) (names []string) {
	for _, f := range fields {
		if f.Submittable && !f.Landed {
			names = append(names, client.Inert(f.Name))
		}
	}
	return names
}
