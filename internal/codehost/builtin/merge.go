package builtin

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
)

// mergeAttempts limits the attempts of Merge, which starts again if the base has moved
// meanwhile.
const mergeAttempts = 5

// squashedTrailer is the last line of a squashed commit, by which Merge recognises
// an earlier merge of its own. Unlike a note beside the commit, it cannot be lost
// between two writes.
const squashedTrailer = "Squashed-Head: "

// Merge implements codehost.Host.
func (h *Host) Merge(ctx context.Context, r codehost.Repo, o codehost.MergeOptions) (string, error) {
	dir, err := h.open(r)
	if err != nil {
		return "", err
	}
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
	for range mergeAttempts {
		var sha string
		if sha, err = h.mergeOnce(ctx, dir, o); !errors.Is(err, errBaseMoved) && !errors.Is(err, errLocked) {
			if err != nil {
				err = fmt.Errorf("merge %s into %s of %s: %w", o.Head, o.Base, r, err)
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

func (h *Host) mergeOnce(ctx context.Context, dir string, o codehost.MergeOptions) (string, error) {
	base, err := h.resolveOne(ctx, dir, o.Base)
	if err != nil {
		return "", err
	}
	if _, err := h.resolve(ctx, dir, o.HeadSHA); errors.Is(err, codehost.ErrNotFound) {
		return "", codehost.ErrHeadMoved // the branch cannot be at a commit that is not in the repository
	} else if err != nil {
		return "", err
	}
	if done, err := h.merged(ctx, dir, base, o.HeadSHA); done != "" || err != nil {
		return done, err
	}
	if o.BaseSHA != "" && base != o.BaseSHA {
		return "", codehost.ErrBaseMoved
	}
	head, err := h.resolveOne(ctx, dir, o.Head)
	if err != nil {
		return "", err
	}
	if head != o.HeadSHA {
		return "", codehost.ErrHeadMoved
	}
	fork, err := h.fork(ctx, dir, base, head)
	if err != nil {
		return "", err
	}
	if fork.MergeBase == "" {
		return "", codehost.ErrConflict
	}
	tree, conflicts, err := h.mergeTree(ctx, dir, base, head)
	if err != nil {
		return "", err
	}
	if tree == "" {
		return "", codehost.ErrConflict.With("paths", conflicts)
	}
	sha, err := h.commit(ctx, dir, tree, base, o)
	if err != nil {
		return "", err
	}
	return sha, h.advance(ctx, dir, o, base, sha)
}

// merged finds the commit that brought head into base, or returns "".
func (h *Host) merged(ctx context.Context, dir, base, head string) (string, error) {
	_, err := h.output(ctx, dir, "merge-base", "--is-ancestor", head, base)
	switch {
	case err == nil:
		return h.mergedBy(ctx, dir, base, head)
	case exited(err, 1):
		return h.squashedBy(ctx, dir, base, head)
	}
	return "", err
}

// mergedBy finds the oldest commit on the base's own line (first parents) that has
// head among its ancestors. If head itself is on that line, the answer is head.
func (h *Host) mergedBy(ctx context.Context, dir, base, head string) (string, error) {
	descendants, err := h.output(ctx, dir, "rev-list", "--ancestry-path", head+".."+base)
	if err != nil {
		return "", err
	}
	line, err := h.output(ctx, dir, "rev-list", "--first-parent", "--parents", "--reverse", head+".."+base)
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

// squashedBy finds the commit on the base's own line whose last line is the
// trailer of a squash of head. The trailer counts nowhere else in a message,
// because others write the bodies.
func (h *Host) squashedBy(ctx context.Context, dir, base, head string) (string, error) {
	want := squashedTrailer + head
	out, err := h.output(ctx, dir, "log", "-z", "--first-parent", "--format=%H%n%B", "--fixed-strings", "--grep="+want, head+".."+base)
	if err != nil {
		return "", err
	}
	for _, record := range fields(out) {
		sha, message, _ := strings.Cut(record, "\n")
		if strings.HasSuffix(strings.TrimSpace(message), "\n"+want) {
			return sha, nil
		}
	}
	return "", nil
}

// commit writes the commit of a merge; no ref points to it yet.
func (h *Host) commit(ctx context.Context, dir, tree, base string, o codehost.MergeOptions) (string, error) {
	args := []string{"commit-tree", tree, "-p", base}
	if o.Method == codehost.MethodMerge {
		args = append(args, "-p", o.HeadSHA)
	}
	out, err := h.filter(ctx, dir, message(o), []string{
		"GIT_AUTHOR_NAME=" + plain(o.Author.Name), "GIT_AUTHOR_EMAIL=" + plain(o.Author.Email),
		"GIT_COMMITTER_NAME=" + plain(o.Committer.Name), "GIT_COMMITTER_EMAIL=" + plain(o.Committer.Email),
	}, args...)
	return strings.TrimSpace(out), err
}

// plain removes NUL, which neither an environment variable nor a commit can hold.
func plain(s string) string { return strings.ReplaceAll(s, "\x00", "") }

var trailer = regexp.MustCompile(`^[A-Za-z0-9-]+: `)

// message makes the commit message. The message of a squash ends with squashedTrailer,
// in the block of trailers of the body if the body has one.
func message(o codehost.MergeOptions) string {
	m := strings.Join(strings.Fields(plain(o.Title)), " ")
	body := strings.TrimSpace(strings.ReplaceAll(plain(o.Body), "\r\n", "\n"))
	if body != "" {
		m += "\n\n" + body
	}
	m += "\n"
	if o.Method != codehost.MethodSquash {
		return m
	}
	paragraphs := strings.Split(body, "\n\n")
	for line := range strings.SplitSeq(paragraphs[len(paragraphs)-1], "\n") {
		if !trailer.MatchString(line) {
			m += "\n"
			break
		}
	}
	return m + squashedTrailer + o.HeadSHA + "\n"
}

// advance moves the base from its old commit to the merge, provided that the head
// branch has not moved, in one ref transaction.
func (h *Host) advance(ctx context.Context, dir string, o codehost.MergeOptions, base, sha string) error {
	transaction := fmt.Sprintf("start\nverify refs/heads/%s %s\nupdate refs/heads/%s %s %s\nprepare\ncommit\n",
		o.Head, o.HeadSHA, o.Base, sha, base)
	_, failed := h.filter(ctx, dir, transaction, nil, "update-ref", "--stdin")
	if failed == nil {
		return nil
	}
	now, err := h.resolve(ctx, dir, o.Base, o.Head)
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

// DeleteBranch implements codehost.Host.
func (h *Host) DeleteBranch(ctx context.Context, r codehost.Repo, branch, expectSHA string) error {
	dir, err := h.open(r)
	if err != nil {
		return err
	}
	if !codehost.ValidSHA(expectSHA) {
		return fault.Field("head_sha", "is not a full commit SHA")
	}
	head, err := h.Head(ctx, r, branch)
	if err != nil {
		return err
	}
	if head != expectSHA {
		return codehost.ErrHeadMoved
	}
	main, err := h.defaultBranch(ctx, dir)
	if err != nil {
		return err
	}
	if branch == main {
		return fault.Reason("default-branch", "The default branch cannot be deleted.")
	}
	if _, failed := h.output(ctx, dir, "update-ref", "-d", "refs/heads/"+branch, expectSHA); failed != nil {
		if now, err := h.Head(ctx, r, branch); err != nil {
			return err
		} else if now != expectSHA {
			return codehost.ErrHeadMoved.Because(failed)
		}
		return fmt.Errorf("delete branch %s of %s: %w", branch, r, failed)
	}
	return nil
}
