package moves

// Do is what is done.
type Do string

// What is done. Only DoWait, DoPerson and DoDone change nothing.
const (
	DoLook     Do = "look"     // ask git at the host about head and base, and try the merge without moving a ref
	DoCheck    Do = "check"    // begin the own check, and read those at the host
	DoReview   Do = "review"   // have the head reviewed, and each finding that holds the merge looked at again
	DoRepair   Do = "round"    // have an agent work on the branch; Of is the kind
	DoStopWork Do = "stop"     // end a round that has nothing left to do; it is not charged
	DoTakeOver Do = "carry"    // let a decision hold for this head
	DoAsk      Do = "ask"      // ask a person, in place of what was asked or decided before
	DoPushWork Do = "push"     // move the branch of a person to what a round has done
	DoEnter    Do = "enter"    // enter the merge queue; Of tells who has ordered the merge
	DoMerge    Do = "merge"    // put the intent to merge; Of tells who has ordered it
	DoWithdraw Do = "withdraw" // take the intent and the place in the queue back
	DoRecord   Do = "record"   // note the merge that somebody else has made
	DoClose    Do = "close"    // Of is the reason
	DoReopen   Do = "reopen"
	DoWait     Do = "wait"   // something that no person has to do ends it: Of
	DoPerson   Do = "person" // a person ends it: Of is needs_person.why
	DoDone     Do = "done"
)

// Step is what happens now to a pull request, and nothing else does.
type Step struct {
	Do Do
	Of string
}

// What a wait is for.
const (
	ForHost, ForOpening, ForMerge, ForPeople, ForChecks = "host", "opening", "merge", "people", "checks"
	ForReview, ForRound, ForRest, ForSeat, ForBelow     = "review", "round", "rest", "seat", "below"
	ForTurn, ForGrace, ForIntent                        = "turn", "grace", "intent"
)

// Why a person is needed, as needs_person.why says it.
const (
	NeedDecision, NeedAgain, NeedExpired, NeedMerge, NeedRetry = "asked", "declined", "expired", "left_to_people", "merge_failed"
	NeedRearm, NeedChanges, NeedPush, NeedStopped              = "spent", "changes_requested", "push_asked", "stopped"
	NeedBase, NeedCheck, NeedApproval, NeedMachine             = "base_broken", "check_missing", "action_required", "check_infra"
	NeedReady, NeedEnable, NeedPermission                      = "draft", "repo_disabled", "permission_missing"
	NeedBaseBranch, NeedHands, NeedReview                      = "base_missing", "branch_not_ours", "review_held"
)

// Who has ordered a merge, the kinds of rounds, and why a pull request is closed.
const (
	ByPerson, ByPolicy                            = "person", "policy"
	KindConflict, KindCI, KindRequest, KindReview = "conflict", "ci", "request", "review"
	Cancelled, BranchDeleted, NothingLeft, Agreed = "cancelled", "branch_deleted", "nothing_left", "asked"
)
