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

// ReleaseImport puts a signed program, or those of a bundle, into the ledger of a server, on the
// database and the store of objects of the server.
func ReleaseImport(fl *flag.FlagSet) tree.Action { return configured(fl, importRelease) }

func importRelease(ctx context.Context, cfg *config.Config, plain []string) error {
	all, err := app.ImportRelease(ctx, cfg, plain[0])
	for _, r := range all {
		fmt.Printf("%s of the channel %s, for %s, is in the ledger, signed by the key %s.\n", client.Inert(r.Version), r.Channel, r.Target, r.Key)
	}
	if err == nil {
		fmt.Printf("`yardmaster box update --channel %[1]s` brings boxes to it that follow that channel; "+
			"`yardmaster box pin account --channel %[1]s` has all of an account do so.\n", all[0].Channel)
	}
	return err
}
