package record

import "yardmaster/internal/db"

type UntidyRow struct {
	Found
	PRID    string `db:"pr_id"`
	RepoID  string
	Details db.JSON[Details]
}

var (
	// isBase tells whether a branch is the base of open pull requests.
	OpenToBase = db.Q[string](`SELECT id FROM pulls WHERE account_id = $1 AND repo_id = $2 AND base_ref = $3 AND state = 'open' ORDER BY id`)
	IsBase     = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM pulls WHERE account_id = $1 AND repo_id = $2 AND base_ref = $3 AND state = 'open')`)
	OpenOthers = db.Q[Action](`SELECT ` + ActionColumns + ` FROM pull_actions WHERE account_id = $1 AND pr_id = $2 AND kind <> 'merge'
		AND state = 'pending' ORDER BY requested_at, id`)
	OtherByID = db.Q[Action](`SELECT ` + ActionColumns + ` FROM pull_actions WHERE account_id = $1 AND id = $2 AND kind <> 'merge'`)
	OpenAll   = db.Q[Action](`SELECT ` + ActionColumns + ` FROM pull_actions WHERE pr_id = $1 AND state IN ('pending', 'approved')
		ORDER BY requested_at, id`)
	Untidy = db.Q[UntidyRow](`SELECT a.id, a.account_id, a.pr_id, p.repo_id, a.details FROM pull_actions a JOIN pulls p ON p.id = a.pr_id
		WHERE a.kind = 'push' AND a.tidied = FALSE AND a.state NOT IN ('pending', 'approved') LIMIT 50`)
	PushAsked = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM pull_actions WHERE pr_id = $1 AND kind = 'push' AND state IN ('pending', 'approved'))`)
	SetTidied = db.S(`UPDATE pull_actions SET tidied = TRUE WHERE id = $1 AND tidied = FALSE`)
)
