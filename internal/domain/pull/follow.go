package pull

import (
	"time"

	"yardmaster/internal/db"
)

// Rows are the pull requests of tx.Account with the ids, or, for nil, its
// newest, up to limit, as the list shows them.
func (s *Service) Rows(tx *db.Tx, ids []string, limit int) ([]Request, error) {
	rows, err := newest(tx, ids, limit)
	if err != nil {
		return nil, err
	}
	of := make([]string, len(rows))
	for i, r := range rows {
		of[i] = r.ID
	}
	pending, err := pendingOf(tx, of)
	out := make([]Request, len(rows))
	for i, r := range rows {
		out[i] = s.wire(r, pending)
	}
	return out, err
}

// Approvals are the open questions of tx.Account with the ids, or, for nil, its
// newest, up to limit, as the queue shows them.
func (s *Service) Approvals(tx *db.Tx, ids []string, limit int) ([]Approval, error) {
	rows, err := openQuestions(tx, ids, limit)
	out := make([]Approval, len(rows))
	for i, r := range rows {
		out[i] = s.approval(r)
	}
	return out, err
}

// Check is one run of a repository's own test command.
type Check struct {
	ID         string     `json:"id"`
	Repo       string     `json:"repo"`
	PRID       *string    `json:"pr_id" db:"pr_id"`
	SHA        string     `json:"sha" db:"sha"`
	Command    string     `json:"command"`
	Status     string     `json:"status" enum:"queued,running,passed,failed,lost,cancelled"`
	ExitCode   *int64     `json:"exit_code"`
	CreatedAt  time.Time  `json:"created_at"`
	StartedAt  *time.Time `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
}
