package pull

import (
	"context"
	"errors"
	"slices"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/moves"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// Reasons why an open pull request waits for a person.
const (
	NeedsDecision = moves.NeedDecision // the question about its head waits for an answer
	NeedsAgain    = moves.NeedAgain    // the question was answered with no
	NeedsExpired  = moves.NeedExpired  // nobody answered in time
	NeedsMerge    = moves.NeedMerge    // the policy says merge.mode: never
	NeedsRetry    = moves.NeedRetry    // the code host did not carry out the merge
	NeedsRearm    = moves.NeedRearm    // agents have used up their rounds

	NeedsBase     = moves.NeedBase     // the base fails in the same way as the checks at the host
	NeedsCheck    = moves.NeedCheck    // a check that is required has never reported
	NeedsApproval = moves.NeedApproval // the host waits for a person to let the checks run
	NeedsMachine  = moves.NeedMachine  // machines that run checks failed

	NeedsChanges = moves.NeedChanges // somebody requests changes, here or at the host
	NeedsPush    = moves.NeedPush    // what a round has done waits for a yes
	NeedsStopped = moves.NeedStopped // a person has had agents leave it alone

	NeedsReady      = moves.NeedReady      // it is a draft
	NeedsEnable     = moves.NeedEnable     // its repository is not enabled
	NeedsPermission = moves.NeedPermission // the App at the code host lacks a permission
	NeedsBaseBranch = moves.NeedBaseBranch // its base does not exist
	NeedsHands      = moves.NeedHands      // agents do not push to its branch
	NeedsReview     = moves.NeedReview     // findings are to be looked at again, and the review is held
)

// Need is a step of a pull request that only a person can take.
type Need struct {
	_          struct{}          `doc:"What only a person can do about a pull request." schema:"Need"`
	Why        string            `json:"why" enum:"asked,declined,expired,left_to_people,merge_failed,spent,base_broken,check_missing,action_required,check_infra,changes_requested,push_asked,stopped,draft,repo_disabled,permission_missing,base_missing,branch_not_ours,review_held" doc:"asked: the question waits; declined and expired: it was answered with no, or not in time; left_to_people: the policy says merge.mode: never; merge_failed: the code host did not carry the merge out; spent: agents have used up their rounds; base_broken: checks at the code host fail at the base in the same way; check_missing: a check that is required there has never reported; action_required: the code host waits for a person to let checks run; check_infra: machines that run the checks failed again and again; changes_requested: somebody requests changes, here or at the code host; push_asked: a round has done its work, and asks before it is pushed to the branch of a person; stopped: a person has had agents leave it alone; draft: somebody is to mark it as ready; repo_disabled: its repository is not enabled; permission_missing: the owner of the repository is to grant it at the code host; base_missing: its base does not exist; branch_not_ours: something is to be mended on a branch that agents do not push to; review_held: findings are to be looked at again, and the task of the review is held"`
	Since      time.Time         `json:"since" doc:"since when it waits for that"`
	ClearsWhen string            `json:"clears_when" example:"a person decides about the merge" doc:"what has to happen, in words for people"`
	Capability *string           `json:"capability" example:"pr.approve_pending" doc:"the operation that gets it going; null: none does, and clears_when says what happens elsewhere"`
	Args       map[string]string `json:"args" example:"{\"id\": \"0199d3a4-5b6c-7d8e-9f01-23456789abcd\", \"head_sha\": \"3f8a1c5e7b9d2046f8a1c5e7b9d2046f8a1c5e7b\"}" doc:"what to call it with"`
}

var clearsWhen = map[string]string{
	NeedsDecision: "a person decides about the merge",
	NeedsAgain:    "a person has the question put again, which was answered with no, or merges it",
	NeedsExpired:  "a person has the question put again, which nobody answered, or merges it",
	NeedsMerge:    "a person merges it, as the policy leaves that to people",
	NeedsRetry:    "a person has the merge tried again, which the code host did not carry out",
	NeedsRearm:    "a person arms the repair again, whose rounds are spent, or mends the branch",
	NeedsBase:     "the base passes the checks again, which fail there in the same way",
	NeedsCheck:    "the check reports that the code host requires, or a person no longer requires it there",
	NeedsApproval: "a person lets the checks run at the code host",
	NeedsMachine:  "the checks are run again, whose machines failed",
	NeedsChanges:  "whoever requested changes approves or takes that back, here or at the code host",
	NeedsPush:     "a person decides whether what an agent has done is pushed to the branch",
	NeedsStopped:  "a person has agents look after it again",

	NeedsReady:      "somebody marks it as ready for review",
	NeedsEnable:     "its repository is enabled",
	NeedsPermission: "the owner of the repository grants a permission at the code host",
	NeedsBaseBranch: "the branch that it is to be merged into is pushed again, or it gets another base",
	NeedsHands:      "somebody mends the branch, where agents do not push",
	NeedsReview:     "what holds the task of the review is cleared, or a person dismisses the findings that hold the merge",
}

// ClearsWhen says in words what ends a wait for a reason, at a pull request whose merge so
// many findings hold.
func ClearsWhen(why string, findings int64) string {
	if why == NeedsRearm && findings > 0 {
		return spentWith(findings)
	}
	return clearsWhen[why]
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

// needRow is a pull request that may wait for a person.
type needRow struct {
	ID      string
	Owner   string
	Name    string
	Needs   string
	NeedsAt *time.Time
	HeadSHA string `db:"head_sha"`
	// Question is the id of the open question about a merge; "" if it is not known.
	Question string
	Findings int64 // that hold the merge
}

// need is the step that a pull request waits for; false if it waits for nobody.
func (of needRow) need() (Need, bool) {
	why := of.Needs
	n := Need{Why: why, Args: map[string]string{"id": of.ID, "head_sha": of.HeadSHA}}
	if of.NeedsAt != nil {
		n.Since = *of.NeedsAt
	}
	n.ClearsWhen = ClearsWhen(why, of.Findings)
	question := of.Question
	switch why {
	case NeedsDecision, NeedsPush:
		if n.Capability = new("pr.approve_pending"); question != "" {
			n.Args["action_id"] = question
		}
	case NeedsAgain, NeedsExpired:
		n.Capability = new("pr.ask_again")
	case NeedsMerge, NeedsRetry:
		n.Capability = new("pr.merge")
	case NeedsRearm, NeedsBase, NeedsCheck, NeedsApproval, NeedsMachine, NeedsChanges, NeedsStopped:
		n.Capability, n.Args = new("pr.rearm_babysit"), map[string]string{"id": of.ID}
	case NeedsEnable:
		n.Capability, n.Args = new("project.update"), map[string]string{"owner": of.Owner, "repo": of.Name, "enabled": "true"}
	case NeedsReady, NeedsPermission, NeedsBaseBranch, NeedsHands, NeedsReview:
		n.Args = map[string]string{}
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
		if n, ok := r.need(); ok {
			out[r.ID] = n
		}
	}
	return out, err
}

// byPolicy is the author of an order that no person gave.
const byPolicy = "policy"

// order orders the merge of a head.
func (s *Service) order(tx *db.Tx, pr *row, by string) error {
	actionID := id.New()
	n, err := insertAction.Exec(tx, insertActionArgs{
		ID: actionID, AccountID: tx.Account, PRID: pr.ID, Kind: "merge", HeadSHA: pr.HeadSHA, State: ActionApproved,
		DecidedBy: &by, RequestedAt: tx.Micros(), DecidedAt: &tx.Now, ExpiresAt: db.Micros(tx.Now.Add(askFor)),
		Protected: nil,
	})
	if err != nil || n == 0 {
		return err // there is an action for the head already
	}
	if err := notCarried(tx, pr); err != nil {
		return err
	}
	about := event.Subject{ID: actionID, RepoID: pr.RepoID}
	if by == byPolicy {
		err = AskedEvent.Record(tx, about, askedData{HeadSHA: pr.HeadSHA, Kind: "merge", PRID: pr.ID})
	} else { // without a question before
		err = approvedEvent.Record(tx, about, approvedData{HeadSHA: pr.HeadSHA, Kind: "merge", PRID: pr.ID})
	}
	if err == nil {
		err = errors.Join(s.settle(tx, pr, by), s.grace(tx, pr, &actionRow{ID: actionID}, by))
	}
	s.Hub.Notify(tx, event.PullTopic)
	return err
}

// atHead locks an open pull request for a decision about a head. It fails with
// fault.NotFound, and with the reasons pr_not_open and head_moved.
func atHead(tx *db.Tx, prID, headSHA string) (*row, error) {
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
func atGreenHead(tx *db.Tx, prID, headSHA string) (*row, error) {
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
	return pr, adopt(tx, pr)
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
// that does not name the question if that names something: the person may
// have read an earlier question about the same head.
func (in decideIn) means(a actionRow, state string) error {
	if in.ActionID == a.ID || in.ActionID == "" && (!a.names() || state != ActionApproved) {
		return nil
	}
	return fault.Reason("question_changed", "Another question is open, or one that has to be named in action_id: read it first.").
		With("action_id", a.ID).With("question", a.wire().Question)
}

// answer records the answer to an open question.
func (s *Service) answer(tx *db.Tx, pr *row, a actionRow, state string) (actionRow, error) {
	return s.answerAs(tx, pr, a, state, policy.From(tx.Context()).Label())
}

// answerAs is answer for the actor with a label.
func (s *Service) answerAs(tx *db.Tx, pr *row, a actionRow, state, by string) (actionRow, error) {
	if _, err := decideAction.Exec(tx, decideActionArgs{ID: a.ID, State: state, DecidedBy: by, DecidedAt: tx.Micros()}); err != nil {
		return actionRow{}, err
	}
	a.State, a.DecidedBy, a.DecidedAt = state, &by, &tx.Now
	about := event.Subject{ID: a.ID, RepoID: pr.RepoID}
	if state == ActionApproved {
		if err := approvedEvent.Record(tx, about, approvedData{HeadSHA: a.HeadSHA, PRID: pr.ID}); err != nil {
			return a, err
		}
		if err := errors.Join(s.settle(tx, pr, by), s.grace(tx, pr, &a, by)); err != nil {
			return a, err
		}
		s.Hub.Notify(tx, event.PullTopic)
		return a, s.move(tx, pr)
	}
	if err := skippedEvent.Record(tx, about, questionData{HeadSHA: a.HeadSHA, PRID: pr.ID}); err != nil {
		return a, err
	}
	s.Hub.Notify(tx, event.PullTopic)
	return a, s.move(tx, pr)
}

type decideIn struct {
	ID       string `json:"id" format:"uuid" doc:"id of the pull request"`
	HeadSHA  string `json:"head_sha" pattern:"^[0-9a-f]{40}$" says:"must be the 40 hexadecimal digits of a commit" doc:"the head that was looked at; another one is refused"`
	ActionID string `json:"action_id,omitempty" format:"uuid" doc:"pending_action.id of the question that was read; another one is refused. A yes about what is protected wants it"`
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
			if _, err := s.expired(tx, pr, a.ID, a.HeadSHA); err != nil {
				return a, err
			}
		}
		pr.LookedSHA = ""
		if err := save(tx, pr); err != nil {
			return actionRow{}, err
		}
		if err := s.question(tx, pr, nil); err != nil {
			return actionRow{}, err
		}
		if err := s.move(tx, pr); err != nil {
			return actionRow{}, err
		}
		return openAction.One(tx, pr.ID)
	})
}

// expired ends a question that was not answered in time; false if it has ended already.
func (s *Service) expired(tx *db.Tx, pr *row, actionID, headSHA string) (bool, error) {
	if n, err := endExpired.Exec(tx, actionID, tx.Micros()); err != nil || n == 0 {
		return false, err
	}
	return true, expiredEvent.Record(tx, event.Subject{ID: actionID, RepoID: pr.RepoID}, questionData{HeadSHA: headSHA, PRID: pr.ID})
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
			if _, err := s.expired(tx, pr, a.ID, a.HeadSHA); err != nil {
				return a, err
			}
		}
		if err := s.order(tx, pr, policy.From(ctx).Label()); err != nil {
			return actionRow{}, err
		}
		if err := s.move(tx, pr); err != nil {
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

// need is the step that a pull request waits for, whose open question has an id.
func (r row) need(question string) (Need, bool) {
	return needRow{ID: r.ID, Owner: r.Owner, Name: r.Name, Needs: r.Needs, NeedsAt: r.NeedsAt, HeadSHA: r.HeadSHA, Question: question,
		Findings: r.Findings}.need()
}

func passed(checks string) bool { return slices.Contains([]string{ChecksNone, ChecksPassed}, checks) }
