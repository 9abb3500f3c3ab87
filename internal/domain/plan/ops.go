package plan

import (
	"context"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
)

const (
	group   = "Plans"
	maxBody = 8 << 20
)

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	reads, write := policy.Require(policy.ReadTasks), policy.Require(policy.WriteTasks)
	missing := op.Refusal{Status: 404, Slug: "not-found"}
	dispatches := []op.Refusal{{Status: 403, Slug: "no-capacity"}, {Status: 409, Slug: "repo_not_enabled"}, {Status: 429, Slug: "queue-full"}}
	refuses := func(more ...op.Refusal) []op.Refusal { return append(more, dispatches...) }
	return []op.Op{
		op.New(op.Row{ID: "plan.list", Method: "GET", Path: "/v1/plans", Group: group, Rule: reads, Paging: &op.Paging{Full: true},
			Summary: "List the account's plans in numbered pages, newest activity first"}, s.list),
		op.New(op.Row{ID: "plan.start", Method: "POST", Path: "/v1/plans", Group: group, Rule: write, Status: 202,
			Summary: "Have a scout plan what is asked for",
			Refuses: []op.Refusal{{Status: 403, Slug: "no-capacity"}, missing, {Status: 409, Slug: "no-live-box"}, {Status: 429, Slug: "queue-full"}, {Status: 503, Slug: "no-triage"}}}, s.start),
		op.New(op.Row{ID: "plan.file_switch_get", Method: "GET", Path: "/v1/plans/file-switch", Group: group, Rule: policy.Require(policy.ReadAccount),
			Summary: "Whether scouts may file plan documents into the account's repositories"}, s.getSwitch),
		op.New(op.Row{ID: "plan.file_switch_set", Method: "PUT", Path: "/v1/plans/file-switch", Group: group, Rule: policy.Require(policy.WriteAccount),
			Summary: "Let scouts file plan documents, or forbid it"}, s.putSwitch),
		op.New(op.Row{ID: "plan.get", Method: "GET", Path: "/v1/plans/{planId}", Group: group, Rule: reads,
			Summary: "One plan with its groups, their tasks and pull requests"}, s.get),
		op.New(op.Row{ID: "plan.context", Method: "GET", Path: "/v1/plans/fanouts/{fanoutId}", Group: group, Rule: reads,
			Summary: "What the scouts of a fan-out found, merged"}, s.context),
		op.New(op.Row{ID: "plan.cancel", Method: "POST", Path: "/v1/plans/{planId}/cancel", Group: group, Rule: write,
			Summary: "Cancel a plan and the tasks of it that are not over"}, s.cancel),
		op.New(op.Row{ID: "plan.approve", Method: "POST", Path: "/v1/plans/{planId}/approve", Group: group, Rule: write,
			Summary: "Release a held plan: all its tasks are minted",
			Refuses: refuses(op.Refusal{Status: 409, Slug: "plan-stopped"}, op.Refusal{Status: 409, Slug: "plan-drafting"})}, s.approve),
		op.New(op.Row{ID: "plan.execute", Method: "POST", Path: "/v1/plans/execute", Group: group, Rule: write, Status: 202,
			Summary: "Execute a committed plan directory",
			Refuses: refuses(missing, op.Refusal{Status: 422, Slug: "plan-path"}, op.Refusal{Status: 422, Slug: "plan-invalid"})}, s.execute),
		op.New(op.Row{ID: "plan.file", Method: "POST", Path: "/v1/plans/file", Group: group, Rule: write, Status: 202, MaxBody: maxBody,
			Summary: "Commit a plan directory and execute it",
			Refuses: refuses(missing, op.Refusal{Status: 409, Slug: "plan-file-off"}, op.Refusal{Status: 422, Slug: "plan-invalid"}, op.Refusal{Status: 422, Slug: "plan-closed"},
				op.Refusal{Status: 422, Slug: "plan-running"}, op.Refusal{Status: 422, Slug: "plan-stale"})}, s.file),
		op.New(op.Row{ID: "plan.regroup", Method: "POST", Path: "/v1/plans/{planId}/regroup", Group: group, Rule: write,
			Summary: "Put tasks in the place of groups that are not done",
			Refuses: []op.Refusal{{Status: 409, Slug: "plan-not-open"}, {Status: 409, Slug: "group-settled"}, {Status: 409, Slug: "task-not-usable"}, {Status: 409, Slug: "would-cycle"},
				{Status: 409, Slug: "upstream-failed"}, {Status: 422, Slug: "unknown-group"}, {Status: 422, Slug: "unknown-ask"}, {Status: 422, Slug: "unknown-task"}}}, s.regroup),
		op.New(op.Row{ID: "plan.unlink", Method: "POST", Path: "/v1/plans/{planId}/unlink", Group: group, Rule: write,
			Summary: "Remove ordering-only edges of one group",
			Refuses: []op.Refusal{{Status: 409, Slug: "plan-not-open"}, {Status: 409, Slug: "group-settled"}, {Status: 422, Slug: "unknown-group"}, {Status: 422, Slug: "no-such-edge"}}}, s.unlink),
	}
}

type listIn struct {
	Page    int    `json:"page,omitempty" minimum:"1" maximum:"1000000" default:"1" doc:"from 1"`
	PerPage int    `json:"per_page,omitempty" minimum:"1" maximum:"100" default:"25"`
	Bucket  string `json:"bucket,omitempty" enum:"held,active,stalled,done,cancelled"`
	Repo    string `json:"repo,omitempty" maxLength:"200" doc:"owner/name"`
	Q       string `json:"q,omitempty" maxLength:"200" doc:"text in the title"`
}

// PlanPage is a numbered page of plans.
type PlanPage struct {
	Data    []Plan      `json:"data"`
	Page    int         `json:"page"`
	Pages   int         `json:"pages" doc:"how many there are; 0 without a plan"`
	Total   int64       `json:"total" doc:"plans that all filters let through"`
	Buckets PlanBuckets `json:"buckets"`
	Repos   []string    `json:"repos" doc:"the repositories that plans can be narrowed to"`
}

// PlanBuckets counts the plans that the filters but the bucket let through.
type PlanBuckets struct {
	Held      int64 `json:"held"`
	Active    int64 `json:"active"`
	Stalled   int64 `json:"stalled"`
	Done      int64 `json:"done"`
	Cancelled int64 `json:"cancelled"`
}

func (s *Service) list(ctx context.Context, in listIn) (out PlanPage, err error) {
	out = PlanPage{Data: []Plan{}, Page: in.Page, Repos: []string{}}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		repos, err := selectRepos.All(tx, tx.Account)
		if err != nil {
			return err
		}
		out.Repos = append(out.Repos, repos...)
		var repoID string
		if in.Repo != "" {
			owner, name, _ := strings.Cut(in.Repo, "/")
			r, ok, err := s.Tasks.RepoByName(tx, owner, name)
			if err != nil || !ok {
				return err // no plan can be of it
			}
			repoID = r.ID
		}
		counts, err := countBuckets(tx, &in, repoID)
		if err != nil {
			return err
		}
		at := map[string]*int64{BucketHeld: &out.Buckets.Held, BucketActive: &out.Buckets.Active, BucketStalled: &out.Buckets.Stalled,
			BucketDone: &out.Buckets.Done, BucketCancelled: &out.Buckets.Cancelled}
		for _, c := range counts {
			*at[c.Bucket] = c.N
			if in.Bucket == "" || in.Bucket == c.Bucket {
				out.Total += c.N
			}
		}
		out.Pages = int((out.Total + int64(in.PerPage) - 1) / int64(in.PerPage))
		rows, err := list(tx, &in, repoID)
		if err != nil {
			return err
		}
		shown, err := s.view(tx, rows)
		out.Data = append(out.Data, shown...)
		return err
	})
	return out, err
}

// view makes the wire form of plans.
func (s *Service) view(tx *db.Tx, rows []listRow) ([]Plan, error) {
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	works, err := reposOf(tx, ids)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	out := make([]Plan, len(rows))
	for i, r := range rows {
		if names[r.RepoID] == "" {
			repo, err := s.Tasks.RepoByID(tx, r.RepoID)
			if err != nil {
				return nil, err
			}
			names[r.RepoID] = repo.FullName()
		}
		out[i] = Plan{
			PlanID: r.ID, ID: r.ID, Repo: names[r.RepoID], Repos: works[r.ID], Title: r.Title, Status: r.Status, Bucket: r.Bucket, Source: r.Source,
			Dir: r.Dir, Revision: r.Revision, Merged: r.Merged, Total: r.Total, HeldCount: r.HeldCount, AskID: r.AskID, Note: r.Note, CreatedBy: r.CreatedBy,
			CreatedAt: r.CreatedAt.Truncate(time.Millisecond), LastActivityAt: r.LastActivityAt.Truncate(time.Millisecond),
		}
		if len(out[i].Repos) == 0 { // no group yet
			out[i].Repos = []string{out[i].Repo}
		}
	}
	return out, nil
}

type idIn struct {
	PlanID string `json:"planId"`
}

func (s *Service) get(ctx context.Context, in idIn) (out PlanDetail, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		p, err := find(tx, in.PlanID)
		if err != nil {
			return err
		}
		n, err := read(tx, p.ID)
		if err != nil {
			return err
		}
		at, err := selectProgress.One(tx, tx.Account, p.ID)
		if err != nil {
			return err
		}
		shown, err := s.view(tx, []listRow{{p.ID, p.RepoID, p.Title, at.Status, at.Bucket, p.Source, p.Dir, p.Revision, at.Merged, at.Total,
			at.HeldCount, p.AskID, p.Note, p.CreatedBy, p.CreatedAt, at.LastActivityAt}})
		if err != nil {
			return err
		}
		out = PlanDetail{Plan: shown[0], Overview: p.Overview, CommitSHA: p.CommitSHA, ScoutTaskID: p.ScoutTaskID}
		out.Groups, err = s.viewGroups(tx, p.ID, n, n.groups)
		return err
	})
	return out, err
}

// viewGroups makes the wire form of groups of a plan.
func (s *Service) viewGroups(tx *db.Tx, planID string, n *net, groups []groupRow) ([]PlanGroup, error) {
	var prs []string
	for _, tasks := range n.tasks {
		for i := range tasks {
			if tasks[i].PRID != nil {
				prs = append(prs, *tasks[i].PRID)
			}
		}
	}
	pull := map[string]pullRow{}
	if len(prs) > 0 {
		var err error
		if pull, err = pulls(tx, prs); err != nil {
			return nil, err
		}
	}
	names := map[string]string{}
	out := make([]PlanGroup, 0, len(groups))
	for i := range groups {
		g := &groups[i]
		if names[g.RepoID] == "" {
			r, err := s.Tasks.RepoByID(tx, g.RepoID)
			if err != nil {
				return nil, err
			}
			names[g.RepoID] = r.FullName()
		}
		shown := PlanGroup{ID: g.ID, PlanID: planID, Repo: names[g.RepoID], Slug: g.Slug, Title: g.Title, Status: n.state(g),
			Files: g.Files.V, Upstream: viewEdges(n.up[g.ID]), Tasks: []PlanChild{}}
		for j := range n.tasks[g.ID] {
			t := &n.tasks[g.ID][j]
			child := PlanChild{ID: t.ID, Title: t.Title, Status: string(t.Status), FailureKind: t.FailureKind, RunID: t.RunID}
			if t.StartedAt == nil {
				child.RunID = nil // until the box has started it
			}
			if t.PRID != nil {
				if r, ok := pull[*t.PRID]; ok {
					child.PR = &PlanPR{r.ID, r.Number, r.Title, r.URL, r.State}
				}
			}
			shown.Tasks = append(shown.Tasks, child)
		}
		out = append(out, shown)
	}
	return out, nil
}

func viewEdges(edges []edgeRow) []PlanEdge {
	out := make([]PlanEdge, 0, len(edges))
	for _, e := range edges {
		out = append(out, PlanEdge{e.UpstreamID, e.Kind})
	}
	return out
}

// PlanFileSwitch tells whether plan documents may be filed.
type PlanFileSwitch struct {
	Enabled bool `json:"enabled"`
}

func (s *Service) getSwitch(ctx context.Context, _ op.None) (out PlanFileSwitch, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out.Enabled, err = filing(tx)
		return err
	})
	return out, err
}

type switchIn struct {
	Enabled bool `json:"enabled"`
}

// PlanFileSwitched is the answer of plan.file_switch_set.
type PlanFileSwitched struct {
	Enabled bool `json:"enabled"`
	Changed bool `json:"changed" doc:"false: it was so before"`
}

func (s *Service) putSwitch(ctx context.Context, in switchIn) (out PlanFileSwitched, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		was, err := filing(tx)
		if err != nil {
			return err
		}
		out = PlanFileSwitched{in.Enabled, was != in.Enabled}
		if _, err := setSwitch.Exec(tx, tx.Account, in.Enabled); err != nil {
			return err
		}
		return event.Record(tx, event.Change{Kind: "plan.file_switch_set", Object: tx.Account, Data: map[string]bool{"enabled": in.Enabled, "changed": out.Changed}})
	})
	return out, err
}
