package machine

import (
	"context"
	"errors"
	"strconv"

	"yardmaster/internal/box"
	"yardmaster/internal/box/program"
	"yardmaster/internal/cli/exit"
)

// superviseBox runs the box, in this process or in the program that it was given.
func superviseBox(ctx context.Context, cfg box.Config, b *boxFlags) error {
	err := box.Supervise(ctx, cfg, b.args())
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
