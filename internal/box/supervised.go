package box

import (
	"context"
	"errors"
	"os"

	"yardmaster/internal/box/program"
)

// Supervise is Run for a box that can be updated: it runs the box in this process, or in the
// program that the box was given in place of this one, which it then starts with args, and
// replaces by the one of before where it does not prove itself. What a program that was started
// ended with is a *program.ExitError.
func Supervise(ctx context.Context, cfg Config, args []string) error {
	cfg.Programs = program.Open(cfg.DataDir)
	here := func(ctx context.Context) error { return Run(ctx, cfg) }
	if os.Getenv(program.Variable) != "" { // this is the one that was started
		if err := here(ctx); !errors.Is(err, program.ErrSwap) {
			return err
		}
		return nil
	}
	v := program.Supervision{
		Store: cfg.Programs, Installed: cfg.Version, Args: args, Logger: cfg.Logger, Here: here,
		Free: func() error { return free(cfg.DataDir) },
	}
	return v.Run(ctx)
}
