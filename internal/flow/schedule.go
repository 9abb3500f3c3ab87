package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/escalation"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/schedule"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
)

// ScheduleRepos implements schedule.Repos.
type ScheduleRepos struct{}

// ByName finds the repository of tx.Account that a name addresses.
func (ScheduleRepos) ByName(tx *db.Tx, owner, name string) (schedule.Repo, bool, error) {
	r, ok, err := repo.ByName(tx, owner, name)
	return ofSchedule(r), ok, err
}

// ByID finds a repository of tx.Account.
func (ScheduleRepos) ByID(tx *db.Tx, repoID string) (schedule.Repo, bool, error) {
	r, ok, err := repo.ByID(tx, repoID)
	return ofSchedule(r), ok, err
}

func ofSchedule(r repo.Ref) schedule.Repo {
	return schedule.Repo{ID: r.ID, Name: r.FullName(), Enabled: r.Enabled, Gone: r.Gone != ""}
}

// ScheduleAsks implements schedule.Asks.
type ScheduleAsks struct{}

// File files the ask of an occurrence, once. Its person is its filer, so that it may do
// what one of their own may.
func (ScheduleAsks) File(tx *db.Tx, f schedule.Filing) (string, error) {
	n := ask.Filing{
		Title: f.Title, Body: f.Body, Labels: f.Labels, Source: ask.FromSchedule, DedupeKey: f.Key, By: f.By, UserID: f.UserID,
		Scopes: f.Scopes,
	}
	if f.RepoID != "" {
		n.RepoIDs = []string{f.RepoID}
	}
	filed, _, err := ask.File(tx, n)
	return filed.ID, err
}

// Busy tells whether triage or a person still decides about an ask, or a task or a plan
// that came of it is not over.
func (ScheduleAsks) Busy(tx *db.Tx, askID string) (bool, error) {
	a, ok, err := ask.Get(tx, askID)
	switch {
	case err != nil || !ok || a.State == ask.Dropped:
		return false, err
	case a.State == ask.Escalated:
		return escalation.IsOpenOfAsk(tx, askID)
	case a.State == ask.Pending || a.Verdict == nil:
		return true, nil
	}
	if a.Verdict.PlanID != nil {
		over, err := plan.IsOver(tx, *a.Verdict.PlanID)
		return !over, err
	}
	for _, taskID := range a.Verdict.TaskIDs {
		t, ok, err := task.Get(tx, tx.Account, taskID)
		if err != nil {
			return false, err
		}
		if ok && !t.Status.Terminal() {
			return true, nil
		}
	}
	return false, nil
}

// scheduleStopped: owners and admins hear that a schedule has stopped because its person
// has left. Whoever pauses one by hand knows it.
func (n Notify) scheduleStopped(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	data, err := schedule.PausedEvent.Decode(e)
	if err != nil || data.Why != schedule.PersonLeft {
		return out, false, err
	}
	return stopped(tx, e, nounSchedule, "/ui/schedules/"+e.Object, "The schedule has stopped: "+data.Title,
		"The person for whom it files has left the account, was suspended, or may file no asks. Whoever resumes it takes it over.")
}
