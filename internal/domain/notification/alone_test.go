package notification

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/proof/seed"
)

// Who is not let through the gate, or is no member, settles nothing: beside such people alone,
// who caused it is told.
func TestAloneAmongThoseWhoHear(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *post) {
		p.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.User{ID: "sue", Waiting: true}, seed.Member{Account: "acme", User: "sue", Role: "owner"})
		})
		n := waits("merge")
		n.Kind, n.To = Approval, []string{"ann", "sue", "eve"}
		p.tell(n)
		if rows := p.inbox("ann"); len(rows) != 1 || len(p.inbox("sue")) != 0 {
			p.t.Errorf("ann has %+v", rows)
		}
	})
}
