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
	IssueID    *string
	CreatedBy  string
	CreatedAt  time.Time
	ResolvedAt *time.Time
	ResolvedBy *string
	Note       *string
}

const columns = `e.id, r.owner || '/' || r.name AS repo, e.category, e.title, e.body, e.reason, e.ask_id, e.pr_id, e.task_id,
	e.issue_id, e.created_by, e.created_at, e.resolved_at, e.resolved_by, e.note FROM escalations e LEFT JOIN repos r ON r.id = e.repo_id`

var (
	insert = db.SWith[insertArgs](`INSERT INTO escalations (id, account_id, repo_id, category, title, body, reason, ask_id,
		created_by, created_at, pr_id, task_id, issue_id)
		VALUES (:id, :account_id, :repo_id, :category, :title, :body, :reason, :ask_id, :created_by, :created_at, :pr_id, :task_id,
		:issue_id)`)
	byID    = db.Q[row](`SELECT ` + columns + ` WHERE e.account_id = $1 AND e.id = $2`)
	resolve = db.SWith[resolveArgs](`UPDATE escalations SET resolved_at = :resolved_at, resolved_by = :resolved_by, note = :note
		WHERE account_id = :account_id AND id = :id AND resolved_at IS NULL`)
	resolveOfPull = db.QWith[resolveOfPullArgs, string](`UPDATE escalations
		SET resolved_at = :resolved_at, resolved_by = :resolved_by, note = :note
		WHERE account_id = :account_id AND pr_id = :pr_id AND resolved_at IS NULL RETURNING id`)
	resolveOfRepo = db.QWith[resolveOfRepoArgs, string](`UPDATE escalations
		SET resolved_at = :resolved_at, resolved_by = :resolved_by, note = :note
		WHERE account_id = :account_id AND repo_id = :repo_id AND category = :category AND title = :title AND resolved_at IS NULL RETURNING id`)
	titlesOfRepo = db.Q[string](`SELECT DISTINCT title FROM escalations
		WHERE account_id = $1 AND repo_id = $2 AND category = $3 AND resolved_at IS NULL ORDER BY title`)
	openOfAsk    = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM escalations WHERE account_id = $1 AND ask_id = $2 AND resolved_at IS NULL)`)
	resolveOfAsk = db.QWith[resolveOfAskArgs, string](`UPDATE escalations
		SET resolved_at = :resolved_at, resolved_by = :resolved_by, note = :note
		WHERE account_id = :account_id AND ask_id = :ask_id AND category = :category AND resolved_at IS NULL RETURNING id`)
)

// resolveOfRepoArgs are the parameters of resolveOfRepo.
type resolveOfRepoArgs struct {
	AccountID, RepoID, Category, Title string
	ResolvedAt                         time.Time
	ResolvedBy, Note                   string
}

// resolveOfAskArgs are the parameters of resolveOfAsk.
type resolveOfAskArgs struct {
	AccountID, AskID           string
	ResolvedAt                 time.Time
	ResolvedBy, Note, Category string
}

// resolveOfPullArgs are the parameters of resolveOfPull.
type resolveOfPullArgs struct {
	AccountID        string
	PRID             string `db:"pr_id"`
	ResolvedAt       time.Time
	ResolvedBy, Note string
}

// resolveArgs are the parameters of resolve.
type resolveArgs struct {
	AccountID, ID string
	ResolvedAt    time.Time
	ResolvedBy    string
	Note          *string
}

// insertArgs are the parameters of insert.
type insertArgs struct {
	ID, AccountID                 string
	RepoID                        *string
	Category, Title, Body, Reason string
	AskID                         *string
	CreatedBy                     string
	CreatedAt                     time.Time
	PRID                          *string `db:"pr_id"`
	TaskID, IssueID               *string
}

// list reads a page, newest first.
func list(tx *db.Tx, p op.PageIn) ([]row, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	part, err := p.Part()
	if err != nil {
		return nil, err
	}
	b := db.Build(`SELECT `+columns+` WHERE e.account_id = `, tx.Account)
	if err := db.Named(tx, b, "e.id", `SELECT id FROM escalations WHERE account_id`, part); err != nil {
		return nil, err
	}
	if ask := p.Want("ask"); ask != "" {
		b.And("e.ask_id = ", ask).Few()
	}
	switch p.Want("state") {
	case "open":
		b.SQL(" AND e.resolved_at IS NULL")
	case "resolved":
		b.SQL(" AND e.resolved_at IS NOT NULL")
	}
	if more {
		b.OlderThan("e.created_at", "e.id", at, last)
	}
	return db.Select[row](tx, b.Newest("e.created_at", "e.id", p.Size()))
}

// Rows lists at most limit escalations of tx.Account, newest first: those with the ids, or
// all for nil.
func Rows(tx *db.Tx, ids []string, limit int) ([]Escalation, error) {
	b := db.Build(`SELECT `+columns+` WHERE e.account_id = `, tx.Account)
	if ids != nil {
		b.In("e.id", ids).Few()
	}
	rows, err := db.Select[row](tx, b.Newest("e.created_at", "e.id", limit))
	out := make([]Escalation, len(rows))
	for i := range rows {
		out[i] = rows[i].wire()
	}
	return out, err
}

func (r *row) wire() Escalation {
	return Escalation{
		ID: r.ID, Repo: r.Repo, Category: r.Category, Title: r.Title, Body: r.Body, Reason: r.Reason,
		AskID: r.AskID, PRID: r.PRID, TaskID: r.TaskID, IssueID: r.IssueID, CreatedBy: r.CreatedBy,
		CreatedAt: r.CreatedAt, ResolvedAt: r.ResolvedAt, ResolvedBy: r.ResolvedBy, Note: r.Note,
	}
}

// Brief is what people are told of an escalation.
type Brief struct {
	Title, Reason string
	Repo, TaskID  *string
	PRID          *string `db:"pr_id"`
}

var briefOf = db.Q[Brief](`SELECT e.title, e.reason, r.owner || '/' || r.name AS repo, e.task_id, e.pr_id
	FROM escalations e LEFT JOIN repos r ON r.id = e.repo_id WHERE e.account_id = $1 AND e.id = $2 AND e.resolved_at IS NULL`)

// BriefOf reads an escalation of tx.Account that nobody has resolved.
func BriefOf(tx *db.Tx, escalationID string) (Brief, bool, error) {
	return briefOf.Maybe(tx, tx.Account, escalationID)
}

var newestIn = db.Q[string](`SELECT id FROM escalations WHERE account_id = $1 AND repo_id = $2 ORDER BY created_at DESC, id DESC LIMIT $3`)

// NewestIn lists the ids of the newest escalations of a repository of tx.Account, newest first
// and at most limit.
func NewestIn(tx *db.Tx, repoID string, limit int) ([]string, error) {
	return newestIn.All(tx, tx.Account, repoID, limit)
}
