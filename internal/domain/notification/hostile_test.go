package notification

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/proof/seed"
)

// Hidden characters neither carry a secret past the scan nor reach a browser.
func TestHidden(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *post) {
		n := waits("t1")
		n.Text = "first\u202e\r\n gh\u200bp_" + strings.Repeat("a1B2", 9)
		p.tell(n)
		text := p.inbox("bob")[0].Text
		if !strings.HasPrefix(text, "first\n") || strings.Contains(text, "a1B2") || text != p.pushed[0].Text ||
			strings.Contains(p.letters[0].Text+p.letters[0].HTML, "a1B2") {
			p.t.Errorf("%q, pushed %q, mailed %s", text, p.pushed[0].Text, p.letters[0].Text)
		}
	})
}

// A person gets 30 mails of a kind an hour, whatever they are about, and the last says so;
// mails of other kinds are not in their way.
func TestStorm(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *post) {
		storm := func(from, to int) {
			p.write(func(tx *db.Tx) error {
				for i := from; i < to; i++ {
					if err := p.Tell(tx, waits(fmt.Sprintf("t%d", i))); err != nil {
						return err
					}
				}
				return nil
			})
			p.send()
		}
		storm(0, 40)
		if n := len(p.letters); n != 30 || len(p.pushed) != 40 {
			p.t.Fatalf("%d mails, %d pushed", n, len(p.pushed))
		}
		if a, b := p.letters[28].Text, p.letters[29].Text; strings.Contains(a, "30th mail") || !strings.Contains(b, "30th mail") {
			p.t.Errorf("the last of them: %s", b)
		}
		other := waits("e1")
		other.Kind = Escalation
		if p.tell(other); len(p.letters) != 31 {
			p.t.Errorf("an escalation after it: %d", len(p.letters))
		}
		p.now = p.now.Add(mailEvery - time.Second)
		if storm(40, 41); len(p.letters) != 31 {
			p.t.Errorf("within the hour: %d", len(p.letters))
		}
		p.now = p.now.Add(time.Second)
		if storm(41, 43); len(p.letters) != 33 {
			p.t.Errorf("after the hour: %d", len(p.letters))
		}
		p.now = p.now.Add(-30 * 24 * time.Hour) // a clock that was wrong
		if storm(43, 44); len(p.letters) != 34 {
			p.t.Errorf("after the clock was set back: %d", len(p.letters))
		}
	})
}

// A person who is not let through the gate any more is told nothing.
func TestGate(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *post) {
		p.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.User{ID: "kim", Email: "kim@example.com", Waiting: true},
				seed.Member{Account: "acme", User: "kim", Role: "admin"})
		})
		n := waits("t1")
		n.To = []string{"kim"}
		p.tell(n)
		if rows := p.inbox("kim"); len(rows)+len(p.letters)+len(p.pushed) > 0 {
			p.t.Errorf("told %+v, mailed %+v, pushed %+v", rows, p.letters, p.pushed)
		}
	})
}
