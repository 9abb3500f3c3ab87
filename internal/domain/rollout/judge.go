package rollout

import (
	"fmt"
	"time"

	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/release"
	"yardmaster/internal/protocol"
	"yardmaster/internal/version"
)

// boxAfter is the state of a box that was told, or is good, by what it says of itself; "" if that
// does not change. A box that there is not any more has no standing.
func boxAfter(b boxRow, st *box.Standing, to string, now time.Time) (state, why string) {
	switch {
	case b.State != Told && b.State != Good:
		return "", ""
	case st == nil && b.State == Told:
		return Away, "It was revoked."
	case st == nil:
		return "", ""
	case st.Update != nil && st.Update.State == protocol.UpdateFailed && st.Update.Command == b.CommandID:
		return Failed, st.Update.Why
	case b.State == Good && st.Presence == box.Online && version.After(to, st.Version):
		return Failed, "It runs " + st.Version + " again."
	case b.State == Told && st.LastBeat != nil && st.Presence == box.Offline && now.Sub(latest(*st.LastBeat, b.ChangedAt)) > silence:
		return Lost, "It fell silent."
	case b.State == Told && now.Sub(b.ChangedAt) > overdue:
		return Lost, "It did not get there in two days."
	}
	return "", ""
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// The rate of failed runs is worse if, of so many runs at least, so much more of a hundred fail.
const (
	leastRuns = 5
	worseBy   = 20
)

// rates are the runs that ended, and failed, before a rollout and on updated boxes.
type rates struct{ Before, FailedBefore, After, FailedAfter int64 }

func (n rates) worse() bool {
	if n.After < leastRuns {
		return false
	}
	before := int64(0)
	if n.Before > 0 {
		before = n.FailedBefore * 100 / n.Before
	}
	return n.FailedAfter*100/n.After >= before+worseBy
}

// since counts the runs on boxes that began after their update.
func since(all []Outcome, good map[string]time.Time) (runs, failed int64) {
	for _, o := range all {
		if at, ok := good[o.BoxID]; ok && !o.Began.Before(at) {
			runs++
			if o.Failed {
				failed++
			}
		}
	}
	return runs, failed
}

// halts says why a rollout halts; "" if it goes on.
func halts(r row, boxes []boxRow, builds []release.Build) string {
	halted, there := "", false
	for _, b := range builds {
		if b.Version == r.Version {
			there = there || b.Halted == ""
			halted = b.Halted
		}
	}
	if !there {
		return fmt.Sprintf("The release %s was %s.", r.Version, orGone(halted))
	}
	failed, lost, tried, why := 0, 0, 0, ""
	for _, b := range boxes {
		switch b.State {
		case Failed:
			failed++
			tried++
			why = b.Why
		case Lost:
			lost++
			tried++
			why = b.Why
		case Told, Good:
			tried++
		}
	}
	switch n := r.rates(); {
	case failed > 0:
		return fmt.Sprintf("%d of %d boxes did not come up with it: %s", failed, tried, why)
	case lost > 0:
		return fmt.Sprintf("%d of %d boxes were lost: %s", lost, tried, why)
	case n.worse():
		return fmt.Sprintf("%d of %d runs failed on updated boxes, before it were %d of %d.", n.FailedAfter, n.After, n.FailedBefore, n.Before)
	}
	return ""
}

func orGone(halted string) string {
	if halted == "" {
		return "taken out of the ledger"
	}
	return halted
}

// moves are the states that may follow each state of a rollout.
var moves = map[string][]string{
	Preparing: {Canary, Halted, Cancelled},
	Canary:    {Soaking, Done, Halted, Cancelled},
	Soaking:   {Rolling, Done, Halted, Cancelled},
	Rolling:   {Done, Halted, Cancelled},
	Done:      nil,
	Halted:    nil,
	Cancelled: nil,
}

// next is the state of a rollout that nothing halts, and its wave: as it is while a wave, or the
// soak, goes on.
func next(r row, boxes []boxRow, now time.Time) (state string, wave int64) {
	last, open, good := int64(0), false, false
	for _, b := range boxes {
		last = max(last, b.Wave)
		if b.Wave > 0 && b.Wave <= r.Wave {
			open = open || b.State == Told || b.State == Waits
			good = good || b.State == Good
		}
	}
	switch r.State {
	case Preparing:
		return Canary, 1
	case Canary:
		switch {
		case open:
			return Canary, r.Wave
		case good:
			return Soaking, r.Wave
		case r.Wave < last: // the canary is gone: the next wave is one
			return Canary, r.Wave + 1
		}
		return Done, r.Wave
	case Soaking:
		if r.SoakUntil != nil && now.Before(*r.SoakUntil) {
			return Soaking, r.Wave
		}
		if r.Wave < last {
			return Rolling, r.Wave + 1
		}
		return Done, r.Wave
	case Rolling:
		if open {
			return Rolling, r.Wave
		}
		if r.Wave < last {
			return Rolling, r.Wave + 1
		}
		return Done, r.Wave
	}
	return r.State, r.Wave
}
