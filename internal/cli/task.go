package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

func taskCommands() []tree.Command {
	task := noun.Called("task")
	return append([]tree.Command{
		{Words: "task create", Answers: "task.create", Args: "[TEXT]…", Summary: "file a task", Define: defineTaskCreate,
			More: "The text is what an agent is told. An editor opens on a terminal when there is none.",
			Examples: []string{`yardmaster task create --repo acme/web "Fix the parser, with a test."`,
				"yardmaster task create --repo acme/web --file task.md --watch",
				`yardmaster task create --dry-run "Fix the parser, with a test."`}},
		task.ListCommand("the newest tasks", "yardmaster task list --status failed",
			"yardmaster task list --all --json id,title,status", "yardmaster task list --watch"),
		task.ViewCommand("one task: its state, what it waits for, its run", "yardmaster task view @last",
			"yardmaster task view acme/web#3"),
		{Words: "task watch", Args: "ID", Summary: "follow a task until it ends", Of: task, Define: defineTaskWatch,
			More: "On a terminal a question is answered there: a approves, s declines, d shows the diff, f fills in what is asked\n(f TEXT answers in words), " +
				"o opens the page, m TEXT tells the agent something, q leaves. The exit code is 0 if it was merged or completed.",
			Examples: []string{"yardmaster task watch @last"}},
		logCommand(),
		{Words: "task cancel", Answers: "task.cancel", Args: "ID", Summary: "end a task for good", Of: task,
			Define: tree.Answers(runTaskCancel),
			More: "Its open pull request is closed, unless the policy of the repository keeps it (merge.on_cancel: keep) or its merge has begun.\n" +
				"Tasks that depend on it fail. A cancelled task cannot be tried again: file another.",
			Examples: []string{"yardmaster task cancel @last", "yardmaster task cancel acme/web#3"}},
		{Words: "task reassign", Answers: "task.reassign", Args: "ID", Summary: "take a task from its box and queue it again", Of: task,
			Define: tree.Answers(runTaskReassign), Examples: []string{"yardmaster task reassign @last"}},
		{Words: "task redispatch", Answers: "task.redispatch", Args: "ID", Summary: "try a task again that failed or is stuck",
			Of: task, Define: defineTaskRedispatch,
			Examples: []string{`yardmaster task redispatch @last --guidance "The test needs Go 1.26."`}},
		noun.Try().ListUnder("task attempts", "every try of a task, oldest first", task, "id"),
		noun.Called("stall").NamedList("task stalls", "every reason for which tasks wait, and what clears it"),
	}, act.Commands(
		act.Act{Words: "task retry", Args: "ID", Summary: "end its wait before the next try", Op: "task.retry_now",
			Of: task, Done: "It is tried again now.",
			Next: "Follow it with: yardmaster task watch {id}"},
		act.Act{Words: "task timeline", Args: "ID", Summary: "where its time went: queue, agent, checks, review, people",
			Op: "run.timeline", Of: task, Examples: []string{"yardmaster task timeline @last"}},
		act.Act{Words: "task report", Args: "ID", Summary: "what a task delivered", Op: "task.result", Of: task,
			Plainly: func(_ context.Context, _ *client.Client, answer map[string]any) {
				answer["report_md"] = map[any]any{"report_md": "a report file", "final_turn": "the agent's last turn"}[answer["report_md"]]
				delete(answer, "runs_seen")
			}},
	)...)
}

func defineTaskCreate(fl *flag.FlagSet) tree.Action {
	repo := fl.String("repo", "",
		"`OWNER/NAME` of the repository, as `yardmaster repo list` shows it; that of the folder's git remote when empty")
	title := fl.String("title", "", "one line; the first of the text when empty")
	template := fl.String("template", "", "`NAME` of the agent template; the repository's default when empty")
	budget := fl.String("budget", "", "the most that it may cost, in US dollars")
	priority := fl.Int("priority", 0, "higher is claimed first; the server's 50 when 0")
	after := fl.StringSlice("after", nil, "`IDS` of tasks that must succeed before this one starts")
	watch := fl.BoolP("watch", "w", false, "follow it until it ends")
	dry := fl.Bool("dry-run", false, "show what would be filed, and file nothing")
	var t act.Texts
	t.Add(fl)
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		if *watch && (o.ForPrograms() || *dry) {
			return exit.Misuse("give --watch, or a form for programs or --dry-run, not both")
		}
		if *repo == "" {
			here, err := noun.RepoHere(ctx)
			if err != nil && terminal.Interactive() {
				here, err = noun.Called("repo").Pick(ctx, "yardmaster task create: in which repository?", "", noun.IsUnder("enabled", true))
				if err != nil {
					return err
				}
			}
			if err != nil {
				if len(plain) == 0 && !t.Given() {
					return exit.Misuse("give --repo OWNER/NAME, and what is to be done: TEXT is missing")
				}
				return exit.Misuse("give --repo OWNER/NAME: the folder has no remote on the server")
			}
			*repo = here
		}
		if _, err := strconv.ParseFloat(*budget, 64); *budget != "" && (err != nil || !json.Valid([]byte(*budget))) {
			return exit.Misused("--budget takes US dollars such as 5 or 2.50, not %q", *budget)
		}
		text, err := t.Read(ctx, plain, "what is to be done in "+*repo+", and why")
		if err != nil {
			return err
		}
		in := map[string]any{"repo": *repo, "title": headline(*title, text), "problem": text}
		if *template != "" {
			in["template"] = *template
		}
		if *budget != "" {
			in["budget_usd"] = json.Number(*budget)
		}
		if *priority != 0 {
			in["priority"] = *priority
		}
		var needs []string
		for _, word := range *after {
			id, err := noun.Called("task").Find(ctx, word)
			if err != nil {
				return err
			}
			needs = append(needs, id)
		}
		if len(needs) > 0 {
			in["depends_on"] = needs
		}
		if *dry {
			return rehearse(ctx, o, in)
		}
		return createTask(ctx, o, in, *watch)
	}
}

func createTask(ctx context.Context, o *output.Flags, in map[string]any, watch bool) error {
	var out struct {
		TaskID   string `json:"task_id"`
		Position int64  `json:"queue_position"`
		Depth    int64  `json:"queue_depth"`
	}
	done, err := filed(ctx, o, "task", "/v1/tasks", in, &out, &out.TaskID)
	if done || err != nil {
		return err
	}
	screen.Afterword(fmt.Sprintf("queued, %d of %d; follow it with: yardmaster task watch %s", out.Position, out.Depth, client.Word(out.TaskID)))
	if watch {
		return watchTask(ctx, out.TaskID)
	}
	return nil
}

// headline is the title, or else the first line of the text, cut at a word.
func headline(title, text string) string {
	if title != "" {
		return title
	}
	line, _, _ := strings.Cut(text, "\n")
	const most = 120 // characters
	if utf8.RuneCountInString(line) <= most {
		return line
	}
	line = string([]rune(line)[:most-1])
	if at := strings.LastIndexByte(line, ' '); at > 0 {
		line = line[:at]
	}
	return strings.TrimSpace(line) + "…"
}

// onTask calls a capability of one task. Its answer is printed if programs want it: then done
// is set. Else it is decoded into out.
func onTask(ctx context.Context, o *output.Flags, id, verb string, in map[string]any, out any) (done bool, err error) {
	c, err := signin.Connect()
	if err != nil {
		return false, err
	}
	return o.Answered(ctx, c, http.MethodPost, "/v1/tasks/"+url.PathEscape(id)+"/"+verb, in, out)
}

func runTaskCancel(ctx context.Context, plain []string, o *output.Flags) error {
	var out struct {
		Kind   string `json:"kind"`
		Status string `json:"status"`
	}
	if done, err := onTask(ctx, o, plain[0], "cancel", nil, &out); done || err != nil {
		return err
	}
	if out.Kind == "already_terminal" {
		screen.Say("It is over already: %s.\n", out.Status)
		return nil
	}
	fmt.Println("Cancelled.")
	c, err := signin.Connect()
	if err != nil {
		return err
	}
	for _, line := range noun.Cancelled(ctx, c, plain[0]) {
		screen.Afterword(line)
	}
	return nil
}

func runTaskReassign(ctx context.Context, plain []string, o *output.Flags) error {
	var out struct {
		Reassigned bool   `json:"reassigned"`
		Status     string `json:"status"`
	}
	if done, err := onTask(ctx, o, plain[0], "reassign", nil, &out); done || err != nil {
		return err
	}
	if out.Reassigned {
		fmt.Println("Taken from its box; it waits for the next.")
		screen.Afterword("Follow it with: yardmaster task watch " + client.Word(plain[0]))
	} else {
		screen.Say("No box works on it: it is %s.\n", out.Status)
	}
	return nil
}

func defineTaskRedispatch(fl *flag.FlagSet) tree.Action {
	guidance := fl.String("guidance", "", "what the next attempt should know, `TEXT` of at most 2000 characters")
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		return redispatch(ctx, o, plain[0], *guidance)
	}
}

func redispatch(ctx context.Context, o *output.Flags, id, guidance string) error {
	in := map[string]any{}
	if guidance != "" {
		in["guidance"] = guidance
	}
	var out struct {
		Saved struct {
			Found bool   `json:"found"`
			SHA   string `json:"sha"`
		} `json:"saved_wip"`
	}
	if done, err := onTask(ctx, o, id, "redispatch", in, &out); done || err != nil {
		return err
	}
	from := "from the beginning"
	if out.Saved.Found {
		from = fmt.Sprintf("from the work saved at %.10s", out.Saved.SHA)
	}
	screen.Say("Queued again, %s.\n", from)
	screen.Afterword("Follow it with: yardmaster task watch " + client.Word(id))
	return nil
}
