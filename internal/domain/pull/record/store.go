package record

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/protocol"
)

// unchecking is an open pull request whose head has no check of the repository's own.
type unchecking struct{ ID, HeadSHA string }

// Pull is the row of a pull request, with the names of its repository.
type Pull struct {
	ID         string
	Version    int64 // how often the row was written; see write
	RepoID     string
	Owner      string
	Name       string
	Number     int64
	Title      string
	URL        string `db:"url"`
	State      string
	HeadRef    string
	BaseRef    string
	HeadSHA    string  `db:"head_sha"`
	BaseSHA    string  `db:"base_sha"`
	MergeSHA   *string `db:"merge_sha"`
	PatchID    string
	Mergeable  string
	Checks     string
	TaskID     *string
	AuthorKind string
	CreatedAt  time.Time
	MergedAt   *time.Time
	MergedBy   *string

	Babysit        string
	CIRounds       int64 `db:"ci_rounds"`
	ConflictRounds int64
	Forgiven       int64
	ArmedAt        *time.Time
	BabysitTask    *string
	Enabled        bool  // whether the repository is enabled
	AttendAt       int64 // time from which the next round may begin, in microseconds; 0: at once
	UpdatedAt      time.Time
	RoundSHA       string `db:"round_sha"`

	Needs       string
	NeedsAt     *time.Time
	ArmedWhy    string     // why a person had it repaired again, in their words; ""
	ChecksHold  string     // why the checks wait for a person: a reason of Need; ""
	ChecksWhy   string     // what has failed, or waits, of the checks, for people
	Told        string     // what its task was told last
	SeatSince   *time.Time // since when the queue of the account has no room for the round that is due; nil: it has, or none is due
	Unreadable  bool       // the host refused to have the branches read
	MoveAt      int64      // when the clock moves it on, in microseconds; 0: it does not
	FactsWant   int64      // how often git is to be asked about it
	FactsHave   int64      // how often it was
	LookedSHA   string     `db:"looked_sha"` // head whose merge was tried; ""
	PushedBy    *string    // label of who has moved its branches last; nil: nobody knows
	Change      string     // see codehost.Comparison, of the present head
	MergeBase   string
	MergeBases  int64
	AbandonedAt *time.Time
	ClosedAt    *time.Time
	ClosedBy    *string
	ClosedWhy   string
	Carry       string // carryLook, or the id of the action that the head takes over

	HostURL    string
	HostAt     int64 // when the host changed it last, in microseconds; 0: the host keeps no pull requests
	Author     string
	Draft      bool
	Fork       bool
	Labels     db.JSON[[]string]
	OwnChecks  string // result of the repository's own check; "": there is none
	HostChecks string // result of the checks at the host; "": there are none

	Review       string
	Findings     int64 // that hold the merge
	ReviewRounds int64

	RequestRounds int64 // that answered requests for changes

	Watch      string // WatchOn, WatchOff, or "": as the policy says
	RoundThen  string // BabysitOff: the watch ends with the round
	RoundOf    string // the kind of moves that the round is of; "": none goes on
	RoundAsked bool   // a person has asked for the round
	Objections int64  // people whose last word requests changes, at the host or here
	Remarks    int64  // those of them that no round has answered

	Would     *db.JSON[Would]
	Had       db.JSON[[]string] // commits that the base was at
	Otherwise string            // in what the base differs after the merge from the one that was tried; ""
	StartSHA  string            `db:"start_sha"` // see startSHA

	Sizes
}

// Sizes is how much a pull request changes; nil: nobody has looked.
type Sizes struct {
	ChangedFiles *int64
	AddedLines   *int64
	DeletedLines *int64
	Unwanted     *db.JSON[Unwanted]
	LeftOut      *db.JSON[[]protocol.LeftOut]
}

// Action is the row of a merge, a push or a change of settings that somebody is asked about or has ordered.
type Action struct {
	ID          string
	PRID        string `db:"pr_id"`
	Kind        string
	HeadSHA     string `db:"head_sha"`
	State       string
	Error       *string
	DecidedBy   *string
	RequestedAt time.Time
	DecidedAt   *time.Time
	ExpiresAt   time.Time
	Called      bool       // the host was told to, and has not answered
	RetryAt     *time.Time // of one that failed: when it is tried again
	Protected   *db.JSON[Protected]
	CarriedFrom *string
	Details     db.JSON[Details]
	StaleWhy    string // why it ended that is stale, or failed: head_moved, withdrawn, toMend
	BeginsAt    *time.Time
}

// ToMend is why an action failed about a head that has to be repaired first.
const ToMend = "to_mend"

// Found is a pull request or task that a pass of the loop has work for, and its account.
type Found struct{ ID, AccountID string }

// About is which pull request or task it is.
func (f Found) About() Found { return f }

// FactsRow is a pull request whose facts are to be read.
type FactsRow struct {
	Found
	RepoID     string
	HeadRef    string
	BaseRef    string
	HeadSHA    string `db:"head_sha"`
	FactsWant  int64
	BaseSHA    string `db:"base_sha"` // commit of the base at the last look
	PushedBy   *string
	Carry      string
	Unreadable bool
	StartSHA   string `db:"start_sha"`
	Had        db.JSON[[]string]
}

// UnlookedRow is a pull request whose head passed, and whose merge is to be tried.
type UnlookedRow struct {
	Found
	RepoID   string
	BaseRef  string
	HeadSHA  string `db:"head_sha"`
	StartSHA string `db:"start_sha"`
	Had      db.JSON[[]string]
}

// DueRow is an action that something is to be done about, and its account.
type DueRow struct {
	Found
	PRID      string `db:"pr_id"`
	HeadSHA   string `db:"head_sha"`
	Kind      string
	Called    bool
	DecidedBy *string
}

const (
	columns = `p.id, p.version, p.repo_id, r.owner, r.name, r.enabled, p.number, p.title, p.url, p.state, p.head_ref, p.base_ref, p.head_sha, p.base_sha,
	p.merge_sha, p.patch_id, p.mergeable, p.checks, p.task_id, p.author_kind, p.created_at, p.merged_at, p.merged_by,
	p.babysit, p.ci_rounds, p.conflict_rounds, p.forgiven, p.armed_at, p.babysit_task, p.attend_at, p.updated_at, p.round_sha, p.needs, p.needs_at, p.abandoned_at,
	p.armed_why, p.checks_hold, p.checks_why, p.told, p.move_at, p.seat_since, p.unreadable,
	p.facts_want, p.facts_have, p.looked_sha, p.pushed_by, p.change, p.merge_base, p.merge_bases,
	p.closed_at, p.closed_by, p.closed_why, p.host_url, p.host_at, p.author, p.draft, p.fork, p.labels, p.own_checks, p.host_checks,
	p.carry, p.review, p.findings, p.review_rounds, p.request_rounds, p.watch, p.round_then, p.round_of, p.round_asked, p.objections, p.remarks,
	p.changed_files, p.added_lines, p.deleted_lines, p.unwanted, p.left_out, p.would, p.had, p.otherwise, ` + startSHA
	from = ` FROM pulls p JOIN repos r ON r.id = p.repo_id WHERE p.account_id = `
	// ActionColumns are those of Action.
	ActionColumns = `id, pr_id, kind, head_sha, state, error, decided_by, requested_at, decided_at, expires_at, called, retry_at, protected, carried_from, details, stale_why, begins_at`
	dueColumns    = `id, account_id, pr_id, head_sha, kind, called, decided_by`
)

var (
	// ByID reads a pull request.
	ByID       = db.Q[Pull](`SELECT ` + columns + from + `$1 AND p.id = $2`)
	openByHead = db.Q[Pull](`SELECT ` + columns + from + `$1 AND p.repo_id = $2 AND p.head_ref = $3 AND p.state = 'open' ORDER BY p.id LIMIT 1`)
	// OpenOfHead are the pull requests of a branch: a host may have several, with
	// different bases.
	OpenOfHead = db.Q[string](`SELECT id FROM pulls WHERE account_id = $1 AND repo_id = $2 AND head_ref = $3 AND state = 'open' ORDER BY id`)
	// OpenAtSHA are the open pull requests of a repository with a head.
	OpenAtSHA = db.Q[string](`SELECT id FROM pulls WHERE account_id = $1 AND repo_id = $2 AND head_sha = $3 AND state = 'open' ORDER BY id`)
	// Unchecked are the open pull requests of a repository whose heads have no check of its own.
	Unchecked = db.Q[unchecking](`SELECT id, head_sha FROM pulls WHERE account_id = $1 AND repo_id = $2 AND state = 'open' AND own_checks = '' ORDER BY id`)
	// OpenHeads are the branches and heads of the open pull requests of a repository.
	OpenHeads = db.Q[struct {
		HeadRef,
		HeadSHA string
	}](`SELECT head_ref, head_sha FROM pulls WHERE account_id = $1 AND repo_id = $2 AND state = 'open'`)
	// ByIDAnywhere reads the state and head of a pull request, of whatever account.
	ByIDAnywhere = db.Q[struct {
		State   string
		HeadSHA string `db:"head_sha"`
	}](`SELECT state, head_sha FROM pulls WHERE id = $1`)
	// MergedOfTask finds a merged pull request of a task.
	MergedOfTask = db.Q[string](`SELECT id FROM pulls WHERE account_id = $1 AND task_id = $2 AND state = 'merged' LIMIT 1`)
	// BodyOf reads the description of a pull request.
	BodyOf = db.Q[string](`SELECT body FROM pulls WHERE account_id = $1 AND id = $2`)
	// MergedBy reads the label of who has merged a pull request.
	MergedBy = db.Q[*string](`SELECT merged_by FROM pulls WHERE account_id = $1 AND id = $2`)
	// TaskOf reads the id of the task of a pull request.
	TaskOf = db.Q[*string](`SELECT task_id FROM pulls WHERE account_id = $1 AND id = $2`)
	// PlanOf reads the id of the plan of a task.
	PlanOf = db.Q[*string](`SELECT plan_id FROM tasks WHERE account_id = $1 AND id = $2`)
	// LockTask keeps other transactions from changing a task.
	LockTask = db.Q[string](`SELECT id FROM tasks WHERE account_id = $1 AND id = $2`).ForUpdate()
	lockPull = db.Q[string](`SELECT id FROM pulls WHERE account_id = $1 AND id = $2`).ForUpdate()
	// NextNumber is the number after the highest of a repository.
	NextNumber = db.Q[int64](`SELECT COALESCE(MAX(number), 0) + 1 FROM pulls WHERE repo_id = $1`)
	// NextOpening is a number below zero, for a pull request that its host has yet to
	// number.
	NextOpening = db.Q[int64](`SELECT MIN(n) FROM (SELECT COALESCE(MIN(number), 0) - 1 AS n FROM pulls WHERE repo_id = $1
		UNION ALL SELECT -1) AS lowest`)
	// ByNumber finds a pull request of a repository by its number.
	ByNumber = db.Q[string](`SELECT id FROM pulls WHERE account_id = $1 AND repo_id = $2 AND number = $3`)
	// OpeningOf tells whether the server is opening a pull request of a branch.
	OpeningOf = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM pulls WHERE account_id = $1 AND repo_id = $2 AND head_ref = $3 AND state = 'opening')`)
	// RecordedOf reads what is recorded of a pull request that its host keeps.
	RecordedOf = db.Q[Recorded](`SELECT title, body, state, head_sha, base_ref, draft, labels, host_at FROM pulls WHERE account_id = $1 AND id = $2`)
	// Insert adds a pull request.
	Insert = db.SWith[InsertArgs](`INSERT INTO pulls (id, account_id, repo_id, number, title, body, url, state, head_ref,
		base_ref, head_sha, base_sha, task_id, author_kind, created_at, updated_at, babysit, armed_at,
		review, told)
		VALUES (:id, :account_id, :repo_id, :number, :title, :body, :url, :state, :head_ref, :base_ref, :head_sha,
		:base_sha, :task_id, :author_kind, :created_at, :created_at, :babysit,
		CASE WHEN :babysit = 'watching' THEN CAST(:created_at AS BIGINT) END, 'due', 'awaits')`)
	// ToMove are the pull requests that the clock moves on.
	ToMove = db.Q[Found](`SELECT id, account_id FROM pulls WHERE move_at > 0 AND move_at <= $1 AND state = 'open' ORDER BY move_at LIMIT 50`)
	// LastDeleted finds the last pull request of a branch, if a push closed it.
	LastDeleted = db.Q[string](`SELECT id FROM pulls p WHERE account_id = $1 AND repo_id = $2 AND head_ref = $3 AND state = 'closed'
		AND closed_why IN ('branch_deleted', 'nothing_left')
		AND NOT EXISTS (SELECT 1 FROM pulls n WHERE n.repo_id = p.repo_id AND n.head_ref = p.head_ref AND n.number > p.number)`)

	// FactsDue are the open pull requests about which git is to be asked.
	FactsDue = db.Q[FactsRow](`SELECT id, account_id, repo_id, head_ref, base_ref, head_sha, facts_want, base_sha, pushed_by, carry, unreadable, had,
		` + startSHA + ` FROM pulls p WHERE state = 'open' AND facts_have < facts_want ORDER BY updated_at LIMIT 50`)
	// IdleTasks are the steps that go on about pull requests that are over, or that were given up.
	IdleTasks = db.Q[Found](`SELECT t.account_id, t.id FROM pulls p JOIN tasks t ON t.pr_id = p.id AND t.kind IN ('ci', 'babysit', 'review')
		AND t.status IN ('pending', 'held', 'claimed', 'running')
		WHERE p.state <> 'open' OR p.abandoned_at IS NOT NULL LIMIT 50`)

	// InsertAction adds an action, with what the pull request changes now. It changes no row if there is one of the kind that is open.
	InsertAction = db.SWith[InsertActionArgs](`INSERT INTO pull_actions (id, account_id, pr_id, kind, head_sha, state, decided_by,
		requested_at, decided_at, expires_at, protected, base_ref, change, patch_id, merge_base, merge_bases, details)
		SELECT :id, :account_id, p.id, :kind, :head_sha, :state, :decided_by, :requested_at, :decided_at, :expires_at,
			:protected, p.base_ref, p.change, p.patch_id, p.merge_base, p.merge_bases, :details
		FROM pulls p WHERE p.id = :pr_id
		ON CONFLICT DO NOTHING`)
	// OpenAction finds the merge of a pull request that waits for its answer or for the host.
	OpenAction = db.Q[Action](`SELECT ` + ActionColumns + ` FROM pull_actions WHERE pr_id = $1 AND kind = 'merge'
		AND state IN ('pending', 'approved')`)
	// DecideAction answers an action that waits for it.
	DecideAction = db.SWith[DecideActionArgs](`UPDATE pull_actions SET state = :state, decided_by = :decided_by, decided_at = :decided_at,
		` + notDue + ` WHERE id = :id AND state = 'pending'`)
	// SetBegins notes when an ordered merge begins.
	SetBegins = db.S(`UPDATE pull_actions SET begins_at = $2 WHERE id = $1`)
	// EndExpired ends an action that nobody has answered in time.
	EndExpired = db.S(`UPDATE pull_actions SET state = 'expired', decided_at = $2 WHERE id = $1 AND state = 'pending'`)
	// StaleActions ends the actions of a pull request that are open.
	StaleActions = db.S(`UPDATE pull_actions SET state = 'stale', decided_at = $2 WHERE pr_id = $1 AND state IN ('pending', 'approved')`)
	// Replaced ends an action that another one replaces.
	Replaced = db.S(`UPDATE pull_actions SET state = 'stale', decided_at = COALESCE(decided_at, $2)
		WHERE id = $1 AND state IN ('pending', 'approved')`)
	// Unlooked are passed heads whose merge was not tried yet. The merge of an ordered
	// head is tried when the order is carried out.
	Unlooked = db.Q[UnlookedRow](`SELECT p.id, p.account_id, p.repo_id, p.base_ref, p.head_sha, p.had, ` + startSHA + `
		FROM pulls p JOIN repos r ON r.id = p.repo_id
		WHERE p.state = 'open' AND p.looked_sha <> p.head_sha AND p.carry = '' AND p.checks IN ('none', 'passed') AND r.enabled = TRUE
			AND p.draft = FALSE AND (p.author_kind = 'agent' OR p.babysit <> 'off')
			AND NOT EXISTS (SELECT 1 FROM pull_actions a WHERE a.pr_id = p.id AND a.kind = 'merge' AND a.state = 'approved')
		ORDER BY p.updated_at LIMIT 50`)
	// Withdraw leaves an order alone of which the host was told: it may have merged.
	Withdraw = db.S(`UPDATE pull_actions SET state = 'stale', decided_at = $2
		WHERE pr_id = $1 AND state IN ('pending', 'approved') AND called = FALSE`)
	// Lapsed are the questions that nobody has answered in time.
	Lapsed = db.Q[DueRow](`SELECT ` + dueColumns + ` FROM pull_actions WHERE state = 'pending' AND expires_at <= $1 ORDER BY expires_at LIMIT 50`)
	// SetToMend notes that an action failed about a head that has to be repaired first.
	SetToMend = db.S(`UPDATE pull_actions SET stale_why = 'to_mend' WHERE id = $1`)
	// CarriedOut also changes an action that was taken back while the host merged.
	CarriedOut = db.S(`UPDATE pull_actions SET state = 'applied', error = NULL WHERE id = $1`)
)

// DecideActionArgs are the parameters of DecideAction.
type DecideActionArgs struct {
	ID, State, DecidedBy string
	DecidedAt            int64
}

// InsertActionArgs are the parameters of InsertAction.
type InsertActionArgs struct {
	ID, AccountID        string
	PRID                 string `db:"pr_id"`
	Kind, HeadSHA, State string
	DecidedBy            *string
	RequestedAt          int64
	DecidedAt            *time.Time
	ExpiresAt            int64
	Protected            *db.JSON[Protected]
	Details              db.JSON[Details]
}

// InsertArgs are the parameters of Insert.
type InsertArgs struct {
	ID, AccountID, RepoID                                                            string
	Number                                                                           int64
	Title, Body, URL, State, HeadRef, BaseRef, HeadSHA, BaseSHA, AuthorKind, Babysit string
	TaskID                                                                           *string
	CreatedAt                                                                        int64
}
