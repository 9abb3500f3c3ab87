package gitfolder

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"yardmaster/internal/codehost"
)

// Modes of tree entries that refer to a place outside the tree.
const (
	modeLink      = "120000"
	modeSubmodule = "160000"
)

// Outcome answers as codehost.Host says, of a merge by Merge.
func (dir Folder) Outcome(ctx context.Context, o codehost.OutcomeOptions) (codehost.Outcome, error) {
	return dir.tried(ctx, o, false)
}

// PlainOutcome answers as codehost.Host says, of a merge by another program, to which what
// was squashed into the base is the head's own.
func (dir Folder) PlainOutcome(ctx context.Context, o codehost.OutcomeOptions) (codehost.Outcome, error) {
	return dir.tried(ctx, o, true)
}

func (dir Folder) tried(ctx context.Context, o codehost.OutcomeOptions, plain bool) (codehost.Outcome, error) {
	f, err := dir.fork(ctx, o.Base, o.Head, o.Landed)
	if err != nil {
		return codehost.Outcome{}, err
	}
	out := codehost.Outcome{BaseSHA: f.BaseSHA, HeadSHA: f.HeadSHA}
	if f.done {
		out.Tree = out.BaseSHA
		return out, nil
	}
	if err = dir.outcome(ctx, f, plain, &out); err == nil {
		err = dir.back(ctx, f, o.Had, &out)
	}
	if err != nil {
		return codehost.Outcome{}, fmt.Errorf("try the merge of %s in %s: %w", o.Head, dir, err)
	}
	return out, nil
}

// outcome tries a merge.
func (dir Folder) outcome(ctx context.Context, f fork, plain bool, out *codehost.Outcome) (err error) {
	from, tree := f.BaseSHA, ""
	var conflicts []string
	onto := f.onto
	if plain {
		onto = f.BaseSHA
	}
	if f.MergeBase != "" {
		if tree, conflicts, err = dir.mergeTree(ctx, onto, f.HeadSHA); err != nil {
			return err
		}
	}
	if out.Tree, out.Conflict = tree, tree == ""; out.Conflict {
		out.Tree = f.HeadSHA
		if f.MergeBase != "" {
			from = f.MergeBase
		}
	}
	if out.Changes, err = dir.entries(ctx, from, out.Tree); err != nil {
		return err
	}
	for _, path := range conflicts {
		out.Changes = append(out.Changes, codehost.Change{Path: path})
	}
	slices.SortStableFunc(out.Changes, func(a, b codehost.Change) int { return strings.Compare(a.Path, b.Path) })
	out.Changes = slices.CompactFunc(out.Changes, func(a, b codehost.Change) bool { return a.Path == b.Path })
	if onto == f.onto || tree == "" {
		return nil
	}
	meant, paths, err := dir.mergeTree(ctx, f.onto, f.HeadSHA)
	if err == nil && meant != "" {
		paths, err = dir.differs(ctx, meant, tree)
	}
	out.Back = paths
	return err
}

// entries are the changes between two trees, by path.
func (dir Folder) entries(ctx context.Context, from, to string) (changes []codehost.Change, err error) {
	out, err := dir.Output(ctx, "diff-tree", "-r", "-z", "--raw", "--numstat", "--no-abbrev", "--no-renames",
		"--ignore-submodules=none", from, to)
	if err != nil {
		return nil, err
	}
	all := fields(out)
	at := map[string]int{}
	// ":<old mode> <new mode> <old sha> <new sha> <status>", the path
	for len(all) > 1 && strings.HasPrefix(all[0], ":") {
		about := strings.Fields(all[0])
		if len(about) != 5 || kinds[about[4][0]] == "" {
			return nil, fmt.Errorf("git diff-tree printed %q", all[0])
		}
		at[all[1]] = len(changes)
		changes = append(changes, codehost.Change{
			Path: all[1], Link: about[1] == modeLink || about[1] == modeSubmodule, Kind: kinds[about[4][0]],
		})
		all = all[2:]
	}
	for _, record := range all { // "<added>\t<deleted>\t<path>"
		count := strings.SplitN(record, "\t", 3)
		if len(count) != 3 {
			return nil, fmt.Errorf("git diff-tree printed %q", record)
		}
		i, known := at[count[2]]
		if !known {
			return nil, fmt.Errorf("git diff-tree printed %q", record)
		}
		if count[0] == "-" {
			continue
		}
		if changes[i].Added, err = strconv.Atoi(count[0]); err == nil {
			changes[i].Deleted, err = strconv.Atoi(count[1])
		}
		if err != nil {
			return nil, fmt.Errorf("git diff-tree printed %q", record)
		}
	}
	return changes, nil
}

// differs lists the paths in which two trees differ.
func (dir Folder) differs(ctx context.Context, one, other string) ([]string, error) {
	out, err := dir.Output(ctx, "diff-tree", "-r", "-z", "--no-renames", "--name-only", "--ignore-submodules=none", one, other)
	paths := fields(out)
	slices.Sort(paths)
	return paths, err
}

// Made answers as codehost.Host says.
func (dir Folder) Made(ctx context.Context, sha, tree string) (m codehost.Made, err error) {
	if sha, err = dir.resolveOne(ctx, sha); err != nil {
		return m, err
	}
	out, err := dir.Output(ctx, "log", "-1", "--format=%T %P", sha)
	f := strings.Fields(out)
	if err != nil || len(f) == 0 {
		return m, fmt.Errorf("read commit %s of %s: %q: %w", sha, dir, out, err)
	}
	m.Tree, m.Parents = f[0], f[1:]
	if tree == "" || tree == m.Tree {
		return m, nil
	}
	if !codehost.ValidSHA(tree) {
		return m, codehost.ErrNotFound
	}
	m.Differs, err = dir.differs(ctx, tree, m.Tree)
	return m, err
}
