package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

func repoAsk() tree.Command {
	return tree.Command{Words: "repo ask", Answers: "project.ask", Args: "OWNER/NAME [TEXT]…", Of: noun.Called("repo"),
		Values: map[string]tree.Values{}, Define: defineRepoAsk,
		Summary:  "ask what the code says; the answer names its lines, or there is none (exit code 1)",
		Examples: []string{`yardmaster repo ask acme/web "Which port does the server listen on?"`}}
}

func repoAnswers() tree.Command {
	return tree.Command{Words: "repo answers", Answers: "project.answers", Args: "OWNER/NAME", Of: noun.Called("repo"), Rows: true,
		Values: map[string]tree.Values{}, Define: defineRepoAnswers,
		Summary:  "your last answers about a repository, and whether their lines are still there",
		Examples: []string{"yardmaster repo answers acme/web"}}
}

func defineRepoAnswers(fl *flag.FlagSet) tree.Action {
	kept, l := noun.KeptAnswer(), &noun.Listing{}
	l.Add(fl, kept)
	return func(ctx context.Context, plain []string) error {
		of := *kept
		var err error
		if of.About, err = noun.InRepo(ctx, plain[0], nil); err != nil {
			return err
		}
		return of.RunList(ctx, l)
	}
}

func defineRepoAsk(fl *flag.FlagSet) tree.Action {
	var t act.Texts
	t.Add(fl)
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		question, err := t.Read(ctx, plain[1:], "the question")
		if err != nil {
			return err
		}
		return askRepo(ctx, o, plain[0], question)
	}
}

func askRepo(ctx context.Context, o *output.Flags, full, question string) error {
	owner, name, ok := strings.Cut(full, "/")
	if !ok || owner == "" || !plainName(name) {
		return exit.Misuse("name the repository as OWNER/NAME")
	}
	c, err := signin.Connect()
	if err != nil {
		return err
	}
	b, err := c.Fetch(ctx, http.MethodPost, "/v1/repos/"+owner+"/"+name+"/ask", map[string]any{"question": question})
	if err != nil {
		return err
	}
	var a struct {
		Refused   bool    `json:"refused"`
		Reason    *string `json:"reason"`
		Answer    *string `json:"answer"`
		Partial   bool    `json:"partial"`
		Citations []struct {
			N    int    `json:"n"`
			Cite string `json:"cite"`
			Text string `json:"text"`
		} `json:"citations"`
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return err
	}
	switch {
	case o.ForPrograms():
		if err := o.Print(os.Stdout, b); err != nil {
			return err
		}
	case a.Answer != nil:
		fmt.Println(client.Inert(*a.Answer))
		for _, cited := range a.Citations {
			first, _, more := strings.Cut(strings.TrimSpace(cited.Text), "\n")
			if more {
				first += " …"
			}
			fmt.Printf("[%d] %s  %s\n", cited.N, client.Inert(cited.Cite), client.Inert(first))
		}
		screen.Afterword("Lines of the default branch, as they are now; read them before you rely on it.")
	case a.Reason != nil:
		fmt.Fprintln(os.Stderr, client.Inert(*a.Reason))
	}
	if a.Partial && !o.ForPrograms() {
		fmt.Fprintln(os.Stderr, "The repository is so large that not all of it was looked through.")
	}
	if a.Refused {
		return exit.Status(exit.CodeFailed)
	}
	return nil
}
