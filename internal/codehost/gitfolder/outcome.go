package gitfolder

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"yardmaster/internal/codehost"
)

// Modes of tree entries that refer to a place outside the tree.
const (
	modeLink      = "120000"
	modeSubmodule = "160000"
)

// Outcome answers as codehost.Host says.
func (dir Folder) Outcome(ctx context.Context, base, head string) (codehost.Outcome, error) {
	fork, err := dir.fork(ctx, base, head)
	if err != nil {
		return codehost.Outcome{}, err
	}
	o := codehost.Outcome{BaseSHA: fork.BaseSHA, HeadSHA: fork.HeadSHA}
	done, err := dir.merged(ctx, o.BaseSHA, o.HeadSHA)
	if err == nil && done != "" {
		o.Tree = o.BaseSHA
		return o, nil
	}
	if err == nil {
		o.Tree, o.Changes, err = dir.outcome(ctx, fork)
	}
	if err != nil {
		return codehost.Outcome{}, fmt.Errorf("try the merge of %s in %s: %w", head, dir, err)
	}
	return o, nil
}

func (dir Folder) outcome(ctx context.Context, fork codehost.Comparison) (tree string, changes []codehost.Change, err error) {
	from, to := fork.BaseSHA, fork.HeadSHA
	var conflicts []string
	if fork.MergeBase != "" {
		if tree, conflicts, err = dir.mergeTree(ctx, fork.BaseSHA, fork.HeadSHA); err != nil {
			return "", nil, err
		}
		if tree == "" {
			from = fork.MergeBase
		} else {
			to = tree
		}
	}
	out, err := dir.Output(ctx, "diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", from, to)
	if err != nil {
		return "", nil, err
	}
	// ":<old mode> <new mode> <old sha> <new sha> <status>", the path
	for f := range slices.Chunk(fields(out), 2) {
		about := strings.Fields(f[0])
		if len(f) != 2 || len(about) != 5 {
			return "", nil, fmt.Errorf("git diff-tree printed %q", f)
		}
		changes = append(changes, codehost.Change{Path: f[1], Link: about[1] == modeLink || about[1] == modeSubmodule})
	}
	for _, path := range conflicts {
		changes = append(changes, codehost.Change{Path: path})
	}
	slices.SortStableFunc(changes, func(a, b codehost.Change) int { return strings.Compare(a.Path, b.Path) })
	return to, slices.CompactFunc(changes, func(a, b codehost.Change) bool { return a.Path == b.Path }), nil
}
