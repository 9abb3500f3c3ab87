package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// logCommand shows what happened in a try of a task up to now.
func logCommand() tree.Command {
	return tree.Command{Words: "task log", Args: "ID", Answers: "task.run_events", Members: []string{"seq", "t", "mono", "kind", "data"},
		Summary: "what happened in the newest try of a task, or another one, up to now", Of: noun.Called("task"), Define: defineTaskLog,
		More:     "task watch goes on with what happens next.",
		Examples: []string{"yardmaster task log @last", "yardmaster task log acme/web#3 --since 10m", "yardmaster task log @last --try 1"}}
}

func defineTaskLog(fl *flag.FlagSet) tree.Action {
	since := fl.String("since", "", "only what happened then or later: a `TIME` such as 10m or 2d ago, a day, or a whole time")
	try := fl.Int("try", 0, "the try of that `NUMBER`, as task attempts shows it; the newest when 0")
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		var from time.Time
		if *since != "" {
			text, err := noun.MomentOf("since", *since)
			if err != nil {
				return err
			}
			if from, err = time.Parse(time.RFC3339, text); err != nil {
				from, _ = time.Parse(time.DateOnly, text) // which it is then
			}
		}
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		run, err := runOfTry(ctx, c, plain[0], *try)
		if err != nil {
			return err
		}
		return writeLog(ctx, c, o, plain[0], run, from)
	}
}

// runOfTry is the run that is a try of a task; "" is the newest.
func runOfTry(ctx context.Context, c *client.Client, task string, try int) (string, error) {
	if try == 0 {
		return "", nil
	}
	rows, _, err := noun.Try().Rows(ctx, c, []capability.Given{{Name: "id", Text: task}}, noun.Everything)
	if err != nil {
		return "", err
	}
	for _, row := range noun.ObjectsOf(rows) {
		if object.Text(row["attempt"]) == strconv.Itoa(try) {
			return object.Text(row["id"]), nil
		}
	}
	return "", exit.NotFound("there is no try " + strconv.Itoa(try) + " of the task: task attempts lists them")
}

// writeLog writes the events of a run from a time on, page by page.
func writeLog(ctx context.Context, c *client.Client, o *output.Flags, task, run string, from time.Time) error {
	out := &guarded{w: os.Stdout, over: ctx.Err}
	w := printer(c, out).Watcher()
	kept, shown := []json.RawMessage{}, 0
	var pages client.Pages
	for after := int64(0); ; {
		q := url.Values{"since_seq": {strconv.FormatInt(after, 10)}}
		if run != "" {
			q.Set("run_id", run)
		}
		var page struct {
			RunID  *string           `json:"run_id"`
			Events []json.RawMessage `json:"events"`
			Reaped *time.Time        `json:"reaped_at"`
		}
		if err := c.Call(ctx, http.MethodGet, "/v1/tasks/"+url.PathEscape(task)+"/events?"+q.Encode(), nil, &page); err != nil {
			return err
		}
		if page.RunID != nil {
			run = *page.RunID // a newer one does not take its place on the way
		}
		if page.Reaped != nil && after == 0 {
			screen.Wrapped(os.Stderr, screen.Out(), "", "Its other events were removed at "+page.Reaped.Format(time.RFC3339)+
				", as they are not kept longer (keep-run-events).")
		}
		size := 0
		for _, b := range page.Events {
			var e client.Event
			if err := json.Unmarshal(b, &e); err != nil {
				return err
			}
			after = e.Seq
			if e.At.Before(from) {
				continue
			}
			if shown++; o.ForPrograms() {
				kept = append(kept, b)
				size += len(b)
			} else {
				w.Event(client.Task{}, e)
			}
		}
		if len(page.Events) == 0 {
			break
		}
		if err := pages.Next(strconv.FormatInt(after, 10), size); err != nil {
			return err
		}
	}
	w.Rest()
	if o.ForPrograms() {
		b, err := object.Encode(kept)
		if err != nil {
			return err
		}
		return o.Print(os.Stdout, b)
	}
	switch {
	case shown == 0 && run == "":
		screen.Wrapped(os.Stderr, screen.Out(), "", "No box has begun it: yardmaster task view says what it waits for.")
	case shown == 0:
		screen.Wrapped(os.Stderr, screen.Out(), "", "Nothing happened since then.")
	}
	return nil
}
