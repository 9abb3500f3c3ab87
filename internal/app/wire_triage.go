package app

import (
	"fmt"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/policy"
)

// wireTriage connects asks to what leaves work to triage. A plan over several
// repositories is filed, and triage may cut any ask into one.
func (a *App) wireTriage(asks *ask.Service, plans *plan.Service) {
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
