package box

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	_ "yardmaster/internal/proof/chance" // seeds rapid
	"yardmaster/internal/protocol"
)

var auditData = db.Q[string](`SELECT data FROM audit WHERE object = $1 AND kind = $2 ORDER BY seq DESC LIMIT 1`)

// beat stores a beat of a box.
func (f *fixture) beat(boxID string, p protocol.Presence) {
	f.t.Helper()
	if err := f.store(f.t.Context(), map[string]protocol.Presence{boxID: storable(p)}); err != nil {
		f.t.Fatal(err)
	}
}

// wantUnfit holds the shown reason why the box takes no work, and how often its
// audit log says that it became unfit and fit.
func (f *fixture) wantUnfit(boxID, why string, unfit, fit int64) {
	f.t.Helper()
	got := f.box(boxID).Presence.Unfit
	if why == "" && got != nil || why != "" && (got == nil || *got != why) {
		f.t.Errorf("unfit is %v, want %q", got, why)
	}
	if u, ok := read(f, countAudit, boxID, "box.unfit"), read(f, countAudit, boxID, "box.fit"); u != unfit || ok != fit {
		f.t.Errorf("%d rows box.unfit and %d rows box.fit, want %d and %d", u, ok, unfit, fit)
	}
}

// TestBeatsSayUnfit holds that a box's reports that it is unfit, for one reason
// and then another, and fit again are each stored at once and recorded, and
// wake the claims that wait for work.
func TestBeatsSayUnfit(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		boxID := f.enrolled(publicKey(t)).ID
		ready := protocol.Presence{Version: "1.0.0", State: "ready", Slots: 2, Free: 2}
		f.beat(boxID, ready)
		f.wantUnfit(boxID, "", 0, 0)

		unfit, other := ready, ready
		unfit.Unfit, other.Unfit = "The sandbox does not start.", "The disk is full."
		for _, step := range []struct {
			say        protocol.Presence
			unfit, fit int64
			news       bool
		}{{unfit, 1, 0, true}, {unfit, 1, 0, false}, {other, 2, 0, true}, {ready, 2, 1, true}, {ready, 2, 1, false}, {unfit, 3, 1, true}} {
			news := f.Hub.Watch(event.QueueTopic("acme"))
			f.beat(boxID, step.say)
			f.wantUnfit(boxID, step.say.Unfit, step.unfit, step.fit)
			select {
			case <-news:
				if !step.news {
					t.Errorf("the same again, %q, wakes the queue", step.say.Unfit)
				}
			default:
				if step.news {
					t.Errorf("the queue does not learn of %q", step.say.Unfit)
				}
			}
		}
		if got := read(f, auditData, boxID, "box.unfit"); !strings.Contains(got, `"The sandbox does not start."`) {
			t.Errorf("the record does not say why: %s", got)
		}
	})
}

// TestMarkUnfit holds that a run that failed for a fault of its box marks the
// box; a report of the box itself comes first, and decides afterwards.
func TestMarkUnfit(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		boxID := f.enrolled(publicKey(t)).ID
		mark := func(why string) {
			t.Helper()
			f.write(func(tx *db.Tx) error {
				tx.Account = "rival" // whose run it was
				if shown, err := FaultShown(tx, boxID, why); shown != foreignReason || err != nil {
					t.Errorf("another account is told: %s, %v", shown, err)
				}
				err := f.MarkUnfit(tx, boxID, why)
				if tx.Account != "rival" {
					t.Errorf("the transaction is about %q afterwards", tx.Account)
				}
				return err
			})
		}
		ready := protocol.Presence{Version: "1.0.0", State: "ready", Slots: 2, Free: 2}
		f.beat(boxID, ready)
		news := f.Hub.Watch(event.QueueTopic("acme"))
		mark("bwrap: no namespaces\nfor uid 1000\x1b[31m")
		f.wantUnfit(boxID, "bwrap: no namespaces for uid 1000 [31m", 1, 0)
		select {
		case <-news:
		default:
			t.Error("the account of the box does not learn of it")
		}
		if n := read(f, auditOf, "acme", boxID, "box.unfit"); n != 1 {
			t.Errorf("the account of the box has %d rows", n)
		}

		mark("another run, another text")
		f.wantUnfit(boxID, "bwrap: no namespaces for uid 1000 [31m", 1, 0)
		f.beat(boxID, ready) // like the beat before the mark in everything
		f.wantUnfit(boxID, "", 1, 1)

		mark("")
		f.wantUnfit(boxID, unknownReason, 2, 1)
		own := ready
		own.Unfit = "The sandbox does not start."
		f.beat(boxID, own)
		f.wantUnfit(boxID, "The sandbox does not start.", 3, 1)
		mark("bwrap: no namespaces")
		f.wantUnfit(boxID, "The sandbox does not start.", 3, 1)

		f.write(func(tx *db.Tx) error {
			tx.Account = "acme"
			shown, err := FaultShown(tx, boxID, "no\x1b[31mroom")
			if shown != "no [31mroom" {
				t.Errorf("its own account is told: %q", shown)
			}
			return errors.Join(err, f.MarkUnfit(tx, boxID, "no\x1b[31mroom"), f.MarkUnfit(tx, "unknown", "x"))
		})
	})
}

// TestUnfitIsNotShownForEver holds that a box's reason is shown only until the
// box falls silent.
func TestUnfitIsNotShownForEver(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		boxID := f.enrolled(publicKey(t)).ID
		p := protocol.Presence{Version: "1.0.0", State: "unfit", Unfit: "The disk is full."}
		f.beat(boxID, p)
		f.write(func(tx *db.Tx) error { _, err := backdate.Exec(tx, boxID, tx.Now.Add(-staleAfter)); return err })
		f.wantUnfit(boxID, p.Unfit, 1, 0)
		f.write(func(tx *db.Tx) error { _, err := backdate.Exec(tx, boxID, tx.Now.Add(-offlineAfter)); return err })
		f.wantUnfit(boxID, "", 1, 0)
		f.beat(boxID, p) // it is as unfit as before
		f.wantUnfit(boxID, p.Unfit, 1, 0)

		f.want(200, "", "POST", "/v1/runners/"+boxID+"/revoke", nil)
		f.wantUnfit(boxID, "", 1, 0)
		f.write(func(tx *db.Tx) error { return f.MarkUnfit(tx, boxID, "too late") })
		f.wantUnfit(boxID, "", 1, 0)
		if got := read(f, unfitOf, boxID); got != nil {
			t.Errorf("of a revoked box is kept %q", *got)
		}
	})
}

var (
	unfitOf = db.Q[*string](`SELECT unfit FROM boxes WHERE id = $1`)
	auditOf = db.Q[int64](`SELECT COUNT(*) FROM audit WHERE account_id = $1 AND object = $2 AND kind = $3`)
)

func TestReason(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                        "",
		"The disk is full.":       "The disk is full.",
		"  a\r\n\tb\x00c\u2028d ": "a b c d",
		"\n":                      unknownReason,
		"a\xffb":                  "a\ufffdb",
	} {
		if got := reason(text); got != want {
			t.Errorf("reason(%q) = %q, want %q", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.String().Draw(t, "text"), rapid.IntRange(1, 400).Draw(t, "times"))
		got := reason(text)
		if len(got) > protocol.MaxUnfit || !utf8.ValidString(got) || (got == "") != (text == "") ||
			strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) || reason(got) != got {
			t.Fatalf("%q becomes %q", text, got)
		}
	})
}
