package app

import (
	"fmt"
	"slices"
	"sync"

	"pgregory.net/rapid"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/fault"
	"yardmaster/internal/flow"
)

const maxPlans = 4

func (m *walk) edge() string {
	return rapid.SampledFrom([]string{plan.Code, plan.OrderingOnly}).Draw(m.r, "kind")
}

// startPlan sends a scout, whose report is a plan (see report).
func (m *walk) startPlan() {
	if len(m.plans) >= maxPlans {
		panic(idle{})
	}
	status, out := m.call(m.on(), "POST", "/v1/plans", map[string]any{"repo": m.repoName(), "ask": "Make it better",
		"require_approval": rapid.Bool().Draw(m.r, "held")})
	switch status {
	case 202:
		m.plans = append(m.plans, out["plan_id"].(string))
		m.owe("plan.started", out["plan_id"].(string))
	case 404, 409: // the repository is off, or no box is there
	default:
		m.fail("plan.start answers %d %v", status, out)
	}
}

// authorPlan makes a plan as triage does.
func (m *walk) authorPlan() {
	if len(m.plans) >= maxPlans {
		panic(idle{})
	}
	n := m.on()
	d := plan.Draft{Overview: "# The whole\n", Source: plan.SourceTriage, Hold: rapid.Bool().Draw(m.r, "held")}
	var repos []string
	for i := range rapid.IntRange(2, 4).Draw(m.r, "slices") {
		repos = append(repos, one(m, m.repos, "repo"))
		u := plan.Unit{Slug: walkSlug(i), Title: "Part", Problem: "Do it.", DependsOn: map[string]string{}}
		for up := range i {
			if rapid.IntRange(0, 2).Draw(m.r, "edge") == 0 {
				u.DependsOn[walkSlug(up)] = m.edge()
			}
		}
		d.Units = append(d.Units, u)
	}
	var made string
	err := n.db.Write(m.as(), func(tx *db.Tx) error {
		for i, repoID := range repos {
			r, err := flow.TaskRepos{Hosts: n.hosts}.ByID(tx, repoID)
			if err != nil {
				return err
			}
			d.Units[i].Repo = r
		}
		d.Repo = d.Units[0].Repo
		var err error
		made, err = part[*plan.Service](n).Author(tx, d)
		return err
	})
	switch {
	case err == nil:
		m.plans = append(m.plans, made)
		m.owe("plan.created", made)
	case !fault.IsKind(err, fault.Conflict): // a repository is off
		m.fail("author: %v", err)
	}
}

func (m *walk) anyPlan() string {
	if len(m.plans) == 0 {
		panic(idle{})
	}
	return one(m, m.plans, "plan")
}

// both makes a request on both nodes at the same moment.
func (m *walk) both(method, path string, body any) (status [2]int, out [2]map[string]any) {
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() { status[i], out[i] = m.call(m.nodes[i], method, path, body) })
	}
	wg.Wait()
	return status, out
}

// approve releases a plan, on both nodes at once.
func (m *walk) approve() {
	planID := m.anyPlan()
	was := m.was.plans[planID]
	statuses, outs := m.both("POST", "/v1/plans/"+planID+"/approve", nil)
	first := 0
	for i, status := range statuses {
		switch {
		case status == 200 && outs[i]["kind"] == "approved":
			first++
			m.owe("plan.approved", planID)
		case status == 200 && (was.ApprovedAt != nil || first > 0 || statuses[1-i] == 200):
		case status == 409:
		default:
			m.fail("approve of %+v answers %d %v", was, status, outs[i])
		}
	}
	if first > 1 || first == 1 && was.ApprovedAt != nil {
		m.fail("a plan was approved twice: %v", outs)
	}
}

func (m *walk) cancelPlan() {
	if rapid.IntRange(0, 3).Draw(m.r, "spared") < 3 {
		panic(idle{}) // of a plan that is cancelled there is little to see
	}
	planID := m.anyPlan()
	out := m.must(m.on(), 200, "POST", "/v1/plans/"+planID+"/cancel", nil)
	m.owe("plan.cancelled", planID)
	for _, taskID := range out["stopped"].([]any) {
		if m.believe[taskID.(string)] != task.Cancelled {
			m.fail("task %s was stopped and is %s", taskID, m.believe[taskID.(string)])
		}
	}
}

// regroup puts tasks that were filed in the place of groups.
func (m *walk) regroup() {
	planID := m.anyPlan()
	var groups, free []string
	for _, g := range m.was.groups {
		if g.PlanID == planID {
			groups = append(groups, g.ID)
		}
	}
	for _, taskID := range m.tasks {
		if t := m.was.tasks[taskID]; t.Kind == task.KindWork && t.PlanID == nil &&
			!slices.Contains([]task.Status{task.Failed, task.Cancelled}, t.Status) {
			free = append(free, taskID)
		}
	}
	if len(groups) == 0 || len(free) == 0 {
		panic(idle{})
	}
	body := map[string]any{
		"group_ids": rapid.SliceOfNDistinct(rapid.SampledFrom(groups), 1, 2, rapid.ID).Draw(m.r, "groups"),
		"task_ids":  rapid.SliceOfNDistinct(rapid.SampledFrom(free), 1, 2, rapid.ID).Draw(m.r, "tasks"),
	}
	status, out := m.call(m.on(), "POST", "/v1/plans/"+planID+"/regroup", body)
	switch status {
	case 200:
		m.owe("plan.regrouped", planID)
		for _, taskID := range out["revived"].([]any) {
			if m.believe[taskID.(string)] != task.Pending {
				m.fail("task %s was revived and is %s", taskID, m.believe[taskID.(string)])
			}
		}
	case 409:
	default:
		m.fail("regroup answers %d %v", status, out)
	}
}

func (m *walk) unlink() {
	planID := m.anyPlan()
	var edges []edgeRow
	for _, e := range m.was.edges {
		if e.PlanID == planID {
			edges = append(edges, e)
		}
	}
	if len(edges) == 0 {
		panic(idle{})
	}
	e := one(m, edges, "edge")
	status, out := m.call(m.on(), "POST", "/v1/plans/"+planID+"/unlink",
		map[string]any{"group_id": e.GroupID, "upstream_group_ids": []string{e.UpstreamID}, "reason": "It can do without."})
	switch {
	case status == 200 && e.Kind == plan.OrderingOnly:
		m.owe("plan.unlinked", planID)
	case status == 409, status == 422 && e.Kind == plan.Code:
	default:
		m.fail("unlink of %+v answers %d %v", e, status, out)
	}
}

// relink changes what a task that no plan has waits for.
func (m *walk) relink() {
	n, taskID, on := m.on(), m.any(), m.any()
	var moved []string
	m.do(func(tx *db.Tx) error {
		return withTask(tx, taskID, func(t *task.Row) error {
			moved = nil
			up, _, err := task.Get(tx, m.account, on)
			if err != nil || on == t.ID || t.Kind != task.KindWork || t.PlanID != nil ||
				t.Status != task.Pending && t.Status != task.Failed {
				return err
			}
			if up.Status == task.Failed || up.Status == task.Cancelled {
				moved, err = n.parts.task.Relink(tx, t, nil, []string{on})
				return err
			}
			if at, err := task.Reaches(tx, []string{on}, []string{t.ID}); err != nil || at != "" {
				return err
			}
			moved, err = n.parts.task.Relink(tx, t, []string{on}, nil)
			return err
		})
	})
	for _, taskID := range moved {
		if m.believe[taskID] != task.Pending {
			m.fail("task %s was released and is %s", taskID, m.believe[taskID])
		}
	}
}

// walkSlug names the groups of a plan, from 1.
func walkSlug(i int) string { return fmt.Sprintf("slice-%02d", i+1) }
