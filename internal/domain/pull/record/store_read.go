package record

import (
	"strconv"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
)

// Needy lists the pull requests among prIDs that wait for a person.
func Needy(tx *db.Tx, prIDs []string) ([]needRow, error) {
	return db.Select[needRow](tx, db.Build(`SELECT p.id, r.owner, r.name, p.needs, p.needs_at, p.head_sha, COALESCE(a.id, '') AS question, p.findings
		FROM pulls p JOIN repos r ON r.id = p.repo_id LEFT JOIN pull_actions a ON a.pr_id = p.id AND a.kind = 'merge' AND a.state = 'pending' WHERE p.needs <> '' AND p.account_id = `,
		tx.Account).In("p.id", prIDs))
}

// Lock reads a pull request of tx.Account and keeps other transactions from changing it.
// Lock takes the task of the pull request first, since that nearly always moves with it:
// transactions that begin with a task take the two in the same order.
func Lock(tx *db.Tx, prID string) (*Pull, bool, error) {
	pr := &Pull{ID: prID}
	taskID, ok, err := TaskOf.Maybe(tx, tx.Account, prID)
	if err != nil || !ok {
		return pr, false, err
	}
	if taskID != nil {
		if _, _, err := LockTask.Maybe(tx, tx.Account, *taskID); err != nil {
			return pr, false, err
		}
	}
	if _, ok, err := lockPull.Maybe(tx, tx.Account, prID); err != nil || !ok {
		return pr, false, err
	}
	return Read(tx, prID)
}

// Read reads a pull request of tx.Account.
func Read(tx *db.Tx, prID string) (*Pull, bool, error) {
	pr, ok, err := ByID.Maybe(tx, tx.Account, prID)
	return &pr, ok, err
}

// LockByHead is Lock for the open pull request of a branch.
func LockByHead(tx *db.Tx, repoID, branch string) (*Pull, bool, error) {
	open, ok, err := openByHead.Maybe(tx, tx.Account, repoID, branch)
	if err != nil || !ok {
		return &open, false, err
	}
	pr, ok, err := Lock(tx, open.ID)
	return pr, ok && pr.State == Open, err
}

// named adds the filters that name pull requests.
func named(tx *db.Tx, b *db.Builder, repoID string, p op.PageIn) error {
	part, err := p.Part()
	if err != nil {
		return err
	}
	if err := db.Named(tx, b, "p.id", `SELECT id FROM pulls WHERE account_id`, part); err != nil {
		return err
	}
	if branch := p.Want("branch"); branch != "" {
		b.And("p.head_ref = ", branch)
	}
	if text := p.Want("number"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err != nil || n < 1:
			return fault.Field("filter", "number is a whole number from 1")
		case repoID == "":
			return fault.Field("filter", "number goes with repo:OWNER/NAME")
		}
		b.And("p.number = ", n)
	}
	return nil
}

// List reads a page of the pull requests of a repository, or of tx.Account if repoID is
// empty.
func List(tx *db.Tx, repoID string, p op.PageIn) ([]Pull, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(`SELECT `+columns+from, tx.Account)
	if repoID != "" {
		b.And("p.repo_id = ", repoID)
	}
	if err := named(tx, b, repoID, p); err != nil {
		return nil, err
	}
	if s := p.Want("state"); s != "" {
		b.Is("p.state", s)
	}
	if p.Want("waits") != "" {
		b.Is("p.state", Open).And("p.needs <> ", "")
	}
	if p.Want("merged") != "" {
		b.And("p.merged_at >= ", tx.Now.Add(-24*time.Hour))
	}
	if p.Q != "" {
		b.Contains("p.title", p.Q)
	}
	if more {
		b.OlderThan("p.created_at", "p.id", at, last)
	}
	return db.Select[Pull](tx, b.Newest("p.created_at", "p.id", p.Size()))
}

// PendingOf finds the open actions of pull requests, by id of the pull request.
func PendingOf(tx *db.Tx, prIDs []string) (map[string]Action, error) {
	rows, err := db.Select[Action](tx,
		db.Build(`SELECT `+ActionColumns+` FROM pull_actions WHERE state IN ('pending', 'approved')`).In("pr_id", prIDs))
	if err != nil {
		return nil, err
	}
	m := make(map[string]Action, len(rows))
	for _, a := range rows {
		if before, ok := m[a.PRID]; !ok || shownFirst(a.Kind) > shownFirst(before.Kind) {
			m[a.PRID] = a
		}
	}
	return m, nil
}

// shownFirst orders the open actions of a pull request, of which one is shown with it: what
// keeps a round waiting comes before the merge, and both before the rest.
func shownFirst(kind string) int {
	switch kind {
	case KindPush:
		return 2
	case KindMerge:
		return 1
	}
	return 0
}

// ApprovalRow is an action with what a list shows of its pull request.
type ApprovalRow struct {
	Action
	Owner  string
	Name   string
	Number int64
	Title  string
	URL    string `db:"url"`
	Checks string
	TaskID *string // of the pull request
	verdict
	Sizes
}

// verdict is how far the review of a head has come, and the findings that hold it.
type verdict struct {
	Review   string
	Findings int64
}

// factMark tells how often the facts of a pull request were read.
type factMark struct {
	ID        string
	FactsHave int64
}

// questionMark is what a question says of its pull request, which changes without an
// event of the question.
type questionMark struct {
	factMark
	Checks string
	verdict
}

var (
	// FactMarks are how often the facts of each open pull request of an account were read.
	FactMarks = db.Q[factMark](`SELECT id, facts_have FROM pulls WHERE account_id = $1 AND state = 'open'`)
	// QuestionMarks are what each question of an account that waits says of its pull request.
	QuestionMarks = db.Q[questionMark](`SELECT a.id, p.facts_have, p.checks, p.review, p.findings FROM pull_actions a JOIN pulls p ON p.id = a.pr_id
		WHERE a.account_id = $1 AND a.state = 'pending'`)
)

const questions = `SELECT a.id, a.pr_id, a.kind, a.head_sha, a.state, a.error, a.decided_by, a.requested_at, a.decided_at, a.expires_at,
	a.called, a.retry_at, a.protected, a.carried_from, a.details, a.stale_why, a.begins_at,
	r.owner, r.name, p.number, p.title, p.url, p.checks, p.review, p.findings, p.changed_files, p.added_lines, p.deleted_lines, p.unwanted,
	p.left_out, p.task_id
	FROM pull_actions a JOIN pulls p ON p.id = a.pr_id JOIN repos r ON r.id = p.repo_id
	WHERE a.state = 'pending' AND a.account_id = `

// Approvals lists a page of the actions of tx.Account that wait for an answer, the newest first.
func Approvals(tx *db.Tx, p op.PageIn) ([]ApprovalRow, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(questions, tx.Account)
	if more {
		b.OlderThan("a.requested_at", "a.id", at, last)
	}
	return db.Select[ApprovalRow](tx, b.Newest("a.requested_at", "a.id", p.Size()))
}

// Newest lists the newest pull requests of tx.Account, or of those in ids if it is not nil.
func Newest(tx *db.Tx, ids []string, limit int) ([]Pull, error) {
	b := db.Build(`SELECT `+columns+from, tx.Account)
	if ids != nil {
		b.In("p.id", ids).Few()
	}
	return db.Select[Pull](tx, b.Newest("p.created_at", "p.id", limit))
}

// OpenQuestions lists the newest actions of tx.Account that wait for an answer, or of those in ids if it is not nil.
func OpenQuestions(tx *db.Tx, ids []string, limit int) ([]ApprovalRow, error) {
	b := db.Build(questions, tx.Account)
	if ids != nil {
		b.In("a.id", ids).Few()
	}
	return db.Select[ApprovalRow](tx, b.Newest("a.requested_at", "a.id", limit))
}

// Attended tells whether a pull request is of an agent, or was repaired for a person.
var Attended = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM pulls WHERE account_id = $1 AND id = $2 AND (author_kind = 'agent' OR armed_at IS NOT NULL))`)

// waitRow is a pull request whose merge waits for a limit, or whose round for the queue.
type waitRow struct {
	PRID      string     `db:"pr_id"`
	SeatSince *time.Time // the queue has no room; nil: it has
	Since     *time.Time // of the merge
	RetryAt   *time.Time
}

// Waiting lists the pull requests of tx.Account whose merge waits for a limit of their host to
// end, or whose round waits for room in the queue of the account.
func Waiting(tx *db.Tx, prIDs []string) ([]waitRow, error) {
	b := db.Build(`SELECT p.id AS pr_id, p.seat_since, COALESCE(a.decided_at, a.requested_at) AS since, a.retry_at FROM pulls p
		LEFT JOIN pull_actions a ON a.pr_id = p.id AND a.state = 'approved' AND a.error = `, Limited).SQL(`
		WHERE p.account_id = `, tx.Account).SQL(` AND p.state = 'open' AND (a.id IS NOT NULL OR p.seat_since IS NOT NULL)`)
	return db.Select[waitRow](tx, b.In("p.id", prIDs))
}

// OfPeople lists the open pull requests of a repository that no agent has opened.
var OfPeople = db.Q[string](`SELECT id FROM pulls WHERE account_id = $1 AND repo_id = $2 AND state = 'open' AND author_kind <> 'agent' ORDER BY id`)
