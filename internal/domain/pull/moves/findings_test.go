package moves

import (
	"fmt"
	"slices"
	"testing"
)

// story is a pull request to which things happen.
type story struct {
	t    *testing.T
	f    Facts
	r    Rules
	told []string
}

// tell begins a story with an open, watched pull request of an agent.
func tell(t *testing.T, r Rules) *story {
	s := &story{t: t, f: first(), r: r}
	s.happens("opened")
	return s
}

// step has one step done. Of its outcomes the first is taken that want lets through.
func (s *story) step(do Do, want func(Facts) bool) *story {
	s.t.Helper()
	step := Next(s.f, s.r)
	if step.Do != do {
		s.t.Fatalf("it is %v, and not %s: %v", step, do, situation{s.f, s.r})
	}
	s.become(Effect(s.f, step), want, step)
	return s
}

// happens has a change happen.
func (s *story) happens(name string, want ...func(Facts) bool) *story {
	s.t.Helper()
	c := changeNamed(s.t, name)
	if !c.Can(s.f, s.r) {
		s.t.Fatalf("%q cannot happen: %v", name, situation{s.f, s.r})
	}
	s.become(c.Do(s.f), append(want, whatever)[0], Step{})
	return s
}

func (s *story) become(outcomes []Facts, want func(Facts) bool, by Step) {
	s.t.Helper()
	i := slices.IndexFunc(outcomes, want)
	if i < 0 {
		s.t.Fatalf("no such outcome of %v: %v", by, situation{s.f, s.r})
	}
	s.told = Told(s.f, outcomes[i], s.r, by)
	s.f = outcomes[i]
}

// is wants a step.
func (s *story) is(do Do, of string) *story {
	s.t.Helper()
	if step := Next(s.f, s.r); step != (Step{do, of}) {
		s.t.Fatalf("it is %v, and not %s %s: %v", step, do, of, situation{s.f, s.r})
	}
	return s
}

func whatever(Facts) bool { return true }

func sound(f Facts) bool {
	return f.Known == Read && f.Fit == Clean && f.Names == NamesNothing && f.Carry != MaybeQuestion && f.Carry != MaybeYes
}
func named(f Facts) bool    { return f.Known == Read && f.Fit == Clean && f.Names == NamesSomething }
func begins(f Facts) bool   { return f.Review == ReviewRunning || f.Checks == ChecksPending }
func found(f Facts) bool    { return f.Review == ReviewLooked && f.Findings == OpenFindings }
func foundNil(f Facts) bool { return f.Review == ReviewLooked && f.Findings == NoFindings }
func pushed(f Facts) bool   { return f.Known == Unread }

// checked has the head read and its checks pass.
func (s *story) passes() *story {
	s.t.Helper()
	return s.step(DoLook, sound).step(DoCheck, begins).happens("checks pass")
}

// reviewed has the head read, checked and reviewed.
func (s *story) reviews(end func(Facts) bool) *story {
	s.t.Helper()
	return s.passes().step(DoReview, begins).happens("review ends", end)
}

var (
	asks  = Rules{ModeAsk, ReviewAuto, CancelCloses, PushesAsk}
	autos = Rules{ModeAuto, ReviewAuto, CancelCloses, PushesAsk}
	plays = Rules{ModeAuto, ReviewUnasked, CancelCloses, PushesAsk}
)

// The verdict "success" is said only where somebody has looked, and found nothing.
func TestVerdictOfNobody(t *testing.T) {
	t.Parallel()
	everywhere(t, func(f Facts, r Rules) error {
		state, verdict := Reviewed(f, r)
		if (verdict != "") != f.Review.Is(ReviewLooked) || verdict == "success" && !f.Findings.Is(NoFindings) {
			return fmt.Errorf("%s, %s", state, verdict)
		}
		return nil
	})
	s := tell(t, plays).passes()
	if state, verdict := Reviewed(s.f, s.r); state != "off" || verdict != "" {
		t.Errorf("%s, %s", state, verdict)
	}
}

// Rounds that are spent on checks do not silence a finding, in any mode; and the
// escalation ends with the trouble that it was about.
func TestSpentThenMendedThenFound(t *testing.T) {
	t.Parallel()
	for _, r := range []Rules{asks, autos} {
		s := tell(t, r)
		s.f.CI = RoundsSpent
		s.step(DoLook, sound).step(DoCheck, begins).happens("checks fail").is(DoPerson, NeedRearm)
		s.happens("push")
		if !slices.Contains(s.told, ToldOver) {
			t.Errorf("told %v", s.told)
		}
		s.reviews(found).is(DoRepair, KindReview)
	}
	everywhere(t, func(f Facts, r Rules) error { // and nothing that needs somebody waits for nobody
		if s := Next(f, r); rests(s) && s.Do != DoDone && len(Enders[s]) == 0 {
			return fmt.Errorf("%v", s)
		}
		return nil
	})
}

// What a round has answered is looked at again, once, wherever the repair is.
func TestMendedBesideItsLines(t *testing.T) {
	t.Parallel()
	s := tell(t, asks).reviews(found).step(DoRepair, whatever).happens("round ends", pushed)
	again := *s
	s.reviews(foundNil).is(DoAsk, "")             // confirmed no more: fixed
	again.reviews(found).is(DoRepair, KindReview) // it stands: a further round, and no further look before
	s = tell(t, asks).reviews(found).step(DoRepair, whatever).happens("round ends", func(f Facts) bool { return f.Round == Resting })
	s.is(DoReview, "") // the round changed nothing and said why: that is looked at as well
	s = tell(t, asks).reviews(found).happens("review.rerun")
	if s.f.Findings != AgainFindings {
		t.Error("a rerun looks at what is posted")
	}
}

// A question that goes on at a rebased head is told anew, with links for that head.
func TestCarriedQuestion(t *testing.T) {
	t.Parallel()
	s := tell(t, asks).reviews(foundNil).step(DoAsk, whatever).happens("push")
	if !slices.Contains(s.told, ToldEnded) {
		t.Errorf("told %v", s.told)
	}
	s.step(DoLook, func(f Facts) bool { return f.Carry == CarryQuestion && f.Fit == Clean }).step(DoCheck, begins).happens("checks pass")
	s.step(DoReview, foundNil).step(DoTakeOver, whatever)
	if !slices.Contains(s.told, ToldAsked) {
		t.Errorf("told %v", s.told)
	}
	s.is(DoPerson, NeedDecision)
}

// However a question ends, its end is told, and what is open was told.
func TestEachQuestionEnds(t *testing.T) {
	t.Parallel()
	ways := map[string]bool{}
	note := func(by string, before, after Facts, r Rules, s Step) error {
		told := Told(before, after, r, s)
		was, is := before.Question.Is(Asked, Narrow), after.Question.Is(Asked, Narrow)
		if was && !is {
			ways[by] = true
		}
		if was && !is != slices.Contains(told, ToldEnded) && s.Do != DoAsk || is && !was && !slices.Contains(told, ToldAsked) {
			return fmt.Errorf("%s: told %v", by, told)
		}
		return nil
	}
	for i := range Changes {
		everywhere(t, func(f Facts, r Rules) error {
			if !f.Question.Is(Asked) || !f.State.Is(Open) || !Changes[i].Can(f, r) {
				return nil
			}
			for _, after := range Changes[i].Do(f) {
				if after.Question.Is(Asked, Narrow) {
					continue
				}
				if err := note(Changes[i].Name, f, after, r, Step{}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	t.Logf("%d changes end an open question: %v", len(ways), ways)
}

// Nobody arms a fork, and nobody is told to.
func TestFork(t *testing.T) {
	t.Parallel()
	rearm := changeNamed(t, "pr.rearm_babysit")
	everywhere(t, func(f Facts, r Rules) error {
		if f.Branch.Is(ForkBranch) && (rearm.Can(f, r) || Next(f, r).Do == DoRepair) {
			return fmt.Errorf("a fork is armed")
		}
		return nil
	})
}

// A draft made ready is reviewed before anything else, and not merged unlooked.
func TestDraftMadeReady(t *testing.T) {
	t.Parallel()
	s := tell(t, autos)
	s.f.Draft = Drafted
	s.passes().is(DoPerson, NeedReady)
	s.happens("ready for review").is(DoReview, "")
}

// When the work below is merged, the merge is tried anew before it is made; and what
// a rewritten base has removed is brought back only if a person says so.
func TestWhatWasApprovedIsMerged(t *testing.T) {
	t.Parallel()
	s := tell(t, asks)
	s.f.Under = UnmergedBelow
	s.reviews(foundNil).step(DoAsk, whatever).happens("pr.approve_pending").happens("grace is over").is(DoWait, ForBelow)
	s.happens("work below is merged or dropped").is(DoLook, "")
	clean := *s
	clean.step(DoLook, sound).is(DoMerge, ByPerson)
	s.step(DoLook, func(f Facts) bool { return f.Yes == YesNarrow && f.Fit == Clean }).is(DoAsk, "") // dropped, and still in the head
	for _, r := range []Rules{asks, autos, {ModeNever, ReviewAuto, CancelCloses, PushesAsk}} {
		s := tell(t, r).reviews(foundNil).happens("base rewritten").step(DoLook, named)
		if n := Next(s.f, s.r); r.Mode == ModeAuto && n != (Step{DoAsk, ""}) {
			t.Errorf("%v: %v", r, n)
		}
	}
}

// A person asks for changes, on either host and in any mode; an agent answers, and
// the person is asked again. The policy never merges over it.
func TestRequestForChanges(t *testing.T) {
	t.Parallel()
	for _, r := range []Rules{asks, autos, plays, never} {
		s := tell(t, r)
		if s.passes(); r.Reviewer == ReviewAuto {
			s.step(DoReview, foundNil)
		}
		s.happens("review.request_changes").is(DoRepair, KindRequest)
		s.step(DoRepair, whatever).happens("round ends", pushed)
		if s.passes(); r.Reviewer == ReviewAuto {
			s.step(DoReview, foundNil)
		}
		s.is(DoAsk, "")
		s.step(DoAsk, whatever).happens("pr.approve_pending", func(f Facts) bool { return f.Objections == NoRequest })
		s.happens("grace is over").is(DoMerge, ByPerson)
	}
}

// Rearm says what it began, or that nothing was to be done.
func TestRearmSaysWhatItBegan(t *testing.T) {
	t.Parallel()
	s := tell(t, asks).reviews(foundNil).step(DoAsk, whatever)
	before := s.f
	if began, yes := Began(before, s.happens("pr.rearm_babysit").f, s.r); yes {
		t.Errorf("it began %v", began)
	}
	s = tell(t, asks)
	s.f.CI = RoundsSpent
	s.step(DoLook, sound).step(DoCheck, begins).happens("checks fail")
	before = s.f
	if began, yes := Began(before, s.happens("pr.rearm_babysit").f, s.r); !yes || began != (Step{DoRepair, KindCI}) {
		t.Errorf("it began %v", began)
	}
}
