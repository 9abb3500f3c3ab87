package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

func defineRepoCreate(fl *flag.FlagSet) tree.Action {
	host := fl.String("host", "", "the code `HOST`, where there is a choice, such as builtin or github:github.com")
	about := fl.String("description", "", "a `LINE` that says what it is for")
	stack := fl.String("stack", "", "what it is to be made of, in `WORDS`")
	public := fl.Bool("public", false, "open to everybody at its host, where there are such")
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		return createRepo(ctx, o, plain[0], *host, *about, *stack, *public)
	}
}

func createRepo(ctx context.Context, o *output.Flags, full, host, about, stack string, public bool) error {
	owner, name, both := strings.Cut(full, "/")
	if !both {
		owner, name = "", full
	}
	if both && owner == "" || !plainName(name) {
		return exit.Misused("a repository has a name of letters, digits, dots, hyphens and underscores, or OWNER/NAME")
	}
	c, err := signin.Connect()
	if err != nil {
		return err
	}
	in := map[string]any{"name": name}
	for key, value := range map[string]string{"owner": owner, "host": host, "description": about, "stack": stack} {
		if value != "" {
			in[key] = value
		}
	}
	if public {
		in["private"] = false
	}
	var out struct {
		Repo struct {
			FullName string `json:"full_name"`
			Host     string `json:"host"`
			CloneURL string `json:"clone_url"`
		} `json:"repo"`
		Manifest struct {
			Template  string  `json:"template"`
			Version   int64   `json:"version"`
			CommitSHA *string `json:"commit_sha"`
			Artifacts []struct {
				Path string `json:"path"`
			} `json:"artifacts"`
		} `json:"manifest"`
		TaskID *string `json:"scaffold_task_id"`
		Note   *string `json:"scaffold_note"`
	}
	p := terminal.Of(os.Stderr, os.Getenv).NewProgress(os.Stderr, "Making "+full+" at "+c.URL)
	b, err := c.Fetch(ctx, http.MethodPost, "/v1/repos", in)
	p.Stop()
	if err != nil {
		return err
	}
	if o.ForPrograms() {
		return o.Print(os.Stdout, b)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return err
	}
	show := func(format string, a ...string) {
		safe := make([]any, len(a))
		for i, s := range a {
			safe[i] = client.Escape(s)
		}
		fmt.Fprintf(os.Stdout, format, safe...)
	}
	show("%s is made, at %s. Clone it with: git clone %s\n", out.Repo.FullName, out.Repo.Host, client.Word(out.Repo.CloneURL))
	if out.Manifest.CommitSHA != nil {
		var paths []string
		for _, a := range out.Manifest.Artifacts {
			paths = append(paths, a.Path)
		}
		show("It begins with %s, at %s.\n", strings.Join(paths, ", "), fmt.Sprintf("%.10s", *out.Manifest.CommitSHA))
	}
	switch {
	case out.TaskID != nil:
		show("An agent sets it up: yardmaster task watch %s\n", client.Word(*out.TaskID))
	case out.Note != nil:
		show("No agent is sent: %s\n", *out.Note)
	}
	return nil
}
