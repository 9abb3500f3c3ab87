package review

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
)

// Finding is a defect that a review names, as it is stored.
type Finding struct {
	ID          string
	AccountID   string
	RepoID      string
	PRID        string `db:"pr_id"`
	RunID       string
	Key         string
	HeadSHA     string `db:"head_sha"` // the lines count in it
	File        string
	Side        string
	StartLine   int // 0: one line
	Line        int
	Symbol      string
	Anchor      string
	Severity    repo.Severity
	Kind        Kind
	Claim       string
	Why         string
	HowToSee    string
	Suggestion  string
	Confidence  float64
	State       string
	StateWhy    string
	Evidence    string
	PlaceStart  int
	PlaceLine   int     // in the diff of the head; 0: in the text of the review
	ClaimNo     int     // among the claims of a verifier; 0: not among them
	FixedSHA    *string `db:"fixed_sha"`
	DismissedBy *string
	Raised      bool // a later review has said in its thread that it is worse
	Unlooked    bool // a verifier has to look at it again, and has not
	Ruled       bool // it was dismissed for the repository
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Open is a finding that waits for an answer, for the agent that gives it.
type Open struct {
	File, Side, Claim, Why, HowToSee, Suggestion string
	Severity                                     repo.Severity
	Kind                                         Kind
	Line                                         int
}

// rule is a dismissal that holds for the repository.
type rule struct {
	Kind           Kind
	Symbol, Anchor string
}

const findingColumns = `id, account_id, repo_id, pr_id, run_id, key, head_sha, file, side, start_line, line, symbol, anchor, severity, kind,
	claim, why, how_to_see, suggestion, confidence, state, state_why, evidence, place_start, place_line, claim_no, fixed_sha, dismissed_by,
	raised, unlooked, ruled, created_at, updated_at FROM review_findings`

var (
	insertFinding = db.SWith[Finding](`INSERT INTO review_findings (id, account_id, repo_id, pr_id, run_id, key, head_sha, file, side,
		start_line, line, symbol, anchor, severity, kind, claim, why, how_to_see, suggestion, confidence, state, state_why,
		place_start, place_line, claim_no, created_at, updated_at)
		VALUES (:id, :account_id, :repo_id, :pr_id, :run_id, :key, :head_sha, :file, :side, :start_line, :line, :symbol, :anchor,
		:severity, :kind, :claim, :why, :how_to_see, :suggestion, :confidence, :state, :state_why, :place_start, :place_line,
		:claim_no, :created_at, :created_at)`)
	updateFinding = db.SWith[Finding](`UPDATE review_findings SET head_sha = :head_sha, file = :file, side = :side, start_line = :start_line,
		line = :line, state = :state, state_why = :state_why, evidence = :evidence, claim_no = :claim_no, fixed_sha = :fixed_sha,
		dismissed_by = :dismissed_by, raised = :raised, unlooked = :unlooked, ruled = :ruled, updated_at = :updated_at
		WHERE account_id = :account_id AND id = :id`)
	findingByID = db.Q[Finding](`SELECT ` + findingColumns + ` WHERE account_id = $1 AND id = $2`)
	// shownOf are the findings of a pull request that people have seen.
	shownOf = db.Q[Finding](`SELECT ` + findingColumns + ` WHERE account_id = $1 AND pr_id = $2
		AND state IN ('posted', 'answered', 'fixed', 'dismissed', 'stale') ORDER BY created_at, id`)
	claimed = db.Q[Finding](`SELECT ` + findingColumns + ` WHERE account_id = $1 AND pr_id = $2 AND claim_no > 0 ORDER BY claim_no`)
	openOf  = db.Q[Open](`SELECT file, side, severity, kind, claim, why, how_to_see, suggestion, line FROM review_findings
		WHERE account_id = $1 AND pr_id = $2 AND state = 'posted' ORDER BY created_at, id LIMIT 30`)
	waiting = db.Q[struct {
		State    string
		Severity repo.Severity
	}](`SELECT state, severity FROM review_findings WHERE account_id = $1 AND pr_id = $2 AND state = 'posted'`)
	unlookedOf = db.Q[int64](`SELECT COUNT(*) FROM review_findings WHERE account_id = $1 AND pr_id = $2 AND unlooked
		AND state IN ('posted', 'answered')`)
	unclaim   = db.S(`UPDATE review_findings SET claim_no = 0 WHERE pr_id = $1 AND claim_no > 0`)
	staleRest = db.S(`UPDATE review_findings SET was = state, state = 'stale', state_why = 'the pull request is over', updated_at = $2
		WHERE pr_id = $1 AND state IN ('posted', 'answered')`)

	// revive makes findings what they were before their pull request was over.
	revive = db.S(`UPDATE review_findings SET state = was, was = '', state_why = '', updated_at = $2
		WHERE pr_id = $1 AND state = 'stale' AND was <> ''`)

	rulesOf    = db.Q[rule](`SELECT kind, symbol, anchor FROM review_rules WHERE account_id = $1 AND repo_id = $2`)
	insertRule = db.SWith[ruleArgs](`INSERT INTO review_rules (id, account_id, repo_id, kind, symbol, anchor, claim, reason, created_by,
		created_at)
		VALUES (:id, :account_id, :repo_id, :kind, :symbol, :anchor, :claim, :reason, :created_by, :created_at)
		ON CONFLICT (repo_id, kind, symbol, anchor) DO NOTHING`)
	ruleAt = db.QWith[ruleAtArgs, string](`SELECT id FROM review_rules WHERE account_id = :account_id AND repo_id = :repo_id
		AND kind = :kind AND symbol = :symbol AND anchor = :anchor`)
	dropRule = db.S(`DELETE FROM review_rules WHERE account_id = $1 AND repo_id = $2 AND id = $3`)

	precisionOf = db.Q[struct {
		State string
		Ruled bool
		N     int64
	}](`SELECT state, ruled, COUNT(*) AS n FROM review_findings WHERE account_id = $1 AND repo_id = $2
		AND state IN ('posted', 'answered', 'fixed', 'dismissed', 'stale') GROUP BY state, ruled`)
)

// ruleAtArgs are the parameters of ruleAt.
type ruleAtArgs struct{ AccountID, RepoID, Kind, Symbol, Anchor string }

// ruleArgs are the parameters of insertRule.
type ruleArgs struct {
	ID, AccountID, RepoID, Kind, Symbol, Anchor, Claim, Reason, CreatedBy string
	CreatedAt                                                             time.Time
}

// OpenOf answers the findings of a pull request of tx.Account that wait for an answer.
func OpenOf(tx *db.Tx, prID string) ([]Open, error) { return openOf.All(tx, tx.Account, prID) }

// runsOfPull reads a page of the runs of a pull request, newest first.
func runsOfPull(tx *db.Tx, prID string, p op.PageIn) ([]Run, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(`SELECT `+runColumns+` WHERE account_id = `, tx.Account).And("pr_id = ", prID)
	if more {
		b.And("(created_at, id) < ", db.Tuple(at, last))
	}
	return db.Select[Run](tx, b.SQL(" ORDER BY created_at DESC, id DESC LIMIT ", p.Size()))
}

var runsOfRepo = db.Q[Run](`SELECT ` + runColumns + ` WHERE account_id = $1 AND repo_id = $2
	ORDER BY created_at DESC, COALESCE(task_id, '') DESC, id DESC LIMIT $3`)

// findingsOf reads a page of the findings of a pull request that people may see, newest
// first.
func findingsOf(tx *db.Tx, prID string, p op.PageIn) ([]Finding, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(`SELECT `+findingColumns+` WHERE account_id = `, tx.Account).And("pr_id = ", prID).
		SQL(" AND state IN ('posted', 'answered', 'fixed', 'dismissed', 'stale')")
	if s := p.Want("state"); s != "" {
		b.Is("state", s)
	}
	if more {
		b.And("(created_at, id) < ", db.Tuple(at, last))
	}
	return db.Select[Finding](tx, b.SQL(" ORDER BY created_at DESC, id DESC LIMIT ", p.Size()))
}

type ruleRow struct {
	ID, Kind, Symbol, Claim, Reason, CreatedBy string
	CreatedAt                                  time.Time
}

// listRules reads a page of the rules of a repository, newest first.
func listRules(tx *db.Tx, repoID string, p op.PageIn) ([]ruleRow, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(`SELECT id, kind, symbol, claim, reason, created_by, created_at FROM review_rules WHERE account_id = `, tx.Account).
		And("repo_id = ", repoID)
	if more {
		b.And("(created_at, id) < ", db.Tuple(at, last))
	}
	return db.Select[ruleRow](tx, b.SQL(" ORDER BY created_at DESC, id DESC LIMIT ", p.Size()))
}
