package machine

import (
	"context"
	"os"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/app"
	"yardmaster/internal/cli/output"
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

// Examine is the definition of doctor server.
func Examine(fl *flag.FlagSet) tree.Action {
	o := &output.Flags{}
	o.Add(fl)
	return configured(fl, func(ctx context.Context, cfg *config.Config, _ []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		found := o.Find()
		for _, f := range app.Examine(ctx, cfg) {
			found.Say(f.OK, f.What, f.Then)
		}
		return found.End()
	})
}
