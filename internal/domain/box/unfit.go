package box

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/protocol"
)

// noReason is shown of a box that says that it is unfit, and nothing more.
const noReason = "It does not say what is wrong."

// foreignReason is what other accounts are told of a box that is unfit.
const foreignReason = "The box, which another account has enrolled, could not carry out the run."

// reason makes one line of what a box says is wrong with it, of at most
// protocol.MaxUnfit bytes that every terminal and database takes. It is empty
// only if the box says nothing.
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
	return firstOf(line, noReason)
}

// MarkUnfit keeps a box from being given work, within tx, because a run on it
// failed for a fault of the box. What it says of itself decides from then on:
// its next beat may confirm that, say it better, or take it back. A box that
// has said already what is wrong keeps its own words.
//
// The caller holds the lock of the box, unless it holds none of a task: see the
// order at task.Lock.
func (s *Service) MarkUnfit(tx *db.Tx, boxID, why string) error {
	why = firstOf(reason(why), noReason)
	r, ok, err := byIdentity.ForUpdate().Maybe(tx, boxID)
	if err != nil || !ok || r.Unfit != nil {
		return err
	}
	was := tx.Account
	tx.Account = r.AccountID // the run may be another account's
	defer func() { tx.Account = was }()
	return s.judge(tx, r.ID, why)
}

// FaultShown is what tx.Account may know of a fault of a box: the words of another
// account's box are for that account alone.
func FaultShown(tx *db.Tx, boxID, why string) (string, error) {
	r, _, err := byIdentity.Maybe(tx, boxID)
	if r.AccountID != tx.Account {
		return foreignReason, err
	}
	return firstOf(reason(why), noReason), err
}

// judge notes why a box of tx.Account is unfit; that it is fit if why is empty.
// Who waits for work, or shows why there is none, looks again.
func (s *Service) judge(tx *db.Tx, boxID, why string) error {
	n, err := setUnfit.Exec(tx, boxID, why)
	if err != nil || n == 0 {
		return err
	}
	s.wake(tx)
	if why == "" {
		return fitEvent.Record(tx, event.Subject{ID: boxID}, event.None{})
	}
	return unfitEvent.Record(tx, event.Subject{ID: boxID}, unfitData{Reason: why})
}
