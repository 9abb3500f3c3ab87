package box

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"yardmaster/internal/protocol"
)

// TestEndComesAfterWhatWasAsked holds that a run that was asked to end records that
// before its end, whichever of the two goroutines is the faster.
func TestEndComesAfterWhatWasAsked(t *testing.T) {
	t.Parallel()
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	a := newAttempt(context.Background(), &setup{data: dir, work: dir}, protocol.Start{Run: "r", Attempt: 1, Agent: "command"}, log)
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := a.openSpool(); err != nil {
		t.Fatal(err)
	}
	defer a.spool.Close()
	b := &box{life: context.Background(), log: log}
	a.end(ending{severity: haltNow, state: protocol.Halted, kind: "halted", detail: "enough"})
	over := make(chan struct{})
	go func() {
		b.conclude(a, nil, result{})
		close(over)
	}()
	a.announce(context.Background())
	<-over
	events, err := a.spool.Read(1, 10, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	if len(kinds) != 2 || kinds[0] != protocol.EventHalting || kinds[1] != protocol.EventFinished {
		t.Errorf("it recorded %q", kinds)
	}
}
