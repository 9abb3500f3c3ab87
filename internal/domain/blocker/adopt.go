package blocker

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/protocol"
)

// adopt gives a run the open blocker of an earlier run of the task that asks for the
// same as b, so that people are asked once and the live run gets the answer. It
// returns false if there is none.
func (s *Service) adopt(tx *db.Tx, repoID, taskID, runID string, b protocol.BlockerDeclared) (bool, error) {
	open, err := openOfOthers.All(tx, tx.Account, taskID, runID)
	if err != nil {
		return false, err
	}
	r, err := s.findAlike(tx, open, b)
	if err != nil || r == nil {
		return false, err
	}
	if _, err := adoptBlocker.Exec(tx, adoptBlockerArgs{AccountID: tx.Account, ID: r.ID, RunID: runID, Declared: b.ID}); err != nil {
		return false, err
	}
	return true, adoptedEvent.Record(tx, event.Subject{ID: r.ID, RepoID: repoID},
		adoptedData{FromRunID: r.RunID, RunID: runID, TaskID: taskID})
}

// findEarlier finds the blocker of an earlier run that asks for the same as b and that
// was closed, and given to this run (see assign), while this run was about to ask;
// nil if there is none. It finds each one once: a run that asks again later has had
// the answer and needs something else.
func (s *Service) findEarlier(tx *db.Tx, taskID, runID string, b protocol.BlockerDeclared) (*row, error) {
	closed, err := assignedTo.All(tx, tx.Account, taskID, runID)
	if err != nil {
		return nil, err
	}
	return s.findAlike(tx, closed, b)
}

// findAlike is the first of the blockers that asks for the same as b; nil if none
// does.
func (s *Service) findAlike(tx *db.Tx, blockers []row, b protocol.BlockerDeclared) (*row, error) {
	for i := range blockers {
		if r := &blockers[i]; r.Kind == b.Kind {
			fields, err := fieldsOf.All(tx, tx.Account, r.ID)
			if err != nil {
				return nil, err
			}
			if s.same(r, fields, b) {
				return r, nil
			}
		}
	}
	return nil, nil
}

// closeAs closes a blocker that was just declared with the answer of the earlier
// blocker r, and tells the run that answer, perhaps for the second time.
func (s *Service) closeAs(tx *db.Tx, r *row, blockerID string) error {
	used := adoptBlockerArgs{AccountID: tx.Account, ID: r.ID, RunID: r.RunID, Declared: blockerID}
	if _, err := adoptBlocker.Exec(tx, used); err != nil {
		return err
	}
	fields, err := fieldsOf.All(tx, tx.Account, r.ID)
	if err != nil {
		return err
	}
	for _, f := range fields {
		if f.LandedAt == nil {
			continue
		}
		if _, err := fillField.Exec(tx, fillFieldArgs{
			BlockerID: blockerID, Name: f.Name, LandedAt: *f.LandedAt, LandedBy: *r.ClosedBy,
		}); err != nil {
			return err
		}
		if f.URL != nil {
			server := setServerArgs{BlockerID: blockerID, Name: f.Name, URL: f.URL, Transport: f.Transport}
			if _, err := setServer.Exec(tx, server); err != nil {
				return err
			}
		}
	}
	answer := r.Answer
	if answer != nil {
		text, err := s.Ring.Unseal(answerPurpose(tx.Account, r.ID), *answer)
		if err != nil {
			return fmt.Errorf("answer of blocker %s: %w", r.ID, err)
		}
		sealed := s.Ring.Seal(answerPurpose(tx.Account, blockerID), text)
		answer = &sealed
	}
	if _, err := closeBlocker.Exec(tx, closeBlockerArgs{
		AccountID: tx.Account, ID: blockerID, State: r.State, Answer: answer, ClosedAt: tx.Now, ClosedBy: *r.ClosedBy,
	}); err != nil {
		return err
	}
	waiting, err := openOfRun.All(tx, tx.Account, r.TaskID, r.RunID)
	if err != nil || len(waiting) > 0 {
		return err
	}
	answers, err := Said(tx, s.Ring, r.TaskID, r.RunID)
	if err != nil {
		return err
	}
	more := loadText
	if r.State == Withdrawn {
		more = withdrawnText
	}
	_, err = s.Tasks.Resume(tx, r.TaskID, r.RunID, answers.with(more), false)
	return err
}

// same tells whether a declaration asks for the same as a blocker: it has the same
// fields, or neither has fields and the questions are the same. Agents word a
// question otherwise each time, but they repeat the names of fields.
func (s *Service) same(r *row, fields []fieldRow, b protocol.BlockerDeclared) bool {
	has, wants := map[string]bool{}, map[string]bool{}
	for _, f := range fields {
		has[f.Kind+"\x00"+f.Name+"\x00"+f.Environment] = true
	}
	for _, f := range b.Fields {
		if name, why := s.fieldName(f); why == "" && b.Kind == MissingCredential {
			wants[string(f.Kind)+"\x00"+name+"\x00"+f.Environment] = true
		}
	}
	if len(has) > 0 || len(wants) > 0 {
		return maps.Equal(has, wants)
	}
	return slices.Equal(strings.Fields(r.Question), strings.Fields(b.Question))
}

// assign gives a locked blocker to the task's live run, if its own run has ended, so
// that the live run gets the answer. It returns the ids of the open blockers of the
// live run, or of the task if there is none.
func (s *Service) assign(tx *db.Tx, r *row) (waiting []string, err error) {
	live, err := s.Tasks.LiveRun(tx, r.TaskID)
	if err != nil {
		return nil, err
	}
	if live == "" {
		return openOfTask.All(tx, tx.Account, r.TaskID)
	}
	if r.RunID != live {
		if _, err := adoptBlocker.Exec(tx, adoptBlockerArgs{AccountID: tx.Account, ID: r.ID, RunID: live, Declared: r.ID}); err != nil {
			return nil, err
		}
		r.RunID = live
	}
	return openOfRun.All(tx, tx.Account, r.TaskID, live)
}
