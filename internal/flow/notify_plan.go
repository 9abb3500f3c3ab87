package flow

import (
	"fmt"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/issue"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// planDone: whoever asked for a plan hears when all of it is done.
func planDone(tx *db.Tx, out notification.Notice, planID string) (notification.Notice, bool, error) {
	whole, err := plan.IsDone(tx, planID)
	if err != nil || !whole {
		return out, false, err
	}
	p, ok, err := plan.BriefOf(tx, planID)
	out.Kind, out.Noun, out.Subject = notification.Plan, nounPlan, planID
	out.Title, out.About, out.Path = "Done: "+p.Title, "Plan: "+p.Title, "/ui/plans/"+planID
	return out, ok, err
}

// planFailed: whoever asked for a plan hears that its scout came back with nothing.
func (n Notify) planFailed(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	data, err := plan.FailedEvent.Decode(e)
	if err != nil {
		return out, false, err
	}
	p, ok, err := plan.BriefOf(tx, e.Object)
	if err != nil || !ok {
		return out, false, err
	}
	return planNotice(tx, e.Object, p, "The plan failed: ", data.Reason)
}

// maxUnitsTold is how many units that failed a notice quotes.
const maxUnitsTold = 3

// unitFailed: whoever asked for a plan hears that a unit of it has failed, once for it and all
// that fails with it. That a scout has failed is told of its plan.
func unitFailed(tx *db.Tx, t task.Row) (out notification.Notice, ok bool, err error) {
	if t.GroupID == nil {
		return out, false, nil
	}
	b, ok, err := plan.TroubleOf(tx, *t.PlanID)
	if err != nil || !ok {
		return out, false, err
	}
	first := b.Failed[0].TaskID == t.ID
	if with := t.FailureKind != nil && *t.FailureKind == task.DependencyFailed; with && !first {
		return out, false, nil
	}
	var lines []string
	for i, u := range b.Failed {
		if i == maxUnitsTold {
			lines = append(lines, fmt.Sprintf("%d more have failed.", len(b.Failed)-i))
			break
		}
		lines = append(lines, u.Title+": "+strings.ReplaceAll(u.Why, "_", " "))
	}
	if b.Behind > 0 {
		lines = append(lines, fmt.Sprintf("Other parts that wait for it: %d.", b.Behind))
	}
	title := "A part of the plan failed: "
	if b.Status == plan.Failed {
		title = "The plan failed: "
	}
	return planNotice(tx, *t.PlanID, b.Brief, title, strings.Join(lines, "\n"))
}

func planNotice(tx *db.Tx, planID string, p plan.Brief, title, text string) (out notification.Notice, ok bool, err error) {
	out = notification.Notice{
		Kind: notification.Plan, Noun: nounPlan, Subject: planID, Path: "/ui/plans/" + planID, Title: title + p.Title,
		Text: text, About: "Plan: " + p.Title,
	}
	out.To, err = deciders(tx, p.RequestedBy, policy.ReadTasks)
	return out, true, err
}

// planRelieved is the plan of an event after which nothing of it has failed any more. That a
// plan is done stays told.
func planRelieved(tx *db.Tx, e event.Recorded) (planID string, ok bool, err error) {
	planID = e.Object
	if strings.HasPrefix(e.Kind, "task.") {
		t, ok, err := task.Get(tx, tx.Account, e.Object)
		if err != nil || !ok || t.PlanID == nil {
			return "", false, err
		}
		planID = *t.PlanID
		if done, err := plan.IsDone(tx, planID); err != nil || done {
			return "", false, err
		}
	}
	_, broken, err := plan.TroubleOf(tx, planID)
	return planID, !broken, err
}

// notHandedOff: whoever handed an issue off, or owners and admins, hear that the webhook does
// not have it.
func (n Notify) notHandedOff(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	data, err := issue.FailedEvent.Decode(e)
	if err != nil {
		return out, false, err
	}
	i, ok, err := issue.BriefOf(tx, e.Object)
	if err != nil || !ok {
		return out, false, err
	}
	out = notification.Notice{
		Kind: notification.Connection, Noun: nounIssue, Subject: e.Object, Path: "/ui/issues/" + e.Object,
		Unaware: true, Title: "Not handed off: " + i.Title,
		Text: "The webhook " + data.WebhookRef + " does not have the issue. " + data.Reason,
	}
	if i.Number != nil {
		out.Title = fmt.Sprintf("#%d was not handed off: %s", *i.Number, i.Title)
	}
	if out.Repo, err = nameOf(tx, &i.RepoID); err != nil {
		return out, false, err
	}
	var asker *string
	if userID, is := strings.CutPrefix(data.RequestedBy, "user:"); is {
		asker = &userID
	}
	out.To, err = deciders(tx, asker, policy.WriteIssues)
	return out, true, err
}
