package tracker

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
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

	insertIssue = db.SWith[insertIssueArgs](`INSERT INTO tracker_issues (id, account_id, repo_id, title, body, state, created_by, created_at)
		VALUES (:id, :account_id, :repo_id, :title, :body, :state, :created_by, :now)`)
	issueByID = db.Q[string](`SELECT id FROM tracker_issues WHERE account_id = $1 AND id = $2`)
	openByID  = db.Q[issueRow](`SELECT ` + issueColumns + ` FROM tracker_issues WHERE id = $1 AND ended_at IS NULL`)
	openKeys  = db.Q[due.Open](`SELECT id AS key, account_id AS account FROM tracker_issues WHERE ended_at IS NULL LIMIT $1`)
	noteTry   = db.S(`UPDATE tracker_issues SET tries = tries + 1, error = $2 WHERE id = $1`)
	end       = db.SWith[endArgs](`UPDATE tracker_issues SET state = :state, identifier = :identifier, url = :url, error = :error,
		due_at = NULL, ended_at = :now WHERE id = :id AND ended_at IS NULL`)
	failing = db.Q[string](`SELECT id FROM tracker_issues WHERE account_id = $1 AND ended_at IS NULL AND error IS NOT NULL`)
	forget  = db.S(`DELETE FROM tracker_issues WHERE ended_at IS NOT NULL AND created_at < $1`)
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

// endArgs are the parameters of end.
type endArgs struct {
	ID, State              string
	Identifier, URL, Error *string
	Now                    int64
}

// list answers a page of the issues of tx.Account, newest first.
func list(tx *db.Tx, p op.PageIn) ([]issueRow, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(`SELECT `+issueColumns+` FROM tracker_issues WHERE account_id = `, tx.Account)
	if state := p.Want("state"); state != "" {
		b.Is("state", state)
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
