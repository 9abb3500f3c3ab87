package ask

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
)

type row struct {
	ID               string
	AccountID        string
	RepoID           *string
	Reach            db.JSON[[]string]
	Title            string
	Body             string
	Source           string
	Labels           db.JSON[map[string]string]
	DedupeKey        *string
	State            State
	Verdict          *db.JSON[Verdict]
	EscalationReason *string
	FiledBy          string
	FilerID          *string
	RequestedBy      *string
	Scopes           db.JSON[[]string]
	RunID            *string
	Depth            int64
	SessionID        *string
	Count            int64
	LastSeenAt       *time.Time
	CreatedAt        time.Time
	TriagedAt        *time.Time
	Strangers        bool    // it has text of people or systems who may not write to the repository
	ApprovedBy       *string // the person who let it into triage, by whose rights it is judged since
	BudgetMicros     *int64  // the limit of the task whose run asks, which its asks share; nil: none
	FromTask         *string // that task; nil: no run has filed it
	IssueID          *string // the issue of the code host that follows it
	IssueURL         *string `db:"issue_url"` // its address there
	Repo             *string
}

const columns = `a.id, a.account_id, a.repo_id, a.reach, a.title, a.body, a.source, a.labels, a.dedupe_key, a.state, a.verdict,
	a.escalation_reason,
	a.filed_by, a.filer_id, a.requested_by, a.scopes, a.run_id, a.depth, a.session_id, a.count, a.last_seen_at,
	a.created_at, a.triaged_at, a.strangers, a.approved_by, a.budget_micros, a.from_task,
	a.issue_id, a.issue_url,
	r.owner || '/' || r.name AS repo
	FROM asks a LEFT JOIN repos r ON r.id = a.repo_id`

// Repo is a repository as the check of a verdict needs it.
type Repo struct {
	ID, Owner, Name string
	Enabled         bool
}

// FullName returns owner/name.
func (r Repo) FullName() string { return r.Owner + "/" + r.Name }

var (
	byID        = db.Q[row](`SELECT ` + columns + ` WHERE a.account_id = $1 AND a.id = $2`)
	lockID      = db.Q[string](`SELECT id FROM asks WHERE account_id = $1 AND id = $2`).ForUpdate()
	strangersOf = db.Q[bool](`SELECT strangers FROM asks WHERE account_id = $1 AND id = $2`)
	byDedupe    = db.Q[row](`SELECT ` + columns + ` WHERE a.account_id = $1 AND a.dedupe = $2`)
	insert      = db.SWith[insertArgs](`INSERT INTO asks (id, account_id, repo_id, reach, title, body, source, labels, dedupe_key,
		dedupe, state, filed_by, filer_id, scopes, run_id, depth, created_at, requested_by,
		strangers, budget_micros, from_task, issue_id, issue_url)
		VALUES (:id, :account_id, :repo_id, :reach, :title, :body, :source, :labels, :dedupe_key, :dedupe, :state,
		:filed_by, :filer_id, :scopes, :run_id, :depth, :created_at, :requested_by, :strangers, :budget_micros,
		:from_task, :issue_id, :issue_url)
		ON CONFLICT (account_id, dedupe) DO NOTHING`)
	// seenAgain counts one more time that an ask was asked for.
	seenAgain  = db.S(`UPDATE asks SET count = count + 1, last_seen_at = $3 WHERE account_id = $1 AND id = $2`)
	countOfRun = db.Q[int64](`SELECT COUNT(*) FROM asks WHERE account_id = $1 AND run_id = $2 AND source = 'run'`)
	depthOf    = db.Q[int64](`SELECT depth FROM asks WHERE account_id = $1 AND id = $2`)

	openKeys = db.Q[due.Open](`SELECT id AS key, account_id AS account FROM asks WHERE state = 'pending' LIMIT $1`)
	settle   = db.SWith[settleArgs](`UPDATE asks SET state = :state, verdict = :verdict, escalation_reason = :escalation_reason,
		triaged_at = :triaged_at
		WHERE account_id = :account_id AND id = :id AND state = 'pending'`)
	// decide ends an ask that triage has made no work of.
	decide = db.SWith[settleArgs](`UPDATE asks SET state = :state, verdict = :verdict, escalation_reason = :escalation_reason,
		triaged_at = :triaged_at
		WHERE account_id = :account_id AND id = :id AND state IN ('pending', 'escalated')`)
	// revive gives an ask to triage that was escalated, and approve has it count for a person,
	// with the rights of that person.
	revive = db.S(`UPDATE asks SET state = 'pending', verdict = NULL, escalation_reason = NULL, triaged_at = NULL
		WHERE account_id = $1 AND id = $2 AND state = 'escalated'`)
	approve = db.SWith[approveArgs](`UPDATE asks SET approved_by = :user_id, requested_by = :user_id, scopes = :scopes,
		budget_micros = NULL WHERE account_id = :account_id AND id = :id`)
	pendingOf  = db.Q[string](`SELECT id FROM asks WHERE account_id = $1 AND session_id = $2 AND state = 'pending' ORDER BY id`)
	setSession = db.S(`UPDATE asks SET session_id = $3 WHERE account_id = $1 AND id = $2`)

	// lockFirst locks the first of the asks of a task's runs, and mintedOf adds up the limits
	// of the tasks that were minted for them all, in micro-dollars. One row stands for all: who
	// mints has the row of the ask itself before, and from there goes to a lower id alone, so
	// that no two wait for one another. An ask that comes meanwhile has a higher id, as far
	// as the clocks of the servers agree.
	lockFirst = db.Q[string](`SELECT id FROM asks WHERE account_id = $1 AND from_task = $2 ORDER BY id LIMIT 1`).ForUpdate()
	mintedOf  = db.Q[int64](`SELECT COALESCE(SUM(minted_micros), 0) FROM asks WHERE account_id = $1 AND from_task = $2`)
	setMinted = db.S(`UPDATE asks SET minted_micros = $3 WHERE account_id = $1 AND id = $2`)

	// repoByName finds the repository that a name addresses, as repo.ByName does.
	repoByName = db.Q[Repo](`SELECT id, owner, name, enabled FROM repos WHERE account_id = $1 AND owner = $2 AND name = $3
		ORDER BY enabled DESC, created_at, id LIMIT 1`)
)

// approveArgs are the parameters of approve.
type approveArgs struct {
	AccountID, ID, UserID string
	Scopes                db.JSON[[]string]
}

// settleArgs are the parameters of settle.
type settleArgs struct {
	AccountID, ID    string
	State            State
	Verdict          db.JSON[Verdict]
	EscalationReason *string
	TriagedAt        time.Time
}

// insertArgs are the parameters of insert.
type insertArgs struct {
	row
	Dedupe *string
}

// find reads an ask of tx.Account, and locks it if lock is set. It returns
// fault.NotFound in the same words for an id that is unknown, foreign or
// malformed.
func find(tx *db.Tx, askID string, lock bool) (row, error) {
	if !id.Valid(askID) {
		return row{}, fault.Missing("ask")
	}
	if lock {
		if _, ok, err := lockID.Maybe(tx, tx.Account, askID); err != nil {
			return row{}, err
		} else if !ok {
			return row{}, fault.Missing("ask")
		}
	}
	r, ok, err := byID.Maybe(tx, tx.Account, askID)
	if err == nil && !ok {
		err = fault.Missing("ask")
	}
	return r, err
}

// Get reads an ask of tx.Account; ok is false if there is none.
func Get(tx *db.Tx, askID string) (a Ask, ok bool, err error) {
	r, ok, err := byID.Maybe(tx, tx.Account, askID)
	return r.wire(), ok, err
}

// Exists tells whether tx.Account has an ask with the id.
func Exists(tx *db.Tx, askID string) (bool, error) {
	_, ok, err := byID.Maybe(tx, tx.Account, askID)
	return ok, err
}

// Tasks lists the tasks that triage made of an ask of tx.Account, or linked to
// it. ok is false if there is no such ask.
func Tasks(tx *db.Tx, askID string) (taskIDs []string, ok bool, err error) {
	r, ok, err := byID.Maybe(tx, tx.Account, askID)
	if err != nil || !ok || r.Verdict == nil {
		return nil, ok, err
	}
	return r.Verdict.V.TaskIDs, true, nil
}

// OfStrangers tells whether an ask of tx.Account has text of people or systems who may
// not write to its repository; false if there is no such ask.
func OfStrangers(tx *db.Tx, askID string) (bool, error) {
	theirs, _, err := strangersOf.Maybe(tx, tx.Account, askID)
	return theirs, err
}

// OfRuns lists the ids of the asks that runs filed, oldest first.
func OfRuns(tx *db.Tx, runIDs []string) ([]string, error) {
	b := db.Build(`SELECT id FROM asks WHERE source = 'run' AND account_id = `, tx.Account).In("run_id", runIDs)
	return db.Select[string](tx, b.SQL(" ORDER BY created_at, id"))
}

// searched is how many of the newest asks behind its cursor a page with a text
// reads: no index finds a text inside titles.
const searched = 20_000

// place is the place of an ask in the list.
type place struct {
	ID        string
	CreatedAt time.Time
}

// list reads a page. If a search stopped before its page was full, end is the
// key of the last ask that it read.
func list(tx *db.Tx, p op.PageIn, repoID string) (rows []row, end []string, err error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, nil, err
	}
	part, err := p.Part()
	if err != nil {
		return nil, nil, err
	}
	var ids []string
	if part != "" {
		if ids, err = db.IDs(tx, `SELECT id FROM asks WHERE account_id`, part); err != nil {
			return nil, nil, err
		}
	}
	narrow := func(b *db.Builder) *db.Builder {
		if part != "" {
			b.In("a.id", ids).Few()
		}
		if state := p.Want("state"); state != "" {
			b.Is("a.state", state)
		}
		if repoID != "" {
			b.And("a.repo_id = ", repoID)
		}
		if source := p.Want("source"); source != "" {
			b.And("a.source = ", source)
		}
		if more {
			b.OlderThan("a.created_at", "a.id", at, last)
		}
		return b
	}
	b := narrow(db.Build(`SELECT `+columns+` WHERE a.account_id = `, tx.Account))
	if p.Q != "" {
		b.Contains("a.title", p.Q)
		stop, err := db.Select[place](tx, narrow(db.Build(`SELECT a.id, a.created_at FROM asks a WHERE a.account_id = `, tx.Account)).
			SQL(" ORDER BY a.created_at DESC, a.id DESC LIMIT 1 OFFSET ", searched-1))
		if err != nil {
			return nil, nil, err
		}
		for _, s := range stop {
			b.And("(a.created_at, a.id) >= ", db.Tuple(s.CreatedAt, s.ID))
			end = op.TimeKey(s.CreatedAt, s.ID)
		}
	}
	rows, err = db.Select[row](tx, b.Newest("a.created_at", "a.id", p.Size()))
	if len(rows) == p.Size() {
		end = nil
	}
	return rows, end, err
}

// Rows lists the asks of tx.Account that have one of the ids or, for nil, its
// newest, up to limit, as the list shows them.
func (s *Service) Rows(tx *db.Tx, ids []string, limit int) ([]Ask, error) {
	b := db.Build(`SELECT `+columns+` WHERE a.account_id = `, tx.Account)
	if ids != nil {
		b.In("a.id", ids).Few()
	}
	rows, err := db.Select[row](tx, b.Newest("a.created_at", "a.id", limit))
	if err != nil {
		return nil, err
	}
	return s.show(tx, rows)
}

func (r *row) wire() Ask {
	out := Ask{
		AskID: r.ID, ID: r.ID, Repo: r.Repo, IssueID: r.IssueID,
		Title: r.Title, Body: r.Body, Source: r.Source, Labels: r.Labels.V, DedupeKey: r.DedupeKey,
		State: r.State, EscalationReason: r.EscalationReason, FiledBy: r.FiledBy, RequestedBy: r.RequestedBy,
		Count: r.Count, LastSeenAt: r.LastSeenAt, CreatedAt: r.CreatedAt, ApprovedBy: r.ApprovedBy,
	}
	if r.Verdict != nil {
		out.Verdict = &r.Verdict.V
	}
	out.TriagedAt = r.TriagedAt
	return out
}
