package ci

import (
	"time"

	"yardmaster/internal/db"
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
		VALUES (:id, :account_id, :repo_id, :pr_id, :sha, :command, :status, :task_id, :created_at)
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

// Rows lists the checks of tx.Account with the ids, newest first. Without ids (nil) it
// lists the newest checks. It lists at most limit.
func Rows(tx *db.Tx, ids []string, limit int) ([]Check, error) {
	b := db.Build(`SELECT c.id, r.owner || '/' || r.name AS repo, c.pr_id, c.sha, c.command, c.status, c.exit_code,
		c.created_at, c.started_at, c.finished_at
		FROM ci_runs c JOIN repos r ON r.id = c.repo_id WHERE c.account_id = `, tx.Account)
	if ids != nil {
		b.In("c.id", ids)
	}
	return db.Select[Check](tx, b.SQL(" ORDER BY c.created_at DESC, c.id DESC LIMIT ", limit))
}

// headRow is a commit whose checks at its host are followed.
type headRow struct {
	RepoID    string
	SHA       string `db:"sha"`
	AccountID string
	BaseRef   string
	Tag       string
	Result    string
	Why       string
	SettleAt  time.Time
	Want      int64
}

// checkRow is a check of a commit at its host.
type checkRow struct {
	RepoID     string
	SHA        string `db:"sha"`
	Source     string
	Name       string
	HostID     string
	Own        bool
	Required   bool
	State      string
	Conclusion string
	Job        string
	Workflow   string
	Attempt    int64
	URL        string `db:"url"`
	Log        *string
	StartedAt  *time.Time
	EndedAt    *time.Time
}

// followArgs are the parameters of follow.
type followArgs struct {
	RepoID             string
	SHA                string `db:"sha"`
	AccountID, BaseRef string
	SettleAt           time.Time
	Now                int64
}

// setHeadArgs are the parameters of setHead.
type setHeadArgs struct {
	RepoID           string
	SHA              string `db:"sha"`
	Tag, Result, Why string
	DueAt            *int64
	Have, Now        int64
}

var (
	follow = db.SWith[followArgs](`INSERT INTO host_heads (repo_id, sha, account_id, base_ref, settle_at, due_at, created_at)
		VALUES (:repo_id, :sha, :account_id, :base_ref, :settle_at, :now, :now)
		ON CONFLICT (repo_id, sha) DO UPDATE SET want = host_heads.want + 1, due_at = excluded.due_at, result = 'pending',
		base_ref = excluded.base_ref, settle_at = excluded.settle_at, tag = ''`)
	want       = db.S(`UPDATE host_heads SET want = want + 1, due_at = $3 WHERE repo_id = $1 AND sha = $2`)
	anyHeadDue = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM host_heads WHERE due_at <= $1)`)
	takeHeads  = db.Q[headRow](`UPDATE host_heads SET due_at = $2
		WHERE (repo_id, sha) IN (SELECT repo_id, sha FROM host_heads WHERE due_at <= $1 ORDER BY due_at LIMIT $3) AND due_at <= $1
		RETURNING repo_id, sha, account_id, base_ref, tag, result, why, settle_at, want`)
	// setHead leaves a head due that was wanted again meanwhile.
	setHead = db.SWith[setHeadArgs](`UPDATE host_heads SET tag = :tag, result = :result, why = :why, have = :have,
		due_at = CASE WHEN want > :have THEN CAST(:now AS BIGINT) ELSE CAST(:due_at AS BIGINT) END
		WHERE repo_id = :repo_id AND sha = :sha`)
	checksOf = db.Q[checkRow](`SELECT repo_id, sha, source, name, host_id, own, required, state, conclusion, job, workflow, attempt, url,
		log, started_at, ended_at FROM host_checks WHERE repo_id = $1 AND sha = $2 ORDER BY name, source`)
	dropChecks  = db.S(`DELETE FROM host_checks WHERE repo_id = $1 AND sha = $2`)
	insertCheck = db.SWith[checkRow](`INSERT INTO host_checks (repo_id, sha, source, name, host_id, own, required, state, conclusion, job,
		workflow, attempt, url, log, started_at, ended_at)
		VALUES (:repo_id, :sha, :source, :name, :host_id, :own, :required, :state, :conclusion, :job, :workflow, :attempt, :url,
		:log, :started_at, :ended_at)`)
	pullInHeads = db.S(`UPDATE host_heads SET due_at = $1 WHERE due_at > $2`)
)

// ClockSetBack makes those heads due that would be read later than is ever asked.
func ClockSetBack(tx *db.Tx) error {
	_, err := pullInHeads.Exec(tx, tx.Micros(), db.Micros(tx.Now.Add(lookAgain)))
	return err
}
