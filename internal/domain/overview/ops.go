package overview

import (
	"cmp"
	"context"
	"slices"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/money"
	"yardmaster/internal/policy"
)

const (
	group   = "Overview"
	ofRepos = "Repositories"
	ofFleet = "Fleet boxes (runners)"
)

// Ops returns the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{
			ID:      "overview.counts",
			Method:  "GET",
			Path:    "/v1/overview/counts",
			Group:   group,
			Rule:    policy.Require(policy.ReadPRs),
			Summary: "Repositories, pull requests, tasks and what waits for the caller, counted",
			Doc:     "Of the whole account, as of now. What waits for the caller is what the credential may decide.",
		}, s.counts),
		op.New(op.Row{
			ID:      "overview.burn",
			Method:  "GET",
			Path:    "/v1/overview/burn",
			Group:   group,
			Rule:    policy.Require(policy.ReadSessions),
			Summary: "What sessions cost in the last hour, estimated",
			Doc: "Of sessions that called a model within the last hour. An estimate and no bill: calls without a known " +
				"price are counted apart.",
		}, s.burn),
		op.New(op.Row{
			ID:      "overview.day",
			Method:  "GET",
			Path:    "/v1/overview/day",
			Group:   group,
			Rule:    policy.Require(policy.ReadPRs),
			Summary: "What each repository had merged, filed and spent within the last 24 hours",
			Doc:     "Repositories in which nothing happened are left out. Costs are estimates, like those of overview.burn.",
		}, s.day),
		op.New(op.Row{
			ID: "overview.flow", Method: "GET", Path: "/v1/overview/flow", Group: group,
			Rule:    policy.Require(policy.ReadPRs, policy.ReadTasks),
			Summary: "How long work takes from filed to merged, where that goes, and what waits for boxes",
			Doc:     "Days are those of UTC. The queue is told for the last 24 hours.",
		}, s.flow),
		op.New(op.Row{
			ID: "project.overview", Method: "GET", Path: "/v1/repos/{owner}/{repo}/overview", Group: ofRepos,
			Rule:    policy.Require(policy.ReadRepos),
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}},
			Summary: "The activity of one enabled repository",
			Doc:     "Pull requests, tasks, checks, sessions and blockers: what there is now, and what happened within seven days.",
		}, s.rollup),
		op.New(op.Row{
			ID: "project.health", Method: "GET", Path: "/v1/repos/{owner}/{repo}/health", Group: ofRepos,
			Rule:    policy.Require(policy.ReadTasks, policy.ReadPRs),
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}},
			Summary: "How well one repository does, and what holds it up most",
			Doc: "Each objective is graded over the window by how many of how many went well; the bottleneck is the worst of them, with what to do about it. " +
				"The state of the key pool is of now, and takes read:runners.",
		}, s.health),
		op.New(op.Row{
			ID: "project.public_stats", Method: "GET", Path: "/v1/public/oss/{owner}/{repo}/stats", Group: ofRepos,
			Rule: policy.Public(), PerAddress: 60, AnyOrigin: true, Body: PublicStats{},
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}},
			Summary: "What a public repository shows everybody of its activity",
			Doc: "For a repository that is enabled, public at its code host, and has donations_enabled or public_stats_enabled; " +
				"every other one is the same 404. The numbers are up to a minute old; whether they are shown is not: a " +
				"repository that goes private or turns its switches off is 404 at once.",
		}, s.public),
		op.New(op.Row{
			ID: "box.utilization", Method: "GET", Path: "/v1/fleet/utilization", Group: ofFleet,
			Rule:    policy.Require(policy.ReadRunners),
			Summary: "What the fleet does now, and what waits for it, in one read",
			Doc: "The load of each box of the account, how hot the key pool is, the ready tasks by lane, and how fresh the pages of each " +
				"repository are. Nothing is written. Boxes of other accounts are not among them: box.list has those with filter=outside:true.",
		}, s.utilization),
		op.New(op.Row{
			ID: "run.timeline", Method: "GET", Path: "/v1/tasks/{id}/timeline", Group: "Tasks", Rule: policy.Require(policy.ReadTasks),
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}},
			Summary: "Where the time of a task went: its phases, their causes and costs",
			Doc:     "Of its tries, of the checks, reviews and repairs of its pull request, and of people who were asked. What held it in the queue is not recorded.",
		}, s.timeline),
	}
}

func (s *Service) counts(ctx context.Context, _ op.None) (out Counts, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		day := tx.Now.Add(-24 * time.Hour)
		has, err := measure.OpenIn(tx)
		if err != nil {
			return err
		}
		waits, err := measure.WaitingFor(tx)
		if err != nil {
			return err
		}
		merged, err := measure.Merged(tx, measure.Since(day))
		if err != nil {
			return err
		}
		out = Counts{Repos: has.EnabledRepos, Open: has.Pulls, Merged: merged, Approvals: waits.Approvals}
		actor := policy.From(tx.Context())
		may := func(scope policy.Scope) bool { return actor.Scopes.Has(policy.Scopes(scope)) }
		if out.Nearly, err = s.Quotas.NearlyFull(tx); err != nil {
			return err
		}
		w := &out.Waiting
		if may(policy.WritePRs) {
			w.Approvals, w.Pulls = waits.Approvals, waits.Pulls
		}
		if may(policy.ReadTasks) {
			n, err := measure.RunningTasks(tx, measure.Since(day))
			if err != nil {
				return err
			}
			stuck, err := s.Tasks.Stuck(tx)
			if err != nil {
				return err
			}
			out.Running, out.Failed, out.Stuck = &n.Running, &n.Failed, &stuck
			if may(policy.WriteTasks) {
				w.Plans, w.Tasks = waits.Plans, waits.Tasks
			}
			if may(policy.WriteTasks) && actor.UserID != "" {
				w.Escalations, w.Blockers = waits.Escalations, waits.Questions
				if may(policy.WritePRs) {
					w.Escalations -= waits.Doubles // counted as pull requests
				}
			}
			if may(policy.WriteSecrets) {
				w.Blockers += waits.Forms
			}
		}
		w.Total = w.Approvals + w.Blockers + w.Escalations + w.Plans + w.Pulls + w.Tasks
		return nil
	})
	return out, err
}

func (s *Service) burn(ctx context.Context, _ op.None) (out Burn, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		b, err := measure.Spent(tx, measure.Since(tx.Now.Add(-time.Hour)))
		out = Burn{CostUSD: money.DollarsOrNone(b.Micros), Sessions: b.Sessions, Unpriced: b.Partly}
		return err
	})
	return out, err
}

func (s *Service) day(ctx context.Context, _ op.None) (out Day, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out = Day{Since: tx.Now.Add(-24 * time.Hour)}
		scopes := policy.From(tx.Context()).Scopes
		readsTasks, readsSessions := scopes.Has(policy.Scopes(policy.ReadTasks)), scopes.Has(policy.Scopes(policy.ReadSessions))
		merged, err := measure.MergedByRepo(tx, measure.Since(out.Since))
		if err != nil {
			return err
		}
		var filed []measure.ByRepo
		if readsTasks {
			if filed, err = measure.FiledByRepo(tx, measure.Since(out.Since)); err != nil {
				return err
			}
		}
		var spent []measure.RepoMoney
		if readsSessions {
			if spent, err = measure.SpentByRepo(tx, measure.Since(out.Since)); err != nil {
				return err
			}
		}
		out.Repos = byRepo(merged, filed, spent, readsTasks)
		return nil
	})
	return out, err
}

// byRepo joins what was counted by repository.
func byRepo(merged, filed []measure.ByRepo, spent []measure.RepoMoney, readsTasks bool) []RepoDay {
	all := map[string]*RepoDay{}
	of := func(repo string) *RepoDay {
		d, ok := all[repo]
		if !ok {
			if d = (&RepoDay{Repo: repo}); readsTasks {
				d.Filed = new(int64)
			}
			all[repo] = d
		}
		return d
	}
	for _, c := range merged {
		of(c.Repo).Merged = c.N
	}
	for _, c := range filed {
		*of(c.Repo).Filed = c.N
	}
	for _, c := range spent {
		of(c.Repo).Spent = money.DollarsOrNone(c.Micros)
	}
	out := make([]RepoDay, 0, len(all))
	for _, d := range all {
		out = append(out, *d)
	}
	slices.SortFunc(out, func(a, b RepoDay) int { return cmp.Or(cmp.Compare(b.Merged, a.Merged), cmp.Compare(a.Repo, b.Repo)) })
	return out
}
