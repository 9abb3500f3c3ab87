package issue

import (
	"time"

	"yardmaster/internal/db"
)

// handoffRow is a hand-off of an issue to a webhook.
type handoffRow struct {
	ID, AccountID, RepoID, IssueID  string
	WebhookRef, Reason, RequestedBy string
	State                           string
	Failure                         *string
	CreatedAt                       time.Time
	MovedAt                         *time.Time // when its state was known
}

// handoffMoveArgs are the parameters of moveHandoff.
type handoffMoveArgs struct {
	AccountID, ID, State string
	Failure              *string
	MovedAt              time.Time
}

const handoffColumns = `id, account_id, repo_id, issue_id, webhook_ref, reason, state, requested_by, created_at, failure, moved_at`

var (
	handOff = db.SWith[handoffRow](`INSERT INTO issue_handoffs (` + handoffColumns + `) VALUES (:id, :account_id, :repo_id, :issue_id,
		:webhook_ref, :reason, :state, :requested_by, :created_at, :failure, :moved_at)`)
	lockHandoff = db.Q[handoffRow](`SELECT ` + handoffColumns + ` FROM issue_handoffs WHERE account_id = $1 AND id = $2`).ForUpdate()
	moveHandoff = db.SWith[handoffMoveArgs](`UPDATE issue_handoffs SET state = :state, failure = :failure, moved_at = :moved_at
		WHERE account_id = :account_id AND id = :id`)
)

// handoffsOf are the newest hand-offs of issues of tx.Account, by issue.
func handoffsOf(tx *db.Tx, issueIDs []string) (map[string]handoffRow, error) {
	out := map[string]handoffRow{}
	if len(issueIDs) == 0 {
		return out, nil
	}
	all, err := db.Select[handoffRow](tx, db.Build(`SELECT `+handoffColumns+` FROM issue_handoffs WHERE account_id = `, tx.Account).
		In("issue_id", issueIDs).SQL(" ORDER BY created_at, id"))
	for _, h := range all {
		out[h.IssueID] = h
	}
	return out, err
}

// Brief is what people are told of an issue.
type Brief struct {
	RepoID, Title string
	Number        *int64
}

var briefOf = db.Q[Brief](`SELECT repo_id, title, number FROM issues WHERE account_id = $1 AND id = $2 AND gone_at IS NULL`)

// BriefOf reads an issue of tx.Account; false if there is none, or it is gone at its host.
func BriefOf(tx *db.Tx, issueID string) (Brief, bool, error) {
	return briefOf.Maybe(tx, tx.Account, issueID)
}
