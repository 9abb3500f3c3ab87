package moves

// exclusion says that some facts cannot occur together, and why.
type exclusion struct {
	Why string
	Is  func(Facts) bool
}

// Valid tells whether the facts can occur together. What Valid lets through and nothing
// can bring about does no harm: it is one case more that the table has to answer.
func Valid(f Facts) bool {
	for _, e := range exclusions {
		if e.Is(f) {
			return false
		}
	}
	return true
}

// exclusions say what cannot occur. No step and no change leads to one of them.
var exclusions = []exclusion{
	{"nothing is known of a pull request before its host has opened it", func(f Facts) bool {
		return f.State.Is(Opening) && !(f.Known.Is(Unread) && f.Checks.Is(ChecksDue) && f.Review.Is(ReviewNone) &&
			f.Findings.Is(NoFindings) && f.Objections.Is(NoRequest) && f.Round.Is(NoRound) && f.Push.Is(NoPush) &&
			f.Question.Is(NoQuestion) && f.Refused.Is(NeverRefused) && f.Carry.Is(NoCarry) && f.Yes.Is(NoYes) && f.Act.Is(NoAct) &&
			!f.Turn.Is(TurnWaiting) && f.Branch.Is(OwnBranch) && f.Watch.Is(Watched))
	}},
	{"the questions, orders, rounds and intents of what has ended have ended with it", func(f Facts) bool {
		return f.State.Is(Merged, Closed, Reopening) && !(f.Round.Is(NoRound) && f.Push.Is(NoPush) && !f.Question.Is(Asked, Narrow) &&
			f.Carry.Is(NoCarry) && f.Yes.Is(NoYes) && f.Act.Is(NoAct) && !f.Turn.Is(TurnWaiting) && !f.Review.Is(ReviewRunning, ReviewHeld))
	}},
	{"a pull request that was closed with its task is not opened again by a wish", func(f Facts) bool {
		return f.State.Is(Reopening) && f.Abandoned.Is(GivenUp)
	}},
	{"a yes answers the question about its head", func(f Facts) bool { return !f.Yes.Is(NoYes) && !f.Question.Is(NoQuestion) }},
	{"narrow means that the merge would do what was not named", func(f Facts) bool {
		return (f.Yes.Is(YesNarrow) || f.Question.Is(Narrow)) && f.Known.Is(Read) && f.Names.Is(NamesNothing)
	}},
	{"a decision is carried to a head about which nobody was asked", func(f Facts) bool {
		return !f.Carry.Is(NoCarry) && !(f.Question.Is(NoQuestion) && f.Yes.Is(NoYes))
	}},
	{"a look decides about a carry", func(f Facts) bool { return f.Carry.Is(MaybeQuestion, MaybeYes) && f.Known.Is(Read) }},
	{"a merge is put once its turn has come, and taken back before it waits again", func(f Facts) bool {
		return f.Act.Is(ActPut, ActCalled) && !f.Turn.Is(TurnFree) || f.Act.Is(ActFailed) && f.Turn.Is(TurnWaiting)
	}},
	{"agents look after no fork: nothing of theirs could be pushed", func(f Facts) bool {
		return f.Watch.Is(Watched, Stopped) && f.Branch.Is(ForkBranch)
	}},
	{"a pull request of an agent's task is watched until a person stops that", func(f Facts) bool {
		return f.Watch.Is(Shown) && f.Branch.Is(OwnBranch)
	}},
	{"only a pull request of a task can be abandoned", func(f Facts) bool {
		return f.Abandoned.Is(GivenUp) && !f.Branch.Is(OwnBranch)
	}},
	{"a cancel ends questions, orders, rounds and reviews; a merge that was called for goes on", func(f Facts) bool {
		return f.Abandoned.Is(GivenUp) && !(f.Question.Is(NoQuestion, Declined, Expired) && f.Round.Is(NoRound) && f.Push.Is(NoPush) &&
			f.Carry.Is(NoCarry) && !f.Review.Is(ReviewRunning, ReviewHeld) &&
			(f.Act.Is(ActCalled) || f.Yes.Is(NoYes) && !f.Act.Is(ActPut) && !f.Turn.Is(TurnWaiting)))
	}},
	{"rounds that no person asked for are of watched pull requests", func(f Facts) bool {
		return f.Round.Is(RoundRunning, Resting) && !f.Watch.Is(Watched)
	}},
	{"no round runs where agents do not push", func(f Facts) bool {
		return !f.Round.Is(NoRound) && f.Branch.Is(ForkBranch, DefaultBranch)
	}},
	{"work is pushed for a person only to a branch of theirs", func(f Facts) bool {
		return f.Push.Is(PushAsked, PushGranted) && !f.Branch.Is(TheirBranch)
	}},
	{"while a round is under way there is no question about its push", func(f Facts) bool {
		return f.Push.Is(PushAsked, PushGranted) && f.Round.Is(RoundRunning, RoundGoingOn)
	}},
	{"only work of a task is begun on other work", func(f Facts) bool { return f.Under.Is(UnmergedBelow) && !f.Branch.Is(OwnBranch) }},
}
