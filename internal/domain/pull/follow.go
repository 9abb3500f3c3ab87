package pull

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
)

// Rows lists the pull requests of tx.Account with the ids. Without ids (nil) it lists the
// newest. It lists at most limit.
func (s *Service) Rows(tx *db.Tx, ids []string, limit int) ([]Request, error) {
	rows, err := record.Newest(tx, ids, limit)
	if err != nil {
		return nil, err
	}
	of := make([]string, len(rows))
	for i, r := range rows {
		of[i] = r.ID
	}
	pending, err := record.PendingOf(tx, of)
	if err != nil {
		return nil, err
	}
	places, err := s.Queue.Places(tx, of)
	out := make([]Request, len(rows))
	for i, r := range rows {
		out[i] = s.wire(r, pending, places)
	}
	return out, err
}

// Approvals lists the open questions of tx.Account with the ids. Without ids (nil) it
// lists the newest. It lists at most limit.
func (s *Service) Approvals(tx *db.Tx, ids []string, limit int) ([]Approval, error) {
	rows, err := record.OpenQuestions(tx, ids, limit)
	if err != nil {
		return nil, err
	}
	return s.priced(tx, rows)
}

// Attended tells whether a pull request of tx.Account is the work of an agent, or was
// looked after by agents.
func Attended(tx *db.Tx, prID string) (bool, error) { return record.Attended.One(tx, tx.Account, prID) }

// NewestIn lists the ids of the newest pull requests of a repository of tx.Account, newest first
// and at most limit.
func NewestIn(tx *db.Tx, repoID string, limit int) ([]string, error) {
	return record.NewestIn.All(tx, tx.Account, repoID, limit)
}

// NewestApprovalsIn lists the ids of the newest open questions of a repository of tx.Account, newest first
// and at most limit.
func NewestApprovalsIn(tx *db.Tx, repoID string, limit int) ([]string, error) {
	return record.NewestQuestionsIn.All(tx, tx.Account, repoID, limit)
}
