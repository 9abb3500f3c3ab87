package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

func simulateCommand() tree.Command {
	return tree.Command{Words: "simulate", Define: defineSimulate, Answers: "task.simulate",
		Summary: "play the recorded queue with other boxes or another policy, beside what was",
		More: "It changes nothing. Without --boxes there are as many slots as were taken at once; docs/simulate.md says\n" +
			"what it does not know.",
		Examples: []string{"yardmaster simulate --boxes 8", "yardmaster simulate --policy .svc/policy.yml --since 14d"}}
}

func defineSimulate(fl *flag.FlagSet) tree.Action {
	file := fl.String("policy", "", "policy `FILE` to judge by; what was in force when empty")
	boxes := fl.Int("boxes", 0, "`NUMBER` of boxes; as many slots as were taken at once when 0")
	slots := fl.Int("slots", 1, "`NUMBER` of tasks that a box runs at once")
	seats := fl.Int("seats", 0, "`NUMBER` of agents that run at once; as many as there are slots when 0")
	since := fl.String("since", "7d", "how far back, such as 36h or 7d; 31d at most")
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, _ []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		hours, err := hoursOf(*since)
		if err != nil {
			return err
		}
		if *boxes < 0 || *slots < 1 || *seats < 0 {
			return exit.Misuse("--boxes and --seats must be 0 or more, and --slots 1 or more")
		}
		if *boxes == 0 && fl.Changed("slots") {
			return exit.Misuse("--slots are those of each box: say how many --boxes there are")
		}
		in := map[string]any{"hours": hours, "slots": *boxes * *slots, "seats": *seats}
		if *file != "" {
			policy, err := exit.OfFile(os.ReadFile(*file))
			if err != nil {
				return err
			}
			in["policy"] = string(policy)
		}
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		var found simulation
		done, err := o.Answered(ctx, c, http.MethodPost, "/v1/queue/simulate", in, &found)
		if done || err != nil {
			return err
		}
		printFound(os.Stdout, found)
		return nil
	}
}

// simulation is the answer of task.simulate.
type simulation struct {
	Tries     int64 `json:"tries"`
	Slots     int64 `json:"slots"`
	SameOrder int64 `json:"same_order"`
	Waits     []struct {
		Kind string          `json:"kind"`
		N    int64           `json:"n"`
		P50  beside[float64] `json:"p50_s"`
		P90  beside[float64] `json:"p90_s"`
	} `json:"waits"`
	Cost struct {
		Was           *string `json:"was"`
		Would         *string `json:"would"`
		UnpricedCalls int64   `json:"unpriced_calls"`
	} `json:"cost"`
	Approvals beside[int64] `json:"approvals"`
}

// beside is a value as it was, and as it would have been.
type beside[T any] struct {
	Was   T `json:"was"`
	Would T `json:"would"`
}

// hoursOf reads how far back.
func hoursOf(text string) (int, error) {
	wrong := exit.Misused("--since is a number of days or hours, such as 7d or 36h, of 31d at most")
	unit := 1
	n, ok := strings.CutSuffix(text, "h")
	if !ok {
		if n, ok = strings.CutSuffix(text, "d"); !ok {
			return 0, wrong
		}
		unit = 24
	}
	v, err := strconv.Atoi(n)
	if err != nil || v < 1 || v > 31*24/unit {
		return 0, wrong
	}
	return v * unit, nil
}

// printFound shows what a simulation found beside what was.
func printFound(w io.Writer, s simulation) {
	fmt.Fprintf(w, "%d tries with %d slots; %d began in the place that they had\n\n", s.Tries, s.Slots, s.SameOrder)
	row := func(cells ...any) { fmt.Fprintf(w, "%-22s %8v %14v %14v\n", cells...) }
	row("", "n", "was", "would be")
	for _, k := range s.Waits {
		kind := client.Inert(k.Kind)
		row("wait of "+kind+", half", k.N, seconds(k.P50.Was), seconds(k.P50.Would))
		row("wait of "+kind+", 9 of 10", k.N, seconds(k.P90.Was), seconds(k.P90.Would))
	}
	row("cost, USD", s.Tries, client.Inert(text(s.Cost.Was, "unknown")), client.Inert(text(s.Cost.Would, "unknown")))
	row("approvals asked", s.Tries, s.Approvals.Was, s.Approvals.Would)
	if s.Cost.UnpricedCalls > 0 {
		fmt.Fprintf(w, "\n%d calls without a price are not in the cost.\n", s.Cost.UnpricedCalls)
	}
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Second)
}
