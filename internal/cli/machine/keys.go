package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/app"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/config"
	"yardmaster/internal/seal"
)

// withKeys opens the master keys of a server for one command.
func withKeys(ctx context.Context, cfg *config.Config, change bool, do func(*app.KeyChest) error) (err error) {
	k, err := app.OpenKeys(ctx, cfg, change)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	return do(k)
}

// KeysList is the definition of keys list.
func KeysList(fl *flag.FlagSet) tree.Action { return configured(fl, runKeysList) }

func runKeysList(ctx context.Context, cfg *config.Config, _ []string) error {
	return withKeys(ctx, cfg, false, func(k *app.KeyChest) error {
		all, err := k.List(ctx)
		if err != nil {
			return err
		}
		t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "KEY\tVALUES\tIT\tPUBLIC KEY OF AUDIT HEADS")
		for _, key := range all {
			note := "opens"
			switch {
			case key.Seals:
				note = "seals and opens"
			case key.ID == "":
				note = "no key here opens them"
			case !key.Here:
				note = "is not here"
			}
			fmt.Fprintf(t, "%s\t%d\t%s\t%s\n", cmp.Or(key.ID, "-"), key.Values, note, cmp.Or(key.Audit, "-"))
		}
		return t.Flush()
	})
}

// KeysNew prints a new master key.
func KeysNew(context.Context, []string) error {
	_, err := fmt.Print(seal.New().Reveal())
	return err
}

// Progress is where a rotation says what it has done. Tests kill it there.
var Progress io.Writer = os.Stdout

// KeysRotate is the definition of keys rotate.
func KeysRotate(fl *flag.FlagSet) tree.Action {
	ofBus := fl.Bool("bus", false,
		"give the message bus new keys and a new certificate authority instead; boxes learn both by themselves once the server is started again")
	another := fl.Bool("new", false,
		"make another key, even if there is one that not all servers may have: no other server runs on the database")
	return configured(fl, func(ctx context.Context, cfg *config.Config, _ []string) error {
		return withKeys(ctx, cfg, true, func(k *app.KeyChest) error {
			if *ofBus {
				return k.RotateBus(ctx, os.Stdout)
			}
			return k.Rotate(ctx, *another, Progress)
		})
	})
}

// KeysForget is the definition of keys forget.
func KeysForget(fl *flag.FlagSet) tree.Action {
	return configured(fl, func(ctx context.Context, cfg *config.Config, plain []string) error {
		return withKeys(ctx, cfg, true, func(k *app.KeyChest) error { return k.Forget(ctx, plain[0], os.Stdout) })
	})
}
