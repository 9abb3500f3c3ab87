package pull

import (
	"fmt"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
)

// Marks implements stream.Marks for open pull requests: what a look at their code host
// tells of a head, say its size, changes without an event.
type Marks struct{}

// Marks returns, by id, how often the facts of each open pull request were read.
func (Marks) Marks(tx *db.Tx) (map[string]string, error) {
	rows, err := record.FactMarks.All(tx, tx.Account)
	out := make(map[string]string, len(rows))
	for _, r := range rows {
		out[r.ID] = fmt.Sprint(r.FactsHave)
	}
	return out, err
}

// QuestionMarks implements stream.Marks for open questions: what they say of their pull
// request changes with events of that one.
type QuestionMarks struct{}

// Marks returns, by id, what each open question says of its pull request.
func (QuestionMarks) Marks(tx *db.Tx) (map[string]string, error) {
	rows, err := record.QuestionMarks.All(tx, tx.Account)
	out := make(map[string]string, len(rows))
	for _, r := range rows {
		out[r.ID] = fmt.Sprint(r.FactsHave, r.Checks, r.Review, r.Findings)
	}
	return out, err
}
