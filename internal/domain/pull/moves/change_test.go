package moves

import "testing"

// Who brings a change about.
const (
	ByHost   = "host"   // the code host, or people there
	ByOurs   = "ours"   // a check, a review, a round or a queue of the server has come to something
	ByClock  = "clock"  // a time has come
	ByCall   = "call"   // a person, by a capability
	ByPeople = "people" // a person, with git or at the host
)

// Change is something that no step does. Can is the guard of its handler: a capability
// that cannot be called answers 409 with a reason.
type Change struct {
	Name string
	By   string
	Can  func(Facts, Rules) bool
	Do   func(Facts) []Facts
}

func one(do func(*Facts)) func(Facts) []Facts {
	return func(f Facts) []Facts { return []Facts{with(f, do)} }
}

// orders is a person's yes. A later yes ends an earlier no, takes over what was abandoned
// or left alone for this merge, and has a merge tried again that failed. RepoOn our own host
// it settles requests for changes that a round has answered; at a host that keeps reviews
// their author does (second outcome).
func orders(f Facts) []Facts {
	f.Question, f.Carry, f.Refused, f.Abandoned = NoQuestion, NoCarry, NeverRefused, CaredFor
	f.Yes = YesFresh
	if f.Act.Is(ActFailed) {
		f.Act = NoAct
	}
	if f.Objections.Is(AnsweredRequest) {
		return []Facts{with(f, func(f *Facts) { f.Objections = NoRequest }), f}
	}
	return []Facts{f}
}

func fails(f *Facts) { f.Act = ActFailed }

// Changes are all that can happen besides steps.
var Changes = []Change{
	// At the host, and in git.
	{"opened", ByHost, func(f Facts, _ Rules) bool { return f.State.Is(Opening) }, one(func(f *Facts) { f.State = Open })},
	{"not opened", ByHost, func(f Facts, _ Rules) bool { return f.State.Is(Opening) },
		one(func(f *Facts) { f.State = Closed; clear(f) })},
	{"push", ByPeople, func(f Facts, _ Rules) bool { return live(f) }, func(f Facts) []Facts { return []Facts{moved(f)} }},
	{"base moves", ByPeople, func(f Facts, _ Rules) bool { return live(f) }, one(func(f *Facts) { f.Known = Unread })},
	{"base rewritten", ByPeople, func(f Facts, _ Rules) bool { return live(f) }, one(func(f *Facts) { f.Known = Unread })},
	{"branch deleted", ByPeople, func(f Facts, _ Rules) bool { return live(f) }, one(func(f *Facts) { f.Known = Unread })},
	{"base is back", ByPeople, func(f Facts, _ Rules) bool { return live(f) && f.Known.Is(NoBase) },
		one(func(f *Facts) { f.Known = Unread })},
	{"retarget", ByPeople, func(f Facts, _ Rules) bool { return live(f) && !called(f) }, func(f Facts) []Facts {
		f = moved(f)
		f.Carry = NoCarry
		return []Facts{f}
	}},
	{"ready for review", ByPeople, func(f Facts, _ Rules) bool { return live(f) && f.Draft.Is(Drafted) },
		one(func(f *Facts) { f.Draft = Ready })},
	{"made a draft", ByPeople, func(f Facts, _ Rules) bool { return live(f) && f.Draft.Is(Ready) },
		one(func(f *Facts) { f.Draft = Drafted })},
	{"merged there", ByPeople, func(f Facts, _ Rules) bool { return live(f) },
		one(func(f *Facts) { f.State = Merged; clear(f) })},
	{"closed there", ByPeople, func(f Facts, _ Rules) bool { return live(f) && !called(f) },
		one(func(f *Facts) { f.State = Closed; clear(f) })},
	{"opened again", ByPeople, func(f Facts, _ Rules) bool { return f.State.Is(Closed) && f.Abandoned.Is(CaredFor) },
		func(f Facts) []Facts {
			f.State = Open
			return []Facts{moved(f)}
		}},
	{"host is busy", ByHost, func(f Facts, _ Rules) bool { return live(f) && !f.Host.Is(HostBusy) },
		one(func(f *Facts) { f.Host = HostBusy })},
	{"host refuses", ByHost, func(f Facts, _ Rules) bool { return live(f) && !f.Host.Is(HostRefuses) },
		one(func(f *Facts) { f.Host = HostRefuses })},
	{"host answers", ByHost, func(f Facts, _ Rules) bool { return live(f) && f.Host.Is(HostBusy) },
		one(func(f *Facts) { f.Host = HostAnswers })},
	{"permission granted", ByPeople, func(f Facts, _ Rules) bool { return live(f) && f.Host.Is(HostRefuses) },
		one(func(f *Facts) { f.Host = HostAnswers })},

	// Checks.
	{"checks pass", ByOurs, checked, one(func(f *Facts) { f.Checks = ChecksPassed })},
	{"checks fail", ByOurs, checked, one(func(f *Facts) { f.Checks = ChecksFailed })},
	{"a check is missing", ByClock, checked, one(func(f *Facts) { f.Checks = ChecksMissing })},
	{"machines fail", ByHost, checked, one(func(f *Facts) { f.Checks = ChecksInfra })},
	{"checks wait for a person", ByHost, checked, one(func(f *Facts) { f.Checks = ChecksAction })},
	{"the base fails as well", ByHost, checked, one(func(f *Facts) { f.Checks = ChecksBase })},
	{"checks begin again", ByHost, func(f Facts, _ Rules) bool { return live(f) && !f.Checks.Is(ChecksDue, ChecksPending) },
		one(func(f *Facts) { f.Checks = ChecksPending })},
	{"policy names a check", ByPeople, func(f Facts, _ Rules) bool { return live(f) && f.Checks.Is(ChecksNone) },
		one(func(f *Facts) { f.Checks = ChecksDue })},

	// Reviews.
	{"review ends", ByOurs, func(f Facts, _ Rules) bool { return live(f) && f.Review.Is(ReviewRunning) }, func(f Facts) []Facts {
		return reviewed(f, ReviewLooked, ReviewBlind, ReviewFailed, ReviewCancelled)
	}},
	{"review is held", ByOurs, func(f Facts, _ Rules) bool { return live(f) && f.Review.Is(ReviewRunning) },
		one(func(f *Facts) { f.Review = ReviewHeld })},
	{"review goes on", ByCall, calls["review goes on"],
		one(func(f *Facts) { f.Review = ReviewRunning })},
	{"review.rerun", ByCall, calls["review.rerun"], one(func(f *Facts) {
		f.Review = ReviewRunning
		if f.Findings.Is(OpenFindings) {
			f.Findings = AgainFindings
		}
	})},
	{"review.dismiss", ByCall, calls["review.dismiss"],
		one(func(f *Facts) { f.Findings = NoFindings })},

	// Requests for changes.
	{"review.request_changes", ByCall, calls["review.request_changes"], func(f Facts) []Facts {
		f.Objections, f.Refused = FreshRequest, WasRefused
		if f.Yes.Is(NoYes) || called(f) {
			return []Facts{f}
		}
		own := with(f, func(f *Facts) { f.Yes = NoYes; withdraw(f) }) // whoever gave the yes takes it back by this
		return []Facts{f, own}
	}},
	{"request settled", ByCall, calls["request settled"],
		one(func(f *Facts) { f.Objections = NoRequest })},

	// Rounds.
	{"round ends", ByOurs, func(f Facts, _ Rules) bool { return live(f) && f.Round.Is(RoundRunning, RoundGoingOn) },
		func(f Facts) []Facts {
			f.Round = NoRound
			still := f
			still.Round = Resting
			if !f.Watch.Is(Watched) {
				still.Round = NoRound
			}
			if f.Findings.Is(OpenFindings) {
				still.Findings = AgainFindings // it may have said why a finding is wrong
			}
			if f.Objections.Is(FreshRequest) {
				f.Objections, still.Objections = AnsweredRequest, AnsweredRequest
			}
			out := []Facts{moved(f), still, with(f, spendAll)} // it pushed; it changed nothing; a person cancelled it
			if f.Branch.Is(TheirBranch) {
				out = append(out, with(f, func(f *Facts) { f.Push = PushAsked }))
			}
			return out
		}},
	{"rest is over", ByClock, func(f Facts, _ Rules) bool { return live(f) && f.Round.Is(Resting) },
		one(func(f *Facts) { f.Round = NoRound })},
	{"a round is asked for", ByPeople, func(f Facts, _ Rules) bool {
		return tendable(f) && !f.Branch.Is(DefaultBranch) && f.Abandoned.Is(CaredFor) && f.Round.Is(NoRound, Resting) &&
			f.Push.Is(NoPush) && f.Conflicts.Is(RoundsLeft)
	}, one(func(f *Facts) { f.Round = RoundGoingOn })},
	{"seat free", ByOurs, func(f Facts, _ Rules) bool { return live(f) && f.Seat.Is(SeatFull) },
		one(func(f *Facts) { f.Seat = SeatFree })},
	{"seat full", ByOurs, func(f Facts, _ Rules) bool { return live(f) && f.Seat.Is(SeatFree) },
		one(func(f *Facts) { f.Seat = SeatFull })},

	// The merge as it is carried out.
	{"merge called", ByOurs, func(f Facts, _ Rules) bool { return live(f) && f.Act.Is(ActPut) && f.Host.Is(HostAnswers) },
		one(func(f *Facts) { f.Act = ActCalled })},
	{"merge answered", ByHost, func(f Facts, _ Rules) bool { return live(f) && f.Act.Is(ActCalled) }, func(f Facts) []Facts {
		merged := with(f, func(f *Facts) { f.State = Merged; clear(f) })
		f.Act = NoAct
		if f.Abandoned.Is(GivenUp) {
			f.Yes = NoYes // a cancel took the order back, as far as it could
		}
		out := []Facts{merged, with(f, func(f *Facts) { f.Fit = Conflict }), with(f, func(f *Facts) { f.Known = Unread }), with(f, fails)}
		if f.Abandoned.Is(CaredFor) {
			out = append(out, with(f, func(f *Facts) { f.Act = ActPut })) // not now; it did nothing
		}
		return out
	}},
	{"turn comes", ByOurs, func(f Facts, _ Rules) bool { return live(f) && f.Turn.Is(TurnWaiting) },
		one(func(f *Facts) { f.Turn = TurnFree })},
	{"thrown out of the queue", ByOurs, func(f Facts, _ Rules) bool { return live(f) && f.Turn.Is(TurnWaiting) },
		func(f Facts) []Facts {
			f.Turn = TurnOut
			failed := with(f, func(f *Facts) { f.Checks = ChecksFailed })
			return []Facts{failed, with(f, func(f *Facts) { f.Fit = Conflict }), with(f, fails)}
		}},
	{"the queue is made anew", ByOurs, func(f Facts, _ Rules) bool { return live(f) && f.Turn.Is(TurnFree) && f.Act.Is(NoAct) },
		one(func(f *Facts) { f.Turn = TurnOut })},
	{"grace is over", ByClock, func(f Facts, _ Rules) bool { return live(f) && f.Yes.Is(YesFresh) },
		one(func(f *Facts) { f.Yes = YesFirm })},
	{"question expires", ByClock, func(f Facts, _ Rules) bool { return live(f) && f.Question.Is(Asked, Narrow) },
		one(func(f *Facts) { f.Question = Expired })},
	{"work below is merged or dropped", ByOurs, func(f Facts, _ Rules) bool { return live(f) && f.Under.Is(UnmergedBelow) },
		one(func(f *Facts) { f.Under, f.Known = NoneBelow, Unread })},

	// Decisions of people.
	{"pr.approve_pending", ByCall, calls["pr.approve_pending"], orders},
	{"pr.skip_pending", ByCall, calls["pr.skip_pending"],
		one(func(f *Facts) { f.Question, f.Refused = Declined, WasRefused })},
	{"approve taken back", ByCall, calls["approve taken back"],
		one(func(f *Facts) {
			f.Yes, f.Question, f.Refused = NoYes, Asked, WasRefused
			withdraw(f)
		})},
	{"pr.ask_again", ByCall, calls["pr.ask_again"],
		one(func(f *Facts) {
			f.Question, f.Carry, f.Abandoned = Asked, NoCarry, CaredFor
			withdraw(f)
		})},
	{"pr.merge", ByCall, calls["pr.merge"], orders},
	{"pr.rearm_babysit", ByCall, calls["pr.rearm_babysit"], one(func(f *Facts) {
		armAll(f)
		f.Watch = Watched
		if !called(*f) {
			f.Abandoned = CaredFor
		}
		if f.Checks.Is(ChecksMissing, ChecksInfra, ChecksAction, ChecksBase) {
			f.Checks = ChecksDue
		}
		if f.Objections.Is(AnsweredRequest) && f.Yes.Is(NoYes) && !f.Question.Is(Asked, Narrow) {
			f.Objections = FreshRequest // it was not answered well
		}
		if f.Round.Is(Resting) {
			f.Round = NoRound
		}
	})},
	{"stop", ByPeople, func(f Facts, _ Rules) bool { return open(f) && f.Abandoned.Is(CaredFor) && f.Watch.Is(Watched) },
		one(func(f *Facts) {
			f.Watch, f.Round, f.Push = Stopped, NoRound, NoPush
			if !called(*f) {
				f.Yes, f.Question, f.Carry = NoYes, NoQuestion, NoCarry
				withdraw(f)
			}
		})},
	{"label", ByPeople, func(f Facts, _ Rules) bool { return open(f) && f.Watch.Is(Shown) && !f.Branch.Is(ForkBranch) },
		one(func(f *Facts) { f.Watch = Watched; armAll(f) })},
	{"label taken off", ByPeople, func(f Facts, _ Rules) bool { return open(f) && f.Watch.Is(Watched) && !f.Branch.Is(OwnBranch) },
		one(func(f *Facts) {
			f.Watch = Shown
			switch {
			case f.Round.Is(RoundRunning):
				f.Round = RoundGoingOn
			case f.Round.Is(Resting):
				f.Round = NoRound
			}
			if f.Question.Is(Asked, Narrow) {
				f.Question = NoQuestion
			}
			f.Carry = NoCarry
		})},
	{"task.cancel", ByCall, calls["task.cancel"], one(func(f *Facts) {
		f.Abandoned, f.Round, f.Push, f.Carry = GivenUp, NoRound, NoPush, NoCarry
		if f.Question.Is(Asked, Narrow) {
			f.Question = NoQuestion
		}
		if !called(*f) {
			f.Yes = NoYes
		}
		withdraw(f)
		stopReview(f)
	})},
	{"project.update off", ByCall, calls["project.update off"],
		one(func(f *Facts) { f.Enabled = RepoOff })},
	{"project.update on", ByCall, calls["project.update on"],
		one(func(f *Facts) { f.Enabled = RepoOn })},
	{"push approved", ByCall, calls["push approved"],
		one(func(f *Facts) { f.Push = PushGranted })},
	{"push declined", ByCall, calls["push declined"],
		one(func(f *Facts) { f.Push = NoPush; spendAll(f) })},
	{"close agreed", ByCall, calls["close agreed"],
		one(func(f *Facts) { f.State = Closing })},
	{"reopen agreed", ByCall, calls["reopen agreed"],
		one(func(f *Facts) { f.State = Reopening })},
}

// checked tells whether checks can come to something: they go on.
func checked(f Facts, _ Rules) bool { return live(f) && f.Checks.Is(ChecksPending) }

// TestCallsAreChanges holds that each guard of a call is that of one change, which a person
// brings about by a call.
func TestCallsAreChanges(t *testing.T) {
	t.Parallel()
	guarded := 0
	for _, c := range Changes {
		if (c.By == ByCall) != (calls[c.Name] != nil) {
			t.Errorf("%q is by %s, and calls does not say so", c.Name, c.By)
		}
		if c.By == ByCall {
			guarded++
		}
	}
	if guarded != len(calls) {
		t.Errorf("%d changes are calls, and calls has %d", guarded, len(calls))
	}
}
