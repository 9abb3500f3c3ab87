package machine

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"yardmaster/internal/cli/exit"
)

// together is the longest time between two signals that count as one: some senders,
// timeout(1) among them, signal a process and then its group.
const together = 100 * time.Millisecond

// exitOnNextSignal makes the first signal after the one that ended ctx end the process at
// once, without cleaning up, as kill -9 would.
func exitOnNextSignal(ctx context.Context, log *slog.Logger) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		time.Sleep(together)
		again := make(chan os.Signal, 1)
		signal.Notify(again, os.Interrupt, syscall.SIGTERM)
		log.Info("a second signal ends the process at once")
		log.Warn("the process ends at once", "signal", <-again)
		os.Exit(exit.CodeInterrupted)
	})
}
