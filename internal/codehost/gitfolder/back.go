package gitfolder

import (
	"context"
	"slices"
	"strings"

	"yardmaster/internal/codehost"
)

// back finds what a merge would bring back: what head has of the commits that the base had,
// and what was deleted on the base's own line since head left it. had need not be there.
func (dir Folder) back(ctx context.Context, f fork, had []string, out *codehost.Outcome) error {
	gone, err := dir.deleted(ctx, f, out.Changes)
	if err != nil {
		return err
	}
	for _, sha := range had {
		if !codehost.ValidSHA(sha) || sha == f.BaseSHA {
			continue
		}
		paths, commits, err := dir.dropped(ctx, f, sha)
		if err != nil {
			return err
		}
		if commits == 0 {
			continue
		}
		gone = append(gone, paths...)
		out.Lost, out.Dropped = append(out.Lost, sha), max(out.Dropped, commits)
	}
	slices.Sort(gone)
	for _, c := range out.Changes {
		if _, is := slices.BinarySearch(gone, c.Path); is {
			out.Back = append(out.Back, c.Path)
		}
	}
	slices.Sort(out.Back)
	out.Back = slices.Compact(out.Back)
	return nil
}

// deleted lists those paths of a merge's additions that the base's own line has deleted
// since head left it.
func (dir Folder) deleted(ctx context.Context, f fork, changes []codehost.Change) ([]string, error) {
	var added []string
	for _, c := range changes {
		if c.Kind == codehost.Added {
			added = append(added, c.Path)
		}
	}
	if len(added) == 0 || f.MergeBase == "" || f.MergeBase == f.BaseSHA {
		return nil, nil
	}
	out, err := dir.Output(ctx, "log", "-z", "--first-parent", "-m", "--format=", "--name-only", "--no-renames", "--diff-filter=D",
		f.HeadSHA+".."+f.BaseSHA)
	if err != nil {
		return nil, err
	}
	all := fields(out)
	slices.Sort(all)
	return slices.DeleteFunc(added, func(path string) bool {
		_, is := slices.BinarySearch(all, path)
		return !is
	}), nil
}

// dropped finds the commits that head has in common with a former commit of the base, or
// with what was squashed into that, and that the base does not have any more, and the paths
// that these commits changed.
func (dir Folder) dropped(ctx context.Context, f fork, was string) (paths []string, commits int, err error) {
	_, err = dir.Output(ctx, "merge-base", "--is-ancestor", was, f.BaseSHA)
	if err == nil || Exited(err, 128) { // the base still has it, or it was removed from the repository
		return nil, 0, nil
	}
	if !Exited(err, 1) {
		return nil, 0, err
	}
	then, err := dir.fork(ctx, was, f.HeadSHA, nil)
	if err != nil || len(then.bases) == 0 {
		return nil, 0, err
	}
	out, err := dir.Output(ctx, append(append([]string{"rev-list"}, then.bases...), "^"+f.onto)...)
	if err != nil || out == "" {
		return nil, 0, err
	}
	commits = len(strings.Fields(out))
	for _, common := range then.bases {
		from, err := dir.bases(ctx, common, f.onto)
		if err != nil {
			return nil, 0, err
		}
		if len(from) == 0 {
			from = []string{emptyTree}
		}
		for _, one := range from {
			changed, err := dir.differs(ctx, one, common)
			if err != nil {
				return nil, 0, err
			}
			paths = append(paths, changed...)
		}
	}
	return paths, commits, nil
}
