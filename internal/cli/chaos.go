package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/app"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/proof/chaos"
	"yardmaster/internal/proof/chaos/astray"
)

func defineChaos(fl *flag.FlagSet) tree.Action {
	o := chaos.Options{Out: os.Stdout, Astray: app.Astray}
	minutes := fl.Float64("minutes", 0.5, "how long harm is done; settling comes on top")
	fl.Uint64Var(&o.Seed, "seed", 1, "what the plan of faults is drawn from")
	fl.IntVar(&o.Boxes, "boxes", 2, "how many boxes there are")
	fl.StringVar(&o.Database, "database", "", "postgres://… of an empty database; a SQLite file when empty")
	fl.StringVar(&o.Data, "data", "", "empty folder to keep; a temporary one, kept if something is wrong, when empty")
	return func(ctx context.Context, _ []string) (err error) {
		o.Length = time.Duration(*minutes * float64(time.Minute))
		if o.Self, err = os.Executable(); err != nil {
			return err
		}
		if err := chaos.Run(ctx, o); errors.Is(err, chaos.ErrFound) {
			return fmt.Errorf("%w; see above", err)
		} else if err != nil {
			return fmt.Errorf("no ledger: %w", err)
		}
		return nil
	}
}

// runAstray runs a command with a clock that is some seconds ahead of the machine's,
// and that standard input can change.
func runAstray(args []string) int {
	set := func(r io.Reader) {
		if err := astray.Follow(r); err != nil {
			fmt.Fprintln(os.Stderr, "yardmaster astray:", err)
			os.Exit(2)
		}
	}
	if len(args) > 0 {
		set(strings.NewReader(args[0]))
		args = args[1:]
	}
	go set(os.Stdin)
	return run(args, os.Stdout, os.Stderr)
}
