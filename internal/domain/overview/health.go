package overview

import (
	"context"
	"fmt"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

const (
	// healthDays is the length of the window unless the caller names another one.
	healthDays = 7
	// fewest is how many there must be before a grade is bad: one of two says little.
	fewest = 5

	soon  = time.Hour      // a task that a box could take is taken
	aDay  = 24 * time.Hour // a question is answered, and work is merged
	noted = 1000           // thousandths, in which objectives are written
)

// Grade is how well something goes.
type Grade string

// Grades of an objective.
const (
	gradeOK      Grade = "ok"
	gradeWarn    Grade = "warn"
	gradeBad     Grade = "bad"
	gradeNoData  Grade = "no_data"
	gradeUnknown Grade = "unknown" // of the key pool alone: the caller may not know
)

// Values lists the grades of an objective.
func (Grade) Values() []string {
	return []string{string(gradeOK), string(gradeWarn), string(gradeBad), string(gradeNoData)}
}

// Health is how well a repository does.
type Health struct {
	_          struct{}    `doc:"How well a repository does, objective by objective." schema:"RepoHealth"`
	Repo       string      `json:"repo" doc:"owner/name"`
	Status     Grade       `json:"status" doc:"the worst of the objectives and the key pool"`
	WindowDays int         `json:"window_days" example:"7" doc:"length of the window, in days of 24 hours"`
	SLOs       []SLO       `json:"slos" doc:"the objectives, always all of them"`
	KeyPool    PoolHealth  `json:"key_pool" doc:"the keys of model providers, now"`
	Bottleneck *Bottleneck `json:"bottleneck" doc:"the worst of them; null: none is below its objective"`
}

// SLO is an objective and what became of it.
type SLO struct {
	_      struct{}  `doc:"An objective, graded: n of d went well." schema:"HealthSLO"`
	ID     string    `json:"id" enum:"tasks_succeed,runs_succeed,checks_pass,prs_merged,merges_stand,merged_in_a_day,answered_in_a_day,queue_moves" doc:"which"`
	Means  string    `json:"means" example:"tasks that ended, and were not cancelled, did not fail" doc:"what n of d is"`
	Status Grade     `json:"status" doc:"ok and warn from the rates given here, else bad; with d below 5 at worst warn; no_data: d is 0"`
	N      int64     `json:"n" example:"18" doc:"went well"`
	D      int64     `json:"d" example:"20" doc:"of so many"`
	OK     float64   `json:"ok_from" example:"0.9" doc:"rate from which it is ok"`
	Warn   float64   `json:"warn_from" example:"0.7" doc:"rate from which it is warn"`
	From   time.Time `json:"from" doc:"beginning of the window, which is in it; queue_moves is of now"`
	To     time.Time `json:"to" doc:"end of the window, which is not in it"`
}

// PoolHealth grades the keys of model providers.
type PoolHealth struct {
	_       struct{} `doc:"The keys of model providers, graded: n of d work." schema:"HealthKeyPool"`
	Status  Grade    `json:"status" or:"unknown" doc:"warn: some are failing; bad: all are; no_data: there is none; unknown: the credential may not read it"`
	N       *int64   `json:"n,omitempty" example:"2" doc:"keys that are not failing"`
	D       *int64   `json:"d,omitempty" example:"3" doc:"keys"`
	Missing string   `json:"missing_scope,omitempty" example:"read:runners" doc:"the scope that it takes"`
}

// Bottleneck is what holds a repository up most.
type Bottleneck struct {
	_          struct{} `doc:"What holds a repository up most, and the way on." schema:"HealthBottleneck"`
	ID         string   `json:"id" example:"runs_succeed" doc:"id of the objective, or key_pool"`
	Status     Grade    `json:"status" enum:"warn,bad" doc:"its grade"`
	N          int64    `json:"n" example:"4" doc:"went well"`
	D          int64    `json:"d" example:"10" doc:"of so many"`
	Why        string   `json:"why" example:"4 of 10: runs that ended, and were not stopped from outside, succeeded" doc:"what is wrong"`
	Do         string   `json:"do" example:"Add a box, or raise the slots of one." doc:"what to do about it"`
	Capability string   `json:"capability" example:"task.list" doc:"where to begin"`
}

// objective is an SLO before it was counted.
type objective struct {
	id, means, do, capability string
	ok, warn                  int // thousandths
	rate                      func(*db.Tx, string, measure.Span) (measure.Rate, error)
}

// objectives are graded in this order; of two that are as bad, the earlier is the bottleneck.
func objectives() []objective {
	return []objective{
		{"runs_succeed", "runs that ended, and were not stopped from outside, succeeded",
			"Read the runs that failed, and mend what most of them have in common.", "task.list", 850, 650, measure.RunRateOf},
		{"tasks_succeed", "tasks that ended, and were not cancelled, did not fail",
			"Read why tasks failed; dispatch anew with guidance what was not said clearly.", "task.list", 900, 700, measure.TaskRateOf},
		{"queue_moves", "tasks that a box could take have waited for an hour at most",
			"See which boxes are there and what they hold; add a box or slots, or mend the box that takes no work.", "box.utilization", 900, 600,
			func(tx *db.Tx, repoID string, _ measure.Span) (measure.Rate, error) {
				return measure.QueuedWithin(tx, repoID, soon)
			}},
		{"checks_pass", "checks that passed or failed have passed",
			"Look for tests that fail now and then, and for a default branch that does not pass by itself.", "ci.flakes", 800, 600, measure.CheckRateOf},
		{"answered_in_a_day", "questions about pull requests that people answered were answered within 24 hours; one that waits for longer counts as late",
			"Answer the questions that wait, or let the policy file decide more of them.", "pr.pending_approvals", 800, 500,
			func(tx *db.Tx, repoID string, s measure.Span) (measure.Rate, error) {
				return measure.DecidedWithin(tx, repoID, s, aDay)
			}},
		{"prs_merged", "pull requests that came to an end were merged",
			"Read why pull requests were closed; ask for smaller tasks.", "pr.all", 800, 600, measure.MergeRateOf},
		{"merges_stand", "pull requests of agents that were merged have not been reverted since",
			"Read what was reverted, and have the policy file ask for a review or for checks that would have seen it.", "project.policy_get", 970, 900,
			func(tx *db.Tx, repoID string, s measure.Span) (measure.Rate, error) {
				a, err := measure.AuthoredOf(tx, repoID, s)
				return measure.Rate{N: a.Merged - a.Reverted, D: a.Merged}, err
			}},
		{"merged_in_a_day", "pull requests of tasks that were merged were merged within 24 hours after the task was filed",
			"See what open pull requests wait for.", "pr.all", 700, 400,
			func(tx *db.Tx, repoID string, s measure.Span) (measure.Rate, error) {
				return measure.MergedWithin(tx, repoID, s, aDay)
			}},
	}
}

type healthIn struct {
	nameIn
	Days int `json:"days,omitempty" minimum:"1" maximum:"90" example:"7" doc:"length of the window, in days of 24 hours; 7 unless given"`
}

func (s *Service) health(ctx context.Context, in healthIn) (out Health, err error) {
	if in.Days == 0 {
		in.Days = healthDays
	}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		repoID, ok, err := selectNamed.Maybe(tx, tx.Account, in.Owner, in.Repo)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("repository")
		}
		out = Health{Repo: in.Owner + "/" + in.Repo, WindowDays: in.Days, Status: gradeNoData, SLOs: []SLO{}}
		span := measure.Span{From: tx.Now.Add(-time.Duration(in.Days) * 24 * time.Hour), To: tx.Now}
		worst := 0
		for _, o := range objectives() {
			r, err := o.rate(tx, repoID, span)
			if err != nil {
				return err
			}
			slo := SLO{
				ID: o.id, Means: o.means, Status: o.grade(r), N: r.N, D: r.D,
				OK: float64(o.ok) / noted, Warn: float64(o.warn) / noted, From: span.From, To: span.To,
			}
			out.SLOs = append(out.SLOs, slo)
			out.Status = worse(out.Status, slo.Status)
			if by := o.lacks(r, slo.Status); by > worst {
				worst, out.Bottleneck = by, &Bottleneck{
					ID: o.id, Status: slo.Status, N: r.N, D: r.D, Do: o.do, Capability: o.capability,
					Why: fmt.Sprintf("%d of %d: %s", r.N, r.D, o.means),
				}
			}
		}
		if err := pool(tx, &out, worst); err != nil {
			return err
		}
		return hint(tx, repoID, span, out.Bottleneck)
	})
	return out, err
}

// grade grades a rate.
func (o objective) grade(r measure.Rate) Grade {
	rate := r.N * noted
	switch {
	case r.D == 0:
		return gradeNoData
	case rate >= int64(o.ok)*r.D:
		return gradeOK
	case rate >= int64(o.warn)*r.D || r.D < fewest:
		return gradeWarn
	}
	return gradeBad
}

// lacks is how bad a grade is among others: any bad one is worse than any warning, and of two
// alike the one that is the larger part below its objective. It is 0 for one that is reached.
func (o objective) lacks(r measure.Rate, grade Grade) int {
	base := map[Grade]int{gradeWarn: noted, gradeBad: 10 * noted}[grade]
	if base == 0 {
		return 0
	}
	return base + int((int64(o.ok)*r.D-r.N*noted)*noted/(int64(o.ok)*r.D))
}

// worse is the worse one of two grades; what has no data says nothing.
func worse(a, b Grade) Grade {
	rank := map[Grade]int{gradeNoData: 0, gradeUnknown: 0, gradeOK: 1, gradeWarn: 2, gradeBad: 3}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

// pool grades the key pool, if the caller may know it, and makes it the bottleneck if it is
// worse than worst.
func pool(tx *db.Tx, out *Health, worst int) error {
	if !policy.From(tx.Context()).Scopes.Has(policy.Scopes(policy.ReadRunners)) {
		out.KeyPool = PoolHealth{Status: gradeUnknown, Missing: string(policy.ReadRunners)}
		return nil
	}
	k, err := measure.KeyPool(tx)
	if err != nil {
		return err
	}
	works := k.Total - k.Failing
	grade := gradeOK
	switch {
	case k.Total == 0:
		grade = gradeNoData
	case works == 0:
		grade = gradeBad
	case k.Failing > 0:
		grade = gradeWarn
	}
	out.KeyPool = PoolHealth{Status: grade, N: &works, D: &k.Total}
	out.Status = worse(out.Status, grade)
	all := objective{ok: noted}
	if by := all.lacks(measure.Rate{N: works, D: k.Total}, grade); by > worst {
		out.Bottleneck = &Bottleneck{ID: "key_pool", Status: grade, N: works, D: k.Total, Capability: "billing.keys_list",
			Why: fmt.Sprintf("%d of %d keys of model providers work", works, k.Total),
			Do:  "Replace the keys that their provider refuses, or pay for them; last_error says what it answered."}
	}
	return nil
}

// hint says what most runs that failed have in common, if they are the bottleneck.
func hint(tx *db.Tx, repoID string, span measure.Span, b *Bottleneck) error {
	if b == nil || b.ID != "runs_succeed" && b.ID != "tasks_succeed" {
		return nil
	}
	most, ok, err := measure.LostBy(tx, repoID, span)
	if err != nil || !ok {
		return err
	}
	b.Why += fmt.Sprintf("; of the runs that did not, most ended by %s (%d)", most.Kind, most.N)
	switch most.Kind {
	case "provider_auth", "provider_quota", "no_credential":
		b.Do, b.Capability = "Add a key of a model provider that works, or replace the one that is refused.", "billing.keys_list"
	case "provider_rate_limit", "provider_unavailable", "model_unavailable":
		b.Do, b.Capability = "Name another model in the template, or spread the work over more keys.", "template.list"
	case "box_lost", "box_drained", "lease_expired", "storage_failed":
		b.Do, b.Capability = "Look at the boxes that lose runs: their disks, their network, who stops them.", "box.list"
	case "setup_failed", "checkout_failed", "push_rejected":
		b.Do, b.Capability = "Run the repository's setup command by hand, and see whether the host lets the server at the repository.", "project.settings"
	case "budget_exhausted":
		b.Do, b.Capability = "Give tasks a larger budget, or ask for smaller ones.", "task.list"
	case "ci_ladder_spent":
		b.Do, b.Capability = "Mend the checks that no repair has made pass.", "ci.flakes"
	}
	return nil
}
