package pull

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/protocol"
)

type row struct {
	ID         string
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

	sizeRow
}

// sizeRow is how much a pull request changes; nil: nobody has looked.
type sizeRow struct {
	ChangedFiles *int64
	AddedLines   *int64
	DeletedLines *int64
	Unwanted     *db.JSON[Unwanted]
	LeftOut      *db.JSON[[]protocol.LeftOut]
}

type actionRow struct {
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

// toMend is why an action failed about a head that has to be repaired first.
const toMend = "to_mend"

// found is a pull request or task that a pass of the loop has work for, and its account.
type found struct{ ID, AccountID string }

func (f found) about() found { return f }

// factsRow is a pull request whose facts are to be read.
type factsRow struct {
	found
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

type unlookedRow struct {
	found
	RepoID   string
	BaseRef  string
	HeadSHA  string `db:"head_sha"`
	StartSHA string `db:"start_sha"`
	Had      db.JSON[[]string]
}

type dueRow struct {
	found
	PRID      string `db:"pr_id"`
	HeadSHA   string `db:"head_sha"`
	Kind      string
	Called    bool
	DecidedBy *string
}

const (
	columns = `p.id, p.repo_id, r.owner, r.name, r.enabled, p.number, p.title, p.url, p.state, p.head_ref, p.base_ref, p.head_sha, p.base_sha,
	p.merge_sha, p.patch_id, p.mergeable, p.checks, p.task_id, p.author_kind, p.created_at, p.merged_at, p.merged_by,
	p.babysit, p.ci_rounds, p.conflict_rounds, p.forgiven, p.armed_at, p.babysit_task, p.attend_at, p.updated_at, p.round_sha, p.needs, p.needs_at, p.abandoned_at,
	p.armed_why, p.checks_hold, p.checks_why, p.told, p.move_at, p.seat_since, p.unreadable,
	p.closed_at, p.closed_by, p.closed_why, p.host_url, p.host_at, p.author, p.draft, p.fork, p.labels, p.own_checks, p.host_checks,
	p.carry, p.review, p.findings, p.review_rounds, p.request_rounds, p.watch, p.round_then, p.round_of, p.round_asked, p.objections, p.remarks,
	p.changed_files, p.added_lines, p.deleted_lines, p.unwanted, p.left_out, p.would, p.had, p.otherwise, ` + startSHA
	from          = ` FROM pulls p JOIN repos r ON r.id = p.repo_id WHERE p.account_id = `
	actionColumns = `id, pr_id, kind, head_sha, state, error, decided_by, requested_at, decided_at, expires_at, called, retry_at, protected, carried_from, details, stale_why, begins_at`
	dueColumns    = `id, account_id, pr_id, head_sha, kind, called, decided_by`
)

var (
	byID       = db.Q[row](`SELECT ` + columns + from + `$1 AND p.id = $2`)
	openByHead = db.Q[row](`SELECT ` + columns + from + `$1 AND p.repo_id = $2 AND p.head_ref = $3 AND p.state = 'open' ORDER BY p.id LIMIT 1`)
	// openOfHead are the pull requests of a branch: a host may have several, with
	// different bases.
	openOfHead = db.Q[string](`SELECT id FROM pulls WHERE account_id = $1 AND repo_id = $2 AND head_ref = $3 AND state = 'open' ORDER BY id`)
	openAtSHA  = db.Q[string](`SELECT id FROM pulls WHERE account_id = $1 AND repo_id = $2 AND head_sha = $3 AND state = 'open' ORDER BY id`)
	unchecked  = db.Q[unchecking](`SELECT id, head_sha FROM pulls WHERE account_id = $1 AND repo_id = $2 AND state = 'open' AND own_checks = '' ORDER BY id`)
	openHeads  = db.Q[struct {
		HeadRef,
		HeadSHA string
	}](`SELECT head_ref, head_sha FROM pulls WHERE account_id = $1 AND repo_id = $2 AND state = 'open'`)
	byIDAnywhere = db.Q[struct {
		State   string
		HeadSHA string `db:"head_sha"`
	}](`SELECT state, head_sha FROM pulls WHERE id = $1`)
	mergedOfTask = db.Q[string](`SELECT id FROM pulls WHERE account_id = $1 AND task_id = $2 AND state = 'merged' LIMIT 1`)
	bodyOf       = db.Q[string](`SELECT body FROM pulls WHERE account_id = $1 AND id = $2`)
	mergedBy     = db.Q[*string](`SELECT merged_by FROM pulls WHERE account_id = $1 AND id = $2`)
	taskOf       = db.Q[*string](`SELECT task_id FROM pulls WHERE account_id = $1 AND id = $2`)
	planOf       = db.Q[*string](`SELECT plan_id FROM tasks WHERE account_id = $1 AND id = $2`)
	lockTask     = db.Q[string](`SELECT id FROM tasks WHERE account_id = $1 AND id = $2`).ForUpdate()
	lockPull     = db.Q[string](`SELECT id FROM pulls WHERE account_id = $1 AND id = $2`).ForUpdate()
	nextNumber   = db.Q[int64](`SELECT COALESCE(MAX(number), 0) + 1 FROM pulls WHERE repo_id = $1`)
	// nextOpening is a number below zero, for a pull request that its host has yet to
	// number.
	nextOpening = db.Q[int64](`SELECT MIN(n) FROM (SELECT COALESCE(MIN(number), 0) - 1 AS n FROM pulls WHERE repo_id = $1
		UNION ALL SELECT -1) AS lowest`)
	byNumber = db.Q[string](`SELECT id FROM pulls WHERE account_id = $1 AND repo_id = $2 AND number = $3`)
	// openingOf tells whether the server is opening a pull request of a branch.
	openingOf  = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM pulls WHERE account_id = $1 AND repo_id = $2 AND head_ref = $3 AND state = 'opening')`)
	recordedOf = db.Q[recorded](`SELECT title, body, state, head_sha, base_ref, draft, labels, host_at FROM pulls WHERE account_id = $1 AND id = $2`)
	setLeftOut = db.S(`UPDATE pulls SET left_out = $2 WHERE id = $1`)
	setOpened  = db.SWith[setNumberArgs](`UPDATE pulls SET state = 'open', number = :number, host_url = :host_url, host_at = :host_at,
		author = :author, facts_want = facts_want + 1, updated_at = :now WHERE id = :id`)
	setNumber = db.SWith[setNumberArgs](`UPDATE pulls SET number = :number, host_url = :host_url, host_at = :host_at, author = :author,
		updated_at = :now WHERE id = :id`)
	setMirror = db.SWith[setMirrorArgs](`UPDATE pulls SET title = :title, body = :body, host_url = :host_url, host_at = :host_at,
		author = :author, draft = :draft, fork = :fork, labels = :labels WHERE id = :id`)
	setBase = db.S(`UPDATE pulls SET base_ref = $2, facts_want = facts_want + 1, looked_sha = '', mergeable = 'unknown', would = NULL, had = '[]',
		updated_at = $3 WHERE id = $1`)
	insert = db.SWith[insertArgs](`INSERT INTO pulls (id, account_id, repo_id, number, title, body, url, state, head_ref,
		base_ref, head_sha, base_sha, task_id, author_kind, created_at, updated_at, babysit, armed_at,
		review, told)
		VALUES (:id, :account_id, :repo_id, :number, :title, :body, :url, :state, :head_ref, :base_ref, :head_sha,
		:base_sha, :task_id, :author_kind, :created_at, :created_at, :babysit,
		CASE WHEN :babysit = 'watching' THEN CAST(:created_at AS BIGINT) END, 'due', 'awaits')`)
	setHead = db.SWith[setHeadArgs](`UPDATE pulls SET head_sha = :head_sha, checks = :checks, mergeable = 'unknown',
		patch_id = '', change = '', merge_base = '', merge_bases = 0, would = NULL,
		changed_files = NULL, added_lines = NULL, deleted_lines = NULL, unwanted = NULL, carry = :carry, review = 'due', looked_sha = '',
		needs = '', needs_at = NULL, told = 'awaits', checks_hold = '', checks_why = '', attend_at = 0, seat_since = NULL, unreadable = FALSE, facts_want = facts_want + 1, updated_at = :updated_at
		WHERE id = :id`)
	setChecks = db.SWith[setChecksArgs](`UPDATE pulls SET checks = :checks, own_checks = :own, host_checks = :host,
		checks_why = :why, updated_at = :now
		WHERE id = :id`)
	// setMerged keeps the head that was merged, although a newer one may have come.
	setMerged = db.SWith[setMergedArgs](`UPDATE pulls SET checks = CASE WHEN head_sha = :head_sha THEN checks ELSE :checks END,
		head_sha = :head_sha,
		state = 'merged', babysit = 'done', mergeable = 'clean', needs = '', needs_at = NULL, merge_sha = :merge_sha,
		merged_by = :merged_by, merged_at = :merged_at, updated_at = :merged_at, otherwise = :otherwise, would = NULL
		WHERE id = :id AND state = 'open'`)
	setClosed = db.SWith[setClosedArgs](`UPDATE pulls SET state = 'closed', babysit = 'off', needs = '', needs_at = NULL,
		closed_why = :closed_why, closed_by = :closed_by, closed_at = :closed_at, updated_at = :closed_at
		WHERE id = :id AND state IN ('open', 'opening')`)
	setReopened = db.S(`UPDATE pulls SET state = 'open', babysit = 'watching', closed_why = '', closed_by = NULL, closed_at = NULL,
		abandoned_at = NULL, pushed_by = $2,
		updated_at = $3 WHERE id = $1 AND state = 'closed'`)
	setAbandoned = db.S(`UPDATE pulls SET abandoned_at = $2, babysit = 'off', needs = '', needs_at = NULL, updated_at = $2 WHERE id = $1`)
	adopt        = db.S(`UPDATE pulls SET abandoned_at = NULL WHERE id = $1`)
	// setRest says what a pull request waits for.
	setRest = db.SWith[restArgs](`UPDATE pulls SET needs_at = CASE WHEN needs = :needs THEN needs_at WHEN :needs = '' THEN NULL ELSE CAST(:now AS BIGINT) END,
		needs = :needs, told = :told, move_at = :move_at,
		seat_since = CASE WHEN :full THEN COALESCE(seat_since, CAST(:now AS BIGINT)) END WHERE id = :id`)
	setHold = db.S(`UPDATE pulls SET checks_hold = $2, checks_why = $3 WHERE id = $1`)
	// toMove are the pull requests that the clock moves on.
	toMove    = db.Q[found](`SELECT id, account_id FROM pulls WHERE move_at > 0 AND move_at <= $1 AND state = 'open' ORDER BY move_at LIMIT 50`)
	moveNow   = db.S(`UPDATE pulls SET move_at = 1 WHERE repo_id = $1 AND state = 'open'`)
	moveAbove = db.S(`UPDATE pulls SET move_at = 1 WHERE state = 'open'
		AND id IN (SELECT p.id FROM pulls p JOIN tasks t ON t.id = p.task_id WHERE t.stacked_on = $1)`)
	// lastDeleted finds the last pull request of a branch, if a push closed it.
	lastDeleted = db.Q[string](`SELECT id FROM pulls p WHERE account_id = $1 AND repo_id = $2 AND head_ref = $3 AND state = 'closed'
		AND closed_why IN ('branch_deleted', 'nothing_left')
		AND NOT EXISTS (SELECT 1 FROM pulls n WHERE n.repo_id = p.repo_id AND n.head_ref = p.head_ref AND n.number > p.number)`)

	baseMoved = db.SWith[baseMovedArgs](`UPDATE pulls SET facts_want = facts_want + 1, pushed_by = :pushed_by
		WHERE account_id = :account_id AND repo_id = :repo_id AND base_ref = :base_ref AND state = 'open'`)
	headMoved = db.S(`UPDATE pulls SET facts_want = facts_want + 1, pushed_by = $2 WHERE id = $1 AND state = 'open'`)
	recheck   = db.S(`UPDATE pulls SET facts_want = facts_want + 1, pushed_by = NULL WHERE repo_id = $1 AND state = 'open'`)
	// lookAgain keeps the author of the last push.
	lookAgain = db.S(`UPDATE pulls SET facts_want = facts_want + 1 WHERE id = $1 AND state = 'open'`)
	factsDue  = db.Q[factsRow](`SELECT id, account_id, repo_id, head_ref, base_ref, head_sha, facts_want, base_sha, pushed_by, carry, unreadable, had,
		` + startSHA + ` FROM pulls p WHERE state = 'open' AND facts_have < facts_want ORDER BY updated_at LIMIT 50`)
	setFacts = db.SWith[setFactsArgs](`UPDATE pulls SET facts_have = :facts_have, unreadable = FALSE,
		base_sha = CASE WHEN :base_sha = '' THEN base_sha ELSE :base_sha END,
		patch_id = CASE WHEN :base_sha = '' THEN patch_id ELSE :patch END,
		change = CASE WHEN :base_sha = '' THEN change ELSE :change END,
		merge_base = CASE WHEN :base_sha = '' THEN merge_base ELSE :merge_base END,
		merge_bases = CASE WHEN :base_sha = '' THEN merge_bases ELSE :merge_bases END,
		changed_files = CASE WHEN :base_sha = '' THEN changed_files ELSE :files END,
		added_lines = CASE WHEN :base_sha = '' THEN added_lines ELSE :added END,
		deleted_lines = CASE WHEN :base_sha = '' THEN deleted_lines ELSE :deleted END,
		unwanted = CASE WHEN :base_sha = '' THEN unwanted ELSE :unwanted END,
		mergeable = CASE WHEN :base_sha = '' THEN mergeable ELSE :mergeable END,
		would = CASE WHEN :base_sha = '' THEN would ELSE :would END, had = CASE WHEN :base_sha = '' THEN had ELSE :had END,
		looked_sha = CASE WHEN :again = '' THEN looked_sha ELSE '' END
		WHERE id = :id`)
	idleTasks = db.Q[found](`SELECT t.account_id, t.id FROM pulls p JOIN tasks t ON t.pr_id = p.id AND t.kind IN ('ci', 'babysit', 'review')
		AND t.status IN ('pending', 'held', 'claimed', 'running')
		WHERE p.state <> 'open' OR p.abandoned_at IS NOT NULL LIMIT 50`)
	setUnreadable = db.S(`UPDATE pulls SET unreadable = TRUE WHERE id = $1`)
	setClean      = db.S(`UPDATE pulls SET mergeable = $2, updated_at = $3 WHERE id = $1`)

	beginRound = db.SWith[beginRoundArgs](`UPDATE pulls SET babysit = :babysit, ci_rounds = :ci_rounds,
		conflict_rounds = :conflict_rounds, review_rounds = :review_rounds,
		request_rounds = :request_rounds, babysit_task = :babysit_task, round_sha = head_sha, round_of = :round_of, round_asked = :asked,
		updated_at = :updated_at
		WHERE id = :id`)
	setBabysit = db.SWith[setBabysitArgs](`UPDATE pulls SET babysit = :babysit, babysit_task = NULL, attend_at = :attend_at,
		round_then = '', round_of = '', round_asked = FALSE, updated_at = :updated_at
		WHERE id = :id`)
	stopRound = db.SWith[stopRoundArgs](`UPDATE pulls SET babysit = 'watching', babysit_task = NULL, attend_at = 0, round_then = '',
		round_of = '', round_asked = FALSE, ci_rounds = :ci_rounds, conflict_rounds = :conflict_rounds, review_rounds = :review_rounds,
		request_rounds = :request_rounds, updated_at = :updated_at WHERE id = :id`)
	rearmPull = db.SWith[rearmPullArgs](`UPDATE pulls SET babysit = :babysit, ci_rounds = 0, conflict_rounds = 0, review_rounds = 0,
		request_rounds = 0, forgiven = :forgiven, armed_at = :armed_at, armed_why = :why, attend_at = 0, updated_at = :armed_at
		WHERE id = :id`)

	insertAction = db.SWith[insertActionArgs](`INSERT INTO pull_actions (id, account_id, pr_id, kind, head_sha, state, decided_by,
		requested_at, decided_at, expires_at, protected, base_ref, change, patch_id, merge_base, merge_bases, details)
		SELECT :id, :account_id, p.id, :kind, :head_sha, :state, :decided_by, :requested_at, :decided_at, :expires_at,
			:protected, p.base_ref, p.change, p.patch_id, p.merge_base, p.merge_bases, :details
		FROM pulls p WHERE p.id = :pr_id
		ON CONFLICT DO NOTHING`)
	openAction = db.Q[actionRow](`SELECT ` + actionColumns + ` FROM pull_actions WHERE pr_id = $1 AND kind = 'merge'
		AND state IN ('pending', 'approved')`)
	decideAction = db.SWith[decideActionArgs](`UPDATE pull_actions SET state = :state, decided_by = :decided_by, decided_at = :decided_at,
		` + notDue + ` WHERE id = :id AND state = 'pending'`)
	setBegins    = db.S(`UPDATE pull_actions SET begins_at = $2 WHERE id = $1`)
	endExpired   = db.S(`UPDATE pull_actions SET state = 'expired', decided_at = $2 WHERE id = $1 AND state = 'pending'`)
	staleActions = db.S(`UPDATE pull_actions SET state = 'stale', decided_at = $2 WHERE pr_id = $1 AND state IN ('pending', 'approved')`)
	// replaced ends an action that another one replaces.
	replaced = db.S(`UPDATE pull_actions SET state = 'stale', decided_at = COALESCE(decided_at, $2)
		WHERE id = $1 AND state IN ('pending', 'approved')`)
	setLooked = db.S(`UPDATE pulls SET looked_sha = $2 WHERE id = $1`)
	// unlooked are passed heads whose merge was not tried yet. The merge of an ordered
	// head is tried when the order is carried out.
	unlooked = db.Q[unlookedRow](`SELECT p.id, p.account_id, p.repo_id, p.base_ref, p.head_sha, p.had, ` + startSHA + `
		FROM pulls p JOIN repos r ON r.id = p.repo_id
		WHERE p.state = 'open' AND p.looked_sha <> p.head_sha AND p.carry = '' AND p.checks IN ('none', 'passed') AND r.enabled = TRUE
			AND p.draft = FALSE AND (p.author_kind = 'agent' OR p.babysit <> 'off')
			AND NOT EXISTS (SELECT 1 FROM pull_actions a WHERE a.pr_id = p.id AND a.kind = 'merge' AND a.state = 'approved')
		ORDER BY p.updated_at LIMIT 50`)
	// withdraw leaves an order alone of which the host was told: it may have merged.
	withdraw = db.S(`UPDATE pull_actions SET state = 'stale', decided_at = $2
		WHERE pr_id = $1 AND state IN ('pending', 'approved') AND called = FALSE`)
	// lapsed are the questions that nobody has answered in time.
	lapsed    = db.Q[dueRow](`SELECT ` + dueColumns + ` FROM pull_actions WHERE state = 'pending' AND expires_at <= $1 ORDER BY expires_at LIMIT 50`)
	setToMend = db.S(`UPDATE pull_actions SET stale_why = 'to_mend' WHERE id = $1`)
	// carriedOut also changes an action that was taken back while the host merged.
	carriedOut = db.S(`UPDATE pull_actions SET state = 'applied', error = NULL WHERE id = $1`)
)

// setBabysitArgs are the parameters of setBabysit.
type setBabysitArgs struct {
	ID, Babysit         string
	UpdatedAt, AttendAt int64
}

// baseMovedArgs are the parameters of baseMoved.
type baseMovedArgs struct {
	AccountID, RepoID, BaseRef string
	PushedBy                   *string
}

// restArgs are the parameters of setRest.
type restArgs struct {
	ID, Needs, Told string
	MoveAt, Now     int64
	Full            bool // the queue of the account is
}

// stopRoundArgs are the parameters of stopRound.
type stopRoundArgs struct {
	ID                       string
	CIRounds, ConflictRounds int64
	ReviewRounds             int64
	RequestRounds, UpdatedAt int64
}

// setMergedArgs are the parameters of setMerged.
type setMergedArgs struct {
	ID, MergeSHA string
	MergedBy     *string
	MergedAt     int64
	HeadSHA      string
	Checks       string // result for HeadSHA, for a row with another head
	Otherwise    string
}

// decideActionArgs are the parameters of decideAction.
type decideActionArgs struct {
	ID, State, DecidedBy string
	DecidedAt            int64
}

// insertActionArgs are the parameters of insertAction.
type insertActionArgs struct {
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

// rearmPullArgs are the parameters of rearmPull.
type rearmPullArgs struct {
	ID, Babysit, Why  string
	Forgiven, ArmedAt int64
}

// beginRoundArgs are the parameters of beginRound.
type beginRoundArgs struct {
	ID, Babysit              string
	CIRounds, ConflictRounds int64
	ReviewRounds             int64
	RequestRounds            int64
	BabysitTask, RoundOf     string
	Asked                    bool // by a person
	UpdatedAt                int64
}

// setFactsArgs are the parameters of setFacts.
type setFactsArgs struct {
	ID                        string
	FactsHave                 int64
	BaseSHA, Patch, Mergeable string
	Change, MergeBase         string
	MergeBases                int64
	Files, Added, Deleted     int64
	Unwanted                  *db.JSON[Unwanted]
	Would                     *db.JSON[Would]
	Had                       db.JSON[[]string]
	Again                     string // not "": the merge is to be looked at again
}

// setClosedArgs are the parameters of setClosed.
type setClosedArgs struct {
	ID, ClosedWhy, ClosedBy string
	ClosedAt                int64
}

// setHeadArgs are the parameters of setHead.
type setHeadArgs struct {
	ID, HeadSHA, Checks, Carry string
	UpdatedAt                  int64
}

// insertArgs are the parameters of insert.
type insertArgs struct {
	ID, AccountID, RepoID                                                            string
	Number                                                                           int64
	Title, Body, URL, State, HeadRef, BaseRef, HeadSHA, BaseSHA, AuthorKind, Babysit string
	TaskID                                                                           *string
	CreatedAt                                                                        int64
}

// setChecksArgs are the parameters of setChecks.
type setChecksArgs struct {
	ID, Checks, Own, Host, Why string
	Now                        int64
}

// setNumberArgs are the parameters of setOpened and setNumber.
type setNumberArgs struct {
	ID, HostURL, Author string
	Number, HostAt, Now int64
}

// setMirrorArgs are the parameters of setMirror.
type setMirrorArgs struct {
	ID, Title, Body, HostURL, Author string
	HostAt                           int64
	Draft, Fork                      bool
	Labels                           db.JSON[[]string]
}
