package template

import (
	"encoding/json"
	"fmt"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/proof/seed"
)

// A challenger gets its share of the tasks, by the hash of their ids; what came of them is told
// with its interval, and there is no winner while few have ended.
func TestLanes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *db.DB, call caller) {
		for _, c := range []struct {
			name, body string
			want       int
		}{
			{"bold", `{"challenger": "careful", "share": 20}`, 400}, // there is none yet
			{"careful", `{}`, 200},
			{"bold", `{"challenger": "bold", "share": 20}`, 400},
			{"bold", `{"challenger": "careful"}`, 400},
			{"bold", `{"share": 20}`, 400},
			{"bold", `{"challenger": "careful", "share": 100}`, 400},
			{"bold", `{"challenger": "careful", "share": 20}`, 200},
		} {
			if status, body := call("acme", "PUT", "/v1/templates/"+c.name, c.body); status != c.want {
				t.Fatalf("%s %s: %d %s", c.name, c.body, status, body)
			}
		}
		got := map[string]int{}
		err := d.Write(db.WithAccount(t.Context(), "acme"), func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Repo{ID: "web", Account: "acme", Name: "web"}); err != nil {
				return err
			}
			for i := range 200 {
				task := fmt.Sprint("task", i)
				lane, err := Split(tx, "bold", task)
				if err != nil {
					return err
				}
				got[lane]++
				status, at := "merged", int64(9)
				if lane == "careful" && i%2 == 0 {
					status = "failed"
				}
				if i%50 == 1 {
					status = "running"
				}
				row := seed.Task{ID: task, Account: "acme", Repo: "web", Template: lane, Status: status, Finished: &at}
				if err := seed.Add(tx, row); err != nil {
					return err
				}
			}
			alone, err := Split(tx, "careful", "other")
			if alone != "careful" {
				t.Errorf("a template without a challenger is split: %s", alone)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if got["bold"]+got["careful"] != 200 || got["careful"] < 20 || got["careful"] > 60 {
			t.Errorf("%v", got)
		}
		_, body := call("acme", "GET", "/v1/templates/bold", "")
		var out Template
		if err := json.Unmarshal([]byte(body), &out); err != nil || out.Lanes == nil || len(out.Lanes.Lanes) != 2 {
			t.Fatalf("%s %v", body, err)
		}
		for _, l := range out.Lanes.Lanes {
			m := l.Merged
			p := float64(m.N) / float64(m.D)
			if int(l.Tasks) != got[l.Template] || m.D == 0 || m.D > l.Tasks || m.Low > p || m.High < p {
				t.Errorf("%+v", l)
			}
		}
		if _, body := call("rival", "GET", "/v1/templates/default", ""); json.Unmarshal([]byte(body), &out) != nil {
			t.Error(body)
		}
	})
}

func TestWinner(t *testing.T) {
	t.Parallel()
	lane := func(name string, d int64, low, high float64) Lane {
		return Lane{Template: name, Merged: Share{D: d, Low: low, High: high}}
	}
	for _, c := range []struct {
		all  []Lane
		want string
	}{
		{[]Lane{lane("a", 90, .1, .3), lane("b", 90, .4, .6)}, "b"},
		{[]Lane{lane("a", 90, .1, .5), lane("b", 90, .4, .6)}, ""},
		{[]Lane{lane("a", enough, .7, .9), lane("b", enough, .4, .6)}, "a"},
		{[]Lane{lane("a", enough-1, .7, .9), lane("b", 90, .4, .6)}, ""},
		{[]Lane{lane("a", 90, .7, .9), lane("b", enough-1, .4, .6)}, ""},
		{[]Lane{lane("a", 90, .7, .9)}, ""},
	} {
		got := ""
		if w := winner(c.all); w != nil {
			got = *w
		}
		if got != c.want {
			t.Errorf("%+v: %q", c.all, got)
		}
	}
}
