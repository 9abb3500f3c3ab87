//go:build !race

package dashboard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/seed"
)

// scene is a server on which much has happened: what waits for ada in each of its forms, what
// runs, and two weeks of work that is over.
type scene struct {
	*shop
	pull, task, plan, ask, escalation, blocker, box, session string // an object of each
}

// ago is a moment before now, in microseconds.
func ago(d time.Duration) int64 { return time.Now().Add(-d).UnixMicro() }

// play sets the scene.
func play(t *testing.T) *scene {
	t.Helper()
	s := &scene{shop: open(t, asksPolicy, map[string]string{"worker": worker})}
	s.must(201, "POST", "/v1/billing/keys", `{"provider": "scripted", "label": "tests"}`)
	s.task = s.shop.task("worker", "Take the year from the clock instead of writing it out")
	s.pull = s.shop.pull(s.task)
	s.plan = s.shop.plan()
	var repos struct{ Data []struct{ ID string } }
	s.into(&repos, 200, "GET", "/v1/repos", "")
	s.history(repos.Data[0].ID)
	asks := s.one("POST", "/v1/tasks", `{"repo": "acme/web", "title": "Replay the refunds of last month against the ledger",
		"problem": "They differ.", "depends_on": ["`+s.task+`"]}`, "task_id")
	s.Block(asks, "missing_credential", map[string]string{"PAYMENTS_TEST_KEY": "env_secret"})
	s.ask = s.one("POST", "/v1/asks", `{"title": "The footer says last year", "body": "It says 2025.", "repo": "acme/web"}`, "ask_id")
	s.blocker = s.first("/v1/blockers")
	s.escalation = s.first("/v1/escalations")
	s.box = s.first("/v1/runners")
	s.session = s.first("/v1/sessions")
	return s
}

// one makes a request and answers a field of what comes back.
func (s *scene) one(method, path, body, field string) string {
	s.t.Helper()
	resp, out := s.Send(method, path, s.Owner, body)
	if resp.StatusCode >= 300 {
		s.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, out)
	}
	_, rest, _ := strings.Cut(string(out), `"`+field+`":"`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// first is the id of the first row of a list.
func (s *scene) first(path string) string {
	s.t.Helper()
	var rows struct{ Data []struct{ ID string } }
	s.into(&rows, 200, "GET", path, "")
	if len(rows.Data) == 0 {
		s.t.Fatal("there is nothing in " + path)
	}
	return rows.Data[0].ID
}

// history is what has come to an end, and what it cost.
func (s *scene) history(repo string) {
	s.t.Helper()
	s.Write(s.Account, func(tx *db.Tx) error {
		for i, of := range past {
			task, run, when := id.New(), id.New(), ago(time.Duration(i+1)*7*time.Hour)
			paid := when
			if i == 0 {
				paid = ago(0) // a month that has just begun has a day, too
			}
			var over *int64
			if of.status == "merged" || of.status == "failed" || of.status == "cancelled" {
				over = &when
			}
			pull, micros := id.New(), int64(310_000+170_000*i)
			rows := []seed.Row{
				seed.Task{ID: task, Account: s.Account, Repo: repo, Title: of.title, Status: of.status, By: &s.User,
					Failure: of.failure, Why: of.why, Created: when, Finished: over},
				seed.Session{ID: run, Account: s.Account, Repo: repo, Model: "small-1", Task: &task, Micros: &micros, By: &s.User},
				seed.SpendDay{Account: s.Account, Session: run, Model: "small-1", Day: paid / 86_400_000_000, Micros: micros},
			}
			if of.status == "merged" {
				rows = append(rows, seed.Pull{ID: pull, Account: s.Account, Repo: repo, Task: &task, Title: of.title, Number: 40 + i,
					State: "merged", Merged: over})
			}
			if err := seed.Add(tx, rows...); err != nil {
				return fmt.Errorf("%s: %w", of.title, err)
			}
		}
		return seed.Add(tx,
			seed.Escalation{ID: id.New(), Account: s.Account, Title: "Three tasks failed for the same reason", Ask: "",
				Created: ago(5 * time.Hour)},
			seed.Issue{ID: id.New(), Account: s.Account, Repo: repo, Title: "The export of invoices has no header", Number: 7})
	})
}

// past are the tasks of the history, the newest first.
var past = []struct{ title, status, failure, why string }{
	{"Move the sign-in to passkeys", "held", "agent_error", "It ended in the middle."},
	{"Drop the old webhook table", "failed", "agent_crashed", "The agent crashed three times."},
	{"Round money half to even in totals, and say so where a total is shown to somebody who pays", "merged", "", ""},
	{"A page that says what the limits of the API are", "merged", "", ""},
	{"Try the new template engine", "cancelled", "", ""},
	{"Refuse negative quantities in the API", "merged", "", ""},
	{"Keep sessions in the store, not in memory", "merged", "", ""},
	{"Dark colours for the invoice mail", "failed", "ci_failed", "Its checks failed three times."},
	{"Translate the catalogue", "merged", "", ""},
	{"Say in the changelog what 4.2 removes", "merged", "", ""},
}
