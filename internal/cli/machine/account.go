package machine

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/app"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/config"
	"yardmaster/internal/event/hashchain"
)

// AccountExport is the definition of account export.
func AccountExport(fl *flag.FlagSet) tree.Action {
	return configured(fl, func(ctx context.Context, cfg *config.Config, plain []string) error {
		return app.Departure{Version: This.Version, Out: Progress}.Export(ctx, cfg, plain[0], plain[1])
	})
}

// AccountDelete is the definition of account delete.
func AccountDelete(fl *flag.FlagSet) tree.Action {
	archive := fl.String("archive", "", "`FILE` that account export has written; what the account has done since keeps it from being deleted")
	proof := fl.String("proof", "", "`FILE` to write the signed proof into")
	return configured(fl, func(ctx context.Context, cfg *config.Config, plain []string) error {
		if *proof == "" {
			return exit.Misuse("name the file of the proof with --proof")
		}
		return app.Departure{Version: This.Version, Out: Progress}.Delete(ctx, cfg, plain[0], *archive, *proof)
	})
}

// AccountProof is the definition of account proof: it needs no server.
func AccountProof(fl *flag.FlagSet) tree.Action {
	key := fl.String("key", "", "public `KEY` of the server (or several, with commas), noted down at another time; account delete prints it")
	archive := fl.String("archive", "", "`FILE` that has to be the archive of the proof, and whole")
	return func(_ context.Context, plain []string) error {
		var keys []ed25519.PublicKey
		for word := range strings.SplitSeq(*key, ",") {
			k, err := hashchain.ParsePublicKey(word)
			if err != nil {
				return exit.Misused("--key: %v", err)
			}
			keys = append(keys, k)
		}
		in, err := opened(plain[0])
		if err != nil {
			return err
		}
		defer in.Close()
		text, err := io.ReadAll(io.LimitReader(in, 64<<20))
		if err != nil {
			return err
		}
		d, err := app.Departure{}.Verified(text, *archive, keys...)
		if err != nil {
			return err
		}
		t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintf(t, "account\t%s, %s\n", client.Inert(d.Login), client.Inert(d.AccountID))
		fmt.Fprintf(t, "deleted\t%s to %s\n", d.RowsGoneAt.Format(time.RFC3339), d.FilesGoneAt.Format(time.RFC3339))
		fmt.Fprintf(t, "archive\t%s of %s\n", client.Inert(d.Archive), d.ArchiveMade.Format(time.RFC3339))
		fmt.Fprintf(t, "record\t%d rows, the last %s\n", d.Record.Seq, cmp.Or(client.Inert(d.Record.Hash), "-"))
		fmt.Fprintf(t, "people\t%d gone with it, %d stay\n", d.People, d.PeopleStay)
		fmt.Fprintf(t, "files\trepositories: %d, objects: %d\n", len(d.Repositories), len(d.Objects))
		for _, table := range slices.Sorted(maps.Keys(d.Removed)) {
			fmt.Fprintf(t, "removed\t%d of %s\n", d.Removed[table], client.Inert(table))
		}
		for _, table := range slices.Sorted(maps.Keys(d.Stays)) {
			fmt.Fprintf(t, "left\t%d of %s: %s\n", d.Stays[table].Rows, client.Inert(table), client.Inert(d.Stays[table].Why))
		}
		return t.Flush()
	}
}
