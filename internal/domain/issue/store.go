package issue

import (
	"strconv"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
)

type row struct {
	ID           string
	AccountID    string
	RepoID       string
	Number       *int64
	Title        string
	Body         string
	URL          string `db:"url"`
	State        string
	Author       string
	AuthorBot    bool
	Labels       db.JSON[[]string]
	Milestone    string
	Comments     int64
	HostAt       int64
	Triage       string
	AskID        *string
	EscalationID *string
	SeenTitle    string
	SeenBody     string
	Voucher      string
	Filing       bool
	Reading      bool
	Told         bool
	CreatedAt    time.Time
	GoneAt       *time.Time
	Round        int64 // how often triage has begun anew
	LabelledAt   int64 // the host's time of the last label that counts
	Finished     bool  // the host was told that the work is done
}

func (r row) number() int64 {
	if r.Number == nil {
		return 0
	}
	return *r.Number
}

// mirrorArgs are the parameters of insert and mirror.
type mirrorArgs struct {
	ID, AccountID, RepoID             string
	Number                            *int64
	HostKey, NodeID, Title, Body, URL string
	State, Author, Milestone          string
	AuthorBot                         bool
	Labels                            db.JSON[[]string]
	Comments, HostAt, CreatedAt       int64
}

// workArgs are the parameters of set.
type workArgs struct {
	ID, Triage                   string
	AskID, EscalationID          *string
	SeenTitle, SeenBody, Voucher string
	Filing, Reading, Told        bool
	Round, LabelledAt            int64
	Finished                     bool
}

const columns = `id, account_id, repo_id, number, title, body, url, state, author, author_bot, labels, milestone, comments, host_at,
	triage, ask_id, escalation_id, seen_title, seen_body, voucher, filing, reading, told, created_at, gone_at,
	round, labelled_at, finished`

var (
	insert = db.SWith[mirrorArgs](`INSERT INTO issues (id, account_id, repo_id, number, host_key, node_id, title, body, url, state, author,
		author_bot, labels, milestone, comments, host_at, created_at)
		VALUES (:id, :account_id, :repo_id, :number, :host_key, :node_id, :title, :body, :url, :state, :author,
		:author_bot, :labels, :milestone, :comments, :host_at, :created_at) ON CONFLICT DO NOTHING`)
	mirror = db.SWith[mirrorArgs](`UPDATE issues SET number = :number, host_key = :host_key, node_id = :node_id, title = :title,
		body = :body, url = :url, state = :state, author = :author, author_bot = :author_bot, labels = :labels, milestone = :milestone,
		comments = :comments, host_at = :host_at, created_at = :created_at, gone_at = NULL
		WHERE account_id = :account_id AND repo_id = :repo_id AND id = :id`)
	set = db.SWith[workArgs](`UPDATE issues SET triage = :triage, ask_id = :ask_id, escalation_id = :escalation_id,
		seen_title = :seen_title, seen_body = :seen_body, voucher = :voucher, filing = :filing, reading = :reading, told = :told,
		round = :round, labelled_at = :labelled_at, finished = :finished WHERE id = :id`)
	setGone  = db.S(`UPDATE issues SET gone_at = $3, filing = FALSE, reading = FALSE WHERE account_id = $1 AND id = $2`)
	setState = db.S(`UPDATE issues SET state = $3 WHERE account_id = $1 AND id = $2`)
	remove   = db.S(`DELETE FROM issues WHERE account_id = $1 AND id = $2`)
	byID     = db.Q[row](`SELECT ` + columns + ` FROM issues WHERE account_id = $1 AND id = $2`)
	lockID   = db.Q[row](`SELECT ` + columns + ` FROM issues WHERE account_id = $1 AND id = $2`).ForUpdate()
	byNumber = db.Q[row](`SELECT ` + columns + ` FROM issues WHERE account_id = $1 AND repo_id = $2 AND number = $3`).ForUpdate()
	byAsk    = db.Q[row](`SELECT ` + columns + ` FROM issues WHERE account_id = $1 AND ask_id = $2`).ForUpdate()

	// owed finds the issues that are to be read or filed, also those of older releases.
	owed = db.Q[due.Open](`SELECT id AS key, account_id AS account FROM issues WHERE reading OR filing LIMIT $1`)

	// due_at says of a walk that it is not over, and since when.
	beginWalk = db.S(`INSERT INTO issue_walks (repo_id, cursor, due_at) VALUES ($1, '', $2)
		ON CONFLICT (repo_id) DO UPDATE SET cursor = '', due_at = excluded.due_at`)
	walkFrom = db.Q[string](`SELECT cursor FROM issue_walks WHERE repo_id = $1 AND due_at IS NOT NULL`)
	walkTo   = db.S(`UPDATE issue_walks SET cursor = $2 WHERE repo_id = $1`)
	endWalk  = db.S(`UPDATE issue_walks SET cursor = '', due_at = NULL WHERE repo_id = $1`)
	walking  = db.Q[string](`SELECT repo_id FROM issue_walks WHERE due_at IS NOT NULL LIMIT $1`)
)

// look has the host of a locked issue asked, and what is owed done, after a time. Whoever is at
// it begins anew.
func (s *Service) look(tx *db.Tx, r row, after time.Duration) {
	s.issues.Drop(tx, r.ID)
	s.issues.Add(tx, r.ID, due.Entry{Account: tx.Account, After: after})
}

// askAgain has a locked issue read at its host. An ask that waits for the delivery of a label, see
// hearsay, is not filed the sooner for it: both are done then.
func (s *Service) askAgain(tx *db.Tx, r *row) error {
	r.Reading = true
	entry := due.Entry{Account: tx.Account}
	if r.Filing {
		is, there, err := s.issues.State(tx, r.ID)
		if err != nil {
			return err
		}
		if there && is.State == due.Waits {
			entry.At = is.DueAt
		}
	}
	s.issues.Drop(tx, r.ID)
	s.issues.Add(tx, r.ID, entry)
	return nil
}

// lose records that the host does not have an issue any more.
func (s *Service) lose(tx *db.Tx, issueID string) error {
	s.issues.Drop(tx, issueID)
	_, err := setGone.Exec(tx, tx.Account, issueID, tx.Now)
	return err
}

// save stores what is ours of an issue.
func (s *Service) save(tx *db.Tx, r row) error {
	if !r.Reading && !r.Filing {
		s.issues.Drop(tx, r.ID)
	}
	_, err := set.Exec(tx, workArgs{
		ID: r.ID, Triage: r.Triage, AskID: r.AskID, EscalationID: r.EscalationID, SeenTitle: r.SeenTitle, SeenBody: r.SeenBody,
		Voucher: r.Voucher, Filing: r.Filing, Reading: r.Reading, Told: r.Told,
		Round: r.Round, LabelledAt: r.LabelledAt, Finished: r.Finished,
	})
	return err
}

// find reads an issue of tx.Account, and locks it if lock is set. It fails with
// fault.NotFound.
func find(tx *db.Tx, issueID string, lock bool) (row, error) {
	if !id.Valid(issueID) {
		return row{}, fault.Missing("issue")
	}
	q := byID
	if lock {
		q = lockID
	}
	r, ok, err := q.Maybe(tx, tx.Account, issueID)
	if err == nil && (!ok || r.GoneAt != nil) {
		err = fault.Missing("issue")
	}
	return r, err
}

// list reads a page of a repository, newest first.
func list(tx *db.Tx, repoID string, p op.PageIn) ([]row, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	part, err := p.Part()
	if err != nil {
		return nil, err
	}
	b := db.Build(`SELECT `+columns+` FROM issues WHERE account_id = `, tx.Account).And("repo_id = ", repoID).SQL(" AND gone_at IS NULL")
	if err := db.Named(tx, b, "id", `SELECT id FROM issues WHERE account_id`, part); err != nil {
		return nil, err
	}
	if text := p.Want("number"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return nil, fault.Field("filter", "number is a whole number from 1")
		}
		b.And("number = ", n)
	}
	if triage := p.Want("triage"); triage != "" {
		b.And("triage = ", triage)
	}
	if state := p.Want("state"); state != "" {
		b.Is("state", state)
	}
	if more {
		b.OlderThan("created_at", "id", at, last)
	}
	return db.Select[row](tx, b.Newest("created_at", "id", p.Size()))
}
