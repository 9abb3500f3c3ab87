// Command smallbox is a box and nothing else, for tests of its updates: two builds of it differ
// in their version, and one may be broken on purpose.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/box"
)

// The linker sets both.
var (
	version = "v0.0.0"
	broken  = "" // ends: it does not come up
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if len(args) > 0 {
		if inner, ok := box.Inner()[args[0]]; ok {
			return inner(args[1:])
		}
	}
	if broken == "ends" {
		fmt.Fprintln(os.Stderr, "this build is broken")
		return 3
	}
	fl := flag.NewFlagSet("smallbox", flag.ContinueOnError)
	data := fl.String("data", "", "folder of the box")
	if err := fl.Parse(args); err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := box.Supervise(ctx, box.Config{
		DataDir: *data, Name: "small", Slots: 1, Version: version, WatchOnly: true,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Timing: box.Timing{Beat: time.Second, Retry: 50 * time.Millisecond, ClaimWait: time.Second},
	}, args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "smallbox:", err)
		return 1
	}
	return 0
}
