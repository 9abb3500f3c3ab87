package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
)

type regroupIn struct {
	PlanID   string   `json:"planId" format:"uuid" doc:"id of the plan"`
	GroupIDs []string `json:"group_ids" maxItems:"50" format:"uuid" doc:"the groups that are replaced"`
	AskID    *string  `json:"ask_id,omitempty" format:"uuid" doc:"an ask that is scheduled: its tasks take the place; this or task_ids"`
	TaskIDs  []string `json:"task_ids,omitempty" maxItems:"50" format:"uuid" doc:"the tasks that take the place"`
}

// Regrouped is the answer of plan.regroup.
type Regrouped struct {
	_                struct{} `doc:"What plan.regroup did."`
	PlanID           string   `json:"plan_id" format:"uuid" doc:"id of the plan"`
	Groups           []Group  `json:"groups" doc:"the new ones, one a task"`
	SupersededGroups []string `json:"superseded_groups" format:"uuid" doc:"the groups that were replaced"`
	SupersededTasks  []string `json:"superseded_tasks" format:"uuid" doc:"tasks of the replaced groups; they are not stopped"`
	Revived          []string `json:"revived" format:"uuid" doc:"tasks that had failed because of a replaced one and wait again"`
}

func unprocessable(slug, format string, a ...any) *fault.Error {
	return fault.Newf(fault.Unprocessable, slug, format, a...)
}

func (s *Service) regroup(ctx context.Context, in regroupIn) (out Regrouped, err error) {
	switch {
	case len(in.GroupIDs) == 0:
		return out, fault.Field("group_ids", "must name a group")
	case (in.AskID == nil) == (len(in.TaskIDs) == 0):
		return out, fault.Field("task_ids", "is required, or else ask_id; not both")
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		p, n, err := s.changeable(tx, in.PlanID)
		if err != nil {
			return err
		}
		if p.ApprovedAt == nil { // tasks cannot wait for groups without tasks
			return fault.Reason("plan-not-open", "The plan is held: approve it, then regroup it.")
		}
		old, err := n.replaceable(in.GroupIDs)
		if err != nil {
			return err
		}
		ids, err := s.successors(tx, &in)
		if err != nil {
			return err
		}
		tasks, err := s.usable(tx, n, ids)
		if err != nil {
			return err
		}
		out, err = s.replace(tx, &p, n, old, tasks)
		return err
	})
	return out, err
}

// changeable locks a plan that is open. It returns the faults of find, and
// fault.Conflict with the slug plan-not-open.
func (s *Service) changeable(tx *db.Tx, planID string) (row, *net, error) {
	p, n, err := lock(tx, planID)
	if err != nil {
		return p, nil, err
	}
	if is := n.progress(&p).status; !open(is) || len(n.groups) == 0 {
		return p, nil, fault.Reason("plan-not-open", "The plan is "+is+".")
	}
	return p, n, nil
}

// replaceable finds the groups to be replaced. It returns fault.Unprocessable
// with the slug unknown-group, and fault.Conflict with the slug group-settled
// for a group that is done or replaced.
func (n *net) replaceable(ids []string) ([]*groupRow, error) {
	var old []*groupRow
	for _, want := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		g := n.group(want)
		if g == nil {
			return nil, unprocessable("unknown-group", "The plan has no group %s.", clip(want))
		}
		if is := n.state(g); is == Done || is == Superseded {
			return nil, fault.Reason("group-settled", "The group "+g.ID+" is "+is+".").With("group_id", g.ID)
		}
		old = append(old, g)
	}
	return old, nil
}

// successors returns the ids of the tasks that take the place of groups. It
// returns fault.Invalid if a task is named twice, and fault.Unprocessable with
// the slug unknown-ask.
func (s *Service) successors(tx *db.Tx, in *regroupIn) ([]string, error) {
	if in.AskID == nil {
		ids := slices.Clone(in.TaskIDs)
		slices.Sort(ids)
		if len(slices.Compact(ids)) != len(in.TaskIDs) {
			return nil, fault.Field("task_ids", "names a task twice")
		}
		return in.TaskIDs, nil
	}
	if !id.Valid(*in.AskID) {
		return nil, unprocessable("unknown-ask", "There is no such ask.")
	}
	ids, ok, err := s.Asks.TasksOf(tx, *in.AskID)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, unprocessable("unknown-ask", "There is no such ask.")
	case len(ids) == 0:
		return nil, unprocessable("unknown-ask", "The ask has not been scheduled: there are no tasks of it.")
	}
	return ids, nil
}

// usable locks the tasks that take the place of groups, and all tasks of the
// plan, which will wait for them or for which they will wait. It returns
// fault.Unprocessable with the slug unknown-task, and fault.Conflict with the
// slug task-not-usable.
func (s *Service) usable(tx *db.Tx, n *net, ids []string) ([]task.Row, error) {
	locked, err := n.lockTasks(tx, ids)
	if err != nil {
		return nil, err
	}
	var out []task.Row
	for _, taskID := range ids {
		t, ok := locked[taskID]
		switch {
		case !ok:
			return nil, unprocessable("unknown-task", "There is no task %s.", clip(taskID))
		case t.PlanID != nil:
			return nil, fault.Reason("task-not-usable", "The task "+t.ID+" is part of a plan already.").With("task_id", t.ID)
		case !slices.Contains([]string{task.KindWork, task.KindScout, task.KindSetup, task.KindKB, task.KindDevops}, t.Kind):
			return nil, fault.Reason("task-not-usable",
				"The task "+t.ID+" is of the kind "+t.Kind+", which looks after a pull request.").With("task_id", t.ID)
		case t.Status == task.Failed || t.Status == task.Cancelled:
			return nil, fault.Reason("task-not-usable",
				"The task "+t.ID+" is "+string(t.Status)+"; nothing that waits for it would start.").With("task_id", t.ID)
		}
		out = append(out, t)
	}
	return out, nil
}

// neighbours returns the groups for which the replaced groups waited, and those
// that waited for them, with the kind of the edge; Code wins over OrderingOnly.
func (n *net) neighbours(old []*groupRow) (up, down map[string]string) {
	up, down = map[string]string{}, map[string]string{}
	isOld := func(groupID string) bool {
		return slices.ContainsFunc(old, func(g *groupRow) bool { return g.ID == groupID })
	}
	put := func(m map[string]string, groupID, kind string) {
		if m[groupID] != Code {
			m[groupID] = kind
		}
	}
	for i := range n.groups {
		g := &n.groups[i]
		for _, e := range n.up[g.ID] {
			switch {
			case isOld(g.ID) && !isOld(e.UpstreamID):
				put(up, e.UpstreamID, e.Kind)
			case !isOld(g.ID) && isOld(e.UpstreamID) && g.Closed != Superseded:
				put(down, g.ID, e.Kind)
			}
		}
	}
	return up, down
}

// checkCycle returns fault.Conflict with the slug would-cycle if, after a
// replacement, a group or a task would wait for itself. The new tasks may have
// dependencies of their own.
func (n *net) checkCycle(tx *db.Tx, up, down map[string]string, old []*groupRow, tasks []task.Row) error {
	graph := map[string][]string{}
	for i := range n.groups {
		for _, e := range n.up[n.groups[i].ID] {
			graph[e.GroupID] = append(graph[e.GroupID], e.UpstreamID)
		}
	}
	for _, g := range old {
		delete(graph, g.ID)
	}
	const added = "the new groups"
	for u := range up {
		graph[added] = append(graph[added], u)
	}
	for d := range down {
		graph[d] = append(slices.DeleteFunc(graph[d], func(u string) bool {
			return slices.ContainsFunc(old, func(g *groupRow) bool { return g.ID == u })
		}), added)
	}
	if found := cycle(graph); found != nil {
		return fault.Reason("would-cycle",
			"Then groups would wait for themselves: "+strings.Join(found, " needs ")+".").With("groups", found)
	}
	var from, waiting []string
	for i := range tasks {
		from = append(from, tasks[i].ID)
	}
	for d := range down {
		for _, t := range n.tasks[d] {
			waiting = append(waiting, t.ID)
		}
	}
	found, err := task.Reaches(tx, from, waiting)
	if err == nil && found == "" {
		// The tasks for which the new ones will wait must not wait for the new
		// ones.
		var before []string
		for u := range up {
			for _, t := range n.tasks[u] {
				before = append(before, t.ID)
			}
		}
		found, err = task.Reaches(tx, before, from)
	}
	if err == nil && found != "" {
		err = fault.Reason("would-cycle", "Then tasks would wait for themselves, by way of "+found+".").With("task_id", found)
	}
	return err
}

// replace puts one new group for each task in the place of the old ones. It
// returns fault.Conflict with the slugs upstream-failed and would-cycle.
func (s *Service) replace(tx *db.Tx, p *row, n *net, old []*groupRow, tasks []task.Row) (out Regrouped, err error) {
	up, down := n.neighbours(old)
	for u := range up {
		if is := n.state(n.group(u)); is == Failed || is == Stopped {
			return out, fault.Reason("upstream-failed",
				"What the groups wait for, the group "+u+", is "+is+"; replace it as well.").With("group_id", u)
		}
	}
	if err := n.checkCycle(tx, up, down, old, tasks); err != nil {
		return out, err
	}
	out = Regrouped{PlanID: p.ID, SupersededGroups: []string{}, SupersededTasks: []string{}, Revived: []string{}}
	place := old[0].Place
	for _, g := range old {
		place = min(place, g.Place)
		out.SupersededGroups = append(out.SupersededGroups, g.ID)
		for _, t := range n.tasks[g.ID] {
			out.SupersededTasks = append(out.SupersededTasks, t.ID)
		}
		if _, err := closeGroup.Exec(tx, tx.Account, g.ID, Superseded); err != nil {
			return out, err
		}
	}
	var added, newTasks, before []string
	for u := range up {
		for _, t := range n.tasks[u] {
			before = append(before, t.ID)
		}
	}
	for i := range tasks {
		t := &tasks[i]
		groupID := id.New()
		slug := fmt.Sprintf("%s-%.8s", old[0].Slug, t.ID)
		if _, err := insertGroup.Exec(tx, insertGroupArgs{
			ID: groupID, AccountID: tx.Account, PlanID: p.ID, RepoID: t.RepoID, Place: place, Slug: slug, Title: t.Title,
			Problem: t.Problem, Files: t.Files, Template: t.Template,
		}); err != nil {
			return out, err
		}
		if err := task.JoinPlan(tx, t, p.ID, &groupID); err != nil {
			return out, err
		}
		for u, kind := range up {
			if _, err := insertEdge.Exec(tx, insertEdgeArgs{GroupID: groupID, UpstreamID: u, PlanID: p.ID, Kind: kind}); err != nil {
				return out, err
			}
		}
		for d, kind := range down {
			if _, err := insertEdge.Exec(tx, insertEdgeArgs{GroupID: d, UpstreamID: groupID, PlanID: p.ID, Kind: kind}); err != nil {
				return out, err
			}
		}
		if _, err := s.Tasks.Relink(tx, t, before, nil); err != nil {
			return out, err
		}
		added, newTasks = append(added, groupID), append(newTasks, t.ID)
	}
	for d := range down {
		for _, g := range old {
			if _, err := deleteEdge.Exec(tx, p.ID, d, g.ID); err != nil {
				return out, err
			}
		}
	}
	if out.Revived, err = s.relink(tx, n, down, newTasks, out.SupersededTasks); err != nil {
		return out, err
	}
	s.touch(tx, p.ID)
	after, err := readNet(tx, p.ID)
	if err != nil {
		return out, err
	}
	made := slices.DeleteFunc(slices.Clone(after.groups), func(g groupRow) bool { return !slices.Contains(added, g.ID) })
	if out.Groups, err = s.viewGroups(tx, p.ID, after, made); err != nil {
		return out, err
	}
	return out, regroupedEvent.Record(tx, event.Subject{ID: p.ID, RepoID: p.RepoID}, regroupedData{
		Groups: added, Revived: out.Revived, SupersededGroups: out.SupersededGroups, SupersededTasks: out.SupersededTasks,
		TaskIDs: newTasks,
	})
}

// relink changes the dependencies of the tasks of groups, and returns the tasks
// that are back in the queue. A task may have been requeued with another before
// its own turn.
func (s *Service) relink(tx *db.Tx, n *net, groups map[string]string, add, drop []string) ([]string, error) {
	revived := []string{}
	for _, g := range n.order() {
		if _, changes := groups[g.ID]; !changes {
			continue
		}
		for i := range n.tasks[g.ID] {
			t, ok, err := task.Lock(tx, tx.Account, n.tasks[g.ID][i].ID)
			if err != nil || !ok {
				return revived, err
			}
			released, err := s.Tasks.Relink(tx, &t, add, drop)
			if err != nil {
				return revived, err
			}
			revived = append(revived, released...)
		}
	}
	return revived, nil
}

type unlinkIn struct {
	PlanID           string   `json:"planId" format:"uuid" doc:"id of the plan"`
	GroupID          string   `json:"group_id" format:"uuid" doc:"the group that is to wait for less"`
	UpstreamGroupIDs []string `json:"upstream_group_ids" maxItems:"500" format:"uuid" doc:"the groups that it is not to wait for any more"`
	Reason           string   `json:"reason" minLength:"1" maxLength:"500" example:"The two pages turned out to be independent." doc:"why the order no longer matters; kept with the change"`
}

// Unlinked is the answer of plan.unlink.
type Unlinked struct {
	_       struct{} `doc:"What plan.unlink did."`
	PlanID  string   `json:"plan_id" format:"uuid" doc:"id of the plan"`
	GroupID string   `json:"group_id" format:"uuid" doc:"the group that waits for less"`
	Before  []Edge   `json:"before" doc:"what it waited for"`
	After   []Edge   `json:"after" example:"[]" doc:"what it waits for now"`
	Revived []string `json:"revived" format:"uuid" doc:"tasks that had failed because of a group that is no longer waited for, and are queued again"`
}

func (s *Service) unlink(ctx context.Context, in unlinkIn) (out Unlinked, err error) {
	if len(in.UpstreamGroupIDs) == 0 {
		return out, fault.Field("upstream_group_ids", "must name a group")
	}
	if in.Reason = strings.TrimSpace(in.Reason); in.Reason == "" {
		return out, fault.Field("reason", "must not be empty")
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		p, n, err := s.changeable(tx, in.PlanID)
		if err != nil {
			return err
		}
		g := n.group(in.GroupID)
		if g == nil {
			return unprocessable("unknown-group", "The plan has no group %s.", clip(in.GroupID))
		}
		// A group that failed only because of a group before it is not settled:
		// unlink repairs it.
		if is := n.state(g); settled(is) && !n.failedByUpstream(g) {
			return fault.Reason("group-settled", "The group is "+is+".")
		}
		before := n.up[g.ID]
		after := slices.Clone(before)
		for _, u := range slices.Compact(slices.Sorted(slices.Values(in.UpstreamGroupIDs))) {
			i := slices.IndexFunc(after, func(e edgeRow) bool { return e.UpstreamID == u })
			if i < 0 || after[i].Kind != OrderingOnly {
				return unprocessable("no-such-edge", "The group has no ordering-only edge from %s.", clip(u))
			}
			after = slices.Delete(after, i, i+1)
			if _, err := deleteEdge.Exec(tx, p.ID, g.ID, u); err != nil {
				return err
			}
		}
		kept := map[string]bool{}
		var drop []string
		for _, e := range after {
			for _, t := range n.tasks[e.UpstreamID] {
				kept[t.ID] = true
			}
		}
		for _, u := range in.UpstreamGroupIDs {
			for _, t := range n.tasks[u] {
				if !kept[t.ID] {
					drop = append(drop, t.ID)
				}
			}
		}
		out = Unlinked{PlanID: p.ID, GroupID: g.ID, Before: viewEdges(before), After: viewEdges(after)}
		if out.Revived, err = s.relink(tx, n, map[string]string{g.ID: ""}, nil, drop); err != nil {
			return err
		}
		s.touch(tx, p.ID)
		return unlinkedEvent.Record(tx, event.Subject{ID: p.ID, RepoID: p.RepoID},
			unlinkedData{After: out.After, Before: out.Before, GroupID: g.ID, Reason: in.Reason, Revived: out.Revived})
	})
	return out, err
}

// failedByUpstream tells whether a group failed only because a group for which
// it waited did.
func (n *net) failedByUpstream(g *groupRow) bool {
	return n.state(g) == Failed && !slices.ContainsFunc(n.tasks[g.ID], func(t task.Row) bool {
		return t.Status == task.Failed && (t.FailureKind == nil || *t.FailureKind != task.DependencyFailed)
	})
}
