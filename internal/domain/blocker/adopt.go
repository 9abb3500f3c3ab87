package blocker

import (
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
	for i := range left {
		r := &left[i]
		if r.Kind != b.Kind {
			continue
		}
		fields, err := fieldsOf.All(tx, tx.Account, r.ID)
		if err != nil {
			return false, err
		}
		if !s.same(r, fields, b) {
			continue
		}
		if _, err := adoptBlocker.Exec(tx, tx.Account, r.ID, runID, b.ID); err != nil {
			return false, err
		}
		return true, event.Record(tx, event.Change{Kind: "blocker.adopted", Object: r.ID, RepoID: repoID,
			Data: map[string]any{"task_id": taskID, "run_id": runID, "from_run_id": r.RunID}})
	}
	return false, nil
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
		if name, why := s.fieldName(f); why == "" {
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
	live := ""
	if s.LiveRun != nil {
		if live, err = s.LiveRun(tx, r.TaskID); err != nil {
			return nil, err
		}
	}
	if live == "" {
		return openOfTask.All(tx, tx.Account, r.TaskID)
	}
	if r.RunID != live {
		if _, err := adoptBlocker.Exec(tx, tx.Account, r.ID, live, r.ID); err != nil {
			return nil, err
		}
		r.RunID = live
	}
	return openOfRun.All(tx, tx.Account, r.TaskID, live)
}
