package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"yardmaster/internal/app"
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

func runKeysList(ctx context.Context, args []string) error {
	cfg, err := configured("keys list", args)
	if err != nil {
		return err
	}
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

func runKeysNew(_ context.Context, args []string) error {
	if _, err := parse(flags("keys new"), args); err != nil {
		return err
	}
	_, err := fmt.Print(seal.New().Reveal())
	return err
}

func runKeysRotate(ctx context.Context, args []string) error {
	fl := flags("keys rotate")
	ofBus := fl.Bool("bus", false,
		"give the message bus new keys of its own instead; boxes get new credentials by themselves once the server is started again")
	another := fl.Bool("new", false,
		"make another key, even if there is one that not all servers may have: no other server runs on the database")
	cfg, _, err := configuredFor(fl, args)
	if err != nil {
		return err
	}
	return withKeys(ctx, cfg, true, func(k *app.KeyChest) error {
		if *ofBus {
			return k.RotateBus(ctx, os.Stdout)
		}
		return k.Rotate(ctx, *another, os.Stdout)
	})
}

func runKeysForget(ctx context.Context, args []string) error {
	cfg, plain, err := configuredFor(flags("keys forget"), args, "ID")
	if err != nil {
		return err
	}
	return withKeys(ctx, cfg, true, func(k *app.KeyChest) error { return k.Forget(ctx, plain[0], os.Stdout) })
}
