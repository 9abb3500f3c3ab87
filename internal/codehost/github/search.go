package github

import (
	"context"

	"yardmaster/internal/codehost"
)

// Tree implements codehost.Searcher.
func (h *Host) Tree(ctx context.Context, r codehost.Repo, rev string) (codehost.Tree, error) {
	dir, at, err := h.at(ctx, r, rev)
	if err != nil {
		return codehost.Tree{}, err
	}
	return dir.Tree(ctx, at[0])
}

// Search implements codehost.Searcher.
func (h *Host) Search(ctx context.Context, r codehost.Repo, rev string, words []string) (codehost.Found, error) {
	dir, at, err := h.at(ctx, r, rev)
	if err != nil {
		return codehost.Found{}, err
	}
	return dir.Search(ctx, at[0], words)
}

// Renames implements codehost.Searcher.
func (h *Host) Renames(ctx context.Context, r codehost.Repo, from, to string) (map[string]string, error) {
	dir, at, err := h.at(ctx, r, from, to)
	if err != nil {
		return nil, err
	}
	return dir.Renames(ctx, at[0], at[1])
}
