package repo

import (
	"context"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
)

// noContents are no contents of Git LFS.
type noContents struct{}

func (noContents) Begun(*db.Tx, codehost.Repo) (string, error) { return "", nil }

func (noContents) Tidy(context.Context, string, func(context.Context, []string) ([]string, error)) error {
	return nil
}
