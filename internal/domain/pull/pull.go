// Package pull is the pull requests that agents open: their heads, the checks
// of each head on a box, the question put to a person before anything is
// merged, and the merge itself. Git facts live at the code host; numbers,
// states, checks and decisions are rows here.
package pull

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// States of a pull request.
const (
	Open   = "open"
	Merged = "merged"
	Closed = "closed"
)

// Results of the checks of a head.
const (
	ChecksNone    = "none" // the repository names no check
	ChecksPending = "pending"
	ChecksPassed  = "passed"
	ChecksFailed  = "failed"
)

// States of a pending action.
const (
	ActionPending  = "pending"
	ActionApproved = "approved"
	ActionApplied  = "applied"
	ActionFailed   = "failed"
	ActionSkipped  = "skipped"
	ActionStale    = "stale"
	ActionExpired  = "expired"
)

// Lifetime of an unanswered question.
const askFor = 14 * 24 * time.Hour

// PullRequest is a row as the API shows it.
type PullRequest struct {
	ID            string         `json:"id"`
	Repo          string         `json:"repo" doc:"owner/name"`
	Number        int64          `json:"number"`
	Title         string         `json:"title"`
	URL           string         `json:"url"`
	State         string         `json:"state" enum:"open,merged,closed"`
	HeadRef       string         `json:"head_ref"`
	BaseRef       string         `json:"base_ref"`
	HeadSHA       string         `json:"head_sha"`
	BaseSHA       string         `json:"base_sha"`
	MergeSHA      *string        `json:"merge_sha"`
	PatchID       *string        `json:"patch_id"`
	Mergeable     string         `json:"mergeable" enum:"unknown,clean,conflict"`
	Checks        string         `json:"checks" enum:"none,pending,passed,failed"`
	TaskID        *string        `json:"task_id"`
	AuthorKind    string         `json:"author_kind"`
	Babysit       Babysit        `json:"babysit"`
	PendingAction *PendingAction `json:"pending_action"`
	CreatedAt     time.Time      `json:"created_at"`
	MergedAt      *time.Time     `json:"merged_at"`
	MergedBy      *string        `json:"merged_by"`
}

// PendingAction is something an agent wants to do to a pull request and a
// person is asked about first.
type PendingAction struct {
	ID          string     `json:"id"`
	PRID        string     `json:"pr_id"`
	Kind        string     `json:"kind" enum:"merge"`
	HeadSHA     string     `json:"head_sha"`
	State       string     `json:"state" enum:"pending,approved,applied,failed,skipped,stale,expired"`
	Error       *string    `json:"error"`
	DecidedBy   *string    `json:"decided_by"`
	RequestedAt time.Time  `json:"requested_at"`
	DecidedAt   *time.Time `json:"decided_at"`
	ExpiresAt   time.Time  `json:"expires_at"`
	Question    string     `json:"question" doc:"what is asked, in words for people"`
	Protected   *Protected `json:"protected" doc:"what would change that a person is always asked about; null: nothing, or it was not looked at yet. An approval covers what the question said: if a merge would change more, it is asked about anew"`
}

// Service answers for pull requests.
type Service struct {
	DB      *db.DB
	Hub     *event.Hub
	Host    codehost.Host
	BaseURL func() string
	Logger  *slog.Logger
	// CheckTask queues a task that runs a repository's check on a commit.
	CheckTask func(tx *db.Tx, r repo.Ref, prID, sha string) (taskID string, err error)
	// BabysitTask queues a task that repairs a head. A fault that it answers
	// means not now.
	BabysitTask func(tx *db.Tx, r repo.Ref, round Round) (taskID string, err error)
	// Escalate asks a person to look.
	Escalate func(tx *db.Tx, r repo.Ref, category, title, body, reason string) error
	// The task that a pull request came from is moved along with it.
	TaskAwaits    func(tx *db.Tx, taskID, prID string) error
	TaskMergeable func(tx *db.Tx, taskID string) error
	TaskMerged    func(tx *db.Tx, taskID string) error
	TaskStuck     func(tx *db.Tx, taskID, failureKind, why string) error
	// Settled is told after a merge, outside the transaction: the default
	// branch has moved.
	Settled func(context.Context, repo.Ref)
	// Unmerged, optional, names the task on whose work another was begun while
	// that is not merged; dropped tells that it will not be.
	Unmerged func(tx *db.Tx, taskID string) (on string, dropped bool, err error)
}

// Proposal is finished work to be put up as a pull request.
type Proposal struct {
	TaskID, Title, Body      string
	Branch, HeadSHA, BaseSHA string
}

// Propose opens a pull request for pushed work, or moves the open one of the
// same branch, and queues its checks.
func (s *Service) Propose(tx *db.Tx, r repo.Ref, p Proposal) (prID string, err error) {
	// The repository's row orders those who would take the same number.
	if _, err := lockRepo.One(tx, tx.Account, r.ID); err != nil {
		return "", err
	}
	existing, ok, err := lockByHead(tx, r.ID, p.Branch)
	if err != nil {
		return "", err
	}
	if ok {
		if existing.HeadSHA != p.HeadSHA {
			return existing.ID, s.moveHead(tx, r, existing, p.HeadSHA)
		}
		return existing.ID, s.TaskAwaits(tx, p.TaskID, existing.ID)
	}
	n, err := nextNumber.One(tx, r.ID)
	if err != nil {
		return "", err
	}
	prID = id.New()
	url := fmt.Sprintf("%s/%s/pulls/%d", s.BaseURL(), r.FullName(), n)
	if _, err := insert.Exec(tx, prID, tx.Account, r.ID, n, p.Title, p.Body, url, Open, p.Branch, r.DefaultBranch, p.HeadSHA, p.BaseSHA, p.TaskID, "agent", tx.Micros()); err != nil {
		return "", err
	}
	if err := event.Record(tx, event.Change{Kind: "pr.opened", Object: prID, RepoID: r.ID,
		Data: map[string]any{"number": n, "head_sha": p.HeadSHA, "task_id": p.TaskID}}); err != nil {
		return "", err
	}
	if err := s.TaskAwaits(tx, p.TaskID, prID); err != nil {
		return "", err
	}
	pr, err := byID.One(tx, tx.Account, prID)
	if err != nil {
		return "", err
	}
	return prID, s.check(tx, r, pr)
}

// HeadMoved is called for every branch that was pushed. The pull request of one
// that was deleted keeps its last head.
func (s *Service) HeadMoved(tx *db.Tx, r repo.Ref, branch, newSHA string) error {
	if newSHA == codehost.ZeroSHA {
		return nil
	}
	pr, ok, err := lockByHead(tx, r.ID, branch)
	if err != nil || !ok || pr.HeadSHA == newSHA {
		return err
	}
	return s.moveHead(tx, r, pr, newSHA)
}

func (s *Service) moveHead(tx *db.Tx, r repo.Ref, pr row, sha string) error {
	if _, err := setHead.Exec(tx, pr.ID, sha, ChecksPending, tx.Micros()); err != nil {
		return err
	}
	if _, err := staleActions.Exec(tx, pr.ID, tx.Micros()); err != nil {
		return err
	}
	pr.HeadSHA = sha
	if err := event.Record(tx, event.Change{Kind: "pr.head_moved", Object: pr.ID, RepoID: r.ID, Data: map[string]any{"head_sha": sha}}); err != nil {
		return err
	}
	if pr.TaskID != nil {
		if err := s.TaskAwaits(tx, *pr.TaskID, pr.ID); err != nil {
			return err
		}
	}
	return s.check(tx, r, pr)
}

// check queues the repository's own check of a head; without one the head is
// good as it is.
func (s *Service) check(tx *db.Tx, r repo.Ref, pr row) error {
	if r.Policy.Checks.Command == "" {
		if _, err := setChecks.Exec(tx, pr.ID, ChecksNone, tx.Micros()); err != nil {
			return err
		}
		return s.green(tx, r, pr)
	}
	task, err := s.CheckTask(tx, r, pr.ID, pr.HeadSHA)
	if err != nil {
		return err
	}
	if _, err := setChecks.Exec(tx, pr.ID, ChecksPending, tx.Micros()); err != nil {
		return err
	}
	_, err = insertCI.Exec(tx, id.New(), tx.Account, r.ID, pr.ID, pr.HeadSHA, r.Policy.Checks.Command, "queued", task, tx.Micros())
	return err
}

// Withdraw takes back what is asked or ordered about a pull request whose task
// was cancelled. A merge that is under way already is seen through.
func (s *Service) Withdraw(tx *db.Tx, prID, taskID string) error {
	pr, ok, err := lock(tx, prID)
	if err != nil || !ok || pr.TaskID == nil || *pr.TaskID != taskID {
		return err
	}
	a, ok, err := openAction.Maybe(tx, pr.ID)
	if err != nil || !ok {
		return err
	}
	if n, err := withdraw.Exec(tx, pr.ID, tx.Micros()); err != nil || n == 0 {
		return err
	}
	return event.Record(tx, event.Change{Kind: "approval.stale", Object: a.ID, RepoID: pr.RepoID, Data: map[string]any{"pr_id": pr.ID, "head_sha": a.HeadSHA}})
}

// CheckResult is how a check ended.
type CheckResult struct {
	TaskID, RunID, BoxID string
	ExitCode             *int // nil: the command was never run to its end
	Output               string
	Why                  string // when there is no exit code
}

// CheckFinished records the end of a check and, if it was the check of the
// current head, moves the pull request on.
func (s *Service) CheckFinished(tx *db.Tx, c CheckResult) error {
	status, checks := "failed", ChecksFailed
	switch {
	case c.ExitCode == nil:
		status = "lost"
	case *c.ExitCode == 0:
		status, checks = "passed", ChecksPassed
	}
	ci, ok, err := ciByTask.Maybe(tx, tx.Account, c.TaskID)
	if err != nil || !ok {
		return err
	}
	if _, err := endCI.Exec(tx, ci.ID, status, c.RunID, c.BoxID, c.ExitCode, c.Output, tx.Micros()); err != nil {
		return err
	}
	if err := event.Record(tx, event.Change{Kind: "ci." + status, Object: ci.ID, RepoID: ci.RepoID, Data: map[string]any{"sha": ci.SHA, "exit_code": c.ExitCode}}); err != nil {
		return err
	}
	pr, ok, err := lock(tx, ci.PRID)
	if err != nil || !ok || pr.State != Open || pr.HeadSHA != ci.SHA {
		return err
	}
	if _, err := setChecks.Exec(tx, pr.ID, checks, tx.Micros()); err != nil {
		return err
	}
	r, _, err := repo.ByID(tx, ci.RepoID)
	if err != nil {
		return err
	}
	switch {
	case checks == ChecksPassed:
		return s.green(tx, r, pr)
	case c.ExitCode == nil && pr.Babysit == BabysitWatching:
		return s.spend(tx, r, pr, failing{"ci_ladder_spent", c.Why})
	case pr.Babysit == BabysitWatching:
		pr.Checks = checks
		return s.attend(tx, r, pr)
	case pr.TaskID == nil, pr.Babysit == BabysitCI, pr.Babysit == BabysitConflict:
		return nil // the end of the round sees to it
	}
	why := c.Why
	if c.ExitCode != nil {
		why = fmt.Sprintf("the check exited with %d", *c.ExitCode)
	}
	return s.TaskStuck(tx, *pr.TaskID, "ci_ladder_spent", why)
}

// green asks for (or, where the policy says so, orders) the merge of a head
// that passed. Whether it changes what is protected is looked at by the loop, of
// an order right before it is carried out.
func (s *Service) green(tx *db.Tx, r repo.Ref, pr row) error {
	if pr.TaskID != nil {
		if err := s.TaskMergeable(tx, *pr.TaskID); err != nil {
			return err
		}
	}
	if _, err := setLooked.Exec(tx, pr.ID, ""); err != nil {
		return err
	}
	switch r.Policy.Merge.Mode {
	case "never":
		s.Hub.Notify(tx, event.PullTopic)
		return nil
	case "auto":
		return s.order(tx, pr)
	}
	return s.question(tx, pr, nil)
}

// byPolicy is who decided an order that no person gave.
const byPolicy = "policy"

// order has a head merged without a person.
func (s *Service) order(tx *db.Tx, pr row) error {
	actionID, by := id.New(), byPolicy
	n, err := insertAction.Exec(tx, actionID, tx.Account, pr.ID, "merge", pr.HeadSHA, ActionApproved, &by, tx.Micros(), &tx.Now, db.Micros(tx.Now.Add(askFor)), nil)
	if err != nil || n == 0 {
		return err // asked before
	}
	s.Hub.Notify(tx, event.PullTopic)
	return event.Record(tx, event.Change{Kind: "approval.asked", Object: actionID, RepoID: pr.RepoID, Data: map[string]any{"pr_id": pr.ID, "kind": "merge", "head_sha": pr.HeadSHA}})
}

// decide answers the question about a head. The head the decider saw must be
// the head there is.
func (s *Service) decide(tx *db.Tx, prID, headSHA, state string) (actionRow, error) {
	pr, ok, err := lock(tx, prID)
	if err != nil {
		return actionRow{}, err
	}
	if !ok {
		return actionRow{}, fault.Missing("pull request")
	}
	if pr.HeadSHA != headSHA {
		return actionRow{}, fault.Reason("head_moved", "The pull request has a newer head than the one named.").With("current_head_sha", pr.HeadSHA)
	}
	if pr.State != Open {
		return actionRow{}, fault.Reason("pr_not_open", "The pull request is "+pr.State+".")
	}
	a, ok, err := openAction.Maybe(tx, prID)
	if err != nil {
		return actionRow{}, err
	}
	if !ok || a.State != ActionPending || a.HeadSHA != headSHA || !tx.Now.Before(a.ExpiresAt) {
		return actionRow{}, fault.Reason("no_pending_action", "Nothing on this head waits for a decision.")
	}
	by := policy.From(tx.Context()).Label()
	if _, err := decideAction.Exec(tx, a.ID, state, by, tx.Micros()); err != nil {
		return actionRow{}, err
	}
	a.State, a.DecidedBy, a.DecidedAt = state, &by, &tx.Now
	s.Hub.Notify(tx, event.PullTopic)
	return a, event.Record(tx, event.Change{Kind: "approval." + state, Object: a.ID, RepoID: pr.RepoID, Data: map[string]any{"pr_id": prID, "head_sha": headSHA}})
}
