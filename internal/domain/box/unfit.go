package box

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/protocol"
)

// unknownReason is shown for a box that says that it is unfit without saying
// why.
const unknownReason = "It does not say what is wrong."

// foreignReason is shown to other accounts for a box that is unfit.
const foreignReason = "The box, which another account has enrolled, could not carry out the run."

// reason makes one line of a box's account of its fault, of at most
// protocol.MaxUnfit bytes that every terminal and database takes. It is empty
// only if text is.
func reason(text string) string {
	if text == "" {
		return ""
	}
	line := strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)), " ")
	if len(line) > protocol.MaxUnfit {
		const more = "…"
		end := protocol.MaxUnfit - len(more)
		for !utf8.RuneStart(line[end]) {
			end--
		}
		line = line[:end] + more
	}
	return cmp.Or(line, unknownReason)
}

// maxRepo is the longest owner/name in bytes.
const maxRepo = 250

// unfitFor makes a box's account of the repositories that it cannot work on one that every
// terminal and database takes; nil if there are none.
func unfitFor(said map[string]string) map[string]string {
	var out map[string]string
	for _, repo := range slices.Sorted(maps.Keys(said)) {
		why := reason(said[repo])
		if len(out) == protocol.MaxUnfitFor || why == "" || len(repo) > maxRepo || reason(repo) != repo {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[repo] = why
	}
	return out
}

// beatOf is what a beat changes of a box.
func beatOf(r row, p protocol.Presence, at time.Time) beatArgs {
	args := beatArgs{r.ID, at, db.JSON[protocol.Presence]{V: p}, cmp.Or(p.Version, r.Version), nil}
	if len(p.UnfitFor) > 0 {
		args.UnfitFor = &db.JSON[map[string]string]{V: p.UnfitFor}
	}
	return args
}

// MarkUnfit marks a box as unfit, within tx, because a run on it failed for a
// fault of the box. An unfit box gets no work. The box's next beat decides: it
// may confirm the fault, describe it better, or clear it. A box that is already
// unfit keeps its reason.
//
// The caller holds the lock of the box, unless it holds none of a task: see the
// order at task.Lock.
func (s *Service) MarkUnfit(tx *db.Tx, boxID, why string) error {
	why = cmp.Or(reason(why), unknownReason)
	r, ok, err := byIdentity.ForUpdate().Maybe(tx, boxID)
	if err != nil || !ok || r.Unfit != nil {
		return err
	}
	was := tx.Account
	tx.Account = r.AccountID // the box may be another account's
	defer func() { tx.Account = was }()
	return s.setFitness(tx, r.ID, why)
}

// FaultShown returns the description of a box's fault that tx.Account may see:
// another account's box has its own words for its own account alone.
func FaultShown(tx *db.Tx, boxID, why string) (string, error) {
	r, _, err := byIdentity.Maybe(tx, boxID)
	if r.AccountID != tx.Account {
		return foreignReason, err
	}
	return cmp.Or(reason(why), unknownReason), err
}

// setFitness marks a box of tx.Account as unfit for the reason why, or as fit
// if why is empty. It wakes the waiting claims and queue views.
func (s *Service) setFitness(tx *db.Tx, boxID, why string) error {
	n, err := setUnfit.Exec(tx, boxID, why)
	if err != nil || n == 0 {
		return err
	}
	s.wake(tx, tx.Account)
	if why == "" {
		return FitEvent.Record(tx, event.Subject{ID: boxID}, event.None{})
	}
	return UnfitEvent.Record(tx, event.Subject{ID: boxID}, unfitData{Reason: why})
}
