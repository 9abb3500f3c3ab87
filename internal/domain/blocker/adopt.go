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

// adopted tells whether an open blocker that an earlier run of the task left
// asks for the same as one that a run declares. That is the run's own then: a
// person is asked once, and the answer reaches whoever is there to hear it.
func (s *Service) adopted(tx *db.Tx, repoID, taskID, runID string, b protocol.BlockerDeclared) (bool, error) {
	left, err := openOfOthers.All(tx, tx.Account, taskID, runID)
	if err != nil {
		return false, err
	}
	r, err := s.alike(tx, left, b)
	if err != nil || r == nil {
		return false, err
	}
	if _, err := adoptBlocker.Exec(tx, adoptBlockerArgs{AccountID: tx.Account, ID: r.ID, RunID: runID, Declared: b.ID}); err != nil {
		return false, err
	}
	return true, adoptedEvent.Record(tx, event.Subject{ID: r.ID, RepoID: repoID},
		adoptedData{FromRunID: r.RunID, RunID: runID, TaskID: taskID})
}

// settled finds what a person has said of the very thing that a run declares,
// while it was about to: a blocker of an earlier run that was closed for this
// one, see inherit. Each is found once. A run that asks again after that has
// heard it and lacks something still.
func (s *Service) settled(tx *db.Tx, taskID, runID string, b protocol.BlockerDeclared) (*row, error) {
	left, err := inherited.All(tx, tx.Account, taskID, runID)
	if err != nil {
		return nil, err
	}
	return s.alike(tx, left, b)
}

// alike is the first of some blockers that asks for what a run declares; nil if
// none does.
func (s *Service) alike(tx *db.Tx, blockers []row, b protocol.BlockerDeclared) (*row, error) {
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

// settle closes a blocker that has just been declared as an earlier one was, and
// tells the run what it was told of that, for it may have heard it before it
// asked.
func (s *Service) settle(tx *db.Tx, r *row, blockerID string) error {
	if _, err := adoptBlocker.Exec(tx, adoptBlockerArgs{AccountID: tx.Account, ID: r.ID, RunID: r.RunID, Declared: blockerID}); err != nil {
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
		if _, err := landField.Exec(tx, landFieldArgs{
			BlockerID: blockerID, Name: f.Name, LandedAt: *f.LandedAt, LandedBy: *r.ClosedBy,
		}); err != nil {
			return err
		}
		if f.URL != nil {
			if _, err := placeServer.Exec(tx, placeServerArgs{BlockerID: blockerID, Name: f.Name, URL: f.URL, Transport: f.Transport}); err != nil {
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
	word, err := Word(tx, s.Ring, r.TaskID, r.RunID)
	if err != nil {
		return err
	}
	if r.State == Withdrawn {
		word += withdrawnWord
	} else {
		word += loadWord
	}
	_, err = s.Tasks.Resume(tx, r.TaskID, r.RunID, word, false)
	return err
}

// same tells whether a declaration asks for what an open blocker asks for: the
// same fields, or without fields the same question. Agents put one thing in
// other words each time, but what a form is called they call it.
func (s *Service) same(r *row, fields []fieldRow, b protocol.BlockerDeclared) bool {
	has, wants := map[string]bool{}, map[string]bool{}
	for _, f := range fields {
		has[f.Kind+"\x00"+f.Name+"\x00"+f.Environment] = true
	}
	for _, f := range b.Fields {
		if name, why := s.fieldName(f); why == "" && b.Kind == MissingCredential {
			wants[f.Kind+"\x00"+name+"\x00"+f.Environment] = true
		}
	}
	if len(has) > 0 || len(wants) > 0 {
		return maps.Equal(has, wants)
	}
	return slices.Equal(strings.Fields(r.Question), strings.Fields(b.Question))
}

// inherit makes a locked blocker the live run's, if its own has ended: what a
// person says of it is told to who does the work now. It answers what the live
// run, or else the task, still waits for.
func (s *Service) inherit(tx *db.Tx, r *row) (waiting []string, err error) {
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
