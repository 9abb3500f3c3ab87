package escalation

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
)

type row struct {
	ID         string
	Repo       *string
	Category   string
	Title      string
	Body       string
	Reason     string
	AskID      *string
	PRID       *string `db:"pr_id"`
	TaskID     *string
	CreatedBy  string
	CreatedAt  time.Time
	ResolvedAt *time.Time
	ResolvedBy *string
	Note       *string
}

const columns = `e.id, r.owner || '/' || r.name AS repo, e.category, e.title, e.body, e.reason, e.ask_id, e.pr_id, e.task_id, e.created_by, e.created_at,
	e.resolved_at, e.resolved_by, e.note FROM escalations e LEFT JOIN repos r ON r.id = e.repo_id`

var (
	insert = db.S(`INSERT INTO escalations (id, account_id, repo_id, category, title, body, reason, ask_id, created_by, created_at, pr_id, task_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`)
	byID    = db.Q[row](`SELECT ` + columns + ` WHERE e.account_id = $1 AND e.id = $2`)
	resolve = db.S(`UPDATE escalations SET resolved_at = $3, resolved_by = $4, note = $5
		WHERE account_id = $1 AND id = $2 AND resolved_at IS NULL`)
	resolveOfPull = db.Q[string](`UPDATE escalations SET resolved_at = $3, resolved_by = $4, note = $5
		WHERE account_id = $1 AND pr_id = $2 AND resolved_at IS NULL RETURNING id`)
	resolveOfAsk = db.Q[string](`UPDATE escalations SET resolved_at = $3, resolved_by = $4, note = $5
		WHERE account_id = $1 AND ask_id = $2 AND category = $6 AND resolved_at IS NULL RETURNING id`)
)

func list(tx *db.Tx, p op.PageIn) ([]row, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(`SELECT `+columns+` WHERE e.account_id = `, tx.Account)
	switch p.Want("state") {
	case "open":
		b.SQL(" AND e.resolved_at IS NULL")
	case "resolved":
		b.SQL(" AND e.resolved_at IS NOT NULL")
	}
	if more {
		b.And("(e.created_at, e.id) < ", db.Tuple(at, last))
	}
	return db.Select[row](tx, b.SQL(" ORDER BY e.created_at DESC, e.id DESC LIMIT ", p.Size()))
}

func (r *row) wire() Escalation {
	return Escalation{
		ID: r.ID, Repo: r.Repo, Category: r.Category, Title: r.Title, Body: r.Body, Reason: r.Reason, AskID: r.AskID, PRID: r.PRID, TaskID: r.TaskID, CreatedBy: r.CreatedBy,
		CreatedAt: r.CreatedAt.Truncate(time.Millisecond), ResolvedAt: r.ResolvedAt, ResolvedBy: r.ResolvedBy, Note: r.Note,
	}
}
