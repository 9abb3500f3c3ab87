package moves

import (
	"fmt"
	"testing"
)

// Under auto a review that nobody made is not passed over, by no time-out either.
func TestNobodyLooked(t *testing.T) {
	t.Parallel()
	for _, end := range []Review{ReviewBlind, ReviewFailed, ReviewCancelled} {
		s := tell(t, autos).reviews(func(f Facts) bool { return f.Review == end })
		s.is(DoAsk, "")
	}
	s := tell(t, autos).passes().step(DoReview, begins).happens("review is held").is(DoAsk, "").step(DoAsk, whatever)
	s.happens("review goes on").is(DoWait, ForReview).happens("review ends", foundNil).is(DoPerson, NeedDecision) // who was asked answers
	tell(t, plays).passes().is(DoMerge, ByPolicy)
	tell(t, autos).reviews(foundNil).is(DoMerge, ByPolicy)
}

// What has to be named is asked about anew at every head, carried or not.
func TestCarryAndProtected(t *testing.T) {
	t.Parallel()
	s := tell(t, asks).reviews(foundNil).step(DoAsk, whatever).happens("pr.approve_pending").happens("push")
	plain := *s
	s.step(DoLook, func(f Facts) bool { return f.Carry == CarryYes && f.Fit == Clean }).step(DoCheck, begins).happens("checks pass").
		step(DoReview, foundNil)
	later := *s
	s.step(DoTakeOver, whatever).is(DoMerge, ByPerson)
	later.happens("base moves").step(DoLook, named).is(DoAsk, "") // the base has changed what is protected meanwhile
	plain.step(DoLook, named).step(DoCheck, begins).happens("checks pass").step(DoReview, foundNil).is(DoAsk, "")
	everywhere(t, func(f Facts, r Rules) error {
		if Next(f, r).Do == DoTakeOver && !f.Names.Is(NamesNothing) {
			return fmt.Errorf("carried over what has to be named")
		}
		return nil
	})
}

// A request for changes holds an order, of whomever; the order of the same person ends.
func TestRequestWhileOrdered(t *testing.T) {
	t.Parallel()
	s := tell(t, asks).reviews(foundNil).step(DoAsk, whatever).happens("pr.approve_pending").happens("grace is over")
	s.step(DoMerge, whatever)
	other, same, late := *s, *s, *s
	other.happens("review.request_changes", func(f Facts) bool { return f.Yes == YesFirm }).is(DoWithdraw, "").
		step(DoWithdraw, whatever).is(DoRepair, KindRequest)
	other.happens("request settled").is(DoMerge, ByPerson)
	same.happens("review.request_changes", func(f Facts) bool { return f.Yes == NoYes }).happens("request settled").is(DoAsk, "")
	late.happens("merge called").happens("review.request_changes").is(DoWait, ForMerge)
}

// A yes can be taken back until the host is called; then the question is open again.
func TestTakenBack(t *testing.T) {
	t.Parallel()
	s := tell(t, asks).reviews(foundNil).step(DoAsk, whatever).happens("pr.approve_pending").is(DoWait, ForGrace)
	again := *s
	again.happens("approve taken back").is(DoPerson, NeedDecision)
	s.happens("grace is over").step(DoMerge, whatever)
	put := *s
	put.happens("approve taken back").is(DoPerson, NeedDecision)
	if s.happens("merge called"); changeNamed(t, "approve taken back").Can(s.f, s.r) {
		t.Error("taken back from the host")
	}
}

// A missing permission is no try, is said, and is over when it is granted.
func TestPermission(t *testing.T) {
	t.Parallel()
	s := tell(t, plays).passes().step(DoMerge, whatever).happens("host refuses").is(DoPerson, NeedPermission)
	s.happens("permission granted").is(DoWait, ForIntent)
	s.happens("host is busy").is(DoWait, ForHost).happens("host answers").is(DoWait, ForIntent)
}

// A merge that the host has refused for good is tried again only if a person says
// so, or for a new head.
func TestMergeFailed(t *testing.T) {
	t.Parallel()
	for _, r := range []Rules{plays, asks} {
		s := tell(t, r).passes()
		if r.Mode == ModeAsk {
			s.step(DoReview, foundNil).step(DoAsk, whatever).happens("pr.approve_pending").happens("grace is over")
		}
		s.step(DoMerge, whatever).happens("merge called").happens("merge answered", isFailed).is(DoPerson, NeedRetry)
		s.happens("base moves").step(DoLook, sound).is(DoPerson, NeedRetry)
		s.happens("pr.merge").happens("grace is over").is(DoMerge, ByPerson)
	}
}

// A fork and a pull request that is only shown are read and checked, no more; a
// person may order their merge.
func TestShown(t *testing.T) {
	t.Parallel()
	for _, b := range []Branch{ForkBranch, TheirBranch} {
		s := tell(t, autos)
		s.f.Branch, s.f.Watch = b, Shown
		s.passes().is(DoWait, ForPeople).happens("pr.merge").happens("grace is over").is(DoMerge, ByPerson)
	}
	everywhere(t, func(f Facts, r Rules) error {
		s := Next(f, r)
		if f.Watch.Is(Shown, Stopped) && (s.Do == DoRepair || s.Do == DoReview || s.Of == ByPolicy) {
			return fmt.Errorf("%v, and nobody has asked for that", s)
		}
		return nil
	})
}

// In a repository that is not enabled, what others do is recorded, and nothing is begun.
func TestDisabled(t *testing.T) {
	t.Parallel()
	s := tell(t, plays).passes().step(DoMerge, whatever).happens("project.update off").is(DoWithdraw, "").
		step(DoWithdraw, whatever).is(DoPerson, NeedEnable)
	s.happens("project.update on").is(DoMerge, ByPolicy)
	everywhere(t, func(f Facts, r Rules) error {
		switch s := Next(f, r); {
		case !f.Enabled.Is(RepoOff) || rests(s):
		case s.Do == DoLook, s.Do == DoRecord, s.Do == DoClose, s.Do == DoReopen, s.Do == DoWithdraw:
		default:
			return fmt.Errorf("%v in a repository that is not enabled", s)
		}
		return nil
	})
}

// What only people can mend says so by its own name, and begins anew when it is.
func TestSpent(t *testing.T) {
	t.Parallel()
	for change, need := range map[string]string{"a check is missing": NeedCheck, "machines fail": NeedMachine,
		"checks wait for a person": NeedApproval, "the base fails as well": NeedBase} {
		s := tell(t, asks).step(DoLook, sound).step(DoCheck, begins).happens(change).is(DoPerson, need)
		again := *s
		again.happens("checks begin again").is(DoReview, "")
		s.happens("pr.rearm_babysit").is(DoCheck, "")
	}
	s := tell(t, asks).step(DoLook, sound).step(DoCheck, begins).happens("checks fail")
	for range 2 {
		s.step(DoRepair, whatever).happens("round ends", idle).is(DoWait, ForRest).happens("rest is over")
	}
	s.step(DoRepair, func(f Facts) bool { return f.CI == RoundsSpent }).happens("round ends", idle)
	s.happens("rest is over").is(DoPerson, NeedRearm).happens("pr.rearm_babysit").is(DoRepair, KindCI)
}

// A request that no round is left for waits for whoever made it, and findings wait for a
// person to arm the repair again.
func TestRequestWithoutRounds(t *testing.T) {
	t.Parallel()
	s := tell(t, asks).reviews(foundNil)
	s.f.Requests = RoundsSpent
	s.happens("review.request_changes").is(DoPerson, NeedChanges)
	s = tell(t, asks).reviews(found)
	s.f.Reviews = RoundsSpent
	s.is(DoPerson, NeedRearm)
}

// Who has said no to one head is asked about the next, in every mode.
func TestNoHoldsOn(t *testing.T) {
	t.Parallel()
	s := tell(t, autos).passes().step(DoReview, blind).step(DoAsk, whatever).happens("pr.skip_pending")
	s.is(DoPerson, NeedAgain).happens("push").reviews(foundNil).is(DoAsk, "")
}

// A cancel does not reach what the host was told; what comes of that is recorded.
func TestCancelWhileMerging(t *testing.T) {
	t.Parallel()
	s := tell(t, plays).passes().step(DoMerge, whatever).happens("merge called").happens("task.cancel").is(DoWait, ForMerge)
	failed := *s
	s.happens("merge answered", func(f Facts) bool { return f.State == Merged }).is(DoDone, "")
	failed.happens("merge answered", isFailed).is(DoClose, Cancelled)
}

// One that its host is yet to open is closed at once; one that is kept says what
// a person can do with it.
func TestCancelElsewhere(t *testing.T) {
	t.Parallel()
	s := &story{t: t, f: first(), r: asks}
	s.happens("task.cancel").is(DoClose, Cancelled)
	keeps := Rules{ModeAuto, ReviewUnasked, CancelKeeps, PushesAsk}
	s = tell(t, keeps).passes().happens("task.cancel").is(DoPerson, NeedMerge)
	s.happens("pr.merge").happens("grace is over").is(DoMerge, ByPerson)
	s = tell(t, keeps).step(DoLook, sound).step(DoCheck, begins).happens("checks fail").happens("task.cancel").is(DoPerson, NeedRearm)
	s.happens("pr.rearm_babysit").is(DoRepair, KindCI)
}

// Where agents do not push, no round and no rearm is named, but a mended branch.
func TestNotOurs(t *testing.T) {
	t.Parallel()
	s := tell(t, asks)
	s.f.Branch = DefaultBranch
	s.step(DoLook, sound).step(DoCheck, begins).happens("checks fail").is(DoPerson, NeedHands)
	if name := Call(s.f, s.r, Next(s.f, s.r)); name != "" {
		t.Errorf("it names %s", name)
	}
	s.happens("push").is(DoLook, "")
}

// A full queue is a wait with a name.
func TestNoSeat(t *testing.T) {
	t.Parallel()
	s := tell(t, asks).step(DoLook, sound).happens("seat full").is(DoWait, ForSeat).happens("seat free").is(DoCheck, "")
	s.step(DoCheck, begins).happens("checks fail").happens("seat full").is(DoWait, ForSeat)
}

// A round whose trouble is over ends and costs nothing; one that has pushed goes on.
func TestRoundWithoutTrouble(t *testing.T) {
	t.Parallel()
	s := tell(t, asks).step(DoLook, sound).step(DoCheck, begins).happens("checks fail").step(DoRepair, whatever)
	pushes := *s
	s.happens("checks begin again").is(DoWait, ForChecks).happens("checks pass").is(DoStopWork, "").
		step(DoStopWork, whatever).is(DoReview, "")
	pushes.happens("push").passes().is(DoWait, ForRound)
}

// A base that does not exist is said; nothing is asked or tried over and over.
func TestNoBase(t *testing.T) {
	t.Parallel()
	s := tell(t, plays).step(DoLook, func(f Facts) bool { return f.Known == NoBase }).is(DoPerson, NeedBaseBranch)
	s.happens("base is back").is(DoLook, "")
}

// While a push waits for a yes, no further round begins, and the policy does not merge.
func TestPushAsked(t *testing.T) {
	t.Parallel()
	s := tell(t, autos)
	s.f.Branch = TheirBranch
	s.reviews(found).step(DoRepair, whatever)
	s.happens("round ends", func(f Facts) bool { return f.Push == PushAsked }).is(DoPerson, NeedPush)
	calm := *s
	calm.happens("review.dismiss").is(DoPerson, NeedPush)
	no := *s
	no.happens("push declined").is(DoPerson, NeedRearm)
	s.happens("push approved").step(DoPushWork, pushed).is(DoLook, "")
}

// A base that moves costs no place in a queue and takes no merge back: what is not known is
// looked at first, also if the host takes its time.
func TestBaseMovesWhileWaiting(t *testing.T) {
	t.Parallel()
	s := tell(t, plays)
	s.f.Turn = TurnOut
	s.passes().step(DoEnter, whatever).is(DoWait, ForTurn).happens("base moves").is(DoLook, "")
	s.happens("host is busy").is(DoWait, ForHost).happens("host refuses").is(DoPerson, NeedPermission).happens("permission granted")
	s.step(DoLook, sound).is(DoWait, ForTurn).happens("turn comes").is(DoMerge, ByPolicy)
}

func isFailed(f Facts) bool { return f.Act == ActFailed }
func idle(f Facts) bool     { return f.Round == Resting }
func blind(f Facts) bool    { return f.Review == ReviewBlind }
