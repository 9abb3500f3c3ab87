package pull

import (
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/domain/pull/record"
)

// A pull request of a person that is open again is looked after only if the policy says so by
// then, whatever it was when it was closed.
func TestComesBackUnderThePolicy(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		c := y.count()
		tell := func(e codehost.PullChanged) record.Pull {
			t.Helper()
			if err := y.HostChanged(y.ctx(), y.web(), e); err != nil {
				t.Fatal(err)
			}
			return y.numbered(e.Pull.Number)
		}
		p := c.theirs()
		turn := func(open bool) record.Pull {
			p.Open, p.UpdatedAt = open, p.UpdatedAt.Add(time.Second)
			c.pulls[p.Number-1] = p
			return tell(said(codehost.ActionOther, "bob", p))
		}
		y.policy("version: 1\npulls: {watch: none}\n")
		if pr := tell(said(codehost.ActionOther, "bob", p)); pr.Babysit != record.BabysitOff {
			t.Fatalf("opened: %s", pr.Babysit)
		}
		turn(false)
		if pr := turn(true); pr.State != record.Open || pr.Babysit != record.BabysitOff {
			t.Errorf("agents look after what the policy leaves alone: %s, %s", pr.State, pr.Babysit)
		}
		turn(false)
		y.policy("version: 1\npulls: {watch: all}\n")
		if pr := turn(true); pr.State != record.Open || pr.Babysit != record.BabysitWatching {
			t.Errorf("agents leave alone what the policy has them watch: %s, %s", pr.State, pr.Babysit)
		}
	})
}
