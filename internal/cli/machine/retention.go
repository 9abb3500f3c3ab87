package machine

import (
	"context"
	"os"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/app"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/config"
)

// Retention is the definition of retention.
func Retention(fl *flag.FlagSet) tree.Action {
	return configured(fl, func(ctx context.Context, cfg *config.Config, _ []string) error {
		return app.Retention(ctx, cfg, os.Stdout)
	})
}

// Egress is the definition of egress.
func Egress(fl *flag.FlagSet) tree.Action {
	return configured(fl, func(ctx context.Context, cfg *config.Config, _ []string) error {
		return app.Egress(ctx, cfg, os.Stdout)
	})
}
