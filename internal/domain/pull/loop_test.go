package pull

import (
	"testing"

	"yardmaster/internal/domain/pull/record"
)

// A pass that finds nothing to do only reads.
func TestIdlePassOnlyReads(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.propose("svc/a", y.commit("svc/a", "a", "a\n"))
		y.pass(0)
		y.pass(0)
		before := y.writes.Load()
		y.pass(0)
		if n := y.writes.Load() - before; n > 0 {
			t.Errorf("%d transactions write although nothing is due", n)
		}
		y.pass(record.AskFor)
		if y.writes.Load() == before {
			t.Error("a question that has expired is left open")
		}
	})
}
