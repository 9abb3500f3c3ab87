package pull

import (
	"context"
	"errors"
	"slices"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// Reasons why an open pull request waits for a person.
const (
	NeedsDecision = "asked"          // the question about its head waits for an answer
	NeedsAgain    = "declined"       // the question was answered with no
	NeedsExpired  = "expired"        // nobody answered in time
	NeedsMerge    = "left_to_people" // the policy says merge.mode: never
	NeedsRetry    = "merge_failed"   // the code host did not carry out the merge
	NeedsRearm    = "spent"          // agents have used up their rounds
	NeedsEnd      = "superseded"     // the work that it was begun on was dropped

	NeedsBase     = "base_broken"     // the base fails in the same way as the checks at the host
	NeedsCheck    = "check_missing"   // a check that is required has never reported
	NeedsApproval = "action_required" // the host waits for a person to let the checks run
	NeedsMachine  = "check_infra"     // machines of the host failed

	NeedsChanges = "changes_requested" // somebody requests changes, here or at the host
	NeedsPush    = "push_asked"        // what a round has done waits for a yes
	NeedsStopped = "stopped"           // a person has had agents leave it alone
)

// Need is a step of a pull request that only a person can take.
type Need struct {
	_          struct{}          `doc:"What only a person can do about a pull request." schema:"Need"`
	Why        string            `json:"why" enum:"asked,declined,expired,left_to_people,merge_failed,spent,superseded,base_broken,check_missing,action_required,check_infra,changes_requested,push_asked,stopped" doc:"asked: the question waits; declined and expired: it was answered with no, or not in time; left_to_people: the policy says merge.mode: never; merge_failed: the code host did not carry the merge out; spent: agents have used up their rounds; superseded: what it is built on was dropped; base_broken: checks at the code host fail at the base in the same way; check_missing: a check that is required there has never reported; action_required: the code host waits for a person to let checks run; check_infra: machines of the code host failed again and again; changes_requested: somebody requests changes, here or at the code host; push_asked: a round has done its work, and asks before it is pushed to the branch of a person; stopped: a person has had agents leave it alone"`
	Since      time.Time         `json:"since" doc:"since when it waits for that"`
	ClearsWhen string            `json:"clears_when" example:"a person decides about the merge" doc:"what has to happen, in words for people"`
	Capability string            `json:"capability" example:"pr.approve_pending" doc:"the operation that gets it going"`
	Args       map[string]string `json:"args" example:"{\"id\": \"0199d3a4-5b6c-7d8e-9f01-23456789abcd\", \"head_sha\": \"3f8a1c5e7b9d2046f8a1c5e7b9d2046f8a1c5e7b\"}" doc:"what to call it with"`
}

var clearsWhen = map[string]string{
	NeedsDecision: "a person decides about the merge",
	NeedsAgain:    "a person has the question put again, which was answered with no, or merges it",
	NeedsExpired:  "a person has the question put again, which nobody answered, or merges it",
	NeedsMerge:    "a person merges it, as the policy leaves that to people",
	NeedsRetry:    "a person has the merge tried again, which the code host did not carry out",
	NeedsRearm:    "a person arms the repair again, whose rounds are spent, or mends the branch",
	NeedsEnd:      "a person cancels the task, as what it is built on was dropped",
	NeedsBase:     "the base passes the checks again, which fail there in the same way",
	NeedsCheck:    "the check reports that the code host requires, or a person no longer requires it there",
	NeedsApproval: "a person lets the checks run at the code host",
	NeedsMachine:  "the checks are run again at the code host, whose machines failed",
	NeedsChanges:  "whoever requested changes approves or takes that back, here or at the code host",
	NeedsPush:     "a person decides whether what an agent has done is pushed to the branch",
	NeedsStopped:  "a person has agents look after it again",
}

// spentWith says what ends the wait of a pull request whose rounds are spent, while findings
// of its review hold the merge.
func spentWith(findings int64) string {
	those := "the finding that holds"
	if findings > 1 {
		those = "the findings that hold"
	}
	return "a person dismisses " + those + " the merge, mends the branch, or arms the repair again, whose rounds are spent"
}

// NeedOf answers the step for a pull request that waits for the reason why; false if it
// does not wait. question is the id of the open question, or "" if it is not known. findings
// are those that hold the merge.
func NeedOf(why string, since *time.Time, prID, headSHA, question string, taskID *string, findings int64) (Need, bool) {
	n := Need{Why: why, Args: map[string]string{"id": prID, "head_sha": headSHA}}
	if since != nil {
		n.Since = *since
	}
	if n.ClearsWhen = clearsWhen[why]; why == NeedsRearm && findings > 0 {
		n.ClearsWhen = spentWith(findings)
	}
	switch why {
	case NeedsDecision, NeedsPush:
		n.Capability = "pr.approve_pending"
		if question != "" {
			n.Args["action_id"] = question
		}
	case NeedsAgain, NeedsExpired:
		n.Capability = "pr.ask_again"
	case NeedsMerge, NeedsRetry:
		n.Capability = "pr.merge"
	case NeedsRearm, NeedsBase, NeedsCheck, NeedsApproval, NeedsMachine, NeedsChanges, NeedsStopped:
		n.Capability, n.Args = "pr.rearm_babysit", map[string]string{"id": prID}
	case NeedsEnd:
		if taskID == nil {
			return n, false
		}
		n.Capability, n.Args = "task.cancel", map[string]string{"id": *taskID}
	default:
		return n, false
	}
	return n, true
}

// NeedsOf answers the needs of pull requests of tx.Account, by id of the pull request.
func NeedsOf(tx *db.Tx, prIDs []string) (map[string]Need, error) {
	out := map[string]Need{}
	if len(prIDs) == 0 {
		return out, nil
	}
	rows, err := needy(tx, prIDs)
	for _, r := range rows {
		if n, ok := NeedOf(r.Needs, r.NeedsAt, r.ID, r.HeadSHA, r.Question, r.TaskID, r.Findings); ok {
			out[r.ID] = n
		}
	}
	return out, err
}

// checksHeld tells whether a pull request waits for a person because of the checks at its
// host.
func checksHeld(why string) bool {
	switch why {
	case NeedsBase, NeedsCheck, NeedsApproval, NeedsMachine:
		return true
	}
	return false
}

// needs records why a pull request waits for a person; "": it does not wait.
func (s *Service) needs(tx *db.Tx, prID, why string) error {
	var since *int64
	if why != "" {
		now := tx.Micros()
		since = &now
	}
	_, err := setNeeds.Exec(tx, prID, why, since)
	return err
}

// waits is needs for a green head, whose task waits for the person as well.
func (s *Service) waits(tx *db.Tx, pr row, why string) error {
	if err := s.needs(tx, pr.ID, why); err != nil || pr.TaskID == nil {
		return err
	}
	return TaskAwaitsReview.Send(tx, Progress{TaskID: *pr.TaskID, PRID: pr.ID})
}

// green asks about the merge of a head that has passed, or orders the merge if the policy
// says so and no person has said no since the last yes. Loop finds protected changes: lookAtHead those of a question, apply those of
// an order.
func (s *Service) green(tx *db.Tx, r repo.Ref, pr row) error {
	if pr.AbandonedAt != nil || pr.Draft || pr.unwatched() {
		return nil
	}
	if pr.Carry == carryLook {
		s.Hub.Notify(tx, event.PullTopic)
		return nil // readFacts goes on from here
	}
	if pr.Watch == WatchOff {
		return s.waits(tx, pr, NeedsStopped)
	}
	if pr.Objections > 0 {
		return s.objected(tx, pr)
	}
	if pr.Findings > 0 && pr.TaskID != nil { // the agents' turn, not the person's
		return TaskAwaitsReview.Send(tx, Progress{TaskID: *pr.TaskID, PRID: pr.ID})
	}
	if _, err := setLooked.Exec(tx, pr.ID, ""); err != nil {
		return err
	}
	if pr.Carry != "" {
		if carried, err := s.carry(tx, pr); err != nil || carried {
			return err
		}
	}
	switch r.Policy.Merge.Mode {
	case "never":
		s.Hub.Notify(tx, event.PullTopic)
		return s.waits(tx, pr, NeedsMerge)
	case "auto":
		if no, err := refused.One(tx, pr.ID); err != nil || !no {
			if err != nil {
				return err
			}
			return s.order(tx, pr, byPolicy)
		}
	}
	if by, ok, err := standing.Maybe(tx, pr.ID, pr.HeadSHA); err != nil || ok {
		if err != nil {
			return err
		}
		return s.orderOf(tx, pr, by)
	}
	return s.question(tx, pr, nil)
}

// byPolicy is the author of an order that no person gave.
const byPolicy = "policy"

// order orders the merge of a head.
func (s *Service) order(tx *db.Tx, pr row, by string) error {
	actionID := id.New()
	n, err := insertAction.Exec(tx, insertActionArgs{
		ID: actionID, AccountID: tx.Account, PRID: pr.ID, Kind: "merge", HeadSHA: pr.HeadSHA, State: ActionApproved,
		DecidedBy: &by, RequestedAt: tx.Micros(), DecidedAt: &tx.Now, ExpiresAt: db.Micros(tx.Now.Add(askFor)),
		Protected: nil,
	})
	if err != nil || n == 0 {
		return err // there is an action for the head already
	}
	about := event.Subject{ID: actionID, RepoID: pr.RepoID}
	if by == byPolicy {
		err = AskedEvent.Record(tx, about, askedData{HeadSHA: pr.HeadSHA, Kind: "merge", PRID: pr.ID})
	} else { // without a question before
		err = approvedEvent.Record(tx, about, approvedData{HeadSHA: pr.HeadSHA, Kind: "merge", PRID: pr.ID})
	}
	if err == nil {
		err = errors.Join(s.settle(tx, &pr, by), s.grace(tx, pr, actionID, by))
	}
	if err != nil {
		return err
	}
	return s.approved(tx, pr)
}

// approved moves on the pull request and its task after an approval.
func (s *Service) approved(tx *db.Tx, pr row) error {
	if err := s.needs(tx, pr.ID, ""); err != nil {
		return err
	}
	s.Hub.Notify(tx, event.PullTopic)
	if pr.Objections > 0 {
		return s.objected(tx, pr)
	}
	if pr.TaskID == nil {
		return nil
	}
	if pr.Findings > 0 {
		return TaskAwaitsReview.Send(tx, Progress{TaskID: *pr.TaskID, PRID: pr.ID})
	}
	return TaskMergeable.Send(tx, Progress{TaskID: *pr.TaskID, PRID: pr.ID})
}

// orderGoesOn has the merge of a head tried that was ordered before its checks ran again;
// ordered is false if there is no such order.
func (s *Service) orderGoesOn(tx *db.Tx, pr row) (ordered bool, err error) {
	a, open, err := openAction.Maybe(tx, pr.ID)
	if err != nil || !open || a.State != ActionApproved {
		return false, err
	}
	if _, err := dueNow.Exec(tx, a.ID, tx.Micros()); err != nil {
		return false, err
	}
	return true, s.approved(tx, pr)
}

// atHead locks an open pull request for a decision about a head. It fails with
// fault.NotFound, and with the reasons pr_not_open and head_moved.
func atHead(tx *db.Tx, prID, headSHA string) (row, error) {
	pr, ok, err := lock(tx, prID)
	switch {
	case err != nil:
		return pr, err
	case !ok:
		return pr, fault.Missing("pull request")
	case pr.HeadSHA != headSHA:
		return pr, movedTo(pr.HeadSHA)
	case pr.State != Open:
		return pr, fault.Reason("pr_not_open", "The pull request is "+pr.State+".")
	}
	return pr, nil
}

// movedTo is the refusal of a call that names another head than the present one.
func movedTo(head string) *fault.Error {
	return fault.Reason("head_moved", "The pull request has a newer head than the one named.").With("current_head_sha", head)
}

// atGreenHead is atHead for a decision that needs a head with passed checks. The caller
// takes over a pull request that was kept although its task was cancelled.
func atGreenHead(tx *db.Tx, prID, headSHA string) (row, error) {
	pr, err := atHead(tx, prID, headSHA)
	if err != nil {
		return pr, err
	}
	if !passed(pr.Checks) {
		return pr, fault.Reason("checks_not_passed", "The checks of this head are "+pr.Checks+".")
	}
	if pr.AbandonedAt == nil {
		return pr, nil
	}
	pr.AbandonedAt = nil
	_, err = adopt.Exec(tx, pr.ID)
	return pr, err
}

// decide answers the question about a head. It fails with head_moved if the head of the
// decision is not the present one.
func (s *Service) decide(tx *db.Tx, in decideIn, state string) (actionRow, error) {
	if other, ok, err := s.otherOf(tx, in); err != nil || ok {
		if err != nil {
			return actionRow{}, err
		}
		return s.decideOther(tx, in, other, state)
	}
	pr, err := atHead(tx, in.ID, in.HeadSHA)
	if err != nil {
		return actionRow{}, err
	}
	a, ok, err := openAction.Maybe(tx, pr.ID)
	if err != nil {
		return actionRow{}, err
	}
	if !ok || a.State != ActionPending || a.HeadSHA != pr.HeadSHA || !tx.Now.Before(a.ExpiresAt) {
		return actionRow{}, fault.Reason("no_pending_action", "Nothing on this head waits for a decision.")
	}
	if err := in.means(a, state); err != nil {
		return actionRow{}, err
	}
	return s.answer(tx, pr, a, state)
}

// means refuses an answer to another question than the open one. It also refuses a yes
// that does not name the question if that is about protected changes: the person may
// have read an earlier question about the same head.
func (in decideIn) means(a actionRow, state string) error {
	if in.ActionID == a.ID || in.ActionID == "" && (a.Protected == nil || state != ActionApproved) {
		return nil
	}
	return fault.Reason("question_changed", "Another question is open, or one that has to be named in action_id: read it first.").
		With("action_id", a.ID).With("question", a.wire().Question)
}

// answer records the answer to an open question.
func (s *Service) answer(tx *db.Tx, pr row, a actionRow, state string) (actionRow, error) {
	return s.answerAs(tx, pr, a, state, policy.From(tx.Context()).Label())
}

// answerAs is answer for the actor with a label.
func (s *Service) answerAs(tx *db.Tx, pr row, a actionRow, state, by string) (actionRow, error) {
	if _, err := decideAction.Exec(tx, decideActionArgs{ID: a.ID, State: state, DecidedBy: by, DecidedAt: tx.Micros()}); err != nil {
		return actionRow{}, err
	}
	a.State, a.DecidedBy, a.DecidedAt = state, &by, &tx.Now
	about := event.Subject{ID: a.ID, RepoID: pr.RepoID}
	if state == ActionApproved {
		if err := approvedEvent.Record(tx, about, approvedData{HeadSHA: a.HeadSHA, PRID: pr.ID}); err != nil {
			return a, err
		}
		if err := errors.Join(s.settle(tx, &pr, by), s.grace(tx, pr, a.ID, by)); err != nil {
			return a, err
		}
		return a, s.approved(tx, pr)
	}
	if err := skippedEvent.Record(tx, about, questionData{HeadSHA: a.HeadSHA, PRID: pr.ID}); err != nil {
		return a, err
	}
	s.Hub.Notify(tx, event.PullTopic)
	if push, err := pushAsked.One(tx, pr.ID); err != nil || push {
		return a, err // that waits yet
	}
	return a, s.needs(tx, pr.ID, NeedsAgain)
}

type decideIn struct {
	ID       string `json:"id" format:"uuid" doc:"id of the pull request"`
	HeadSHA  string `json:"head_sha" pattern:"^[0-9a-f]{40}$" says:"must be the 40 hexadecimal digits of a commit" doc:"the head that was looked at; another one is refused"`
	ActionID string `json:"action_id,omitempty" format:"uuid" doc:"the question that was read, pending_action.id of the pull request; another one is refused. A yes to a question about what is protected wants it"`
}

// Decision is an answer, with the question that it is about.
type Decision struct {
	_      struct{}      `doc:"The question as it was decided." schema:"Decision"`
	Action PendingAction `json:"action" doc:"the question, with its state"`
}

func (s *Service) approve(ctx context.Context, in decideIn) (Decision, error) {
	return s.decided(ctx, func(tx *db.Tx) (actionRow, error) { return s.decide(tx, in, ActionApproved) })
}

func (s *Service) skip(ctx context.Context, in decideIn) (Decision, error) {
	return s.decided(ctx, func(tx *db.Tx) (actionRow, error) { return s.decide(tx, in, ActionSkipped) })
}

// askAgain asks again about a head whose question was declined or expired, or that the
// policy leaves to people.
func (s *Service) askAgain(ctx context.Context, in decideIn) (Decision, error) {
	return s.decided(ctx, func(tx *db.Tx) (actionRow, error) {
		pr, err := atGreenHead(tx, in.ID, in.HeadSHA)
		if err != nil {
			return actionRow{}, err
		}
		if a, open, err := openAction.Maybe(tx, pr.ID); err != nil || open && tx.Now.Before(a.ExpiresAt) {
			return a, err
		} else if open {
			if err := s.expired(tx, pr, a); err != nil {
				return a, err
			}
		}
		if _, err := setLooked.Exec(tx, pr.ID, ""); err != nil {
			return actionRow{}, err
		}
		if err := s.question(tx, pr, nil); err != nil {
			return actionRow{}, err
		}
		return openAction.One(tx, pr.ID)
	})
}

// expired ends a question that was not answered in time.
func (s *Service) expired(tx *db.Tx, pr row, a actionRow) error {
	if n, err := endExpired.Exec(tx, a.ID, tx.Micros()); err != nil || n == 0 {
		return err
	}
	return expiredEvent.Record(tx, event.Subject{ID: a.ID, RepoID: pr.RepoID}, questionData{HeadSHA: a.HeadSHA, PRID: pr.ID})
}

// merge orders the merge of a head, with or without an open question. Before the merge, a
// person is asked about protected changes that the caller was not asked about.
func (s *Service) merge(ctx context.Context, in decideIn) (Decision, error) {
	return s.decided(ctx, func(tx *db.Tx) (actionRow, error) {
		pr, err := atGreenHead(tx, in.ID, in.HeadSHA)
		if err != nil {
			return actionRow{}, err
		}
		switch a, open, err := openAction.Maybe(tx, pr.ID); {
		case err != nil || open && a.State == ActionApproved:
			return a, err
		case open && tx.Now.Before(a.ExpiresAt):
			if err := in.means(a, ActionApproved); err != nil {
				return actionRow{}, err
			}
			return s.answer(tx, pr, a, ActionApproved)
		case open:
			if err := s.expired(tx, pr, a); err != nil {
				return a, err
			}
		}
		if err := s.order(tx, pr, policy.From(ctx).Label()); err != nil {
			return actionRow{}, err
		}
		return openAction.One(tx, pr.ID)
	})
}

func (s *Service) decided(ctx context.Context, decide func(*db.Tx) (actionRow, error)) (out Decision, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		a, err := decide(tx)
		out = Decision{Action: a.wire()}
		return err
	})
	return out, err
}

func passed(checks string) bool { return slices.Contains([]string{ChecksNone, ChecksPassed}, checks) }
