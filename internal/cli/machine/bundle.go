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
	"yardmaster/internal/minisign"
	"yardmaster/internal/version"
)

// Bundle is the definition of bundle.
func Bundle(fl *flag.FlagSet) tree.Action {
	keys := publishers(fl)
	return func(_ context.Context, plain []string) error {
		by, err := keys()
		if err != nil {
			return err
		}
		r, err := bundle.Make(plain[0], by, plain[1])
		return said(plain[1], r, err)
	}
}

// BundleCheck is the definition of bundle check.
func BundleCheck(fl *flag.FlagSet) tree.Action {
	keys := publishers(fl)
	return func(_ context.Context, plain []string) error {
		by, err := keys()
		if err != nil {
			return err
		}
		r, err := bundle.Check(plain[0], by)
		return said(plain[0], r, err)
	}
}

// BundleOpen is the definition of bundle open.
func BundleOpen(fl *flag.FlagSet) tree.Action {
	keys := publishers(fl)
	older := fl.Bool("older", false, "open one of an older version than this program as well")
	return func(_ context.Context, plain []string) error {
		by, err := keys()
		if err != nil {
			return err
		}
		own := version.Own
		if *older {
			own = ""
		}
		r, err := bundle.Open(plain[0], by, plain[1], own)
		return said(plain[1], r, err)
	}
}

// publishers declares the flag of those whose releases are taken.
func publishers(fl *flag.FlagSet) func() ([]minisign.Key, error) {
	text := fl.String("key", "", "public `KEY` of minisign (or several, with commas) of the release's publisher, which you have from elsewhere")
	return func() (out []minisign.Key, err error) {
		for word := range strings.SplitSeq(*text, ",") {
			k, err := minisign.ParseKey(word)
			if err != nil {
				return nil, exit.Misused("--key: %q is no public key of minisign", word)
			}
			out = append(out, k)
		}
		return out, nil
	}
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
