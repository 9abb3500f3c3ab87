package record

import (
	"fmt"

	"yardmaster/internal/db"
)

// written is a row as it is to be, and the text of a pull request if its host has changed that.
type written struct {
	Pull
	Body *string
}

// write is the one statement that changes a pull request. It changes none that something else has
// changed since the row was read.
var write = db.SWith[written](`UPDATE pulls SET version = version + 1, state = :state, number = :number, title = :title,
	body = COALESCE(:body, body), host_url = :host_url, host_at = :host_at, author = :author, draft = :draft, fork = :fork,
	labels = :labels, base_ref = :base_ref, head_sha = :head_sha, base_sha = :base_sha, merge_sha = :merge_sha,
	patch_id = :patch_id, change = :change, merge_base = :merge_base, merge_bases = :merge_bases, mergeable = :mergeable, would = :would, had = :had, otherwise = :otherwise,
	facts_want = :facts_want, facts_have = :facts_have, looked_sha = :looked_sha, pushed_by = :pushed_by, unreadable = :unreadable,
	changed_files = :changed_files, added_lines = :added_lines, deleted_lines = :deleted_lines, unwanted = :unwanted, left_out = :left_out,
	checks = :checks, own_checks = :own_checks, host_checks = :host_checks, checks_hold = :checks_hold, checks_why = :checks_why,
	review = :review, findings = :findings, objections = :objections, remarks = :remarks, carry = :carry,
	babysit = :babysit, babysit_task = :babysit_task, round_sha = :round_sha, round_of = :round_of, round_asked = :round_asked,
	round_then = :round_then, attend_at = :attend_at, ci_rounds = :ci_rounds, conflict_rounds = :conflict_rounds,
	review_rounds = :review_rounds, request_rounds = :request_rounds, forgiven = :forgiven, armed_at = :armed_at, armed_why = :armed_why,
	watch = :watch, seat_since = :seat_since, needs = :needs, needs_at = :needs_at, told = :told, move_at = :move_at,
	abandoned_at = :abandoned_at, merged_at = :merged_at, merged_by = :merged_by, closed_at = :closed_at, closed_by = :closed_by,
	closed_why = :closed_why, updated_at = :updated_at
	WHERE id = :id AND version = :version`)

// The other statements mark many rows for the next pass of Loop.
var (
	// LookAtAll has the facts of open pull requests of a repository read again.
	LookAtAll = db.SWith[LookAtAllArgs](`UPDATE pulls SET version = version + 1, facts_want = facts_want + 1,
		pushed_by = CASE WHEN :unreviewed THEN pushed_by ELSE :pushed_by END
		WHERE repo_id = :repo_id AND state = 'open' AND (:base_ref = '' OR base_ref = :base_ref) AND (review = 'off' OR NOT :unreviewed)`)
	MoveNow   = db.S(`UPDATE pulls SET version = version + 1, move_at = 1 WHERE repo_id = $1 AND state = 'open'`)
	MoveAbove = db.S(`UPDATE pulls SET version = version + 1, move_at = 1 WHERE state = 'open'
		AND id IN (SELECT p.id FROM pulls p JOIN tasks t ON t.id = p.task_id WHERE t.stacked_on = $1)`)
)

// LookAtAllArgs are the parameters of lookAtAll.
type LookAtAllArgs struct {
	RepoID     string
	BaseRef    string  // those to another base are left out; "": none is
	PushedBy   *string // who has moved the branches; nil: nobody knows
	Unreviewed bool    // those are left out that somebody reviews, and nobody has moved a branch
}

// Save writes a locked row.
func Save(tx *db.Tx, pr *Pull) error { return SaveWith(tx, pr, nil) }

// SaveWith is save with a new text.
func SaveWith(tx *db.Tx, pr *Pull, body *string) error {
	pr.UpdatedAt = tx.Now
	n, err := write.Exec(tx, written{*pr, body})
	if err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("the row of pull request %s is not as it was read", pr.ID)
	}
	pr.Version++
	return nil
}

// Reread reads a row again after what others may have done to it in the same transaction.
func Reread(tx *db.Tx, pr *Pull) (err error) {
	*pr, err = ByID.One(tx, tx.Account, pr.ID)
	return err
}
