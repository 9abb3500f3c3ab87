package review

import (
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
)

const sideBase = codehost.SideBase

// Run is one review of a head, as it is stored.
type Run struct {
	ID           string
	AccountID    string
	RepoID       string
	PRID         string `db:"pr_id"`
	HeadSHA      string `db:"head_sha"`
	SinceSHA     string `db:"since_sha"` // "": the whole change
	MergeBase    string
	Change       string
	State        string
	Template     string
	TaskID       *string
	VerifyTaskID *string
	Blind        string // the gap; "": there was a model
	Note         string
	Verdict      *string
	Kept         *int64
	More         int64
	Unlooked     int64 // open findings that the verifier has still to look at again
	Carry        bool  // the findings of earlier heads are to be followed to this one
	Raw          string
	Stop         bool // its tasks are to be stopped
	RequestedBy  *string
	CreatedAt    time.Time
	EndedAt      *time.Time
}

// headOf is a head that was reviewed, or was to be.
type headOf struct {
	HeadSHA   string `db:"head_sha"`
	MergeBase string
}

const runColumns = `id, account_id, repo_id, pr_id, head_sha, since_sha, merge_base, change, state, template, task_id, verify_task_id,
	blind, note, verdict, kept, more, unlooked, carry, raw, stop, requested_by, created_at, ended_at FROM review_runs`

var (
	insertRun = db.SWith[Run](`INSERT INTO review_runs (id, account_id, repo_id, pr_id, head_sha, since_sha, merge_base, change, state,
		template, blind, note, verdict, carry, requested_by, created_at, ended_at)
		VALUES (:id, :account_id, :repo_id, :pr_id, :head_sha, :since_sha, :merge_base, :change, :state, :template, :blind, :note,
		:verdict, :carry, :requested_by, :created_at, :ended_at)`)
	runByID = db.Q[Run](`SELECT ` + runColumns + ` WHERE account_id = $1 AND id = $2`)
	openRun = db.Q[Run](`SELECT ` + runColumns + ` WHERE account_id = $1 AND pr_id = $2 AND ended_at IS NULL`)
	lastRun = db.Q[Run](`SELECT ` + runColumns + ` WHERE account_id = $1 AND pr_id = $2 ORDER BY created_at DESC, id DESC LIMIT 1`)
	// lastRead finds the newest run that has looked at a head, or that had not to, because
	// the head was a mere rebase of one.
	lastRead = db.Q[Run](`SELECT ` + runColumns + ` WHERE account_id = $1 AND pr_id = $2 AND state = 'completed' AND blind = ''
		ORDER BY created_at DESC, id DESC LIMIT 1`)
	// endedOf is a run of a head that has ended: one that has looked or had not to, else the
	// newest.
	endedOf = db.Q[Run](`SELECT ` + runColumns + ` WHERE account_id = $1 AND pr_id = $2 AND head_sha = $3
		AND state IN ('completed', 'failed', 'cancelled')
		ORDER BY CASE WHEN state = 'completed' AND blind = '' THEN 0 ELSE 1 END, created_at DESC, id DESC LIMIT 1`)
	// headsOf are the reviewed heads of a pull request with their merge bases.
	headsOf = db.Q[headOf](`SELECT head_sha, merge_base FROM review_runs WHERE account_id = $1 AND pr_id = $2 ORDER BY created_at, id`)
	// refused notes that the code host did not take the findings of a run.
	refused   = db.S(`UPDATE review_runs SET kept = 0, note = $3 WHERE account_id = $1 AND id = $2 AND kept > 0`)
	runByTask = db.Q[Run](`SELECT ` + runColumns + ` WHERE account_id = $1 AND (task_id = $2 OR verify_task_id = $2)
		AND ended_at IS NULL`)

	setRunState = db.S(`UPDATE review_runs SET state = $2 WHERE id = $1 AND ended_at IS NULL`)
	setTask     = db.S(`UPDATE review_runs SET task_id = $2 WHERE id = $1`)
	setVerify   = db.S(`UPDATE review_runs SET verify_task_id = $2, state = 'verifying', raw = '', more = $3 WHERE id = $1`)
	setRaw      = db.S(`UPDATE review_runs SET raw = $2, state = 'sorting' WHERE id = $1`)
	endRun      = db.SWith[endRunArgs](`UPDATE review_runs SET state = :state, note = :note, verdict = :verdict, kept = :kept,
		more = :more, unlooked = :unlooked, raw = '', stop = :stop, ended_at = :ended_at
		WHERE id = :id AND ended_at IS NULL`)
	setCarried = db.S(`UPDATE review_runs SET carry = FALSE WHERE id = $1`)
	setVerdict = db.S(`UPDATE review_runs SET verdict = $2 WHERE id = $1`)
	setStopped = db.S(`UPDATE review_runs SET stop = FALSE WHERE id = $1`)

	// unfinished finds the runs that have a next step, see Run.next.
	unfinished = db.Q[due.Open](`SELECT id AS key, account_id AS account FROM review_runs
		WHERE stop OR carry OR ended_at IS NULL AND (state = 'queued' AND task_id IS NULL OR state = 'sorting') LIMIT $1`)
)

// endRunArgs are the parameters of endRun.
type endRunArgs struct {
	ID, State, Note string
	Verdict         *string
	Kept            *int64
	More, Unlooked  int64
	Stop            bool
	EndedAt         time.Time
}
