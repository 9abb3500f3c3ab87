package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
)

// news is a plan that something happened to; settle is of returns.
type news struct {
	account, plan string
	settle        func(*db.Tx) error
}

// returns are of scouts that have moved in a transaction. They are seen to at
// its end: what a scout brought back is there by then.
var returns = db.AtEnd(db.First, func(tx *db.Tx, all []news) error {
	return eachPlan(tx, all, func(n news) error { return n.settle(tx) })
})

// tidings are seen to at the end of a transaction: whatever moved in a plan,
// it is derived once, and its row of progress, which every move of its tasks
// wants, is locked late.
var tidings = db.AtEnd(db.Third, func(tx *db.Tx, all []news) error {
	return eachPlan(tx, all, func(n news) error { return refresh(tx, n.plan) })
})

// eachPlan does something for the last news of each plan, as its account.
func eachPlan(tx *db.Tx, all []news, do func(news) error) error {
	was := tx.Account
	defer func() { tx.Account = was }()
	last := map[string]news{}
	for _, n := range all {
		last[n.plan] = n
	}
	for _, planID := range slices.Sorted(maps.Keys(last)) {
		n := last[planID]
		tx.Account = n.account
		if err := do(n); err != nil {
			return err
		}
	}
	return nil
}

// TaskStuck is told of a task that is stuck, or is not any more: its plan may be
// stalled by it.
func (s *Service) TaskStuck(tx *db.Tx, t *task.Row) error {
	if t.PlanID != nil {
		tidings.Add(tx, news{account: t.AccountID, plan: *t.PlanID})
	}
	return nil
}

func touch(tx *db.Tx, planID string) { tidings.Add(tx, news{account: tx.Account, plan: planID}) }

// TaskMoved is told of a task that went to another state: its plan moves with
// it.
func (s *Service) TaskMoved(tx *db.Tx, m task.Move) error {
	t := m.Task
	if t.PlanID == nil {
		return nil
	}
	n := news{account: t.AccountID, plan: *t.PlanID}
	tidings.Add(tx, n)
	if t.GroupID == nil {
		scout := *t
		n.settle = func(tx *db.Tx) error { return s.surveyed(tx, *scout.PlanID, &scout) }
		returns.Add(tx, n)
	}
	return nil
}

// refresh derives how far a plan has come. Who locks its row sees what those
// who had it before have committed.
func refresh(tx *db.Tx, planID string) error {
	if _, ok, err := selectProgress.ForUpdate().Maybe(tx, tx.Account, planID); err != nil || !ok {
		return err
	}
	p, ok, err := selectPlan.Maybe(tx, tx.Account, planID)
	if err != nil || !ok {
		return err
	}
	groups, err := selectGroups.All(tx, tx.Account, planID)
	if err != nil {
		return err
	}
	tasks, err := task.OfPlan(tx, planID)
	if err != nil {
		return err
	}
	n := newNet(groups, nil, tasks)
	if n.idle, err = selectIdle.All(tx, tx.Account, planID); err != nil {
		return err
	}
	g := n.progress(&p)
	_, err = updateProgress.Exec(tx, updateProgressArgs{
		AccountID: tx.Account, PlanID: planID, Status: g.status, Bucket: g.bucket, Merged: g.merged, Total: g.total,
		HeldCount: g.held, LastActivityAt: tx.Now,
	})
	return err
}

// surveyed is told where the scout of a plan has moved. Its report is the plan;
// one that cannot be read as one fails it, until the scout is sent again.
func (s *Service) surveyed(tx *db.Tx, planID string, scout *task.Row) error {
	p, ok, err := selectPlan.ForUpdate().Maybe(tx, tx.Account, planID)
	if err != nil || !ok || p.CancelledAt != nil {
		return err
	}
	if groups, err := selectGroups.All(tx, tx.Account, planID); err != nil || len(groups) > 0 {
		return err
	}
	switch {
	case scout.Status == task.Completed || scout.Status == task.Merged:
	case scout.Status.Terminal():
		return s.undrafted(tx, &p, "The scout's task is "+string(scout.Status)+".")
	default:
		p.FailedAt, p.Note = nil, nil
		_, err := draftPlan.Exec(tx, draftPlanArgs{
			AccountID: tx.Account, ID: p.ID, Title: p.Title, Overview: p.Overview, FailedAt: p.FailedAt, Note: p.Note,
		})
		return err
	}
	found, ok, err := s.Scouts.Survey(tx, scout.ID)
	if err != nil {
		return err
	}
	if !ok {
		return s.undrafted(tx, &p, "The scout came back without a report.")
	}
	d, problems := parse(handedIn(found.Report), true)
	repo, err := s.Tasks.RepoByID(tx, p.RepoID)
	if err != nil {
		return err
	}
	var units []Unit
	if len(problems) == 0 {
		if units, problems, err = s.units(tx, repo, &d, ""); err != nil {
			return err
		}
	}
	if len(problems) > 0 {
		return s.undrafted(tx, &p, "The scout's report holds no plan. "+sentence(problems))
	}
	p.Title, p.Overview = units[0].Title, d.overview
	if _, err := draftPlan.Exec(tx, draftPlanArgs{
		AccountID: tx.Account, ID: p.ID, Title: p.Title, Overview: p.Overview, FailedAt: nil, Note: nil,
	}); err != nil {
		return err
	}
	if err := s.cut(tx, &p, units); err != nil {
		return err
	}
	err = draftedEvent.Record(tx, event.Subject{ID: p.ID, RepoID: p.RepoID}, draftedData{Groups: len(units), Title: p.Title})
	if err != nil || p.Hold {
		return err
	}
	// What an approval would be refused for must not undo the end of the run.
	if why, err := s.obstacle(tx, units); err != nil {
		return err
	} else if why != "" {
		_, err = draftPlan.Exec(tx, draftPlanArgs{
			AccountID: tx.Account, ID: p.ID, Title: p.Title, Overview: p.Overview, FailedAt: nil,
			Note: new("It was not dispatched, and can be approved. " + why),
		})
		return err
	}
	n, err := read(tx, planID)
	if err != nil {
		return err
	}
	_, err = s.release(tx, &p, n)
	return err
}

// undrafted fails a plan that came to nothing.
func (s *Service) undrafted(tx *db.Tx, p *row, why string) error {
	if p.FailedAt != nil {
		return nil
	}
	if _, err := draftPlan.Exec(tx, draftPlanArgs{
		AccountID: tx.Account, ID: p.ID, Title: p.Title, Overview: p.Overview, FailedAt: new(tx.Now), Note: new(why),
	}); err != nil {
		return err
	}
	return failedEvent.Record(tx, event.Subject{ID: p.ID, RepoID: p.RepoID}, failedData{Reason: why})
}

// obstacle tells why tasks for the units would be refused, "" if they would
// not.
func (s *Service) obstacle(tx *db.Tx, units []Unit) (string, error) {
	for _, u := range units {
		if !u.Repo.Enabled {
			return "The repository " + u.Repo.FullName() + " is not enabled.", nil
		}
	}
	_, err := s.Tasks.Batch(tx)
	var refused *fault.Error
	if errors.As(err, &refused) && refused.Kind != fault.Internal {
		return refused.Detail, nil
	}
	return "", err
}

func sentence(problems []Problem) string {
	const most = 10
	var b strings.Builder
	for i, p := range problems {
		if i == most {
			fmt.Fprintf(&b, "And %d more.", len(problems)-most)
			break
		}
		if p.Name != "" {
			b.WriteString(p.Name + ": ")
		}
		b.WriteString(p.Detail + ". ")
	}
	return strings.TrimSpace(b.String())
}
