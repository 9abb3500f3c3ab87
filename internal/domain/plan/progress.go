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

// change is a plan to which something happened, and the work to do for it at
// the end of the transaction.
type change struct {
	account, plan string
	do            func(*db.Tx) error
}

// scoutMoves are done at the end of a transaction in which scouts have moved:
// by then their reports are stored.
var scoutMoves = db.AtEnd(db.First, doForEach)

// refreshes are done at the end of a transaction, after scoutMoves: the
// progress of a plan is derived once, whatever changed in it, and its row,
// which every move of the plan's tasks needs, is locked late.
var refreshes = db.AtEnd(db.Third, doForEach)

// doForEach does the last change of each plan, with the plan's account as
// tx.Account.
func doForEach(tx *db.Tx, all []change) error {
	was := tx.Account
	defer func() { tx.Account = was }()
	last := map[string]change{}
	for _, c := range all {
		last[c.plan] = c
	}
	for _, planID := range slices.Sorted(maps.Keys(last)) {
		c := last[planID]
		tx.Account = c.account
		if err := c.do(tx); err != nil {
			return err
		}
	}
	return nil
}

// TaskStuck refreshes the plan of a task that has become stuck, or is stuck no
// longer: the plan may be stalled by it.
func (s *Service) TaskStuck(tx *db.Tx, t *task.Row) error {
	if t.PlanID != nil {
		s.refreshLater(tx, t.AccountID, *t.PlanID)
	}
	return nil
}

// touch refreshes a plan of tx.Account at the end of the transaction.
func (s *Service) touch(tx *db.Tx, planID string) { s.refreshLater(tx, tx.Account, planID) }

func (s *Service) refreshLater(tx *db.Tx, account, planID string) {
	refreshes.Add(tx, change{account, planID, func(tx *db.Tx) error { return s.refresh(tx, planID) }})
}

// TaskMoved refreshes the plan of a task that went to another state, and reads
// the report if the task is the plan's scout.
func (s *Service) TaskMoved(tx *db.Tx, m task.Move) error {
	t := m.Task
	if t.PlanID == nil {
		return nil
	}
	s.refreshLater(tx, t.AccountID, *t.PlanID)
	if t.GroupID == nil {
		scout := *t
		scoutMoves.Add(tx, change{t.AccountID, *t.PlanID, func(tx *db.Tx) error { return s.scoutMoved(tx, *scout.PlanID, &scout) }})
	}
	return nil
}

// refresh derives the progress of a plan of tx.Account and stores it. The lock
// on the row of progress shows it the commits of all who held the lock before.
func (s *Service) refresh(tx *db.Tx, planID string) error {
	was, ok, err := selectProgress.ForUpdate().Maybe(tx, tx.Account, planID)
	if err != nil || !ok {
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
	if n.idle, err = s.Pulls.IdleTasks(tx, planID); err != nil {
		return err
	}
	g := n.progress(&p)
	_, err = updateProgress.Exec(tx, updateProgressArgs{
		AccountID: tx.Account, PlanID: planID, Status: g.status, Bucket: g.bucket, Merged: g.merged, Total: g.total,
		HeldCount: g.held, LastActivityAt: tx.Now,
	})
	if err != nil || g.status != Done || was.Status == Done {
		return err
	}
	return Ended.Send(tx, Finished{PlanID: planID, AskID: p.AskID, TaskIDs: n.work()})
}

// scoutMoved handles a move of the scout of a plan. A finished scout's report
// becomes the plan. A report that is no plan fails the plan, until the scout is
// sent again.
func (s *Service) scoutMoved(tx *db.Tx, planID string, scout *task.Row) error {
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
		return s.failDraft(tx, &p, "The scout's task is "+string(scout.Status)+".")
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
		return s.failDraft(tx, &p, "The scout came back without a report.")
	}
	d, problems := parse(documentsIn(found.Report), true)
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
		return s.failDraft(tx, &p, "The scout's report holds no plan. "+sentence(problems))
	}
	p.Title, p.Overview = units[0].Title, d.overview
	if _, err := draftPlan.Exec(tx, draftPlanArgs{
		AccountID: tx.Account, ID: p.ID, Title: p.Title, Overview: p.Overview, FailedAt: nil, Note: nil,
	}); err != nil {
		return err
	}
	if err := s.insertGroups(tx, &p, units); err != nil {
		return err
	}
	err = draftedEvent.Record(tx, event.Subject{ID: p.ID, RepoID: p.RepoID}, draftedData{Groups: len(units), Title: p.Title})
	if err != nil || p.Hold {
		return err
	}
	repoIDs := make([]string, len(units))
	for i, u := range units {
		repoIDs[i] = u.Repo.ID
	}
	why, err := s.Scouts.Waits(tx, scout, repoIDs)
	if err != nil {
		return err
	}
	if why == "" { // a refusal of the approval must not undo the end of the run
		if why, err = s.obstacle(tx, units); err != nil {
			return err
		}
	}
	if why != "" {
		_, err = draftPlan.Exec(tx, draftPlanArgs{
			AccountID: tx.Account, ID: p.ID, Title: p.Title, Overview: p.Overview, FailedAt: nil,
			Note: new("It was not dispatched, and can be approved. " + why),
		})
		return err
	}
	n, err := readNet(tx, planID)
	if err != nil {
		return err
	}
	_, err = s.mintTasks(tx, &p, n)
	return err
}

// failDraft fails a plan whose scout brought no groups.
func (s *Service) failDraft(tx *db.Tx, p *row, why string) error {
	if p.FailedAt != nil {
		return nil
	}
	if _, err := draftPlan.Exec(tx, draftPlanArgs{
		AccountID: tx.Account, ID: p.ID, Title: p.Title, Overview: p.Overview, FailedAt: new(tx.Now), Note: new(why),
	}); err != nil {
		return err
	}
	return FailedEvent.Record(tx, event.Subject{ID: p.ID, RepoID: p.RepoID}, failedData{Reason: why})
}

// obstacle says why tasks for the units would be refused. It is "" if they
// would not.
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
