package machine

import (
	"context"
	"fmt"
	"os"
	"strings"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/bundle"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// Bundle is the definition of bundle.
func Bundle(fl *flag.FlagSet) tree.Action {
	text := publishers(fl)
	return func(_ context.Context, plain []string) error {
		keys, err := bundle.Keys(strings.Split(*text, ","))
		if err != nil {
			return exit.Misused("--key: %v", err)
		}
		r, err := bundle.Make(plain[0], keys, plain[1])
		return said(plain[1], r, err)
	}
}

// BundleCheck is the definition of bundle check.
func BundleCheck(fl *flag.FlagSet) tree.Action {
	text := publishers(fl)
	return func(_ context.Context, plain []string) error {
		keys, err := bundle.Keys(strings.Split(*text, ","))
		if err != nil {
			return exit.Misused("--key: %v", err)
		}
		r, err := bundle.Check(plain[0], keys)
		return said(plain[0], r, err)
	}
}

// BundleOpen is the definition of bundle open.
func BundleOpen(fl *flag.FlagSet) tree.Action {
	text := publishers(fl)
	older := fl.Bool("older", false, "open one of an older version than this program as well")
	return func(_ context.Context, plain []string) error {
		keys, err := bundle.Keys(strings.Split(*text, ","))
		if err != nil {
			return exit.Misused("--key: %v", err)
		}
		r, err := bundle.Open(plain[0], keys, plain[1], *older)
		return said(plain[1], r, err)
	}
}

// publishers declares the flag of those whose releases are taken.
func publishers(fl *flag.FlagSet) *string {
	return fl.String("key", "", "public `KEY` of minisign (or several, with commas) of the release's publisher, which you have from elsewhere")
}

func said(where string, r bundle.Release, err error) error {
	if err != nil {
		return err
	}
	for _, f := range r.Files {
		fmt.Println(client.Inert(f.Name))
	}
	fmt.Fprintf(os.Stderr, "%s is whole: the release %s, as it was signed.\n", client.Inert(where), client.Inert(r.Version))
	return nil
}
