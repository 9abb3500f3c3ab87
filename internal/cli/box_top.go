package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	"yardmaster/internal/cli/table"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// topCommand shows what the boxes do, again and again.
func topCommand() tree.Command {
	return tree.Command{Words: "box top", Summary: "what each box does now, again and again on a terminal; once in a pipe",
		Members: []string{"box", "tasks"}, Define: defineBoxTop,
		Examples: []string{"yardmaster box top", "yardmaster box top --once", "yardmaster box top --every 5s"}}
}

func defineBoxTop(fl *flag.FlagSet) tree.Action {
	o := &output.Flags{}
	o.AddWatch(fl)
	once := fl.Bool("once", false, "show it once")
	return func(ctx context.Context, _ []string) error {
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		o.Watch = o.Watch || !*once && !o.ForPrograms() && screen.Out().Live && screen.Out().Width > 0
		if o.Watch && *once {
			return exit.Misuse("give --watch or --once, not both")
		}
		return o.Show(ctx, func() ([]byte, error) { return loads(ctx, c) }, noun.WithNames(ctx, c, writeLoads))
	}
}

// loads are the boxes that are not revoked, each with the tasks that it has: one that is drained may still hold some.
func loads(ctx context.Context, c *client.Client) ([]byte, error) {
	filter := func(text string) []capability.Given { return []capability.Given{{Name: "filter", Text: text}} }
	boxes, _, err := noun.Called("box").Rows(ctx, c, filter("state:enrolled,draining,drained"), noun.Everything)
	if err != nil {
		return nil, err
	}
	tasks, _, err := noun.Called("task").Rows(ctx, c, filter("status:claimed,running"), noun.Everything)
	if err != nil {
		return nil, err
	}
	of := map[string][]json.RawMessage{}
	for i, row := range noun.ObjectsOf(tasks) {
		id := object.Text(row["box_id"])
		of[id] = append(of[id], tasks[i])
	}
	type load struct {
		Box   json.RawMessage   `json:"box"`
		Tasks []json.RawMessage `json:"tasks"`
	}
	all := make([]load, len(boxes))
	for i, row := range noun.ObjectsOf(boxes) {
		if all[i] = (load{boxes[i], of[object.Text(row["id"])]}); all[i].Tasks == nil {
			all[i].Tasks = []json.RawMessage{}
		}
	}
	return object.Encode(all)
}

// loadColumns are those of a box, and runColumns those of what it does.
var (
	loadColumns = []table.Column{{"BOX", "name", table.Title}, {"STATE", "state", table.State},
		{"PRESENCE", "presence.status", table.State}, {"HEARD", "presence.last_beat", table.Age},
		{"BUSY", "presence.active", table.Number}, {"SLOTS", "slots", table.Number}, {"DISK FREE", "disk", table.Text}}
	runColumns = []table.Column{{"TASK", "id", table.ID}, {"BOX", "box_id", table.Text}, {"STATUS", "status", table.State},
		{"SINCE", "claimed_at", table.Age}, {"COST", "budget.spent", table.Cost}, {"TRY", "attempt", table.ExtraCount},
		{"REPOSITORY", "repo", table.Text}, {"DOES", "activity|title", table.Title}}
)

// writeLoads writes the boxes, and below them what they do.
func writeLoads(w io.Writer, b []byte) error {
	v, err := object.Decode(b)
	if err != nil {
		return err
	}
	all, _ := v.([]any)
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "There is no box yet: yardmaster box join")
		return err
	}
	var boxes, runs []any
	var busy, slots int
	for _, one := range all {
		box := object.Map(object.Map(one)["box"])
		free := object.Text(object.Map(object.Map(box["presence"])["telemetry"])["disk_free"])
		if n, err := strconv.ParseInt(free, 10, 64); err == nil {
			box["disk"] = client.Size(n)
		}
		boxes = append(boxes, box)
		of, _ := object.Map(one)["tasks"].([]any)
		runs = append(runs, of...)
		busy += len(of)
		if box["state"] == "enrolled" && object.Map(box["presence"])["status"] == "online" { // as box.utilization counts
			n, _ := strconv.Atoi(object.Text(box["slots"]))
			slots += n
		}
	}
	head := fmt.Sprintf("%s   boxes %d   tasks on them %d of %d slots", time.Now().Format(time.TimeOnly), len(all), busy, slots)
	if _, err := fmt.Fprintf(w, "%s\n\n", screen.Out().Paint(terminal.Faint, head)); err != nil {
		return err
	}
	if err := table.Write(w, loadColumns, boxes); err != nil || len(runs) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return table.Write(w, runColumns, runs)
}
