package app

import (
	"fmt"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/policy"
)

// wireTriage connects asks to what leaves work to triage. A plan over several
// repositories is filed, and triage may cut any ask into one; so is what
// remains when a blocker is cleared too late for its task.
func (a *App) wireTriage(asks *ask.Service, plans *plan.Service, blockers *blocker.Service) {
	blockers.FileAsk = func(tx *db.Tx, f blocker.FollowUp) (string, error) {
		// Whoever opens a fix link may be anybody; what follows is what the task
		// was allowed.
		by := "blocker:" + f.BlockerID
		if actor := policy.From(tx.Context()); !actor.Anonymous() {
			by = actor.Label()
		}
		var person *string
		t, _, err := task.Get(tx, tx.Account, f.TaskID)
		if err != nil {
			return "", err
		}
		if person = t.RequestedBy; person == nil {
			answers := policy.From(tx.Context()).UserID // or nobody
			person = &answers
		}
		filed, _, err := asks.File(tx, ask.Filing{
			RepoIDs: []string{f.RepoID}, Title: f.Title, Body: f.Body, Source: ask.FromBlocker, DedupeKey: f.BlockerID, By: by, RequestedBy: person,
			Scopes: policy.Scopes(policy.WriteTasks),
		})
		return filed.ID, err
	}
	plans.AskTasks = ask.Tasks
	plans.FileAsk = func(tx *db.Tx, f plan.Filing) (string, error) {
		filed, _, err := asks.File(tx, ask.Filing{
			RepoIDs: f.RepoIDs, Title: f.Title, Body: f.Body, Source: ask.FromPlan, Scopes: policy.From(tx.Context()).Scopes,
		})
		return filed.ID, err
	}
	asks.AuthorPlan = func(tx *db.Tx, n ask.NewPlan) (string, error) {
		d := plan.Draft{Overview: "# " + n.Title + "\n\n" + n.Summary + "\n", Source: plan.SourceTriage, AskID: &n.AskID, RequestedBy: &n.RequestedBy, Hold: n.Hold}
		for i, s := range n.Slices {
			r, err := a.repoByID(tx, s.RepoID)
			if err != nil {
				return "", err
			}
			if i == 0 {
				d.Repo = r
			}
			u := plan.Unit{Slug: unitSlug(i), Repo: r, Title: s.Title, Problem: s.Problem, Files: s.Files, DependsOn: map[string]string{}}
			for _, up := range s.DependsOn {
				u.DependsOn[unitSlug(up)] = plan.Code
			}
			d.Units = append(d.Units, u)
		}
		return plans.Author(tx, d)
	}
}

// unitSlug names the slices of a plan that triage made, from 1.
func unitSlug(i int) string { return fmt.Sprintf("slice-%02d", i+1) }
