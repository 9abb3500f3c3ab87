package overview

import (
	"context"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/fault"
	"yardmaster/internal/money"
)

// rollupDays is the length of the window of a rollup.
const rollupDays = 7

// Rollup is the activity of one repository.
type Rollup struct {
	_              struct{}       `doc:"What has gone on in one repository, and what goes on now." schema:"RepoOverview"`
	Repo           string         `json:"repo" doc:"owner/name"`
	DefaultBranch  string         `json:"default_branch" example:"main" doc:"the branch that work is merged into"`
	LastActivityAt *time.Time     `json:"last_activity_at" doc:"when its default branch was last pushed to; null before"`
	WindowDays     int            `json:"window_days" example:"7" doc:"how many days back the members count that are not about now"`
	Pulls          RollupPulls    `json:"prs" doc:"its pull requests"`
	Tasks          RollupTasks    `json:"tasks" doc:"its tasks"`
	Checks         RollupChecks   `json:"checks" doc:"its checks that ended in the window"`
	Sessions       RollupSessions `json:"sessions" doc:"the sessions with models that began in the window"`
	OpenBlockers   int64          `json:"open_blockers" example:"0" doc:"what its tasks wait for people to give"`
}

// RollupPulls are pull requests, counted.
type RollupPulls struct {
	_        struct{} `doc:"Pull requests of a repository, counted." schema:"RepoOverviewPRs"`
	Open     int64    `json:"open" example:"2" doc:"open now"`
	Waiting  int64    `json:"needs_person" example:"1" doc:"open now, and go no further without a person"`
	Asked    int64    `json:"pending_approvals" example:"1" doc:"questions about them that wait for an answer"`
	Opened   int64    `json:"opened" example:"5" doc:"opened in the window"`
	Merged   int64    `json:"merged" example:"4" doc:"merged in the window"`
	Unmerged int64    `json:"closed" example:"0" doc:"closed in the window without a merge"`
}

// RollupTasks are tasks, counted.
type RollupTasks struct {
	_         struct{} `doc:"Tasks of a repository, counted." schema:"RepoOverviewTasks"`
	Pending   int64    `json:"pending" example:"3" doc:"in the queue now"`
	Held      int64    `json:"held" example:"0" doc:"wait for a person now"`
	InFlight  int64    `json:"in_flight" example:"1" doc:"at work on a box now"`
	Shipping  int64    `json:"shipping" example:"2" doc:"have an open pull request now"`
	Completed int64    `json:"completed" example:"6" doc:"completed or merged in the window"`
	Failed    int64    `json:"failed" example:"1" doc:"failed for good in the window"`
}

// RollupChecks are checks, counted.
type RollupChecks struct {
	_      struct{} `doc:"Checks of a repository, counted." schema:"RepoOverviewChecks"`
	Passed int64    `json:"passed" example:"9" doc:"the command ended with 0"`
	Failed int64    `json:"failed" example:"2" doc:"it ended with another exit code"`
	Lost   int64    `json:"lost" example:"0" doc:"it ended without a result"`
}

// RollupSessions are sessions, counted.
type RollupSessions struct {
	_       struct{} `doc:"Sessions of a repository, counted." schema:"RepoOverviewSessions"`
	Count   int64    `json:"count" example:"8" doc:"how many"`
	CostUSD *string  `json:"cost_usd" format:"decimal" example:"3.15" doc:"decimal US dollars; the sum of what has a price, null when nothing has"`
}

type nameIn struct {
	Owner string `json:"owner" doc:"owner of the repository"`
	Repo  string `json:"repo" example:"web" doc:"name of the repository, without the owner"`
}

func (s *Service) rollup(ctx context.Context, in nameIn) (out Rollup, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, ok, err := selectRepo.Maybe(tx, tx.Account, in.Owner, in.Repo)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("enabled repository")
		}
		week := measure.Since(tx.Now.AddDate(0, 0, -rollupDays))
		out = Rollup{
			Repo: in.Owner + "/" + in.Repo, DefaultBranch: r.DefaultBranch, LastActivityAt: r.LastActivityAt, WindowDays: rollupDays,
		}
		p, err := measure.PullsOf(tx, r.ID, week)
		if err != nil {
			return err
		}
		out.Pulls = RollupPulls{Open: p.Open, Waiting: p.Stopped, Asked: p.Asked, Opened: p.Opened, Merged: p.Merged, Unmerged: p.Closed}
		t, err := measure.TasksOf(tx, r.ID, week)
		if err != nil {
			return err
		}
		out.Tasks = RollupTasks{Pending: t.Pending, Held: t.Held, InFlight: t.InFlight, Shipping: t.Shipping,
			Completed: t.Completed, Failed: t.Failed}
		c, err := measure.ChecksOf(tx, r.ID, week)
		if err != nil {
			return err
		}
		out.Checks = RollupChecks{Passed: c.Passed, Failed: c.Failed, Lost: c.Lost}
		spent, err := measure.SessionsOf(tx, r.ID, week)
		if err != nil {
			return err
		}
		out.Sessions = RollupSessions{Count: spent.Count, CostUSD: money.DollarsOrNone(spent.Micros)}
		out.OpenBlockers, err = measure.BlockersOf(tx, r.ID)
		return err
	})
	return out, err
}
