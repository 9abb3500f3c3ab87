package machine

import (
	"context"
	"errors"
	"os"
	"strconv"

	"yardmaster/internal/box"
	"yardmaster/internal/box/program"
	"yardmaster/internal/cli/exit"
)

// superviseBox runs the box: in this process, or in the program that the box was given in place of
// this one, which this process then starts, and replaces where it does not prove itself.
func superviseBox(ctx context.Context, cfg box.Config, b *boxFlags) error {
	cfg.Programs = program.Open(b.data)
	here := func(ctx context.Context) error { return box.Run(ctx, cfg) }
	if os.Getenv(program.Variable) != "" { // this is the one that was started
		if err := here(ctx); !errors.Is(err, program.ErrSwap) {
			return err
		}
		return nil
	}
	v := program.Supervision{
		Store: cfg.Programs, Installed: cfg.Version, Args: b.args(), Logger: cfg.Logger, Here: here,
		Free: func() error { return box.Free(b.data) },
	}
	err := v.Run(ctx)
	var ended *program.ExitError
	if errors.As(err, &ended) { // it has said why
		return exit.Status(ended.Code)
	}
	return err
}

// args starts a box of the same flags.
func (b *boxFlags) args() []string {
	return []string{
		"box", "run", "--data", b.data, "--work", b.work, "--log-level", b.level, "--name", b.name,
		"--slots", strconv.Itoa(b.slots), "--limits", b.limits, "--egress", b.egress, "--release-keys", b.keys,
	}
}
