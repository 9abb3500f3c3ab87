package flow

import (
	"context"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/approval"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/event"
)

// Questions implements approval.Questions: what people are asked about pull requests.
type Questions struct{ Pulls *pull.Service }

var questionStates = map[string]approval.State{
	record.ActionPending: approval.Pending, record.ActionApproved: approval.Decided, record.ActionApplied: approval.Decided,
	record.ActionFailed: approval.Decided, record.ActionSkipped: approval.Declined, record.ActionStale: approval.Stale,
	record.ActionExpired: approval.Lapsed,
}

// ByID answers a question of tx.Account.
func (s Questions) ByID(tx *db.Tx, actionID string) (approval.Question, bool, error) {
	q, ok, err := s.Pulls.QuestionByID(tx, actionID)
	if err != nil || !ok {
		return approval.Question{}, false, err
	}
	out := approval.Question{
		ID: q.ID, PRID: q.PRID, RepoID: q.RepoID, State: questionStates[q.State], HeadSHA: q.HeadSHA, Present: q.Present, Looked: q.Looked,
		Repo: q.Repo, Number: q.Number, Title: q.Title, URL: q.URL, Kind: q.Kind,
		Text: q.Text, DecidedBy: q.DecidedBy, ExpiresAt: q.ExpiresAt,
	}
	if out.State == approval.Pending && !tx.Now.Before(q.ExpiresAt) {
		out.State = approval.Lapsed
	}
	if q.Protected != nil {
		out.Protected, out.More = q.Protected.Paths, q.Protected.More
	}
	if q.Cost != nil {
		out.Cost = *q.Cost
	}
	return out, true, nil
}

// Decide answers a question of tx.Account as the actor of tx.
func (s Questions) Decide(tx *db.Tx, q approval.Question, yes bool) error {
	return s.Pulls.Decide(tx, pull.Question{ID: q.ID, PRID: q.PRID, HeadSHA: q.HeadSHA}, yes)
}

// RequestedBy is the person whose work the pull request of a question is.
func (Questions) RequestedBy(tx *db.Tx, q approval.Question) (string, error) {
	t, ok, err := workOf(tx, q.PRID)
	if err != nil || !ok || t.RequestedBy == nil {
		return "", err
	}
	return *t.RequestedBy, nil
}

// Change asks the code host what a pull request changes.
func (s Questions) Change(ctx context.Context, prID string) (approval.Change, error) {
	d, err := s.Pulls.Summary(ctx, prID)
	out := approval.Change{More: d.More, Additions: d.Additions, Deletions: d.Deletions}
	for _, f := range d.Files {
		out.Files = append(out.Files, approval.File{
			Path: f.Path, Kind: string(f.Kind), Binary: f.Binary, Additions: f.Additions, Deletions: f.Deletions,
		})
	}
	return out, err
}

// ApprovalWishes implements approval.Wishes.
type ApprovalWishes struct{ Notifications *notification.Service }

// Mailed tells how a person of tx.Account is to be mailed about a question. The mail is one
// of the kind that they get an hour, see notification.Service.CountMail.
func (w ApprovalWishes) Mailed(tx *db.Tx, userID string) (out approval.Wish, err error) {
	out.Wanted, out.From, err = w.Notifications.Wants(tx, userID, notification.Approval, notification.Email)
	if err != nil || !out.Wanted {
		return out, err
	}
	out.Unsubscribe = w.Notifications.Unsubscribe(tx, userID, notification.Approval)
	out.Wanted, out.Notes, err = w.Notifications.CountMail(tx, userID, notification.Approval)
	return out, err
}

// MailQuestions has people written to about each question that is asked.
func MailQuestions(approvals *approval.Service) event.Consumer {
	return event.Consumer{
		Name: "approval.mail", Kinds: []event.Any{record.AskedEvent},
		Handle: func(tx *db.Tx, e event.Recorded) error { return approvals.Ask(tx, e.Object) },
	}
}
