package box_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"yardmaster/internal/box"
)

// codeUnfit is the exit code of inspectMain for a machine that cannot be a box. The reason
// is on its standard output.
const codeUnfit = 7

// inspectMain tests the machine as a process of its own.
func inspectMain(config string) int {
	var cfg box.Config
	err := json.Unmarshal([]byte(config), &cfg)
	if err == nil {
		_, err = box.Inspect(context.Background(), cfg)
	}
	var unfit *box.UnfitError
	switch {
	case errors.As(err, &unfit):
		fmt.Print(err)
		return codeUnfit
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// boxMain is a box as a process of its own.
func boxMain(config string) int {
	var cfg box.Config
	if err := json.Unmarshal([]byte(config), &cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := box.Run(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
