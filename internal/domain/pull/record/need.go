package record

import (
	"time"

	"yardmaster/internal/domain/pull/moves"
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

// NeedReason is why a pull request waits for a person.
type NeedReason string

// Values lists all reasons.
func (NeedReason) Values() []string {
	return []string{
		NeedsDecision, NeedsAgain, NeedsExpired, NeedsMerge, NeedsRetry, NeedsRearm,
		NeedsBase, NeedsCheck, NeedsApproval, NeedsMachine, NeedsChanges, NeedsPush, NeedsStopped,
		NeedsReady, NeedsEnable, NeedsPermission, NeedsBaseBranch, NeedsHands, NeedsReview,
	}
}

// Need is a step of a pull request that only a person can take.
type Need struct {
	_          struct{}          `doc:"What only a person can do about a pull request." schema:"Need"`
	Why        NeedReason        `json:"why" doc:"asked: the question waits; declined and expired: it was answered with no, or not in time; left_to_people: the policy says merge.mode: never; merge_failed: the code host did not carry the merge out; spent: agents have used up their rounds; base_broken: checks at the code host fail at the base in the same way; check_missing: a check that is required there has never reported; action_required: the code host waits for a person to let checks run; check_infra: machines that run the checks failed again and again; changes_requested: somebody requests changes, here or at the code host; push_asked: a round has done its work, and asks before it is pushed to the branch of a person; stopped: a person has had agents leave it alone; draft: somebody is to mark it as ready; repo_disabled: its repository is not enabled; permission_missing: the owner of the repository is to grant it at the code host; base_missing: its base does not exist; branch_not_ours: something is to be mended on a branch that agents do not push to; review_held: findings are to be looked at again, and the task of the review is held"`
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

// Need is the step that a pull request waits for; false if it waits for nobody.
func (of needRow) Need() (Need, bool) {
	why := of.Needs
	n := Need{Why: NeedReason(why), Args: map[string]string{"id": of.ID, "head_sha": of.HeadSHA}}
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

// Need is the step that a pull request waits for, whose open question has an id.
func (r Pull) Need(question string) (Need, bool) {
	return needRow{ID: r.ID, Owner: r.Owner, Name: r.Name, Needs: r.Needs, NeedsAt: r.NeedsAt, HeadSHA: r.HeadSHA, Question: question,
		Findings: r.Findings}.Need()
}
