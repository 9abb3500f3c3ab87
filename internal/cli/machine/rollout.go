package machine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/table"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// rollout is what the command line shows of one.
type rollout struct {
	ID      string         `json:"id"`
	Channel string         `json:"channel"`
	Version string         `json:"version"`
	State   string         `json:"state"`
	Wave    int            `json:"wave"`
	Waves   int            `json:"waves"`
	Why     *string        `json:"why"`
	Counts  map[string]int `json:"counts"`
	Ended   *time.Time     `json:"ended_at"`
	More    int            `json:"more_boxes"`
	Runs    struct {
		Failed       int `json:"failed"`
		Runs         int `json:"runs"`
		FailedBefore int `json:"failed_before"`
		RunsBefore   int `json:"runs_before"`
	} `json:"runs"`
	Boxes []struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		Wave  int    `json:"wave"`
		State string `json:"state"`
		Why   string `json:"why"`
		From  string `json:"from_version"`
		Says  string `json:"says"`
	} `json:"boxes"`
}

// parts are the states of boxes, as they are counted.
var parts = []struct{ state, words string }{
	{"good", "done"}, {"told", "under way"}, {"waits", "waiting"}, {"failed", "failed"}, {"lost", "lost"}, {"current", "current already"},
	{"pinned", "pinned"}, {"other_channel", "in another channel"}, {"away", "away"}, {"unbuilt", "of another machine"},
	{"unreachable", "too far behind"}, {"unable", "unable"},
}

func counted(of map[string]int) (out string) {
	for _, p := range parts {
		if n := of[p.state]; n > 0 {
			if out != "" {
				out += ", "
			}
			out += strconv.Itoa(n) + " " + p.words
		}
	}
	return out
}

// line is the state of a rollout in one line.
func (r rollout) line() string {
	out := fmt.Sprintf("%s to %s of %s: wave %d of %d, boxes: %s; runs failed since: %d of %d, before: %d of %d", client.Inert(r.State),
		client.Inert(r.Version), client.Inert(r.Channel), r.Wave, r.Waves, counted(r.Counts), r.Runs.Failed, r.Runs.Runs,
		r.Runs.FailedBefore, r.Runs.RunsBefore)
	if r.Why != nil {
		out += ". " + client.Inert(*r.Why)
	}
	return out
}

// BoxUpdate brings the boxes of the account to a release.
func BoxUpdate(fl *flag.FlagSet) tree.Action {
	channel := fl.String("channel", "", "channel of the release; the one that the account follows when empty")
	of := fl.String("version", "", "version of the release; the newest when empty")
	soak := fl.Duration("soak", 10*time.Minute, "how long the canary is watched")
	watch := fl.Bool("watch", false, "show how it goes, until its end")
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, _ []string) error {
		if err := checkWatch(o, *watch); err != nil {
			return err
		}
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		in := map[string]any{"soak_s": int64(soak.Seconds())}
		if *channel != "" {
			in["channel"] = *channel
		}
		if *of != "" {
			in["version"] = *of
		}
		var out struct {
			Kind    string         `json:"kind"`
			Channel string         `json:"channel"`
			Version string         `json:"version"`
			Boxes   map[string]int `json:"boxes"`
		}
		if done, err := o.Answered(ctx, c, http.MethodPost, "/v1/runners/update", in, &out); done || err != nil {
			return err
		}
		of := "the channel " + client.Inert(out.Channel)
		if out.Version != "" { // the server's own program may have none
			of = client.Inert(out.Version) + " of " + of
		}
		switch out.Kind {
		case "nothing":
			screen.Say("No box takes part in a rollout of %s: %s.\n", of, counted(out.Boxes))
			return nil
		case "joined":
			screen.Say("A rollout of %s is under way already.\n", of)
		default:
			boxes := "boxes"
			if out.Boxes["waits"] == 1 {
				boxes = "box"
			}
			screen.Say("Started to bring %d %s to %s.\n", out.Boxes["waits"], boxes, of)
		}
		if *watch {
			return watchRollout(ctx, c)
		}
		fmt.Println("yardmaster box rollout --watch shows how it goes, yardmaster box rollout cancel ends it.")
		return nil
	}
}

// checkWatch fails with misuse for flags that do not go together.
func checkWatch(o *output.Flags, watch bool) error {
	if watch && o.ForPrograms() {
		return exit.Misuse("give --watch, or a form for programs, not both")
	}
	return o.Check()
}

// BoxRollout shows the newest rollout.
func BoxRollout(fl *flag.FlagSet) tree.Action {
	watch := fl.Bool("watch", false, "show how it goes, until its end")
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, _ []string) error {
		if err := checkWatch(o, *watch); err != nil {
			return err
		}
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		if o.ForPrograms() {
			_, err := o.Answered(ctx, c, http.MethodGet, "/v1/runners/rollout", nil, nil)
			return err
		}
		if *watch {
			return watchRollout(ctx, c)
		}
		r, err := newestRollout(ctx, c)
		if err != nil {
			return err
		}
		fmt.Println(r.line())
		var rows [][]string
		for _, b := range r.Boxes {
			why := b.Why
			if why == "" {
				why = b.Says
			}
			rows = append(rows, []string{table.Cell(b.ID, table.ID, time.Time{}).Text, b.Name, strconv.Itoa(b.Wave), b.From, b.State, why})
		}
		screen.Table("ID\tNAME\tWAVE\tHAD\tSTATE\tWHY", rows, "yardmaster box join")
		if r.More > 0 {
			fmt.Printf("%d more are not shown.\n", r.More)
		}
		return nil
	}
}

// newestRollout fails where there was none.
func newestRollout(ctx context.Context, c *client.Client) (rollout, error) {
	var r struct{ Rollout *rollout }
	err := c.Call(ctx, http.MethodGet, "/v1/runners/rollout", nil, &r)
	if err == nil && r.Rollout == nil {
		err = errors.New("there was no rollout yet: yardmaster box update starts one")
	}
	if err != nil {
		return rollout{}, err
	}
	return *r.Rollout, nil
}

// watchRollout prints each change of the newest rollout until it has ended.
func watchRollout(ctx context.Context, c *client.Client) error {
	for last := ""; ; {
		r, err := newestRollout(ctx, c)
		if err != nil {
			return err
		}
		if now := r.line(); now != last {
			fmt.Println(now)
			last = now
		}
		if r.Ended != nil {
			if r.State != "done" {
				return errors.New("the rollout was " + client.Inert(r.State))
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
}
