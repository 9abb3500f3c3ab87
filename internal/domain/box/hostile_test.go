package box

import (
	"strings"
	"testing"

	"yardmaster/internal/protocol"
)

// A beat that cannot be stored as it is spoils neither its own box's presence
// nor that of another, whose beat is stored along with it.
func TestHostileBeat(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		f.run()
		evil, honest := f.join(), f.join()
		for _, m := range []struct {
			box string
			err error
		}{
			{evil.ID, evil.conn.Beat(protocol.Presence{Version: "1\x00" + strings.Repeat("9", 5000), State: "ready", Runs: make([]protocol.RunRef, 1000),
				Unfit: "no\x00 \x1b[2Jroom\n" + strings.Repeat("é", 5000)})},
			{honest.ID, honest.conn.Beat(protocol.Presence{Version: "1.1.0", State: "ready"})},
		} {
			if m.err != nil {
				t.Fatal(m.err)
			}
			eventually(t, "the box comes online", func() bool { return f.box(m.box).Presence.Status == Online })
		}
		if r := read(f, byIdentity, evil.ID); r.Version != "1"+strings.Repeat("9", maxVersion-2) || len(r.Telemetry.V.Runs) != maxRuns {
			t.Errorf("what is kept of the hostile beat: %s, %d runs", r.Version, len(r.Telemetry.V.Runs))
		}
		if u := f.box(evil.ID).Presence.Unfit; u == nil || !strings.HasPrefix(*u, "no [2Jroom éé") || len(*u) > protocol.MaxUnfit {
			t.Errorf("what is kept of its reason: %v", u)
		}
	})
}
