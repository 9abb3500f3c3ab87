package gitfolder

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
)

// FirstCommit answers as codehost.Host says.
func (dir Folder) FirstCommit(ctx context.Context, o codehost.FirstOptions) (string, error) {
	sha, err := dir.FirstFiles(ctx, o)
	if err != nil {
		return "", err
	}
	_, failed := dir.Output(ctx, "update-ref", "refs/heads/"+o.Branch, sha, codehost.ZeroSHA)
	if failed == nil {
		return sha, nil
	}
	head, err := dir.Head(ctx, o.Branch)
	switch {
	case errors.Is(err, codehost.ErrNotFound):
		return "", fmt.Errorf("make the first commit of %s: %w", dir, failed)
	case err != nil:
		return "", err
	case head != sha:
		return "", codehost.ErrHeadMoved.Because(failed)
	}
	return sha, nil
}

// FirstFiles makes the commit of FirstCommit and moves no branch.
func (dir Folder) FirstFiles(ctx context.Context, o codehost.FirstOptions) (string, error) {
	if !codehost.ValidBranch(o.Branch) {
		return "", fault.Field("branch", "is not a valid branch name")
	}
	for p := range maps.Keys(o.Files) {
		if !plainPath(p) {
			return "", fault.Field("files", "must be paths inside the repository")
		}
	}
	for _, p := range o.Programs {
		if _, ok := o.Files[p]; !ok {
			return "", fmt.Errorf("the program %q is no file of the commit", p)
		}
	}
	tree, err := dir.writeTree(ctx, emptyTree, codehost.WriteOptions{Files: o.Files}, slices.Clone(o.Programs))
	if err != nil {
		return "", fmt.Errorf("make the first commit of %s: %w", dir, err)
	}
	at := fmt.Sprintf("%d +0000", o.At.Unix())
	out, err := dir.Filter(ctx, message(codehost.MergeOptions{Title: o.Title, Body: o.Body}), []string{
		"GIT_AUTHOR_NAME=" + plain(o.Author.Name), "GIT_AUTHOR_EMAIL=" + plain(o.Author.Email), "GIT_AUTHOR_DATE=" + at,
		"GIT_COMMITTER_NAME=" + plain(o.Committer.Name), "GIT_COMMITTER_EMAIL=" + plain(o.Committer.Email), "GIT_COMMITTER_DATE=" + at,
	}, "commit-tree", tree)
	return strings.TrimSpace(out), err
}
