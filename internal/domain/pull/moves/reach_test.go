package moves

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// world is a part of what can happen, small enough that every way through it is walked
// from the beginning with all facts filled in. The tests of next_test.go hold for all of
// it at once; here, what can really come about is seen, and that it can come to an end.
type world struct {
	name    string
	rules   []Rules
	start   func(*Facts)     // what is otherwise at the beginning; nil: nothing
	changes string           // by name, besides always
	keep    func(Facts) bool // outcomes that are of this world
}

// always happens in each world.
var always = []string{"opened", "not opened", "push", "checks pass", "checks fail", "review ends", "merge called", "merge answered",
	"pr.approve_pending", "pr.skip_pending", "pr.merge", "grace is over", "closed there", "merged there"}

var (
	askReviewed  = Rules{ModeAsk, ReviewAuto, CancelKeeps, PushesAsk}
	askUnlooked  = Rules{ModeAsk, ReviewUnasked, CancelCloses, PushesAsk}
	autoReviewed = Rules{ModeAuto, ReviewAuto, CancelCloses, PushesAsk}
	autoUnlooked = Rules{ModeAuto, ReviewUnasked, CancelKeeps, PushesAsk}
	never        = Rules{ModeNever, ReviewUnasked, CancelCloses, PushesAsk}
)

var worlds = []world{
	{name: "people change their minds", rules: []Rules{askReviewed, autoUnlooked, never},
		changes: "approve taken back, pr.ask_again, question expires, review.request_changes, request settled, task.cancel, close agreed, " +
			"reopen agreed, opened again, round ends, pr.rearm_babysit, base rewritten",
		keep: func(f Facts) bool { return f.Fit != Conflict && f.Findings == NoFindings }},
	{name: "agents repair", rules: []Rules{autoReviewed, askUnlooked},
		changes: "round ends, rest is over, pr.rearm_babysit, review.dismiss, review.rerun, base moves, stop, a round is asked for",
		keep:    func(f Facts) bool { return f.Names != NamesSomething && f.Carry == NoCarry }},
	{name: "the branch of a person", rules: []Rules{autoReviewed, never},
		start: func(f *Facts) { f.Branch, f.Watch, f.State = TheirBranch, Shown, Open },
		changes: "round ends, rest is over, pr.rearm_babysit, label, label taken off, push approved, push declined, stop, review.dismiss, " +
			"made a draft, ready for review, review.request_changes, request settled",
		keep: func(f Facts) bool { return f.Names != NamesSomething && f.Carry == NoCarry && f.Fit != Conflict }},
	{name: "a fork", rules: []Rules{askReviewed, autoReviewed, autoUnlooked, never},
		start: func(f *Facts) { f.Branch, f.Watch, f.State = ForkBranch, Shown, Open },
		changes: "review.request_changes, request settled, checks begin again, checks wait for a person, made a draft, ready for review, " +
			"project.update off, project.update on, base moves",
		keep: func(Facts) bool { return true }},
	{name: "host and queue", rules: []Rules{autoReviewed, askUnlooked},
		start: func(f *Facts) { f.Turn, f.Under = TurnOut, UnmergedBelow },
		changes: "host is busy, host refuses, host answers, permission granted, turn comes, thrown out of the queue, the queue is made anew, " +
			"work below is merged or dropped, base moves, approve taken back, checks begin again, task.cancel, round ends, rest is over, " +
			"pr.rearm_babysit, base is back",
		keep: func(f Facts) bool { return f.Carry == NoCarry && f.Findings == NoFindings }},
	{name: "what stands in the way", rules: []Rules{askReviewed, autoReviewed, autoUnlooked, never},
		changes: "made a draft, ready for review, project.update off, project.update on, seat full, seat free, a check is missing, " +
			"checks begin again, review is held, review goes on, review.dismiss, pr.rearm_babysit, round ends, rest is over",
		keep: func(f Facts) bool { return f.Names != NamesSomething && f.Carry == NoCarry && f.Fit != Conflict }},
}

// first are the facts of a pull request that the server is opening.
func first() Facts {
	f := Facts{State: Opening, Watch: Watched, Branch: OwnBranch, Known: Unread, Turn: TurnFree}
	s := situation{Facts: f}
	for i := range fields {
		if p := s.at(i); *p == 0 {
			*p = 1 // the first value of each type is that of the beginning
		}
	}
	return s.Facts
}

// plain makes situations one that Next cannot tell apart (TestAlike), and those that
// differ in what a look is about to overwrite.
func plain(f Facts) Facts {
	if f.Known == Unread {
		f.Fit, f.Names = Clean, NamesNothing
	}
	if f.Review == ReviewBlind || f.Review == ReviewCancelled {
		f.Review = ReviewFailed
	}
	if f.Checks == ChecksNone {
		f.Checks = ChecksPassed
	}
	return f
}

// What plain takes for one is one.
func TestAlike(t *testing.T) {
	t.Parallel()
	same := func(a, b Facts, r Rules) error {
		if x, y := Next(a, r), Next(b, r); x != y {
			return fmt.Errorf("%v or %v", x, y)
		}
		return nil
	}
	w := everywhere(t, func(f Facts, r Rules) error {
		f.Review = ReviewFailed
		blind, cancelled := f, f
		blind.Review, cancelled.Review = ReviewBlind, ReviewCancelled
		return cmp.Or(same(f, blind, r), same(f, cancelled, r))
	})
	calls := w.calls
	w = everywhere(t, func(f Facts, r Rules) error {
		f.Checks = ChecksPassed
		none := f
		none.Checks = ChecksNone
		return same(f, none, r)
	})
	calls += w.calls
	w = everywhere(t, func(f Facts, r Rules) error {
		if f.Known != Unread {
			f.Known = Unread
		}
		other := f
		f.Fit, f.Names, other.Fit, other.Names = Clean, NamesNothing, Conflict, NamesSomething
		return same(f, other, r)
	})
	t.Logf("%d classes", calls+w.calls)
}

// most is how many situations one world may have.
const most = 400_000

// detours are changes that nobody may count on for an end: they end a pull request from
// outside, or give it up.
var detours = []string{"merged there", "closed there", "not opened", "task.cancel", "close agreed"}

// From the beginning, in every world, whatever happens can occur
// (Valid), and the merge can be reached, unless the pull request was closed or given up.
func TestReach(t *testing.T) {
	t.Parallel()
	total, all := 0, map[Step]bool{}
	for _, w := range worlds {
		n := 0
		for _, r := range w.rules {
			n += reach(t, w, r, all)
		}
		t.Logf("%-28s %8d situations", w.name, n)
		total += n
	}
	t.Logf("%d situations in all, %d different steps", total, len(all))
}

func reach(t *testing.T, w world, r Rules, steps map[Step]bool) int {
	var changes []Change
	for _, name := range slices.Concat(always, strings.Split(w.changes, ", ")) {
		changes = append(changes, changeNamed(t, name))
	}
	busy, based := strings.Contains(w.changes, "host answers"), strings.Contains(w.changes, "base is back")
	start := first()
	if w.start != nil {
		w.start(&start)
	}
	index := map[Facts]int32{start: 0}
	queue := []Facts{start}
	var back [][]int32 // from where a situation is reached, without a detour
	back = append(back, nil)
	add := func(from int, f Facts, counts bool) {
		if f = plain(f); !w.keep(f) || f.Host != HostAnswers && !busy || f.Known == NoBase && !based {
			return
		}
		i, known := index[f]
		if !known {
			i = int32(len(queue))
			index[f], queue, back = i, append(queue, f), append(back, nil)
		}
		if counts {
			back[i] = append(back[i], int32(from))
		}
	}
	for i := 0; i < len(queue); i++ {
		f := queue[i]
		if !Valid(f) {
			t.Fatalf("%s: it cannot occur: %v", w.name, situation{f, r})
		}
		s := Next(f, r)
		steps[s] = true
		outcomes := Effect(f, s)
		if s.Do == DoRepair {
			outcomes = outcomes[1:] // each kind has one round: it is left, or it is spent
		}
		for _, after := range outcomes {
			add(i, after, true)
		}
		for _, c := range changes {
			if !c.Can(f, r) {
				continue
			}
			for _, after := range c.Do(f) {
				add(i, after, !slices.Contains(detours, c.Name))
			}
		}
		if len(queue) > most {
			t.Errorf("%s: too many situations", w.name)
			return len(queue)
		}
	}
	merges := make([]bool, len(queue))
	var ends []int32
	for i, f := range queue {
		if f.State == Merged {
			merges[i], ends = true, append(ends, int32(i))
		}
	}
	for len(ends) > 0 {
		i := ends[len(ends)-1]
		ends = ends[:len(ends)-1]
		for _, from := range back[i] {
			if !merges[from] {
				merges[from], ends = true, append(ends, from)
			}
		}
	}
	stuck := 0
	for i, f := range queue {
		if !merges[i] && f.State == Open && f.Abandoned == CaredFor && f.Known != Gone && f.Known != Empty {
			if stuck++; stuck <= 3 {
				t.Errorf("%s: no way to the merge: %v: %v", w.name, Next(f, r), situation{f, r})
			}
		}
	}
	return len(queue)
}
