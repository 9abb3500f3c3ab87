package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/change"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// deciding defines a command that decides about the current head of a pull request.
func deciding(name, verb, done string) func(*flag.FlagSet) tree.Action {
	return func(fl *flag.FlagSet) tree.Action {
		question := ""
		if verb == "approve-pending" || verb == "merge" {
			fl.StringVar(&question, "question", "", "the `ID` of the question that you read; wanted where it is about what is protected")
		}
		o := &output.Flags{}
		o.Add(fl)
		return func(ctx context.Context, plain []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			return decide(ctx, o, name, plain[0], verb, question, done)
		}
	}
}

func decide(ctx context.Context, o *output.Flags, name, id, verb, question, done string) error {
	c, err := signin.Connect()
	if err != nil {
		return err
	}
	pr, err := c.Decide(ctx, id, verb, question)
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Slug() == "question_changed" {
		return fmt.Errorf("%w\nIt is asked: %s\nIf that is what you mean: yardmaster %s %s --question %s", err,
			client.Inert(p.Question), name, client.Word(id), client.Word(p.ActionID))
	}
	if err != nil {
		return err
	}
	if o.ForPrograms() { // what became of it
		b, err := c.Fetch(ctx, http.MethodGet, "/v1/prs/"+url.PathEscape(id), nil)
		if err != nil {
			return err
		}
		return o.Print(os.Stdout, b)
	}
	screen.Say("%s: %s#%d at %.10s.\n", done, pr.Repo, pr.Number, pr.HeadSHA)
	if asked := pr.Warning(); asked != "" {
		fmt.Println("It was asked:", client.Inert(asked))
	}
	if n := pr.Review.Holding; n > 0 && (verb == "approve-pending" || verb == "merge") {
		id := client.Word(id)
		fmt.Printf("%s the merge: it waits until a person dismisses what holds it, or it is mended.\n", change.Holding(n))
		screen.Afterword("Read them with: yardmaster pr findings " + id + "; one that is none: yardmaster finding dismiss FINDING")
		return nil
	}
	if then := change.Afterwards[verb]; then != "" {
		screen.Afterword(strings.ReplaceAll(then, "{id}", client.Word(id)))
	}
	return nil
}
