package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// together is how far apart two signals are one: some senders, timeout(1) among
// them, signal a process and then its group.
const together = 100 * time.Millisecond

// hurried makes the next signal end the process at once that comes after the one
// that ended ctx. Nothing is tidied up then, as after kill -9.
func hurried(ctx context.Context, log *slog.Logger) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		time.Sleep(together)
		again := make(chan os.Signal, 1)
		signal.Notify(again, os.Interrupt, syscall.SIGTERM)
		log.Info("a second signal ends the process at once")
		log.Warn("the process ends at once", "signal", <-again)
		os.Exit(exitInterrupted)
	})
}
