package machine

import (
	"context"
	"fmt"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/app"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/config"
)

// Appoint makes a person an operator of a server, or no longer one, on the database of
// the server. The API makes none, so that no token of any kind does.
func Appoint(admin bool) func(*flag.FlagSet) tree.Action {
	return func(fl *flag.FlagSet) tree.Action { return configured(fl, appoint(admin)) }
}

func appoint(admin bool) func(context.Context, *config.Config, []string) error {
	return func(ctx context.Context, cfg *config.Config, plain []string) error {
		changed, err := app.Appoint(ctx, cfg, plain[0], admin)
		if err != nil {
			return err
		}
		name := client.Inert(plain[0])
		const known = "A server that runs knows it within a second.\n"
		switch {
		case !changed:
			fmt.Printf("Nothing has changed: %s was that before.\n", name)
		case admin:
			fmt.Printf("%s is an operator of the server. "+known, name)
		default:
			fmt.Printf("%s is no operator of the server any more. "+known, name)
		}
		return nil
	}
}
