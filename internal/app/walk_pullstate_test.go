package app

import (
	"time"

	"yardmaster/internal/db"
)

type (
	pullRow struct {
		ID, RepoID, State, HeadRef string
		HeadSHA                    string `db:"head_sha"`
		Checks, Mergeable          string
		Needs, Babysit, ClosedWhy  string
		Told                       string
		TaskID, BabysitTask        *string
		MergeSHA                   *string `db:"merge_sha"`
		AbandonedAt                *time.Time
		Number, AttendAt           int64
		FactsWant, FactsHave       int64
		Findings, Remarks          int64
	}
	actionRow struct {
		ID        string
		PRID      string `db:"pr_id"`
		HeadSHA   string `db:"head_sha"`
		State     string
		DecidedBy *string
		Guarded   bool // it is about what is protected
		Called    bool
		ExpiresAt time.Time
	}
	checkRow struct {
		ID         string
		PRID       string `db:"pr_id"`
		SHA        string `db:"sha"`
		Status     string
		TaskID     string
		FinishedAt *time.Time
	}
	troubleRow struct {
		ID         string
		PRID       string `db:"pr_id"`
		ResolvedAt *time.Time
	}
)

// pullState is what there is of pull requests, the oldest first.
type pullState struct {
	pulls    []pullRow
	actions  []actionRow
	checks   []checkRow
	troubles []troubleRow
	requests []requestRow
}

// pullBelief is what a walk knows of them besides.
type pullBelief struct {
	untold   bool              // a push went unnoticed
	disabled map[string]bool   // repositories that are off
	race     map[string]bool   // pull requests whose task was cancelled while they may have been merged
	midway   map[string]bool   // those whose merge was under way then
	headTold map[string]string // by pull request: what its newest row of a head says
	staled   map[string]link   // actions, and the audit rows that say that they are stale
}

// newPullBelief knows of nothing.
func newPullBelief() pullBelief {
	return pullBelief{disabled: map[string]bool{}, race: map[string]bool{}, midway: map[string]bool{}, staled: map[string]link{},
		headTold: map[string]string{}}
}

var (
	pullsOf = db.Q[pullRow](`SELECT id, repo_id, state, head_ref, head_sha, checks, mergeable, told, needs, babysit, closed_why, task_id,
		babysit_task, merge_sha,
		abandoned_at, number, attend_at, facts_want, facts_have, findings, remarks FROM pulls WHERE account_id = $1 ORDER BY repo_id, number`)
	actionsOf = db.Q[actionRow](`SELECT id, pr_id, head_sha, state, decided_by, (protected IS NOT NULL OR details LIKE '%dropped%') AS guarded, called, expires_at
		FROM pull_actions WHERE account_id = $1 ORDER BY requested_at, id`)
	checksOf = db.Q[checkRow](`SELECT id, pr_id, sha, status, task_id, finished_at FROM ci_runs
		WHERE account_id = $1 AND pr_id IS NOT NULL ORDER BY id`)
	troublesOf = db.Q[troubleRow](`SELECT id, pr_id, resolved_at FROM escalations WHERE account_id = $1 AND pr_id IS NOT NULL ORDER BY id`)
)

func loadPulls(tx *db.Tx, account string) (s pullState, err error) {
	if s.pulls, err = pullsOf.All(tx, account); err != nil || len(s.pulls) == 0 {
		return s, err
	}
	if s.actions, err = actionsOf.All(tx, account); err != nil {
		return s, err
	}
	if s.checks, err = checksOf.All(tx, account); err != nil {
		return s, err
	}
	if s.requests, err = requestsOf.All(tx, account); err != nil {
		return s, err
	}
	s.troubles, err = troublesOf.All(tx, account)
	return s, err
}

// pull is a pull request; the zero one if there was none.
func (s *pullState) pull(id string) *pullRow {
	for i := range s.pulls {
		if s.pulls[i].ID == id {
			return &s.pulls[i]
		}
	}
	return &pullRow{}
}

// openAction is what is asked or ordered about a pull request; nil: nothing.
func (s *pullState) openAction(prID string) *actionRow {
	for i := range s.actions {
		if a := &s.actions[i]; a.PRID == prID && (a.State == "pending" || a.State == "approved") {
			return a
		}
	}
	return nil
}

// pullsWith are those of which something is asked, or ordered.
func (s *pullState) pullsWith(action string) (found []*pullRow) {
	for i := range s.pulls {
		if a := s.openAction(s.pulls[i].ID); a != nil && a.State == action {
			found = append(found, &s.pulls[i])
		}
	}
	return found
}
