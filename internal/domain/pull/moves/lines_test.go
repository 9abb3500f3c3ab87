package moves

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// changeNamed finds a change by its name.
func changeNamed(t *testing.T, name string) Change {
	t.Helper()
	i := slices.IndexFunc(Changes, func(c Change) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no change is called %q", name)
	}
	return Changes[i]
}

func rests(s Step) bool { return s.Do == DoWait || s.Do == DoPerson || s.Do == DoDone }

// Each combination has a step, and each line of the table is the first for some.
func TestTotal(t *testing.T) {
	t.Parallel()
	hit := make([]int, len(lines))
	w := everywhere(t, func(f Facts, r Rules) error {
		i := at(f, r)
		if Next(f, r) == (Step{}) {
			return errors.New("no step")
		}
		hit[i]++
		return nil
	})
	for i, n := range hit {
		if n == 0 {
			t.Errorf("line %d is never the first: %s", i+1, lines[i].When)
		}
	}
	all := uint64(1)
	for _, f := range fields {
		all *= uint64(f.size)
	}
	t.Logf("%d classes, which stand for %d of %d combinations; the others cannot occur", w.calls, w.stood, all)
}

// Each wait names what ends it, that can happen, and the step is another one afterwards.
func TestWaitsEnd(t *testing.T) {
	t.Parallel()
	for s, enders := range Enders {
		for _, e := range enders {
			changeNamed(t, e)
		}
		_ = s
	}
	w := everywhere(t, func(f Facts, r Rules) error {
		s := Next(f, r)
		if !rests(s) || s.Do == DoDone {
			return nil
		}
		for _, name := range Enders[s] {
			c := changeNamed(t, name)
			if !c.Can(f, r) {
				continue
			}
			for _, after := range c.Do(f) {
				if Next(after, r) != s {
					return nil
				}
			}
		}
		return fmt.Errorf("%v: nothing that it names ends it", s)
	})
	t.Logf("%d classes", w.calls)
}

// The call that needs_person names can be made wherever it is named, and what happens then
// is another step, whatever comes of the call.
func TestCallsHelp(t *testing.T) {
	t.Parallel()
	without := map[Step]bool{}
	w := everywhere(t, func(f Facts, r Rules) error {
		s := Next(f, r)
		if s.Do != DoPerson {
			return nil
		}
		name := Call(f, r, s)
		if name == "" {
			without[s] = true
			return nil
		}
		for _, after := range changeNamed(t, name).Do(f) {
			if Next(after, r) == s {
				return fmt.Errorf("%v: after %s it is the same", s, name)
			}
		}
		return nil
	})
	t.Logf("%d classes; without a call, because people end them elsewhere: %v", w.calls, without)
}

// Nothing is asked, and nothing is merged, that is not sound and looked at.
func TestSound(t *testing.T) {
	t.Parallel()
	w := everywhere(t, func(f Facts, r Rules) error {
		s := Next(f, r)
		if s.Do != DoAsk && s.Do != DoMerge && s.Do != DoEnter && s.Do != DoTakeOver {
			return nil
		}
		switch {
		case !f.State.Is(Open), !f.Abandoned.Is(CaredFor), !f.Enabled.Is(RepoOn), !f.Draft.Is(Ready):
			return fmt.Errorf("%v: it is not open, or abandoned, disabled or a draft", s)
		case !f.Known.Is(Read), !f.Fit.Is(Clean), !f.Checks.Is(ChecksNone, ChecksPassed):
			return fmt.Errorf("%v: git and checks do not allow it", s)
		case !f.Findings.Is(NoFindings), f.Objections.Is(FreshRequest), f.Review.Is(ReviewRunning), f.Round.Is(RoundRunning, RoundGoingOn):
			return fmt.Errorf("%v: something is unanswered or under way", s)
		}
		return nil
	})
	t.Logf("%d classes", w.calls)
}

// A merge has a reason, and passes over nobody's no.
func TestMerge(t *testing.T) {
	t.Parallel()
	w := everywhere(t, func(f Facts, r Rules) error {
		s := Next(f, r)
		if s.Do != DoMerge && s.Do != DoEnter {
			return nil
		}
		if !f.Objections.Is(NoRequest) || !f.Under.Is(NoneBelow) {
			return fmt.Errorf("%v: a request for changes, or work below, is open", s)
		}
		if s.Do == DoMerge && !f.Turn.Is(TurnFree) {
			return fmt.Errorf("%v: its turn has not come", s)
		}
		if !f.Act.Is(NoAct) {
			return fmt.Errorf("%v: it is made already, or has failed for good", s)
		}
		if f.Yes.Is(YesFirm) {
			if s.Of != ByPerson {
				return fmt.Errorf("%v: a person has ordered it", s)
			}
			return nil
		}
		switch {
		case !f.Yes.Is(NoYes), s.Of != ByPolicy, !r.Mode.Is(ModeAuto):
			return fmt.Errorf("%v: nobody has ordered it", s)
		case !f.Question.Is(NoQuestion), !f.Refused.Is(NeverRefused), !f.Watch.Is(Watched):
			return fmt.Errorf("%v: a person has a say", s)
		case !f.Names.Is(NamesNothing):
			return fmt.Errorf("%v: it has to be named", s)
		case r.Reviewer.Is(ReviewAuto) && !f.Review.Is(ReviewLooked):
			return fmt.Errorf("%v: nobody has looked", s)
		}
		return nil
	})
	t.Logf("%d classes", w.calls)
}

// A merge that is put, and a place in a queue, stand only as long as the merge would be put
// now; and they are not taken back without a reason.
func TestStands(t *testing.T) {
	t.Parallel()
	w := everywhere(t, func(f Facts, r Rules) error {
		if !f.Act.Is(ActPut) && !f.Turn.Is(TurnWaiting) {
			return nil
		}
		s := Next(f, r)
		anew := f
		anew.Act, anew.Turn = NoAct, TurnFree
		would := Next(anew, r).Do == DoMerge
		switch {
		case s.Do == DoWithdraw && would:
			return errors.New("it is taken back without a reason")
		case s.Do == DoWithdraw, s.Do == DoLook, s.Do == DoRecord, s.Do == DoClose, would:
			return nil
		case rests(s) && f.Known.Is(Unread): // nobody knows, and the host is asked again before the merge
			return nil
		}
		return fmt.Errorf("%v, and the merge stands", s)
	})
	t.Logf("%d classes", w.calls)
}

// Where a step is done, the next is another one, and what follows without a change from
// outside comes to rest: the steps that may follow each other make no circle, but for those
// through a push that a person has said yes to, which is done once.
func TestNoLoop(t *testing.T) {
	t.Parallel()
	follows := map[Step]map[Step]bool{}
	w := everywhere(t, func(f Facts, r Rules) error {
		s := Next(f, r)
		if rests(s) {
			return nil
		}
		outcomes := Effect(f, s)
		if len(outcomes) == 0 {
			return fmt.Errorf("%v leaves nothing", s)
		}
		for _, after := range outcomes {
			n := Next(after, r)
			if n == s {
				return fmt.Errorf("%v comes again", s)
			}
			if s.Do == DoPushWork && !after.Push.Is(NoPush) {
				return errors.New("a push is left")
			}
			if follows[s] == nil {
				follows[s] = map[Step]bool{}
			}
			follows[s][n] = true
		}
		return nil
	})
	delete(follows, Step{DoPushWork, ""})
	for s := range follows {
		if way := circle(follows, s, s, nil); way != nil {
			t.Errorf("a circle: %v", way)
		}
	}
	t.Logf("%d classes, %d steps that are followed", w.calls, len(follows))
}

// circle answers a way from a step to itself.
func circle(follows map[Step]map[Step]bool, from, to Step, way []Step) []Step {
	if slices.Contains(way, from) {
		return nil
	}
	way = append(slices.Clone(way), from)
	for n := range follows[from] {
		if n == to {
			return append(way, n)
		}
		if found := circle(follows, n, to, way); found != nil {
			return found
		}
	}
	return nil
}

// What can occur stays among what can occur: no step and no change leads out of Valid.
func TestValidIsClosed(t *testing.T) {
	t.Parallel()
	calls := 0
	for i, e := range exclusions {
		calls += everywhere(t, func(f Facts, r Rules) error {
			for _, after := range Effect(f, Next(f, r)) {
				if e.Is(after) {
					return fmt.Errorf("%v leads to exclusion %d (%s): %v", Next(f, r), i, e.Why, situation{after, r})
				}
			}
			return nil
		}).calls
		for _, c := range Changes {
			calls += everywhere(t, func(f Facts, r Rules) error {
				if !c.Can(f, r) {
					return nil
				}
				for _, after := range c.Do(f) {
					if e.Is(after) {
						return fmt.Errorf("%q leads to exclusion %d (%s): %v", c.Name, i, e.Why, situation{after, r})
					}
				}
				return nil
			}).calls
		}
	}
	t.Logf("%d classes", calls)
}

// words are the waits for a word of a person, which no news ends.
var words = []string{NeedDecision, NeedAgain, NeedExpired, NeedMerge, NeedRetry, NeedChanges, NeedPush, NeedStopped}

// Whatever becomes known while a person's word is waited for, and whatever the clock does,
// no merge comes of it without that word.
func TestKnowingMoreMergesNothing(t *testing.T) {
	t.Parallel()
	calls := 0
	for _, c := range Changes {
		if c.By == ByCall || c.By == ByPeople {
			continue
		}
		calls += everywhere(t, func(f Facts, r Rules) error {
			s := Next(f, r)
			if s.Do != DoPerson || !slices.Contains(words, s.Of) || !c.Can(f, r) {
				return nil
			}
			for _, after := range c.Do(f) {
				if n := Next(after, r); (n.Do == DoMerge || n.Do == DoEnter) && n.Of == ByPolicy {
					return fmt.Errorf("%v, then %q: %v", s, c.Name, n)
				}
			}
			return nil
		}).calls
	}
	calls += everywhere(t, func(f Facts, r Rules) error { // a look, which is a step
		s := Next(f, r)
		if s.Do != DoPerson || !slices.Contains(words, s.Of) {
			return nil
		}
		for _, after := range looked(f) {
			if n := Next(after, r); (n.Do == DoMerge || n.Do == DoEnter) && n.Of == ByPolicy {
				return fmt.Errorf("%v, then a look: %v", s, n)
			}
		}
		return nil
	}).calls
	t.Logf("%d classes", calls)
}

// What keeps the policy from merging (TestMerge) stays, whatever becomes known and whatever
// the server does by itself: only a person ends it, or a new head what was about the old
// one. With TestMerge, this is the test above for any number of changes.
func TestNewsEndsNoWord(t *testing.T) {
	t.Parallel()
	lasting := map[string]func(Facts) bool{
		"a no":                func(f Facts) bool { return f.Refused.Is(WasRefused) },
		"a request":           func(f Facts) bool { return !f.Objections.Is(NoRequest) },
		"nobody looks after":  func(f Facts) bool { return !f.Watch.Is(Watched) },
		"its task is no more": func(f Facts) bool { return f.Abandoned.Is(GivenUp) },
		"it is not enabled":   func(f Facts) bool { return f.Enabled.Is(RepoOff) },
	}
	ofHead := map[string]func(Facts) bool{
		"a question": func(f Facts) bool { return !f.Question.Is(NoQuestion) },
		"a push":     func(f Facts) bool { return f.Push.Is(PushAsked) },
		"a failure":  func(f Facts) bool { return f.Act.Is(ActFailed) },
	}
	calls := 0
	stays := func(what string, is func(Facts) bool, headToo bool) {
		for _, c := range Changes {
			if c.By == ByCall || c.By == ByPeople {
				continue
			}
			calls += everywhere(t, func(f Facts, r Rules) error {
				if !is(f) || !c.Can(f, r) {
					return nil
				}
				for _, after := range c.Do(f) {
					moved := after.Known.Is(Unread) && after.Checks.Is(ChecksDue)
					if !after.State.Is(Merged, Closed) && !is(after) && (!headToo || !moved) {
						return fmt.Errorf("%q ends %s", c.Name, what)
					}
				}
				return nil
			}).calls
		}
	}
	for what, is := range lasting {
		stays(what, is, false)
	}
	for what, is := range ofHead {
		stays(what, is, true)
	}
	t.Logf("%d classes", calls)
}

// A handler never changes the step by a way around the facts: the same facts and rules
// answer the same.
func TestPure(t *testing.T) {
	t.Parallel()
	everywhere(t, func(f Facts, r Rules) error {
		if once, again := Next(f, r), Next(f, r); once != again {
			return errors.New("it answers differently")
		}
		return nil
	})
}
