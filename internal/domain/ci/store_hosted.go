package ci

import (
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
)

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
	Side      string
	PRID      string `db:"pr_id"`
	Hold      string
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
	Conclusion codehost.CheckEnd
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
	Side               string
	PRID               string `db:"pr_id"`
	SettleAt           time.Time
	Now                int64
}

// setHeadArgs are the parameters of setHead.
type setHeadArgs struct {
	RepoID           string
	SHA              string `db:"sha"`
	Tag, Result, Why string
	Hold             string
	Open             bool // it is read again by itself
	Have             int64
}

var (
	follow = db.SWith[followArgs](`INSERT INTO host_heads (repo_id, sha, account_id, base_ref, side, pr_id, settle_at, open, created_at)
		VALUES (:repo_id, :sha, :account_id, :base_ref, :side, :pr_id, :settle_at, TRUE, :now)
		ON CONFLICT (repo_id, sha) DO UPDATE SET want = host_heads.want + 1, open = TRUE, result = 'pending', hold = '',
		base_ref = excluded.base_ref, side = excluded.side, pr_id = excluded.pr_id, settle_at = excluded.settle_at, tag = ''`)
	// followBase leaves a commit alone that is followed already.
	followBase = db.SWith[followArgs](`INSERT INTO host_heads (repo_id, sha, account_id, base_ref, side, pr_id, settle_at, open, created_at)
		VALUES (:repo_id, :sha, :account_id, :base_ref, :side, :pr_id, :settle_at, TRUE, :now) ON CONFLICT DO NOTHING`)
	want      = db.Q[string](`UPDATE host_heads SET want = want + 1, open = TRUE WHERE repo_id = $1 AND sha = $2 RETURNING account_id`)
	headByKey = db.Q[headRow](`SELECT repo_id, sha, account_id, base_ref, tag, result, why, settle_at, want, side, pr_id, hold
		FROM host_heads WHERE repo_id = $1 AND sha = $2`)
	// openHeads has those that an older release looks after by due_at, too.
	openHeads = db.Q[due.Open](`SELECT repo_id || '/' || sha AS key, account_id AS account FROM host_heads
		WHERE open OR due_at IS NOT NULL LIMIT $1`)
	// setHead leaves a head open that was wanted again meanwhile. It changes nothing if a
	// later reading was recorded.
	setHead = db.SWith[setHeadArgs](`UPDATE host_heads SET tag = :tag, result = :result, why = :why, hold = :hold, have = :have,
		open = want > :have OR :open, due_at = NULL
		WHERE repo_id = :repo_id AND sha = :sha AND have <= :have`)
	checksOf = db.Q[checkRow](`SELECT repo_id, sha, source, name, host_id, own, required, state, conclusion, job, workflow, attempt, url,
		log, started_at, ended_at FROM host_checks WHERE repo_id = $1 AND sha = $2 ORDER BY name, source`)
	// lockHead keeps other nodes from the checks of a head until the transaction ends. It
	// answers which reading was recorded last.
	lockHead    = db.Q[int64](`SELECT have FROM host_heads WHERE repo_id = $1 AND sha = $2`).ForUpdate()
	dropChecks  = db.S(`DELETE FROM host_checks WHERE repo_id = $1 AND sha = $2`)
	insertCheck = db.SWith[checkRow](`INSERT INTO host_checks (repo_id, sha, source, name, host_id, own, required, state, conclusion, job,
		workflow, attempt, url, log, started_at, ended_at)
		VALUES (:repo_id, :sha, :source, :name, :host_id, :own, :required, :state, :conclusion, :job, :workflow, :attempt, :url,
		:log, :started_at, :ended_at)`)
)
