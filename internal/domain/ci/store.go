package ci

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
)

type row struct {
	ID     string
	RepoID string
	PRID   string `db:"pr_id"`
	SHA    string `db:"sha"`
}

type lostRow struct {
	AccountID string
	TaskID    string
	Why       string
	Cancelled bool
}

var (
	insert = db.SWith[insertArgs](`INSERT INTO ci_runs (id, account_id, repo_id, pr_id, sha, command, status, task_id, created_at)
		VALUES (:id, :account_id, :repo_id, NULLIF(:pr_id, ''), :sha, :command, :status, :task_id, :created_at)
		ON CONFLICT (pr_id, sha)
		WHERE pr_id IS NOT NULL DO UPDATE SET command = excluded.command, status = excluded.status,
		task_id = excluded.task_id, created_at = excluded.created_at, run_id = NULL, box_id = NULL, exit_code = NULL,
		output = '', started_at = NULL, finished_at = NULL`)
	run   = db.S(`UPDATE ci_runs SET status = 'running', started_at = $3 WHERE account_id = $1 AND task_id = $2 AND finished_at IS NULL`)
	queue = db.S(`UPDATE ci_runs SET status = 'queued', started_at = NULL
		WHERE account_id = $1 AND task_id = $2 AND finished_at IS NULL AND status = 'running'`)
	byTask = db.Q[row](`SELECT id, repo_id, COALESCE(pr_id, '') AS pr_id, sha FROM ci_runs WHERE account_id = $1 AND task_id = $2`)
	lost   = db.Q[lostRow](`SELECT c.account_id, c.task_id, COALESCE(t.failure, t.status) AS why, t.status = 'cancelled' AS cancelled
		FROM ci_runs c JOIN tasks t ON t.id = c.task_id
		WHERE c.finished_at IS NULL AND t.status IN ('failed', 'cancelled') LIMIT 50`)
	// end leaves a check alone that has ended, unless a run has brought a result: the
	// task of a lost check may have been run again.
	end = db.SWith[endArgs](`UPDATE ci_runs SET status = :status, run_id = :run_id, box_id = :box_id,
		exit_code = :exit_code, output = :output, finished_at = :finished_at
		WHERE id = :id AND (finished_at IS NULL OR :run_id <> '')`)
	insertLog = db.SWith[insertLogArgs](`INSERT INTO ci_logs (id, account_id, run_id, expires_at)
		VALUES (:id, :account_id, :run_id, :expires_at) ON CONFLICT DO NOTHING`)
	logByID   = db.Q[logRow](`SELECT id, account_id, run_id, kept_at, expires_at FROM ci_logs WHERE id = $1`)
	openLogs  = db.Q[due.Open](`SELECT id AS key, account_id AS account FROM ci_logs LIMIT $1`)
	keptLog   = db.S(`UPDATE ci_logs SET size = $2, kept_at = $3 WHERE id = $1`)
	deleteLog = db.S(`DELETE FROM ci_logs WHERE id = $1`)
	keptOf    = db.Q[keptRow](`SELECT l.id, l.account_id, l.size, c.sha FROM ci_runs c JOIN ci_logs l ON l.run_id = c.run_id
		WHERE c.account_id = $1 AND c.id = $2 AND l.account_id = c.account_id AND l.kept_at IS NOT NULL AND l.expires_at > $3`)
	allKept   = db.Q[logRow](`SELECT id, account_id, run_id, kept_at, expires_at FROM ci_logs WHERE kept_at IS NOT NULL AND expires_at > $1 ORDER BY id`)
	limitLogs = db.S(`UPDATE ci_logs SET expires_at = $1 WHERE expires_at > $1`)

	resultOf = db.Q[Result](`SELECT command, exit_code, output FROM ci_runs WHERE pr_id = $1 AND sha = $2`)
)

// insertArgs are the parameters of insert.
type insertArgs struct {
	ID, AccountID, RepoID        string
	PRID                         string `db:"pr_id"`
	SHA, Command, Status, TaskID string
	CreatedAt                    int64
}

// endArgs are the parameters of end.
type endArgs struct {
	ID, Status, RunID, BoxID string
	ExitCode                 *int
	Output                   string
	FinishedAt               int64
}

// insertLogArgs are the parameters of insertLog.
type insertLogArgs struct {
	ID, AccountID string
	RunID         string
	ExpiresAt     time.Time
}

// keptRow is an archived log that can be handed out.
type keptRow struct {
	ID        string
	AccountID string
	Size      int64
	SHA       string `db:"sha"`
}

func (k keptRow) key() string { return logRow{ID: k.ID, AccountID: k.AccountID}.key() }

// ClockSetBack pulls in the times of logs that a clock which was set back would put off. The
// queues look after their own.
func ClockSetBack(tx *db.Tx) error {
	if _, err := limitLogs.Exec(tx, tx.Now.Add(Retention)); err != nil {
		return err
	}
	_, err := hurryTidying.Exec(tx, tx.Micros(), db.Micros(tx.Now.Add(tidyEvery)))
	return err
}

const checks = `SELECT c.id, r.owner || '/' || r.name AS repo, c.pr_id, c.sha, c.command, c.status, c.task_id,
	NULLIF(c.run_id, '') AS run_id, NULLIF(c.box_id, '') AS box_id, c.exit_code, l.expires_at AS log_expires_at,
	c.created_at, c.started_at, c.finished_at
	FROM ci_runs c JOIN repos r ON r.id = c.repo_id
	LEFT JOIN ci_logs l ON l.run_id = c.run_id AND l.kept_at IS NOT NULL AND l.expires_at > `

func list(tx *db.Tx, p op.PageIn, repoID string) ([]Check, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(checks, tx.Now).SQL(" WHERE c.account_id = ", tx.Account)
	if one := p.Want("id"); one != "" {
		b.And("c.id = ", one)
	}
	if repoID != "" {
		b.And("c.repo_id = ", repoID)
	}
	if pr := p.Want("pr"); pr != "" {
		b.And("c.pr_id = ", pr).Few()
	}
	if status := p.Want("status"); status != "" {
		b.Is("c.status", status)
	}
	if more {
		b.OlderThan("c.created_at", "c.id", at, last)
	}
	return db.Select[Check](tx, b.Newest("c.created_at", "c.id", p.Size()))
}

// Rows lists the checks of tx.Account with the ids, newest first. Without ids (nil) it
// lists the newest checks. It lists at most limit.
func Rows(tx *db.Tx, ids []string, limit int) ([]Check, error) {
	b := db.Build(checks, tx.Now).SQL(" WHERE c.account_id = ", tx.Account)
	if ids != nil {
		b.In("c.id", ids).Few()
	}
	return db.Select[Check](tx, b.Newest("c.created_at", "c.id", limit))
}
