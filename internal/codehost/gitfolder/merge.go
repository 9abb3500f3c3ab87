package gitfolder

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
	"yardmaster/internal/lazy"
)

// mergeAttempts limits the attempts of Merge, which starts again if the base has moved
// meanwhile.
const mergeAttempts = 5

// squashedTrailer is the last line of a squashed commit, by which Merge recognises
// an earlier merge of its own. Unlike a note beside the commit, it cannot be lost
// between two writes.
const squashedTrailer = "Squashed-Head: "

// Merge answers as codehost.Host says.
func (dir Folder) Merge(ctx context.Context, o codehost.MergeOptions) (string, error) {
	if o.Method != codehost.MethodMerge && o.Method != codehost.MethodSquash {
		return "", fault.Field("method", "must be merge or squash")
	}
	if !codehost.ValidSHA(o.HeadSHA) {
		return "", fault.Field("head_sha", "is not a full commit SHA")
	}
	if o.BaseSHA != "" && !codehost.ValidSHA(o.BaseSHA) {
		return "", fault.Field("base_sha", "is not a full commit SHA")
	}
	if !codehost.ValidBranch(o.Base) || !codehost.ValidBranch(o.Head) {
		return "", codehost.ErrNotFound
	}
	var err error
	for range mergeAttempts {
		var sha string
		if sha, err = dir.mergeOnce(ctx, o); !errors.Is(err, errBaseMoved) && !errors.Is(err, errLocked) {
			if err != nil {
				err = fmt.Errorf("merge %s into %s of %s: %w", o.Head, o.Base, dir, err)
			}
			return sha, err
		}
	}
	if errors.Is(err, errLocked) {
		return "", fault.New(fault.Unavailable, "",
			"The code host has one of the two branches locked: a push is under way, or was cut off.").Because(err)
	}
	return "", fault.New(fault.Unavailable, "", "The base branch moves too fast to merge into.").Because(err)
}

var (
	errBaseMoved = errors.New("the base branch moved during the merge")
	errLocked    = errors.New("a branch of the merge is locked")
)

func (dir Folder) mergeOnce(ctx context.Context, o codehost.MergeOptions) (string, error) {
	base, err := dir.resolveOne(ctx, o.Base)
	if err != nil {
		return "", err
	}
	if _, err := dir.Resolve(ctx, o.HeadSHA); errors.Is(err, codehost.ErrNotFound) {
		return "", codehost.ErrHeadMoved // the branch cannot be at a commit that is not in the repository
	} else if err != nil {
		return "", err
	}
	if done, err := dir.merged(ctx, base, o.HeadSHA); done != "" || err != nil {
		return done, err
	}
	if o.BaseSHA != "" && base != o.BaseSHA {
		return "", codehost.ErrBaseMoved
	}
	head, err := dir.resolveOne(ctx, o.Head)
	if err != nil {
		return "", err
	}
	if head != o.HeadSHA {
		return "", codehost.ErrHeadMoved
	}
	fork, err := dir.fork(ctx, base, head, o.Landed)
	if err != nil {
		return "", err
	}
	if fork.MergeBase == "" {
		return "", codehost.ErrConflict
	}
	tree, conflicts, err := dir.mergeTree(ctx, fork.onto, head)
	if err != nil {
		return "", err
	}
	if tree == "" {
		return "", codehost.ErrConflict.With("paths", conflicts)
	}
	sha, err := dir.commit(ctx, tree, base, o)
	if err != nil {
		return "", err
	}
	return sha, dir.advance(ctx, o, base, sha)
}

// merged finds the commit that brought head into base, or returns "".
func (dir Folder) merged(ctx context.Context, base, head string) (string, error) {
	_, err := dir.Output(ctx, "merge-base", "--is-ancestor", head, base)
	switch {
	case err == nil:
		return dir.mergedBy(ctx, base, head)
	case Exited(err, 1):
		return dir.squashedBy(ctx, base, head)
	}
	return "", err
}

// mergedBy finds the oldest commit on the base's own line (first parents) that has
// head among its ancestors. If head itself is on that line, the answer is head.
func (dir Folder) mergedBy(ctx context.Context, base, head string) (string, error) {
	descendants, err := dir.Output(ctx, "rev-list", "--ancestry-path", head+".."+base)
	if err != nil {
		return "", err
	}
	line, err := dir.Output(ctx, "rev-list", "--first-parent", "--parents", "--reverse", head+".."+base)
	if err != nil {
		return "", err
	}
	after := make(map[string]bool)
	for sha := range strings.SplitSeq(descendants, "\n") {
		after[sha] = true
	}
	for commit := range strings.Lines(line) {
		f := strings.Fields(commit) // the commit, its parents
		if after[f[0]] && f[1] != head {
			return f[0], nil
		}
		if f[1] == head {
			break
		}
	}
	return head, nil
}

// squashedBy finds the commit on the base's own line that is a squash of head.
func (dir Folder) squashedBy(ctx context.Context, base, head string) (string, error) {
	all, err := dir.squashes(ctx, base, head)
	for _, s := range all {
		if s.head == head {
			return s.sha, err
		}
	}
	return "", err
}

// commit writes the commit of a merge; no ref points to it yet.
func (dir Folder) commit(ctx context.Context, tree, base string, o codehost.MergeOptions) (string, error) {
	args := []string{"commit-tree", tree, "-p", base}
	if o.Method == codehost.MethodMerge {
		args = append(args, "-p", o.HeadSHA)
	}
	out, err := dir.Filter(ctx, message(o), []string{
		"GIT_AUTHOR_NAME=" + plain(o.Author.Name), "GIT_AUTHOR_EMAIL=" + plain(o.Author.Email),
		"GIT_COMMITTER_NAME=" + plain(o.Committer.Name), "GIT_COMMITTER_EMAIL=" + plain(o.Committer.Email),
	}, args...)
	return strings.TrimSpace(out), err
}

// plain removes NUL, which neither an environment variable nor a commit can hold.
func plain(s string) string { return strings.ReplaceAll(s, "\x00", "") }

var trailer = lazy.New(`^[A-Za-z0-9-]+: `)

// message makes the commit message. That of a squash ends with squashedTrailer.
func message(o codehost.MergeOptions) string {
	m := strings.Join(strings.Fields(plain(o.Title)), " ")
	body := strings.TrimSpace(strings.ReplaceAll(plain(o.Body), "\r\n", "\n"))
	if o.Method == codehost.MethodSquash {
		body = SquashBody(o.Body, o.HeadSHA)
	}
	if body != "" {
		m += "\n\n" + body
	}
	return m + "\n"
}

// SquashBody is the body of the message of a squash of a head. It ends with the line by
// which Landed finds the squash, in the block of trailers if the body has one.
func SquashBody(body, headSHA string) string {
	body = strings.TrimSpace(strings.ReplaceAll(plain(body), "\r\n", "\n"))
	last := squashedTrailer + headSHA
	if body == "" {
		return last
	}
	paragraphs := strings.Split(body, "\n\n")
	for line := range strings.SplitSeq(paragraphs[len(paragraphs)-1], "\n") {
		if !trailer.MatchString(line) {
			return body + "\n\n" + last
		}
	}
	return body + "\n" + last
}

// advance moves the base from its old commit to the merge, provided that the head
// branch has not moved, in one ref transaction.
func (dir Folder) advance(ctx context.Context, o codehost.MergeOptions, base, sha string) error {
	transaction := fmt.Sprintf("start\nverify refs/heads/%s %s\nupdate refs/heads/%s %s %s\nprepare\ncommit\n",
		o.Head, o.HeadSHA, o.Base, sha, base)
	_, failed := dir.Filter(ctx, transaction, nil, "update-ref", "--stdin")
	if failed == nil {
		return nil
	}
	now, err := dir.Resolve(ctx, o.Base, o.Head)
	switch {
	case errors.Is(err, codehost.ErrNotFound), err == nil && now[1] != o.HeadSHA:
		return codehost.ErrHeadMoved.Because(failed)
	case err != nil:
		return err
	case now[0] != base:
		return fmt.Errorf("%w: %w", errBaseMoved, failed)
	case strings.Contains(failed.Error(), ".lock': File exists"): // of a push, or of an interrupted one
		return fmt.Errorf("%w: %w", errLocked, failed)
	}
	return failed
}

// DeleteBranch answers as codehost.Host says.
func (dir Folder) DeleteBranch(ctx context.Context, branch, expectSHA string) error {
	if !codehost.ValidSHA(expectSHA) {
		return fault.Field("head_sha", "is not a full commit SHA")
	}
	head, err := dir.Head(ctx, branch)
	if err != nil {
		return err
	}
	if head != expectSHA {
		return codehost.ErrHeadMoved
	}
	main, err := dir.DefaultBranch(ctx)
	if err != nil {
		return err
	}
	if branch == main {
		return fault.Reason("default-branch", "The default branch cannot be deleted.")
	}
	if _, failed := dir.Output(ctx, "update-ref", "-d", "refs/heads/"+branch, expectSHA); failed != nil {
		if now, err := dir.Head(ctx, branch); err != nil {
			return err
		} else if now != expectSHA {
			return codehost.ErrHeadMoved.Because(failed)
		}
		return fmt.Errorf("delete branch %s of %s: %w", branch, dir, failed)
	}
	return nil
}
