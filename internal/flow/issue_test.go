package flow

import (
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/escalation"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/issue"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/proof/seed"
)

// intended are the arguments of what the host of an issue is to do.
var intended = db.Q[string](`SELECT args FROM host_intents WHERE account_id = $1 AND object = $2 ORDER BY id`)

// issues makes the service of the issues, with all that follows it.
func (w *work) issues() *issue.Service {
	hosts, hub := codehost.NewHosts(nil), event.NewHub()
	s := issue.New(issue.Needs{
		DB: w.db, Due: duetest.New(w.db, hub), Hosts: hosts, Logger: discard, Asks: IssueAsks{}, Webhooks: IssueWebhooks{},
		Escalations: IssueEscalations{},
		Intents:     intent.New(intent.Needs{DB: w.db, Due: duetest.New(w.db, hub), Hosts: hosts, Logger: discard}),
	})
	task.Moved.On(w.db, CloseIssue(s))
	plan.Ended.On(w.db, FinishPlan(s))
	ask.Settled.On(w.db, FollowAsk(s))
	return s
}

// An issue is closed, once, when all that its ask was made of or is covered by has merged, or
// its plan has.
func TestIssuesAreClosed(t *testing.T) {
	t.Parallel()
	eachWork(t, task.Uncapped, func(t *testing.T, w *work) {
		s := w.issues()
		closes := func(issueID string) (n int) {
			w.write(func(tx *db.Tx) error {
				all, err := intended.All(tx, "acme", issueID)
				for _, args := range all {
					if strings.Contains(args, "completed") {
						n++
						if !strings.Contains(args, "Done in ") {
							t.Errorf("%s is closed with %s", issueID, args)
						}
					}
				}
				return err
			})
			return n
		}
		follow := func(issueID, askID, triage string) {
			w.write(func(tx *db.Tx) error {
				if err := seed.Add(tx, seed.Issue{ID: issueID, Account: "acme", Repo: "web", Number: int64(issueID[0])}); err != nil {
					return err
				}
				if err := s.Follow(tx, issueID, askID); err != nil {
					return err
				}
				return s.AskMoved(tx, issue.Outcome{AskID: askID, Triage: triage})
			})
		}
		merge := func(taskID string) {
			w.write(func(tx *db.Tx) error {
				row, _, err := task.Lock(tx, "acme", taskID)
				if err != nil {
					return err
				}
				return w.tasks.Merged(tx, &row)
			})
		}
		w.write(func(tx *db.Tx) error {
			var rows []seed.Row
			for i, name := range []string{"linked", "planned"} {
				rows = append(rows, seed.Task{ID: name, Account: "acme", Repo: "web", Status: "awaiting_ci", Pull: new("pr-" + name)},
					seed.Pull{ID: "pr-" + name, Account: "acme", Repo: "web", Number: i + 1, Task: new(name)})
			}
			rows = append(rows, seed.Ask{ID: "link", Account: "acme", Task: "linked", Covered: true},
				seed.Ask{ID: "cover", Account: "acme", Task: "linked", State: "dropped", Covered: true},
				seed.Ask{ID: "plan", Account: "acme", Task: "none"})
			return seed.Add(tx, rows...)
		})
		ids := map[string]string{
			"link": "11111111-0000-4000-8000-000000000000", "cover": "22222222-0000-4000-8000-000000000000",
			"plan": "33333333-0000-4000-8000-000000000000",
		}
		follow(ids["link"], "link", issue.Triaged)
		follow(ids["cover"], "cover", issue.Dropped)
		follow(ids["plan"], "plan", issue.Triaged)
		merge("linked")
		for _, name := range []string{"link", "cover"} {
			if n := closes(ids[name]); n != 1 {
				t.Errorf("the issue of %s is closed %d times", name, n)
			}
		}
		merge("planned")
		if n := closes(ids["plan"]); n != 0 {
			t.Errorf("the issue of a plan that goes on is closed %d times", n)
		}
		for range 2 {
			w.write(func(tx *db.Tx) error {
				return plan.Ended.Send(tx, plan.Finished{PlanID: "p", AskID: new("plan"), TaskIDs: []string{"planned"}})
			})
		}
		if n := closes(ids["plan"]); n != 1 {
			t.Errorf("the issue of a plan that is done is closed %d times", n)
		}
	})
}

// An issue that triage has left to people is closed, and the question about it is over, when all
// tasks have merged that people have made for its ask.
func TestIssuesOfPeopleAreClosed(t *testing.T) {
	t.Parallel()
	eachWork(t, task.Uncapped, func(t *testing.T, w *work) {
		s := w.issues()
		const issueID = "11111111-0000-4000-8000-000000000000"
		var askID, raised string
		made := map[string]string{}
		w.write(func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Issue{ID: issueID, Account: "acme", Repo: "web", Number: 7}); err != nil {
				return err
			}
			a, _, err := ask.File(tx, ask.Filing{RepoIDs: []string{"web"}, Title: "t", Body: "b", IssueID: issueID,
				IssueURL: "https://code.example.com/issue", Wait: &ask.Wait{Reason: "unclear", Why: "Nobody knows."}})
			if err != nil {
				return err
			}
			askID = a.ID
			return s.Follow(tx, issueID, askID)
		})
		w.write(func(tx *db.Tx) (err error) {
			if raised, err = raisedFor.One(tx, askID); err != nil {
				return err
			}
			err = s.AskMoved(tx, issue.Outcome{AskID: askID, Triage: issue.Escalated, EscalationID: raised})
			if err != nil {
				return err
			}
			r, err := TaskRepos{w.AskQueue.Hosts}.ByID(tx, "web")
			if err != nil {
				return err
			}
			for i, title := range []string{"first", "second", "given up"} {
				row, err := w.tasks.Create(tx, r, task.Spec{Kind: task.KindWork, Sink: task.SinkQueued, Title: title, Problem: "p",
					Confidence: 1, AskID: &askID})
				if err != nil {
					return err
				}
				made[title] = row.ID
				pr := seed.Pull{ID: "pr-" + title, Account: "acme", Repo: "web", Number: i + 1, Task: &row.ID}
				if err := seed.Add(tx, pr); err != nil {
					return err
				}
				if _, err := shipped.Exec(tx, row.ID, "pr-"+title); err != nil {
					return err
				}
			}
			return nil
		})
		state := func() (closed int, open bool) {
			w.write(func(tx *db.Tx) error {
				all, err := intended.All(tx, "acme", issueID)
				for _, args := range all {
					if strings.Contains(args, "completed") {
						closed++
					}
				}
				if err != nil {
					return err
				}
				open, err = stillOpen.One(tx, raised)
				return err
			})
			return closed, open
		}
		end := func(title string, how func(*db.Tx, *task.Row) error) {
			w.write(func(tx *db.Tx) error {
				row, _, err := task.Lock(tx, "acme", made[title])
				if err != nil {
					return err
				}
				return how(tx, &row)
			})
		}
		end("given up", w.tasks.Cancel)
		end("first", w.tasks.Merged)
		if closed, open := state(); closed != 0 || !open {
			t.Errorf("while a task goes on, the issue is closed %d times, its question open: %v", closed, open)
		}
		end("second", w.tasks.Merged)
		if closed, open := state(); closed != 1 || open {
			t.Errorf("after all tasks, the issue is closed %d times, its question open: %v", closed, open)
		}
	})
}

var (
	raisedFor = db.Q[string](`SELECT id FROM escalations WHERE ask_id = $1`)
	stillOpen = db.Q[bool](`SELECT resolved_at IS NULL AS open FROM escalations WHERE id = $1`)
	shipped   = db.S(`UPDATE tasks SET status = 'awaiting_ci', pr_id = $2 WHERE id = $1`)
)

// What a judge asks a person about an issue tells, in its own event and in that of the
// question, which issue that is and where. What is asked about no issue is no event of one.
func TestEscalatedNamesItsIssue(t *testing.T) {
	t.Parallel()
	eachWork(t, task.Uncapped, func(t *testing.T, w *work) {
		s := w.issues()
		escalated := func(f ask.Filing) {
			w.write(func(tx *db.Tx) error {
				f.Wait = &ask.Wait{Reason: "unclear", Why: "Nobody knows."}
				_, _, err := ask.File(tx, f)
				return err
			})
		}
		const issueID = "11111111-0000-4000-8000-000000000000"
		w.write(func(tx *db.Tx) error {
			err := seed.Add(tx, seed.Issue{ID: issueID, Account: "acme", Repo: "web", Number: 7})
			if err != nil {
				return err
			}
			a, _, err := ask.File(tx, ask.Filing{RepoIDs: []string{"web"}, Title: "t", Body: "b", IssueID: issueID,
				IssueURL: "https://code.example.com/issue"})
			if err != nil {
				return err
			}
			if err := s.Follow(tx, issueID, a.ID); err != nil {
				return err
			}
			raised, err := escalation.Raise(tx, escalation.Draft{AskID: &a.ID, IssueID: a.IssueID, Category: "unclear", Title: "t"})
			if err != nil {
				return err
			}
			return s.AskMoved(tx, issue.Outcome{AskID: a.ID, Triage: issue.Escalated, EscalationID: raised, Category: "unclear"})
		})
		escalated(ask.Filing{RepoIDs: []string{"web"}, Title: "t", Body: "b"})
		w.write(func(tx *db.Tx) error {
			told, err := toldOf.All(tx, "acme", "issue.escalated")
			if err != nil || len(told) != 1 || !strings.Contains(told[0], `"issue_id":"`+issueID+`"`) ||
				!strings.Contains(told[0], `"url":"https://code.example.com/issue"`) {
				t.Errorf("%v, told %q", err, told)
			}
			return err
		})
		if kinds := TellWebhooks(nil).Kinds; !slices.ContainsFunc(kinds, func(k event.Any) bool { return k.Name() == "issue.escalated" }) ||
			slices.ContainsFunc(kinds, func(k event.Any) bool { return k.Name() == "escalation.raised" }) {
			t.Error("webhooks are told of questions that are about no issue")
		}
	})
}

var toldOf = db.Q[string](`SELECT data FROM audit WHERE account_id = $1 AND kind = $2 ORDER BY seq`)
