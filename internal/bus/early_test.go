package bus_test

import (
	"context"
	"fmt"
	"testing"

	"yardmaster/internal/bus"
	"yardmaster/internal/protocol"
)

// A box that leaves a gap loses what comes behind it: the first envelope comes
// again a few times, in case that its predecessors are under way, and the
// others do not take up room that other boxes need.
func TestGapsDoNotPileUp(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	const events, last = 30, 28 // three an envelope
	tried := make(chan int64, 1000)
	if _, err := b.Ingest(context.Background(), func(_ context.Context, _ string, e protocol.Envelope) error {
		tried <- e.Events[0].Seq
		return fmt.Errorf("%w: something is missing", bus.ErrEarly)
	}); err != nil {
		t.Fatal(err)
	}
	if err := send(testContext(t), enrol(t, b, "bx").connect(t, b), "r", events, func(int64) {}); err != nil {
		t.Fatal(err)
	}
	times := map[int64]int{}
	for times[last] == 0 {
		times[receive(t, "the last envelope", tried)]++
	}
	for seq := int64(1); seq <= last; seq += 3 {
		want := 1
		if seq == 1 {
			want = 5
		}
		if times[seq] != want {
			t.Errorf("envelope %d was tried %d times, want %d", seq, times[seq], want)
		}
	}
}
