package builtin

import (
	"context"

	"yardmaster/internal/codehost"
)

// Tree implements codehost.Searcher.
func (h *Host) Tree(ctx context.Context, r codehost.Repo, rev string) (codehost.Tree, error) {
	dir, err := h.open(r)
	if err != nil {
		return codehost.Tree{}, err
	}
	return dir.Tree(ctx, rev)
}

// Search implements codehost.Searcher.
func (h *Host) Search(ctx context.Context, r codehost.Repo, rev string, words []string) (codehost.Found, error) {
	dir, err := h.open(r)
	if err != nil {
		return codehost.Found{}, err
	}
	return dir.Search(ctx, rev, words)
}

// Renames implements codehost.Searcher.
func (h *Host) Renames(ctx context.Context, r codehost.Repo, from, to string) (map[string]string, error) {
	dir, err := h.open(r)
	if err != nil {
		return nil, err
	}
	return dir.Renames(ctx, from, to)
}
