package gitfolder

import (
	"context"
	"fmt"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
)

// Stack answers as codehost.Host says.
func (dir Folder) Stack(ctx context.Context, o codehost.StackOptions) (codehost.Stacked, error) {
	out := codehost.Stacked{SHA: o.BaseSHA, Conflict: -1}
	for _, sha := range append([]string{o.BaseSHA}, o.Heads...) {
		if !codehost.ValidSHA(sha) {
			return out, fault.Field("heads", "has an entry that is not a full commit SHA")
		}
	}
	if _, err := dir.Resolve(ctx, append([]string{o.BaseSHA}, o.Heads...)...); err != nil {
		return out, err
	}
	for i, head := range o.Heads {
		own, err := dir.treeOf(ctx, head)
		if err != nil {
			return out, err
		}
		out.HeadTrees = append(out.HeadTrees, own)
		if _, err := dir.Output(ctx, "merge-base", "--is-ancestor", head, out.SHA); err == nil {
			continue
		} else if !Exited(err, 1) {
			return out, fmt.Errorf("stack %s: %w", head, err)
		}
		fork, err := dir.fork(ctx, out.SHA, head, nil)
		if err != nil {
			return out, fmt.Errorf("stack %s: %w", head, err)
		}
		tree := ""
		if fork.MergeBase != "" {
			if tree, _, err = dir.mergeTree(ctx, fork.onto, head); err != nil {
				return out, fmt.Errorf("stack %s: %w", head, err)
			}
		}
		if tree == "" {
			out.Conflict = i
			return out, nil
		}
		sha, err := dir.commit(ctx, tree, out.SHA, codehost.MergeOptions{
			HeadSHA: head, Method: codehost.MethodMerge, Title: o.Title, Author: o.Author, Committer: o.Author,
		})
		if err != nil {
			return out, fmt.Errorf("stack %s: %w", head, err)
		}
		out.SHA = sha
	}
	var err error
	out.Tree, err = dir.treeOf(ctx, out.SHA)
	return out, err
}

func (dir Folder) treeOf(ctx context.Context, sha string) (string, error) {
	out, err := dir.Output(ctx, "rev-parse", "--verify", sha+"^{tree}")
	if err != nil {
		return "", fmt.Errorf("read the tree of %s: %w", sha, err)
	}
	return strings.TrimSpace(out), nil
}

// PutBranch answers as codehost.Host says.
func (dir Folder) PutBranch(ctx context.Context, branch, sha string) error {
	if !codehost.QueueBranch(branch) || !codehost.ValidSHA(sha) {
		return codehost.ErrNotFound
	}
	if _, err := dir.Output(ctx, "update-ref", "refs/heads/"+branch, sha); err != nil {
		return fmt.Errorf("put branch %s of %s: %w", branch, dir, err)
	}
	return nil
}
