package merge

import (
	"errors"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/pull/facts"
	"yardmaster/internal/domain/pull/moves"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
)

// OrderGoesOn has the merge of a head carried out that was ordered: by an approval of a
// person, here or at the code host, or by the policy.
func (s *Merger) OrderGoesOn(tx *db.Tx, m facts.Moving) error {
	a, open, err := record.OpenAction.Maybe(tx, m.ID)
	switch {
	case err != nil:
		return err
	case open && m.Step.Do == moves.DoMerge:
		s.orders.Add(tx, a.ID, due.Entry{Account: tx.Account})
		return nil
	case open:
		return nil
	case m.Facts.Yes.Is(moves.NoYes):
		return s.Order(tx, m.Pull, record.ByPolicy)
	}
	who, ok, err := record.Standing.Maybe(tx, m.ID, m.HeadSHA)
	if err != nil || !ok {
		return err
	}
	return s.orderOf(tx, m.Pull, who)
}

// Order orders the merge of a head.
func (s *Merger) Order(tx *db.Tx, pr *record.Pull, by string) error {
	actionID := id.New()
	n, err := record.InsertAction.Exec(tx, record.InsertActionArgs{
		ID: actionID, AccountID: tx.Account, PRID: pr.ID, Kind: "merge", HeadSHA: pr.HeadSHA, State: record.ActionApproved,
		DecidedBy: &by, RequestedAt: tx.Micros(), DecidedAt: &tx.Now, ExpiresAt: db.Micros(tx.Now.Add(record.AskFor)),
		Protected: nil,
	})
	if err != nil || n == 0 {
		return err // there is an action for the head already
	}
	if err := notCarried(tx, pr); err != nil {
		return err
	}
	about := event.Subject{ID: actionID, RepoID: pr.RepoID}
	if by == record.ByPolicy {
		err = record.AskedEvent.Record(tx, about, record.AskedData{HeadSHA: pr.HeadSHA, Kind: "merge", PRID: pr.ID})
	} else { // without a question before
		err = record.ApprovedEvent.Record(tx, about, record.ApprovedData{HeadSHA: pr.HeadSHA, Kind: "merge", PRID: pr.ID})
	}
	if err == nil {
		err = errors.Join(s.settle(tx, pr, by), s.grace(tx, pr, &record.Action{ID: actionID}, by))
	}
	s.Hub.Notify(tx, event.PullTopic)
	return err
}

// orderOf orders the merge of a head that somebody has approved at its host before.
func (s *Merger) orderOf(tx *db.Tx, pr *record.Pull, by record.StandingRow) error {
	if err := s.Order(tx, pr, by.Label); err != nil {
		return err
	}
	a, open, err := record.OpenAction.Maybe(tx, pr.ID)
	if err != nil || !open {
		return err
	}
	_, err = record.SetApproved.Exec(tx, by.ID, a.ID)
	return err
}

// Answer records the answer of somebody with a label to an open question. The caller moves the
// pull request on.
func (s *Merger) Answer(tx *db.Tx, pr *record.Pull, a record.Action, state, by string) (record.Action, error) {
	if _, err := record.DecideAction.Exec(tx, record.DecideActionArgs{ID: a.ID, State: state, DecidedBy: by,
		DecidedAt: tx.Micros()}); err != nil {
		return record.Action{}, err
	}
	a.State, a.DecidedBy, a.DecidedAt = state, &by, &tx.Now
	s.Hub.Notify(tx, event.PullTopic)
	about := event.Subject{ID: a.ID, RepoID: pr.RepoID}
	if state != record.ActionApproved {
		return a, record.SkippedEvent.Record(tx, about, record.QuestionData{HeadSHA: a.HeadSHA, PRID: pr.ID})
	}
	if err := record.ApprovedEvent.Record(tx, about, record.ApprovedData{HeadSHA: a.HeadSHA, PRID: pr.ID}); err != nil {
		return a, err
	}
	return a, errors.Join(s.settle(tx, pr, by), s.grace(tx, pr, &a, by))
}

// grace has a merge carried out that was ordered; one that a person has ordered, after as long
// as the policy says that it may be taken back.
func (s *Merger) grace(tx *db.Tx, pr *record.Pull, a *record.Action, by string) error {
	e := due.Entry{Account: tx.Account}
	if by != record.ByPolicy {
		r, _, err := repo.ByID(tx, pr.RepoID)
		if err != nil {
			return err
		}
		e.After = time.Duration(r.Policy.Merge.Grace) * time.Second
	}
	s.orders.Add(tx, a.ID, e)
	if e.After == 0 {
		return nil
	}
	a.BeginsAt = new(tx.Now.Add(e.After))
	_, err := record.SetBegins.Exec(tx, a.ID, db.Micros(*a.BeginsAt))
	return err
}

// settle takes back what somebody has requested who approves.
func (s *Merger) settle(tx *db.Tx, pr *record.Pull, label string) error {
	if pr.Objections == 0 || label == record.ByPolicy {
		return nil
	}
	all, err := record.EarlierReviews.All(tx, record.EarlierArgs{AccountID: tx.Account, PRID: pr.ID, Login: label, Label: label})
	if err != nil {
		return err
	}
	for _, e := range all {
		if e.State != record.ReviewObjects {
			continue
		}
		if err := s.TakenBack(tx, pr, e.ID, record.ReviewSuperseded); err != nil {
			return err
		}
	}
	return record.Recount(tx, s.Hub, pr)
}

// TakenBack ends a request.
func (s *Merger) TakenBack(tx *db.Tx, pr *record.Pull, requestID, state string) error {
	if _, err := record.SetHostReview.Exec(tx, requestID, state); err != nil {
		return err
	}
	about := event.Subject{ID: pr.ID, RepoID: pr.RepoID}
	return record.TakenBackEvent.Record(tx, about, record.RequestData{HeadSHA: pr.HeadSHA, RequestID: requestID})
}

// Refuse answers the question about a head with no.
func (s *Merger) Refuse(tx *db.Tx, pr *record.Pull, label string) error {
	a, open, err := record.OpenAction.Maybe(tx, pr.ID)
	if err != nil || !open || a.State != record.ActionPending {
		return err
	}
	now := record.DecideActionArgs{ID: a.ID, State: record.ActionSkipped, DecidedBy: label, DecidedAt: tx.Micros()}
	if _, err := record.DecideAction.Exec(tx, now); err != nil {
		return err
	}
	if _, err := record.Requested.Exec(tx, a.ID); err != nil {
		return err
	}
	return record.SkippedEvent.Record(tx, event.Subject{ID: a.ID, RepoID: pr.RepoID}, record.QuestionData{HeadSHA: a.HeadSHA, PRID: pr.ID})
}

// Unapprove makes a no of a yes whose merge has not begun, and puts the question again. The
// caller moves the pull request on.
func (s *Merger) Unapprove(tx *db.Tx, pr *record.Pull, a record.Action) error {
	if _, err := record.Unapproved.Exec(tx, a.ID, tx.Micros()); err != nil {
		return err
	}
	s.OrderEnded(tx, a)
	data := record.QuestionData{HeadSHA: a.HeadSHA, PRID: pr.ID}
	if err := record.SkippedEvent.Record(tx, event.Subject{ID: a.ID, RepoID: pr.RepoID}, data); err != nil {
		return err
	}
	var asked *record.Protected
	if a.Protected != nil {
		asked = &a.Protected.V
	}
	return s.Question(tx, pr, asked)
}

// TakeOrderBack takes back what somebody has said yes to who requests changes: of the present
// head, and of one that moved before the merge. A merge that has begun goes on.
func (s *Merger) TakeOrderBack(tx *db.Tx, pr *record.Pull, label string) error {
	if _, err := record.TakeAsideBack.Exec(tx, pr.ID, label); err != nil {
		return err
	}
	a, open, err := record.OpenAction.Maybe(tx, pr.ID)
	if err != nil || !open || a.State != record.ActionApproved || a.DecidedBy == nil || *a.DecidedBy != label || a.Called {
		return err
	}
	if _, err := record.TakeBack.Exec(tx, a.ID); err != nil {
		return err
	}
	s.OrderEnded(tx, a)
	return record.StaleEvent.Record(tx, event.Subject{ID: a.ID, RepoID: pr.RepoID}, record.QuestionData{HeadSHA: a.HeadSHA, PRID: pr.ID})
}
