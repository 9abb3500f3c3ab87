package ci

import (
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
)

// reportRow is a check that boxes run, with the state that its host has of it.
type reportRow struct {
	ID       string
	RepoID   string
	PRID     string `db:"pr_id"`
	SHA      string `db:"sha"`
	Command  string
	Status   string
	ExitCode *int64
	Output   string
	Told     string
}

// wantReportArgs are the parameters of wantReport.
type wantReportArgs struct {
	CheckID, AccountID string
	Fresh              bool
}

// groupRow is the check of a group of a merge queue.
type groupRow struct {
	TaskID string
	Status string
}

// over tells whether the check has ended.
func (g groupRow) over() bool { return g.Status != Queued && g.Status != Running }

var (
	wantReport = db.SWith[wantReportArgs](`INSERT INTO ci_reports (check_id, account_id, open) VALUES (:check_id, :account_id, TRUE)
		ON CONFLICT (check_id) DO UPDATE SET open = TRUE, told = CASE WHEN :fresh THEN '' ELSE ci_reports.told END`)
	reportOf = db.Q[reportRow](`SELECT c.id, c.repo_id, COALESCE(c.pr_id, '') AS pr_id, c.sha, c.command, c.status, c.exit_code, c.output,
		r.told FROM ci_reports r JOIN ci_runs c ON c.id = r.check_id WHERE r.account_id = $1 AND r.check_id = $2`)
	// openReports has those that an older release looks after by due_at, too.
	openReports   = db.Q[due.Open](`SELECT check_id AS key, account_id AS account FROM ci_reports WHERE open OR due_at IS NOT NULL LIMIT $1`)
	toldReport    = db.S(`UPDATE ci_reports SET told = $2 WHERE check_id = $1`)
	endReport     = db.S(`UPDATE ci_reports SET open = FALSE, due_at = NULL WHERE check_id = $1`)
	newestOfGroup = db.Q[groupRow](`SELECT COALESCE(task_id, '') AS task_id, status FROM ci_runs
		WHERE account_id = $1 AND repo_id = $2 AND sha = $3 AND pr_id IS NULL ORDER BY created_at DESC, id DESC LIMIT 1`)
)

var newestIn = db.Q[string](`SELECT id FROM ci_runs WHERE account_id = $1 AND repo_id = $2 ORDER BY created_at DESC, id DESC LIMIT $3`)

// NewestIn lists the ids of the newest checks of a repository of tx.Account, newest first
// and at most limit.
func NewestIn(tx *db.Tx, repoID string, limit int) ([]string, error) {
	return newestIn.All(tx, tx.Account, repoID, limit)
}
