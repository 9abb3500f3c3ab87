package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/draft"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// filedAsk has the members of an ask that the command line uses.
type filedAsk struct {
	ID               string  `json:"askId"`
	Repo             *string `json:"repo"`
	Title            string  `json:"title"`
	State            string  `json:"state"`
	EscalationReason *string `json:"escalation_reason"`
	Verdict          *struct {
		Kind           string   `json:"kind"`
		Reason         string   `json:"reason"`
		TaskIDs        []string `json:"task_ids"`
		CoveringTaskID *string  `json:"covering_task_id"`
		PlanID         *string  `json:"plan_id"`
	} `json:"verdict"`
}

func askCommands() []tree.Command {
	ask := noun.Called("ask")
	return append([]tree.Command{
		{Words: "ask file", Answers: "ask.file", Args: "[TEXT]…", Summary: "file something wanted, for triage to decide about", Define: defineAskFile,
			Examples: []string{`yardmaster ask file --repo acme/web "The footer shows last year."`, "yardmaster ask file < wish.txt -"}},
		ask.ListCommand("the newest asks"),
		{Words: "ask get", Answers: "ask.get", Args: "ID", Summary: "what became of an ask", Of: ask, Define: tree.Answers(runAskGet)},
		ask.ViewCommand("all that is known of an ask"),
	}, act.Commands(act.Act{Words: "ask redrive", Args: "ID", Summary: "give an ask that found no judge back to triage",
		Op: "ask.redrive", Of: ask,
		Done: "It is triaged again.", Next: "See what becomes of it with: yardmaster ask get {id}"},
		act.Act{Words: "ask approve", Args: "ID", Summary: "let an ask of a run begin work that the run may not begin by itself",
			Op: "ask.approve", Of: ask,
			Done: "It is triaged, as asked for by you.", Next: "See what becomes of it with: yardmaster ask get {id}"})...)
}

func defineAskFile(fl *flag.FlagSet) tree.Action {
	repo := fl.String("repo", "", "`OWNER/NAME`; the judge may pick when empty")
	title := fl.String("title", "", "one line; the first of the text when empty")
	key := fl.String("dedupe-key", "", "file it once for this key")
	issue := fl.String("issue", "", "`ID` of an issue that it is about, of which triage begins anew")
	var t act.Texts
	t.Add(fl)
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		text, err := t.Read(ctx, plain, "what is wanted, and why")
		if err != nil {
			return err
		}
		in := map[string]any{"title": headline(*title, text), "body": text}
		if *repo != "" {
			in["repo"] = *repo
		}
		if *key != "" {
			in["dedupe_key"] = *key
		}
		if *issue != "" {
			in["issue_id"] = *issue
		}
		return fileAsk(ctx, o, in)
	}
}

func fileAsk(ctx context.Context, o *output.Flags, in map[string]any) error {
	var out struct {
		Kind  string `json:"kind"`
		ID    string `json:"askId"`
		State string `json:"state"`
	}
	done, err := filed(ctx, o, "ask", "/v1/asks", in, &out, &out.ID)
	if done || err != nil {
		return err
	}
	screen.Afterword(client.Inert(out.Kind+", "+out.State) + "; see what becomes of it with: yardmaster ask get " + client.Word(out.ID))
	return nil
}

// filed sends what was written, whose file goes once the server has it, and prints the id of what
// came of it, which is the last of its noun from now on. It is done if the answer was printed for
// programs.
func filed(ctx context.Context, o *output.Flags, what, path string, in map[string]any, out any, made *string) (done bool, err error) {
	c, err := signin.Connect()
	if err != nil {
		return false, err
	}
	b, err := c.Fetch(ctx, http.MethodPost, path, in)
	if err != nil {
		return false, err
	}
	draft.Accepted(ctx)
	if err := json.Unmarshal(b, out); err != nil {
		return false, err
	}
	noun.Called(what).Seen(*made)
	if o.ForPrograms() {
		return true, o.Print(os.Stdout, b)
	}
	screen.Say("%s\n", *made)
	return false, nil
}

func runAskGet(ctx context.Context, plain []string, o *output.Flags) error {
	c, err := signin.Connect()
	if err != nil {
		return err
	}
	var a filedAsk
	if done, err := o.Answered(ctx, c, http.MethodGet, "/v1/asks/"+url.PathEscape(plain[0]), nil, &a); done || err != nil {
		return err
	}
	say := func(what, text string) { fmt.Fprintf(os.Stdout, "%-12s%s\n", what, client.Inert(text)) }
	say("title", a.Title)
	if a.Repo != nil {
		say("repository", *a.Repo)
	}
	say("state", a.State)
	if a.EscalationReason != nil {
		say("escalated", *a.EscalationReason)
	}
	if v := a.Verdict; v != nil {
		say("verdict", v.Kind)
		say("because", v.Reason)
		for _, taskID := range v.TaskIDs {
			say("task", taskID)
		}
		if v.CoveringTaskID != nil {
			say("covered by", *v.CoveringTaskID)
		}
		if v.PlanID != nil {
			say("plan", *v.PlanID)
		}
	}
	return nil
}
