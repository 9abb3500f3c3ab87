package gitfolder

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"yardmaster/internal/codehost"
)

// mostLanded limits the squashed heads that a merge takes into account, the newest first.
const mostLanded = 200

// fork is where a head left its base.
//
// A squash has the content of a head and none of its commits: a head that was begun on the
// squashed one still has these commits, and to git they are its own. Its merge would keep
// what its own commits delete of them, bring back what the base has deleted of them since,
// and conflict with itself. So such a merge is made as if the squash were a merge: from the
// last commit that both the head and the squashed one have.
type fork struct {
	// Comparison has the commits and the merge bases alone.
	codehost.Comparison
	// onto is what a merge of head is tried with: base, or a commit with the content of base
	// that also has what was squashed into it among its ancestors.
	onto  string
	bases []string // all of them
	done  bool     // base has head, by its commits or by a squash
}

// fork resolves two revs and finds their merge bases. landed are more heads whose content
// is in base by other commits than their own; those that the repository does not have
// count for nothing.
func (dir Folder) fork(ctx context.Context, base, head string, landed []string) (fork, error) {
	shas, err := dir.Resolve(ctx, base, head)
	if err != nil {
		return fork{}, err
	}
	f := fork{Comparison: codehost.Comparison{BaseSHA: shas[0], HeadSHA: shas[1]}, onto: shas[0]}
	squashed, err := dir.squashes(ctx, f.BaseSHA, f.HeadSHA)
	if err != nil {
		return f, err
	}
	var more []string
	for _, s := range squashed {
		more = append(more, s.head)
		f.done = f.done || s.head == f.HeadSHA
	}
	if more, err = dir.commits(ctx, append(more, landed...), f.HeadSHA); err != nil {
		return f, err
	}
	bases, err := dir.bases(ctx, f.HeadSHA, f.BaseSHA)
	if err != nil {
		return f, err
	}
	f.done = f.done || slices.Contains(bases, f.HeadSHA)
	if len(more) > 0 {
		with, err := dir.bases(ctx, f.HeadSHA, append([]string{f.BaseSHA}, more...)...)
		if err != nil {
			return f, err
		}
		if !slices.Equal(slices.Sorted(slices.Values(bases)), slices.Sorted(slices.Values(with))) {
			if f.onto, err = dir.graft(ctx, f.BaseSHA, more); err != nil {
				return f, err
			}
			bases = with
		}
	}
	if f.bases = bases; len(bases) > 0 {
		f.MergeBase, f.MergeBases = bases[0], len(bases)
	}
	return f, nil
}

// bases are the best common ancestors of a head and of a merge of others.
func (dir Folder) bases(ctx context.Context, head string, others ...string) ([]string, error) {
	out, err := dir.Output(ctx, append([]string{"merge-base", "--all", head}, others...)...)
	if Exited(err, 1) {
		return nil, nil
	}
	return strings.Fields(out), err
}

// commits are those of some SHAs that are commits of the repository, once each, without
// one, at most mostLanded.
func (dir Folder) commits(ctx context.Context, shas []string, without string) (found []string, err error) {
	var ask strings.Builder
	for _, sha := range shas {
		if codehost.ValidSHA(sha) && sha != without {
			ask.WriteString(sha + "\n")
		}
	}
	if ask.Len() == 0 {
		return nil, nil
	}
	out, err := dir.Filter(ctx, ask.String(), nil, "cat-file", "--batch-check=%(objecttype) %(objectname)")
	for line := range strings.Lines(out) {
		sha, is := strings.CutPrefix(strings.TrimSpace(line), "commit ")
		if is && !slices.Contains(found, sha) && len(found) < mostLanded {
			found = append(found, sha)
		}
	}
	return found, err
}

// graft writes a commit with the content of base that has base and more among its
// ancestors. No ref ever points to it. The same arguments make the same commit.
func (dir Folder) graft(ctx context.Context, base string, more []string) (string, error) {
	out, err := dir.Output(ctx, "log", "-1", "--format=%T %ct", base)
	f := strings.Fields(out)
	if err != nil || len(f) != 2 {
		return "", fmt.Errorf("read commit %s: %q: %w", base, out, err)
	}
	args := []string{"commit-tree", f[0], "-p", base}
	for _, sha := range more {
		args = append(args, "-p", sha)
	}
	at := "@" + f[1] + " +0000" // near that of its parents, because git walks history by date
	out, err = dir.Filter(ctx, "What was squashed\n", []string{
		"GIT_AUTHOR_NAME=-", "GIT_AUTHOR_EMAIL=-", "GIT_AUTHOR_DATE=" + at,
		"GIT_COMMITTER_NAME=-", "GIT_COMMITTER_EMAIL=-", "GIT_COMMITTER_DATE=" + at,
	}, args...)
	return strings.TrimSpace(out), err
}

// squash is a commit that has the content of a head.
type squash struct{ sha, head string }

// squashes finds the squashes on the base's own line that came after head left it, the
// newest first: commits with one parent whose last line is squashedTrailer. The trailer
// counts nowhere else in a message, because others write the bodies, and on no other line,
// because others write the messages there.
func (dir Folder) squashes(ctx context.Context, base, head string) (all []squash, err error) {
	out, err := dir.Output(ctx, "log", "-z", "--first-parent", "--max-parents=1", "--format=%H%n%B", "--fixed-strings",
		"--grep="+squashedTrailer, head+".."+base)
	if err != nil {
		return nil, err
	}
	for _, record := range fields(out) {
		sha, message, _ := strings.Cut(record, "\n")
		message = strings.TrimSpace(message)
		last := message[strings.LastIndexByte(message, '\n')+1:]
		if was, is := strings.CutPrefix(last, squashedTrailer); is && len(last) < len(message) && codehost.ValidSHA(was) {
			all = append(all, squash{sha, was})
		}
	}
	return all, nil
}
