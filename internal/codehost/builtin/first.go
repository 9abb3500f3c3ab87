package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/smarthttp"
	"yardmaster/internal/fault"
)

// DefaultBranchHeader is the header of a first push that names the branch which is to be
// the default. It counts for nothing in a repository that has a branch already.
const DefaultBranchHeader = "Yardmaster-Default-Branch"

// keepUnfinished is how long a folder may stay that a first push has begun: longer than
// any push takes.
const keepUnfinished = 48 * time.Hour

// first takes the push that makes a repository. Git executes it in a folder beside; the
// repository is made once git has taken a branch, with all that was pushed, or not at all.
// The client hears of it last.
func (q *request) first(ctx context.Context, p smarthttp.Push, room *room, rest io.Reader) error {
	made, err := q.host.git.Init(ctx, "main")
	if err != nil {
		q.fail("push", err)
		return nil
	}
	defer os.RemoveAll(made)
	to := &smarthttp.Lossy{To: &smarthttp.Flusher{To: q.w}}
	held := &smarthttp.Held{To: to, SideBand: p.SideBand()}
	report, failed := q.git(ctx, made, p, room, rest, held)
	var changed []codehost.RefUpdate
	branch := false
	for _, u := range p.Updates {
		if report.OK[u.Ref] && u.New != codehost.ZeroSHA {
			changed = append(changed, u)
			branch = branch || strings.HasPrefix(u.Ref, "refs/heads/")
		}
	}
	if len(changed) > 0 && !branch {
		_, err := to.Write(p.Refusal(nil))
		return errors.Join(failed, err)
	}
	if len(changed) == 0 {
		return errors.Join(failed, held.Release())
	}
	if failed != nil {
		return failed
	}
	dir := q.host.git.At(made, q.repo.String())
	if err = adopt(ctx, dir, changed, q.r.Header.Get(DefaultBranchHeader)); err == nil {
		err = dir.PackRefs(ctx)
	}
	if err == nil {
		err = q.create(ctx, made)
	}
	if err != nil {
		return q.undone(held, to, p, err)
	}
	q.hooks.Pushed(ctx, codehost.PushEvent{Repo: q.repo, Who: q.access.Who, Updates: changed})
	return held.Release()
}

// create makes the repository of what a first push has brought to a folder.
func (q *request) create(ctx context.Context, made string) error {
	if err := q.hooks.Create(ctx, q.repo); err != nil {
		return err
	}
	dir := q.host.path(q.repo)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("create repository %s: %w", q.repo, err)
	}
	// Renaming onto an existing one fails, because its folder is not empty.
	if err := os.Rename(made, dir); errors.Is(err, fs.ErrExist) {
		return fault.Reason("repo-exists", "another push has made the repository meanwhile: push again")
	} else if err != nil {
		return fmt.Errorf("create repository %s: %w", q.repo, err)
	}
	return nil
}

// undone tells the client of a first push why there is no repository.
func (q *request) undone(held *smarthttp.Held, to io.Writer, p smarthttp.Push, err error) error {
	f := fault.From(err)
	if f.Kind == fault.Internal && !held.Passed() {
		q.fail("push", err)
		return nil
	}
	reason := f.Detail
	if f.Kind == fault.Internal {
		reason = "the server failed to make the repository"
	} else {
		err = nil
	}
	reasons := make(map[string]string)
	for _, u := range p.Updates {
		reasons[u.Ref] = reason
	}
	_, _ = to.Write(p.Refusal(reasons))
	return err
}

// sweep removes the folders of first pushes that a crash has left.
func (h *Host) sweep(now time.Time) error {
	left, err := filepath.Glob(filepath.Join(h.root, ".new-*"))
	for _, path := range left {
		if info, gone := os.Stat(path); gone == nil && now.Sub(info.ModTime()) > keepUnfinished {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	return err
}
