package rollout

import (
	"context"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/release"
)

var countAudit = db.Q[int64](`SELECT COUNT(*) FROM audit WHERE kind = $1`)

// PublishOwn adds what the test says.
func (y *yard) PublishOwn(context.Context) error {
	y.builds = append(y.builds, y.own...)
	return nil
}

// TestRightAfterAnUpgrade: the server's own program counts before it has come into the ledger by
// itself.
func TestRightAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	onBoth(t, 1, func(y *yard) {
		y.builds, y.own = []release.Build{build("v1.0.0", "")}, []release.Build{build("v1.1.0", "")}
		if got := y.begins(); got.Kind != "started" || got.Version != "v1.1.0" || got.Boxes.Waits != 1 {
			y.t.Fatalf("%+v", got)
		}
	})
}

// TestOtherChannelsHaveNothingOfIt: whoever brings boxes to a release of another channel publishes nothing,
// also where the account follows that channel.
func TestOtherChannelsHaveNothingOfIt(t *testing.T) {
	t.Parallel()
	onBoth(t, 1, func(y *yard) {
		y.builds, y.own = nil, []release.Build{build("v1.1.0", "")}
		if _, err := y.start(y.as(), startIn{Channel: "stable"}); err != nil || len(y.builds) != 0 {
			y.t.Errorf("by name: %v, %d builds", err, len(y.builds))
		}
		if _, err := y.pin(y.as(), pinIn{Scope: OfAccount, Channel: new("stable")}); err != nil {
			y.t.Fatal(err)
		}
		if _, err := y.start(y.as(), startIn{}); err != nil || len(y.builds) != 0 {
			y.t.Errorf("by what the account follows: %v, %d builds", err, len(y.builds))
		}
	})
}
