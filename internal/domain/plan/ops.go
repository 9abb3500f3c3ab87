package plan

import (
	"context"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/money"
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
	dispatches := []op.Refusal{{Status: 403, Slug: "no-capacity"}, {Status: 409, Slug: "repo_not_enabled"},
		{Status: 429, Slug: "queue-full"}}
	refuses := func(more ...op.Refusal) []op.Refusal { return append(more, dispatches...) }
	return []op.Op{
		op.New(op.Row{ID: "plan.list", Method: "GET", Path: "/v1/plans", Group: group, Rule: reads, Paging: &op.Paging{Full: true},
			Summary: "List the account's plans in numbered pages, newest activity first",
			Doc: "The one collection with numbered pages: page and per_page, no cursor. buckets counts what all filters but the bucket let " +
				"through."}, s.list),
		op.New(op.Row{ID: "plan.start", Method: "POST", Path: "/v1/plans", Group: group, Rule: write, Status: 202,
			Summary: "Have a scout plan what is asked for",
			Doc: "For one repository a scout surveys it and drafts a plan. For several an ask is filed (raw_task_id), of which triage makes one " +
				"plan with a slice for each. With return_context a scout surveys each and nothing is planned: read the findings with plan.context. " +
				"Refused when no online box can hold a live session, which a scout needs.",
			Refuses: []op.Refusal{{Status: 403, Slug: "no-capacity"}, missing, {Status: 409, Slug: "no-live-box"},
				{Status: 429, Slug: "queue-full"}}}, s.start),
		op.New(op.Row{ID: "plan.file_switch_get", Method: "GET", Path: "/v1/plans/file-switch",
			Group: group, Rule: policy.Require(policy.ReadAccount),
			Summary: "Whether scouts may file plan documents into the account's repositories",
			Doc:     "While it is off, plan.file is refused."}, s.getSwitch),
		op.New(op.Row{ID: "plan.file_switch_set", Method: "PUT", Path: "/v1/plans/file-switch",
			Group: group, Rule: policy.Require(policy.WriteAccount),
			Summary: "Let scouts file plan documents, or forbid it",
			Doc:     "Setting what is already set is no error; changed tells the two apart."}, s.putSwitch),
		op.New(op.Row{ID: "plan.get", Method: "GET", Path: "/v1/plans/{planId}", Group: group, Rule: reads,
			Summary: "One plan with its groups, their tasks and pull requests",
			Doc:     "States of groups and plan follow from their tasks: they are not stored, and never lag behind."}, s.get),
		op.New(op.Row{ID: "plan.group_get", Method: "GET", Path: "/v1/plans/{planId}/groups/{groupId}", Group: group, Rule: reads,
			Summary: "One group of a plan, with the text that its task gets",
			Doc: "For a group that was made of a document it is the document, as it was when the plan was made, with a line on its " +
				"place in the plan. It can be read before the plan is approved."}, s.getGroup),
		op.New(op.Row{ID: "plan.context", Method: "GET", Path: "/v1/plans/fanouts/{fanoutId}", Group: group, Rule: reads,
			Summary: "What the scouts of a fan-out found, merged",
			Doc:     "Readable while scouts are still out; still_surveying names the repositories that are missing."}, s.context),
		op.New(op.Row{ID: "plan.cancel", Method: "POST", Path: "/v1/plans/{planId}/cancel", Group: group, Rule: write,
			Summary: "Cancel a plan and the tasks of it that are not over",
			Doc: "Cancels every task of the plan that is not over, with its dependents, and closes groups that have no task yet. Reviews of " +
				"pull requests that are open go on. Always 200: a plan that is over answers which tasks were already finished."}, s.cancel),
		op.New(op.Row{ID: "plan.approve", Method: "POST", Path: "/v1/plans/{planId}/approve", Group: group, Rule: write,
			Summary: "Release a held plan: all its tasks are minted",
			Doc: "All tasks of all groups are minted in one transaction; each starts when the groups before it are done. A second approval " +
				"answers the first one's tasks. Refused while the scout is drafting, when every group was stopped, when a group works in a " +
				"repository that is not enabled, and when the account has no seat or the queue no room for all of them.",
			Refuses: refuses(op.Refusal{Status: 409, Slug: "plan-stopped"}, op.Refusal{Status: 409, Slug: "plan-drafting"})}, s.approve),
		op.New(op.Row{ID: "plan.execute", Method: "POST", Path: "/v1/plans/execute", Group: group, Rule: write, Status: 202,
			Summary: "Execute a committed plan directory",
			Doc: "Reads overview.md, the numbered documents and status.yml of the directory at the default branch, and mints the tasks, or " +
				"records the plan held with dry_run. The same directory and revision answers the plan that was made before, kind existing. " +
				"Documents that cannot be read as a plan are refused, each with what is wrong.",
			Refuses: refuses(missing, op.Refusal{Status: 422, Slug: "plan-path"}, op.Refusal{Status: 422, Slug: "plan-invalid"})},
			s.execute),
		op.New(op.Row{ID: "plan.file", Method: "POST", Path: "/v1/plans/file", Group: group, Rule: write, Status: 202, MaxBody: maxBody,
			Summary: "Commit a plan directory and execute it",
			Doc: "Commits the documents to the default branch under plans/<slug> and executes them as plan.execute does. Every citation of " +
				"the scouts is checked against the repository first. Refused while the account's switch is off, when the documents or citations are " +
				"wrong, and when the directory belongs to a plan that is closed or running.",
			Refuses: refuses(missing, op.Refusal{Status: 409, Slug: "plan-file-off"}, op.Refusal{Status: 422, Slug: "plan-invalid"},
				op.Refusal{Status: 422, Slug: "plan-closed"},
				op.Refusal{Status: 422, Slug: "plan-running"}, op.Refusal{Status: 422, Slug: "plan-stale"})}, s.file),
		op.New(op.Row{ID: "plan.regroup", Method: "POST", Path: "/v1/plans/{planId}/regroup", Group: group, Rule: write,
			Summary: "Put tasks in the place of groups that are not done",
			Doc: "The replaced groups are superseded, their tasks are not stopped, and what waited for them waits for the new groups. Send " +
				"ask_id or task_ids. Refused when the plan is over, a replaced group is done or stopped, or the edges would run in a circle.",
			Refuses: []op.Refusal{{Status: 409, Slug: "plan-not-open"}, {Status: 409, Slug: "group-settled"},
				{Status: 409, Slug: "task-not-usable"}, {Status: 409, Slug: "would-cycle"},
				{Status: 409, Slug: "upstream-failed"}, {Status: 422, Slug: "unknown-group"}, {Status: 422, Slug: "unknown-ask"},
				{Status: 422, Slug: "unknown-task"}}}, s.regroup),
		op.New(op.Row{ID: "plan.unlink", Method: "POST", Path: "/v1/plans/{planId}/unlink", Group: group, Rule: write,
			Summary: "Remove ordering-only edges of one group",
			Doc: "Only edges that keep an order without needing code can be removed. Tasks that had failed because of a group that is no " +
				"longer waited for are queued again. The reason is kept with the change.",
			Refuses: []op.Refusal{{Status: 409, Slug: "plan-not-open"}, {Status: 409, Slug: "group-settled"},
				{Status: 422, Slug: "unknown-group"},
				{Status: 422, Slug: "no-such-edge"}}}, s.unlink),
	}
}

type listIn struct {
	Page    int    `json:"page,omitempty" minimum:"1" maximum:"1000000" default:"1" doc:"which page, from 1"`
	PerPage int    `json:"per_page,omitempty" minimum:"1" maximum:"100" default:"25" doc:"plans a page"`
	Bucket  Bucket `json:"bucket,omitempty" doc:"only plans of this bucket; stalled ones need a person"`
	Repo    string `json:"repo,omitempty" maxLength:"200" doc:"only plans that work in this repository, owner/name"`
	Q       string `json:"q,omitempty" maxLength:"200" doc:"text in the title"`
	ID      string `json:"id,omitempty" maxLength:"36" example:"23456789abcd" doc:"the beginning or the end of the id, at least 4 characters"`

	named []string // the ids that ID finds
}

// Page is a numbered page of plans.
type Page struct {
	_       struct{} `doc:"A numbered page of plans."`
	Data    []Plan   `json:"data" doc:"the plans, newest activity first"`
	Page    int      `json:"page" doc:"which page this is, from 1"`
	Pages   int      `json:"pages" doc:"how many there are; 0 without a plan"`
	Total   int64    `json:"total" doc:"plans that all filters let through"`
	Buckets Buckets  `json:"buckets" doc:"how many plans there are of each bucket"`
	Repos   []string `json:"repos" example:"[\"acme/web\"]" doc:"the repositories that plans can be narrowed to"`
}

// Buckets counts the plans that the filters but the bucket let through.
type Buckets struct {
	_         struct{} `doc:"How many plans are in each bucket."`
	Held      int64    `json:"held" doc:"waiting for approval"`
	Active    int64    `json:"active" doc:"being drafted or worked on"`
	Stalled   int64    `json:"stalled" doc:"only a person gets them going again"`
	Done      int64    `json:"done" doc:"all groups are done"`
	Cancelled int64    `json:"cancelled" doc:"stopped by a person"`
}

func (s *Service) list(ctx context.Context, in listIn) (out Page, err error) {
	out = Page{Data: []Plan{}, Page: in.Page, Repos: []string{}}
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
				return err // an unknown repository has no plans
			}
			repoID = r.ID
		}
		part, err := op.PartOfID("id", in.ID)
		if err != nil {
			return err
		}
		if part != "" {
			if in.named, err = named(tx, part); err != nil {
				return err
			}
		}
		counts, err := countBuckets(tx, &in, repoID)
		if err != nil {
			return err
		}
		at := map[Bucket]*int64{BucketHeld: &out.Buckets.Held, BucketActive: &out.Buckets.Active, BucketStalled: &out.Buckets.Stalled,
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

// view returns plans as clients see them.
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
			PlanID: r.ID, ID: r.ID, Repo: names[r.RepoID], Repos: works[r.ID], Title: r.Title, Status: Status(r.Status), Bucket: r.Bucket,
			Source: Origin(r.Source),
			Dir:    r.Dir, Revision: r.Revision, Merged: r.Merged, Total: r.Total, HeldCount: r.HeldCount, AskID: r.AskID, Note: r.Note,
			CreatedBy: r.CreatedBy, RequestedBy: r.RequestedBy,
			CreatedAt: r.CreatedAt, LastActivityAt: r.LastActivityAt,
		}
		if len(out[i].Repos) == 0 { // no group yet
			out[i].Repos = []string{out[i].Repo}
		}
	}
	return out, nil
}

// InPlan describes the place of a task in its plan of tx.Account; nil if there
// is no such plan.
func InPlan(tx *db.Tx, t *task.Row) (*task.Plan, error) {
	p, ok, err := selectPlan.Maybe(tx, tx.Account, *t.PlanID)
	if err != nil || !ok {
		return nil, err
	}
	out := &task.Plan{ID: p.ID, Title: p.Title, Dir: p.Dir, GroupID: t.GroupID, Files: []string{}, Upstream: []string{},
		Downstream: []string{}}
	if t.GroupID == nil {
		return out, nil
	}
	groups, err := selectGroups.All(tx, tx.Account, p.ID)
	if err != nil {
		return nil, err
	}
	if g := (&net{groups: groups}).group(*t.GroupID); g != nil {
		out.Slug, out.Files = &g.Slug, append(out.Files, g.Files.V...)
	}
	edges, err := selectEdges.All(tx, p.ID)
	for _, e := range edges {
		switch *t.GroupID {
		case e.GroupID:
			out.Upstream = append(out.Upstream, e.UpstreamID)
		case e.UpstreamID:
			out.Downstream = append(out.Downstream, e.GroupID)
		}
	}
	return out, err
}

type idIn struct {
	PlanID string `json:"planId" format:"uuid" doc:"id of the plan"`
}

func (s *Service) get(ctx context.Context, in idIn) (out Detail, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		p, n, err := findNet(tx, in.PlanID)
		if err != nil {
			return err
		}
		at, err := selectProgress.One(tx, tx.Account, p.ID)
		if err != nil {
			return err
		}
		shown, err := s.view(tx, []listRow{{p.ID, p.RepoID, p.Title, at.Status, at.Bucket, p.Source, p.Dir, p.Revision, at.Merged, at.Total,
			at.HeldCount, p.AskID, p.Note, p.CreatedBy, p.RequestedBy, p.CreatedAt, at.LastActivityAt}})
		if err != nil {
			return err
		}
		out = Detail{Plan: shown[0], Overview: p.Overview, CommitSHA: p.CommitSHA, ScoutTaskID: p.ScoutTaskID}
		limit, err := s.Budgets.PlanCap(tx, p.ID)
		if err != nil {
			return err
		}
		out.BudgetUSD = money.USD(limit)
		out.Groups, err = s.viewGroups(tx, p.ID, n, n.groups)
		return err
	})
	return out, err
}

type groupIn struct {
	idIn
	GroupID string `json:"groupId" format:"uuid" doc:"id of the group"`
}

func (s *Service) getGroup(ctx context.Context, in groupIn) (out GroupDetail, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		p, n, err := findNet(tx, in.PlanID)
		if err != nil {
			return err
		}
		g := n.group(in.GroupID)
		if g == nil {
			return fault.Missing("group")
		}
		shown, err := s.viewGroups(tx, p.ID, n, []groupRow{*g})
		if err != nil {
			return err
		}
		out = GroupDetail{Group: shown[0]}
		out.Problem, err = selectProblem.One(tx, tx.Account, g.ID)
		return err
	})
	return out, err
}

// viewGroups returns groups of a plan as clients see them.
func (s *Service) viewGroups(tx *db.Tx, planID string, n *net, groups []groupRow) ([]Group, error) {
	var prs []string
	for i := range groups {
		for _, t := range n.tasks[groups[i].ID] {
			if t.PRID != nil {
				prs = append(prs, *t.PRID)
			}
		}
	}
	pull := map[string]PR{}
	if len(prs) > 0 {
		var err error
		if pull, err = s.Pulls.Shown(tx, prs); err != nil {
			return nil, err
		}
	}
	names := map[string]string{}
	out := make([]Group, 0, len(groups))
	for i := range groups {
		g := &groups[i]
		if names[g.RepoID] == "" {
			r, err := s.Tasks.RepoByID(tx, g.RepoID)
			if err != nil {
				return nil, err
			}
			names[g.RepoID] = r.FullName()
		}
		shown := Group{ID: g.ID, PlanID: planID, Repo: names[g.RepoID], Slug: g.Slug, Title: g.Title, Status: GroupStatus(n.state(g)),
			Files: g.Files.V, Upstream: viewEdges(n.up[g.ID]), Tasks: []Child{}}
		for j := range n.tasks[g.ID] {
			t := &n.tasks[g.ID][j]
			child := Child{ID: t.ID, Title: t.Title, Status: t.Status, FailureKind: t.FailureKind, RunID: t.RunID}
			if t.StartedAt == nil {
				child.RunID = nil // the box has not started it yet
			}
			if t.PRID != nil {
				if r, ok := pull[*t.PRID]; ok {
					child.PR = &r
				}
			}
			shown.Tasks = append(shown.Tasks, child)
		}
		out = append(out, shown)
	}
	return out, nil
}

func viewEdges(edges []edgeRow) []Edge {
	out := make([]Edge, 0, len(edges))
	for _, e := range edges {
		out = append(out, Edge{GroupID: e.UpstreamID, Kind: EdgeKind(e.Kind)})
	}
	return out
}

// FileSwitch is the answer of plan.file_switch_get.
type FileSwitch struct {
	_       struct{} `doc:"The account's switch for plan documents."`
	Enabled bool     `json:"enabled" doc:"whether plan.file may commit plan documents"`
}

func (s *Service) getSwitch(ctx context.Context, _ op.None) (out FileSwitch, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out.Enabled, err = fileAllowed(tx)
		return err
	})
	return out, err
}

type switchIn struct {
	Enabled bool `json:"enabled" doc:"whether plan.file may commit plan documents"`
}

// FileSwitched is the answer of plan.file_switch_set.
type FileSwitched struct {
	_       struct{} `doc:"The switch after the call."`
	Enabled bool     `json:"enabled" doc:"whether plan.file may commit plan documents"`
	Changed bool     `json:"changed" doc:"false: it was so before"`
}

func (s *Service) putSwitch(ctx context.Context, in switchIn) (out FileSwitched, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		was, err := fileAllowed(tx)
		if err != nil {
			return err
		}
		out = FileSwitched{Enabled: in.Enabled, Changed: was != in.Enabled}
		if _, err := setSwitch.Exec(tx, tx.Account, in.Enabled); err != nil {
			return err
		}
		return switchedEvent.Record(tx, event.Subject{ID: tx.Account}, switchData{Changed: out.Changed, Enabled: in.Enabled})
	})
	return out, err
}
