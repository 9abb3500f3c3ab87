package record

import (
	"yardmaster/internal/db"
)

// UntidyRow is a push that is over, and whose commits are still kept.
type UntidyRow struct {
	Found
	PRID    string `db:"pr_id"`
	RepoID  string
	Details db.JSON[Details]
}

var (
	// OpenToBase are the open pull requests whose base is a branch.
	OpenToBase = db.Q[string](`SELECT id FROM pulls WHERE account_id = $1 AND repo_id = $2 AND base_ref = $3 AND state = 'open' ORDER BY id`)
	// IsBase tells whether a branch is the base of open pull requests.
	IsBase = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM pulls WHERE account_id = $1 AND repo_id = $2 AND base_ref = $3 AND state = 'open')`)
	// OpenOthers are the actions of a pull request but its merge that wait for an answer.
	OpenOthers = db.Q[Action](`SELECT ` + ActionColumns + ` FROM pull_actions WHERE account_id = $1 AND pr_id = $2 AND kind <> 'merge'
		AND state = 'pending' ORDER BY requested_at, id`)
	// OtherByID reads an action that is no merge.
	OtherByID = db.Q[Action](`SELECT ` + ActionColumns + ` FROM pull_actions WHERE account_id = $1 AND id = $2 AND kind <> 'merge'`)
	// OpenAll are the actions of a pull request that are open, the oldest first.
	OpenAll = db.Q[Action](`SELECT ` + ActionColumns + ` FROM pull_actions WHERE pr_id = $1 AND state IN ('pending', 'approved')
		ORDER BY requested_at, id`)
	// Untidy are pushes that are over, and whose commits are still kept.
	Untidy = db.Q[UntidyRow](`SELECT a.id, a.account_id, a.pr_id, p.repo_id, a.details FROM pull_actions a JOIN pulls p ON p.id = a.pr_id
		WHERE a.kind = 'push' AND a.tidied = FALSE AND a.state NOT IN ('pending', 'approved') LIMIT 50`)
	// PushAsked tells whether a push to the branch of a pull request is open.
	PushAsked = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM pull_actions WHERE pr_id = $1 AND kind = 'push' AND state IN ('pending', 'approved'))`)
	// SetTidied notes that the commits of a push are kept no more. It changes no row if that was noted.
	SetTidied = db.S(`UPDATE pull_actions SET tidied = TRUE WHERE id = $1 AND tidied = FALSE`)
)
