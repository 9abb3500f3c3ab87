package moves

// line is one line of the table.
type line struct {
	When  string // for the page
	Then  Step
	Keeps bool // an intent to merge and a place in a queue stay; each other line takes them back
	Is    func(Facts, Rules) bool
}

const keeps = true

// green tells whether the checks hold nothing.
func green(f Facts) bool { return f.Checks.Is(ChecksNone, ChecksPassed) }

// decided tells whether a person has asked for the merge, or was asked about it.
func decided(f Facts) bool { return !f.Yes.Is(NoYes) || f.Question.Is(Asked, Narrow) }

// trouble is what an agent has to repair at the head, as a kind of round: a conflict and a
// red check come first, since nobody can judge such a head; then what people say, then
// what the reviewer says.
func trouble(f Facts) string {
	switch {
	case f.Fit.Is(Conflict):
		return KindConflict
	case f.Checks.Is(ChecksFailed):
		return KindCI
	case f.Objections.Is(FreshRequest):
		return KindRequest
	case f.Findings.Is(OpenFindings), f.Findings.Is(AgainFindings) && !f.Watch.Is(Watched):
		return KindReview
	}
	return ""
}

// reviewDue tells whether the head is to be reviewed: the rules ask for it and nobody has
// tried, or findings are to be looked at again.
func reviewDue(f Facts, r Rules) bool {
	if !f.Watch.Is(Watched) || f.Draft.Is(Drafted) || f.Review.Is(ReviewRunning, ReviewHeld) || !f.Round.Is(NoRound, Resting) {
		return false
	}
	return trouble(f) == "" && (f.Findings.Is(AgainFindings) || f.Review.Is(ReviewNone) && r.Reviewer.Is(ReviewAuto))
}

// unlooked tells whether the rules ask for a review of the head which nobody has made.
func unlooked(f Facts, r Rules) bool { return r.Reviewer.Is(ReviewAuto) && !f.Review.Is(ReviewLooked) }

// noPushes tells whether agents may not work on the branch at all.
func noPushes(f Facts, r Rules) bool {
	return f.Branch.Is(ForkBranch, DefaultBranch) || f.Branch.Is(TheirBranch) && r.Pushes.Is(PushesNever)
}

func withoutYes(f Facts) bool { return f.Yes.Is(NoYes) }

var lines = []line{
	// What has ended, and what the host knows better.
	{"it is merged or closed", Step{DoDone, ""}, keeps,
		func(f Facts, _ Rules) bool { return f.State.Is(Merged, Closed) }},
	{"its host is yet to open it, and its task was cancelled", Step{DoClose, Cancelled}, keeps,
		func(f Facts, _ Rules) bool { return f.State.Is(Opening) && f.Abandoned.Is(GivenUp) }},
	{"its host is yet to open it", Step{DoWait, ForOpening}, keeps,
		func(f Facts, _ Rules) bool { return f.State.Is(Opening) }},
	{"a person has said yes to opening it again", Step{DoReopen, ""}, keeps,
		func(f Facts, _ Rules) bool { return f.State.Is(Reopening) }},
	{"the host was told to merge it, and has not answered", Step{DoWait, ForMerge}, keeps,
		func(f Facts, _ Rules) bool { return f.Act.Is(ActCalled) }},
	{"its head is in the base", Step{DoRecord, ""}, keeps,
		func(f Facts, _ Rules) bool { return f.Known.Is(Landed) }},
	{"its branch is gone", Step{DoClose, BranchDeleted}, keeps,
		func(f Facts, _ Rules) bool { return f.Known.Is(Gone) }},
	{"its branch has nothing that the base does not have", Step{DoClose, NothingLeft}, keeps,
		func(f Facts, _ Rules) bool { return f.Known.Is(Empty) }},
	{"a person has said yes to closing it", Step{DoClose, Agreed}, keeps,
		func(f Facts, _ Rules) bool { return f.State.Is(Closing) }},
	{"its task was cancelled, and the policy closes it then", Step{DoClose, Cancelled}, keeps,
		func(f Facts, r Rules) bool { return f.Abandoned.Is(GivenUp) && r.OnCancel.Is(CancelCloses) }},

	// What it is, and whether anything may be done about it.
	{"head or base have moved", Step{DoLook, ""}, keeps,
		func(f Facts, _ Rules) bool { return f.Known.Is(Unread) && f.Host.Is(HostAnswers) }},
	{"the repository is not enabled", Step{DoPerson, NeedEnable}, !keeps,
		func(f Facts, _ Rules) bool { return f.Enabled.Is(RepoOff) }},
	{"head or base have moved, and the host takes no calls", Step{DoWait, ForHost}, keeps,
		func(f Facts, _ Rules) bool { return f.Known.Is(Unread) && f.Host.Is(HostBusy) }},
	{"head or base have moved, and the host does not let us read them", Step{DoPerson, NeedPermission}, keeps,
		func(f Facts, _ Rules) bool { return f.Known.Is(Unread) }},
	{"its base branch does not exist", Step{DoPerson, NeedBaseBranch}, !keeps,
		func(f Facts, _ Rules) bool { return f.Known.Is(NoBase) }},
	{"its task was cancelled, it is kept, and it is green", Step{DoPerson, NeedMerge}, !keeps,
		func(f Facts, _ Rules) bool { return f.Abandoned.Is(GivenUp) && green(f) }},
	{"its task was cancelled, and it is kept", Step{DoPerson, NeedRearm}, !keeps,
		func(f Facts, _ Rules) bool { return f.Abandoned.Is(GivenUp) }},
	{"a person has said yes to a push", Step{DoPushWork, ""}, !keeps,
		func(f Facts, _ Rules) bool { return f.Push.Is(PushGranted) }},
	{"nobody has begun the checks of this head", Step{DoCheck, ""}, !keeps,
		func(f Facts, _ Rules) bool { return f.Checks.Is(ChecksDue) }},
	{"it is of people, and nobody has asked for anything", Step{DoWait, ForPeople}, !keeps,
		func(f Facts, _ Rules) bool { return f.Watch.Is(Shown) && !decided(f) }},
	{"a person has had agents leave it alone", Step{DoPerson, NeedStopped}, !keeps,
		func(f Facts, _ Rules) bool { return f.Watch.Is(Stopped) && !decided(f) }},

	// Checks, reviews and rounds that are under way.
	{"a review of this head is due, and nothing is to be repaired", Step{DoReview, ""}, !keeps,
		func(f Facts, r Rules) bool {
			return f.Checks.Is(ChecksPending, ChecksNone, ChecksPassed) && reviewDue(f, r)
		}},
	{"its checks go on", Step{DoWait, ForChecks}, !keeps,
		func(f Facts, _ Rules) bool { return f.Checks.Is(ChecksPending) }},
	{"an agent works on the branch, and what it repairs is over", Step{DoStopWork, ""}, !keeps,
		func(f Facts, _ Rules) bool { return f.Round.Is(RoundRunning) && green(f) && trouble(f) == "" }},
	{"an agent works on the branch", Step{DoWait, ForRound}, !keeps,
		func(f Facts, _ Rules) bool { return f.Round.Is(RoundRunning, RoundGoingOn) }},

	// Checks that no agent can repair.
	{"a check that is required has not reported in time", Step{DoPerson, NeedCheck}, !keeps,
		func(f Facts, _ Rules) bool { return f.Checks.Is(ChecksMissing) }},
	{"the host waits for a person to let checks run", Step{DoPerson, NeedApproval}, !keeps,
		func(f Facts, _ Rules) bool { return f.Checks.Is(ChecksAction) }},
	{"machines failed, and running the checks again did not help", Step{DoPerson, NeedMachine}, !keeps,
		func(f Facts, _ Rules) bool { return f.Checks.Is(ChecksInfra) }},
	{"the base fails its checks in the same way", Step{DoPerson, NeedBase}, !keeps,
		func(f Facts, _ Rules) bool { return f.Checks.Is(ChecksBase) }},

	// Trouble that an agent can repair: a conflict, a red check, a request of a person, a finding.
	{"trouble, and what a round has done waits for a yes", Step{DoPerson, NeedPush}, !keeps,
		func(f Facts, _ Rules) bool { return trouble(f) != "" && f.Push.Is(PushAsked) }},
	{"trouble, on a branch that agents do not push to", Step{DoPerson, NeedHands}, !keeps,
		func(f Facts, r Rules) bool { return trouble(f) != "" && noPushes(f, r) }},
	{"trouble, and agents do not look after it", Step{DoPerson, NeedStopped}, !keeps,
		func(f Facts, _ Rules) bool { return trouble(f) != "" && !f.Watch.Is(Watched) }},
	{"trouble, and the last round changed nothing", Step{DoWait, ForRest}, !keeps,
		func(f Facts, _ Rules) bool { return trouble(f) != "" && f.Round.Is(Resting) }},
	{"it conflicts with its base", Step{DoRepair, KindConflict}, !keeps,
		func(f Facts, _ Rules) bool { return trouble(f) == KindConflict && f.Conflicts.Is(RoundsLeft) }},
	{"a check has failed", Step{DoRepair, KindCI}, !keeps,
		func(f Facts, _ Rules) bool { return trouble(f) == KindCI && f.CI.Is(RoundsLeft) }},
	{"a person requests changes", Step{DoRepair, KindRequest}, !keeps,
		func(f Facts, _ Rules) bool { return trouble(f) == KindRequest && f.Requests.Is(RoundsLeft) }},
	{"findings hold it", Step{DoRepair, KindReview}, !keeps,
		func(f Facts, _ Rules) bool { return trouble(f) == KindReview && f.Reviews.Is(RoundsLeft) }},
	{"a person requests changes, and no round is left", Step{DoPerson, NeedChanges}, !keeps,
		func(f Facts, _ Rules) bool { return trouble(f) == KindRequest }},
	{"trouble, and no round of its kind is left", Step{DoPerson, NeedRearm}, !keeps,
		func(f Facts, _ Rules) bool { return trouble(f) != "" }},

	// The head is sound. Whether anybody has looked at it.
	{"it is a draft", Step{DoPerson, NeedReady}, !keeps,
		func(f Facts, _ Rules) bool { return f.Draft.Is(Drafted) }},
	{"its review goes on", Step{DoWait, ForReview}, !keeps,
		func(f Facts, _ Rules) bool { return f.Review.Is(ReviewRunning) }},
	{"findings are to be looked at again, and the review is held", Step{DoPerson, NeedReview}, !keeps,
		func(f Facts, _ Rules) bool { return f.Findings.Is(AgainFindings) }},

	// The decision.
	{"a yes or a question does not name all that the merge would do", Step{DoAsk, ""}, !keeps,
		func(f Facts, _ Rules) bool { return f.Yes.Is(YesNarrow) || f.Question.Is(Narrow) }},
	{"an earlier head has the same change and a decision, and the merge would do nothing that has to be named", Step{DoTakeOver, ""}, !keeps,
		func(f Facts, _ Rules) bool {
			return withoutYes(f) && f.Carry.Is(CarryQuestion, CarryYes) && f.Names.Is(NamesNothing)
		}},
	{"a question about this head waits", Step{DoPerson, NeedDecision}, !keeps,
		func(f Facts, _ Rules) bool { return withoutYes(f) && f.Question.Is(Asked) }},
	{"a person has said no to this head", Step{DoPerson, NeedAgain}, !keeps,
		func(f Facts, _ Rules) bool { return withoutYes(f) && f.Question.Is(Declined) }},
	{"nobody has answered in time", Step{DoPerson, NeedExpired}, !keeps,
		func(f Facts, _ Rules) bool { return withoutYes(f) && f.Question.Is(Expired) }},
	{"the merge would do what has to be named", Step{DoAsk, ""}, !keeps,
		func(f Facts, _ Rules) bool { return withoutYes(f) && f.Names.Is(NamesSomething) }},
	{"an agent has answered what a person requested", Step{DoAsk, ""}, !keeps,
		func(f Facts, _ Rules) bool { return withoutYes(f) && f.Objections.Is(AnsweredRequest) }},
	{"`merge.mode: never`", Step{DoPerson, NeedMerge}, !keeps,
		func(f Facts, r Rules) bool { return withoutYes(f) && r.Mode.Is(ModeNever) }},
	{"`merge.mode: ask`", Step{DoAsk, ""}, !keeps,
		func(f Facts, r Rules) bool { return withoutYes(f) && r.Mode.Is(ModeAsk) }},
	{"`merge.mode: auto`, and a person has said no to an earlier head", Step{DoAsk, ""}, !keeps,
		func(f Facts, _ Rules) bool { return withoutYes(f) && f.Refused.Is(WasRefused) }},
	{"`merge.mode: auto`, and what a round has done waits for a yes", Step{DoPerson, NeedPush}, !keeps,
		func(f Facts, _ Rules) bool { return withoutYes(f) && f.Push.Is(PushAsked) }},
	{"`merge.mode: auto`, and the review that the policy asks for was not made", Step{DoAsk, ""}, !keeps,
		func(f Facts, r Rules) bool { return withoutYes(f) && unlooked(f, r) }},

	// The merge, ordered by a person or by the policy.
	{"ordered, and whoever requested changes is yet to take that back", Step{DoPerson, NeedChanges}, !keeps,
		func(f Facts, _ Rules) bool { return f.Objections.Is(AnsweredRequest) }},
	{"ordered a moment ago, and can be taken back", Step{DoWait, ForGrace}, !keeps,
		func(f Facts, _ Rules) bool { return f.Yes.Is(YesFresh) }},
	{"ordered, and the work below is not merged", Step{DoWait, ForBelow}, !keeps,
		func(f Facts, _ Rules) bool { return f.Under.Is(UnmergedBelow) }},
	{"ordered, and the host has refused the merge for good", Step{DoPerson, NeedRetry}, !keeps,
		func(f Facts, _ Rules) bool { return f.Act.Is(ActFailed) }},
	{"ordered, and the base has a queue", Step{DoEnter, ByPerson}, keeps,
		func(f Facts, _ Rules) bool { return f.Turn.Is(TurnOut) && f.Yes.Is(YesFirm) }},
	{"the same, ordered by the policy", Step{DoEnter, ByPolicy}, keeps,
		func(f Facts, _ Rules) bool { return f.Turn.Is(TurnOut) }},
	{"ordered, and its turn has not come", Step{DoWait, ForTurn}, keeps,
		func(f Facts, _ Rules) bool { return f.Turn.Is(TurnWaiting) }},
	{"the merge is to be made, and the host takes no calls", Step{DoWait, ForHost}, keeps,
		func(f Facts, _ Rules) bool { return f.Act.Is(ActPut) && f.Host.Is(HostBusy) }},
	{"the merge is to be made, and a permission is missing", Step{DoPerson, NeedPermission}, keeps,
		func(f Facts, _ Rules) bool { return f.Act.Is(ActPut) && f.Host.Is(HostRefuses) }},
	{"the merge is to be made", Step{DoWait, ForIntent}, keeps,
		func(f Facts, _ Rules) bool { return f.Act.Is(ActPut) }},
	{"ordered by a person", Step{DoMerge, ByPerson}, keeps,
		func(f Facts, _ Rules) bool { return f.Yes.Is(YesFirm) }},
	{"ordered by the policy: `merge.mode: auto`, and nothing above", Step{DoMerge, ByPolicy}, keeps,
		func(Facts, Rules) bool { return true }},
}
