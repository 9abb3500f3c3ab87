package tracker

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/seal/keys"
)

// row is the connection of an account.
type row struct {
	AccountID   string
	Sealed      string
	TeamID      string
	TeamKey     string
	TeamName    string
	ViewerID    string
	ViewerName  string
	Error       *string
	ConnectedBy string
	ConnectedAt time.Time
}

type issueRow struct {
	ID         string
	AccountID  string
	RepoID     string
	Title      string
	Body       string
	State      string
	Identifier *string
	URL        *string
	Error      *string
	Tries      int64
	CreatedBy  string
	CreatedAt  time.Time
	EndedAt    *time.Time
}

const (
	columns      = `account_id, sealed, team_id, team_key, team_name, viewer_id, viewer_name, error, connected_by, connected_at`
	issueColumns = `id, account_id, repo_id, title, body, state, identifier, url, error, tries, created_by, created_at, ended_at`
)

var (
	byAccount = db.Q[row](`SELECT ` + columns + ` FROM trackers WHERE account_id = $1`)
	put       = db.SWith[putArgs](`INSERT INTO trackers (account_id, sealed, team_id, team_key, team_name, viewer_id, viewer_name,
		connected_by, connected_at) VALUES (:account_id, :sealed, :team_id, :team_key, :team_name, :viewer_id, :viewer_name,
		:connected_by, :connected_at)
		ON CONFLICT (account_id) DO UPDATE SET sealed = excluded.sealed, team_id = excluded.team_id, team_key = excluded.team_key,
		team_name = excluded.team_name, viewer_id = excluded.viewer_id, viewer_name = excluded.viewer_name, error = NULL,
		connected_by = excluded.connected_by, connected_at = excluded.connected_at`)
	drop = db.S(`DELETE FROM trackers WHERE account_id = $1`)
	// setError changes nothing if the key was replaced meanwhile.
	setError = db.S(`UPDATE trackers SET error = $3 WHERE account_id = $1 AND sealed = $2`)

	insertIssue = db.SWith[insertIssueArgs](`INSERT INTO tracker_issues (id, account_id, repo_id, title, body, state, due_at, created_by, created_at)
		VALUES (:id, :account_id, :repo_id, :title, :body, :state, :now, :created_by, :now)`)
	issueByID = db.Q[string](`SELECT id FROM tracker_issues WHERE account_id = $1 AND id = $2`)
	anyDue    = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM tracker_issues WHERE due_at <= $1)`)
	// take answers issues that are due, and keeps them from other nodes until $2.
	take = db.Q[issueRow](`UPDATE tracker_issues SET due_at = $2, tries = tries + 1
		WHERE id IN (SELECT id FROM tracker_issues WHERE due_at <= $1 ORDER BY due_at, id LIMIT $3) AND due_at <= $1
		RETURNING ` + issueColumns)
	// The statements below change nothing if another node has taken the issue.
	again = db.SWith[againArgs](`UPDATE tracker_issues SET due_at = :due_at, error = :error
		WHERE id = :id AND tries = :tries AND due_at IS NOT NULL`)
	end = db.SWith[endArgs](`UPDATE tracker_issues SET state = :state, identifier = :identifier, url = :url, error = :error, due_at = NULL,
		ended_at = :now WHERE id = :id AND tries = :tries AND due_at IS NOT NULL`)
	// hurry makes the issues of an account due that wait for their next try and that no
	// node has.
	hurry  = db.S(`UPDATE tracker_issues SET due_at = $2 WHERE account_id = $1 AND due_at > $2 AND error IS NOT NULL`)
	forget = db.S(`DELETE FROM tracker_issues WHERE due_at IS NULL AND created_at < $1`)
	pullIn = db.S(`UPDATE tracker_issues SET due_at = $1 WHERE due_at > $2`)
)

// putArgs are the parameters of put.
type putArgs struct {
	AccountID, Sealed, TeamID, TeamKey, TeamName, ViewerID, ViewerName, ConnectedBy string
	ConnectedAt                                                                     int64
}

// insertIssueArgs are the parameters of insertIssue.
type insertIssueArgs struct {
	ID, AccountID, RepoID, Title, Body, State, CreatedBy string
	Now                                                  int64
}

// againArgs are the parameters of again.
type againArgs struct {
	ID           string
	Tries, DueAt int64
	Error        string
}

// endArgs are the parameters of end.
type endArgs struct {
	ID, State              string
	Identifier, URL, Error *string
	Tries, Now             int64
}

// list answers a page of the issues of tx.Account, newest first.
func list(tx *db.Tx, p op.PageIn) ([]issueRow, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(`SELECT `+issueColumns+` FROM tracker_issues WHERE account_id = `, tx.Account)
	if state := p.Want("state"); state != "" {
		b.And("state = ", state)
	}
	if more {
		b.And("(created_at, id) < ", db.Tuple(at, last))
	}
	return db.Select[issueRow](tx, b.SQL(" ORDER BY created_at DESC, id DESC LIMIT ", p.Size()))
}

// Sealed is the column of API keys.
var Sealed = keys.Column{
	Table: "trackers", Name: "sealed",
	Count: db.Q[keys.Held](keys.Tally + `trackers GROUP BY 1`),
	List: keys.Listing(db.Q[keys.Row](`SELECT account_id AS key, account_id AS account, sealed FROM trackers
		WHERE account_id > $1 ORDER BY account_id LIMIT $2`)),
	Put:     keys.Replacing(db.S(`UPDATE trackers SET sealed = $3 WHERE account_id = $1 AND sealed = $2`)),
	Purpose: func(r keys.Row) string { return purpose(r.Key) },
}

// ClockSetBack makes due what would wait for longer than is ever asked.
func ClockSetBack(tx *db.Tx) error {
	_, err := pullIn.Exec(tx, tx.Micros(), db.Micros(tx.Now.Add(time.Hour)))
	return err
}
