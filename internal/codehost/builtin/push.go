package builtin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/gitfolder"
	"yardmaster/internal/codehost/smarthttp"
	"yardmaster/internal/fault"
)

// receive answers a push. If the client disconnects while it sends, git sees a
// truncated pack and changes nothing; once everything has arrived, the push is
// completed and announced even if the client has gone.
func (q *request) receive() {
	if len(q.access.Push) == 0 {
		smarthttp.ReadsOnly(q.w, q.r)
		return
	}
	body := q.body(smarthttp.ReceivePack)
	if body == nil {
		return
	}
	leave, err := q.host.transferLimit.Take(q.r.Context(), q.access.Who)
	if err != nil {
		return // the client has disconnected
	}
	defer leave()
	buffered := bufio.NewReaderSize(body, 64<<10)
	p, err := smarthttp.ReadPush(buffered, smarthttp.MaxHead)
	if err != nil {
		note(q.r.Context(), fault.Invalid.Slug(), fmt.Errorf("read the push: %w", err))
		http.Error(q.w, "The push is malformed.", http.StatusBadRequest)
		return
	}
	// A client that wants no report could move refs without an event.
	if len(p.Updates) > 0 && !p.Reports() {
		http.Error(q.w, "The client must support report-status.", http.StatusBadRequest)
		return
	}
	q.w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
	if len(p.Updates) == 0 {
		return
	}
	ctx, cancel := q.w.Bound(context.WithoutCancel(q.r.Context()))
	defer cancel()

	reasons, err := q.judge(ctx, p)
	var room *room
	if err == nil && len(reasons) == 0 {
		if room, err = q.room(ctx, p); err == nil {
			defer room.leave()
			reasons = room.refuses(p)
		}
	}
	if err == nil && len(reasons) == 0 && !q.exists {
		reasons, err = q.create(ctx, p)
	}
	if err != nil {
		q.fail("push", err)
		return
	}
	if len(reasons) > 0 {
		// Clients read the answer only after they have sent everything.
		if _, err := io.Copy(io.Discard, buffered); err == nil {
			_, _ = q.w.Write(p.Refusal(reasons))
		}
		return
	}
	if err := q.run(ctx, p, room, buffered); err != nil {
		broke(ctx, fmt.Errorf("push: %w", err))
	}
}

// judge returns the reasons to refuse refs of a push; none means that all refs may
// be pushed.
func (q *request) judge(ctx context.Context, p smarthttp.Push) (map[string]string, error) {
	reasons := make(map[string]string)
	protected := ""
	if q.exists {
		branch, err := q.dir().DefaultBranch(ctx)
		if err != nil {
			return nil, err
		}
		protected = "refs/heads/" + branch
	}
	full := q.host.full()
	for _, u := range p.Updates {
		switch {
		case full:
			reasons[u.Ref] = "the server has no room left; its operator has to make some"
		case !q.access.MayPush(u.Ref):
			reasons[u.Ref] = "this token may only push to " + strings.Join(q.access.Push, ", ")
		case u.New == codehost.ZeroSHA && u.Ref == protected:
			reasons[u.Ref] = "the default branch cannot be deleted"
		}
	}
	return reasons, nil
}

// leastFree is the number of bytes that must be free for a push: git leaves files
// behind, too, when it runs out of room in the middle.
const leastFree = 1 << 20

// full tells whether there is no room for a push. If the free space cannot be
// determined, the push is allowed.
func (h *Host) full() bool {
	var s syscall.Statfs_t
	return syscall.Statfs(h.root, &s) == nil && int64(s.Bavail)*s.Bsize < leastFree
}

// create makes the repository that the push is for.
func (q *request) create(ctx context.Context, p smarthttp.Push) (map[string]string, error) {
	err := q.hooks.Create(ctx, q.repo)
	if err == nil {
		err = q.host.Create(ctx, q.repo, codehost.CreateOptions{Private: true})
	}
	if err == nil || errors.Is(err, codehost.ErrExists) {
		return nil, nil
	}
	f := fault.From(err)
	if f.Kind == fault.Internal {
		return nil, err
	}
	reasons := make(map[string]string)
	for _, u := range p.Updates {
		reasons[u.Ref] = f.Detail
	}
	return reasons, nil
}

// dir is the folder of a repository that exists.
func (q *request) dir() gitfolder.Folder { return q.host.git.At(q.host.path(q.repo), q.repo.String()) }

// run makes git execute the push, and announces the changed refs.
func (q *request) run(ctx context.Context, p smarthttp.Push, room *room, rest io.Reader) error {
	dir, err := q.host.openToWrite(ctx, q.repo)
	if err != nil {
		return err
	}
	defer dir.done()
	before, err := refs(ctx, dir.Folder, p.Updates)
	if err != nil {
		return err
	}
	empty, err := dir.Empty(ctx)
	if err != nil {
		return err
	}
	report := smarthttp.NewReport(p.SideBand())
	c := q.host.git.At("", "").Command(ctx, "receive-pack", "--stateless-rpc", dir.Path())
	c.Stdout = room.answer(io.MultiWriter(report, &smarthttp.Lossy{To: &smarthttp.Flusher{To: q.w}}))
	stdin, err := c.StdinPipe()
	if err != nil {
		return err
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		feed(stdin, io.MultiReader(bytes.NewReader(p.Raw), room.limit(rest)))
	}()
	defer func() { <-sent }()
	failed := gitfolder.Run(ctx, c, "receive-pack")
	if room.over() && len(report.OK) == 0 {
		<-sent
		if _, err := io.Copy(io.Discard, rest); err == nil {
			_, _ = q.w.Write(p.Refusal(room.reasons(p)))
		}
		return nil
	}

	var changed []codehost.RefUpdate
	for _, u := range p.Updates {
		if report.OK[u.Ref] && before[u.Ref] != u.New {
			changed = append(changed, u)
		}
	}
	if len(changed) > 0 {
		if empty {
			if err := adopt(ctx, dir.Folder, changed); err != nil {
				q.host.log.ErrorContext(ctx, "git: default branch", "repo", q.repo.String(), "err", err)
			}
		}
		q.hooks.Pushed(ctx, codehost.PushEvent{Repo: q.repo, Who: q.access.Who, Updates: changed})
	}
	return failed
}

// feed sends the client's data to git. Git may stop reading early, but the client
// reads only after it has sent everything, so feed reads all of it.
func feed(git io.WriteCloser, client io.Reader) {
	_, err := io.Copy(git, client)
	_ = git.Close()
	if err != nil {
		_, _ = io.Copy(io.Discard, client)
	}
}

// refs returns the commits of the refs of updates; codehost.ZeroSHA for a missing
// ref.
func refs(ctx context.Context, dir gitfolder.Folder, updates []codehost.RefUpdate) (map[string]string, error) {
	at := make(map[string]string)
	args := []string{"for-each-ref", "--format=%(objectname) %(refname)"}
	for _, u := range updates {
		at[u.Ref] = codehost.ZeroSHA
		args = append(args, u.Ref)
	}
	out, err := dir.Output(ctx, args...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) {
		sha, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		at[ref] = sha
	}
	return at, nil
}

// adopt makes the first branch that was pushed to an empty repository its default,
// unless the default branch exists now.
func adopt(ctx context.Context, dir gitfolder.Folder, changed []codehost.RefUpdate) error {
	branch, err := dir.DefaultBranch(ctx)
	if err != nil {
		return err
	}
	if _, err := dir.Resolve(ctx, branch); !errors.Is(err, codehost.ErrNotFound) {
		return err
	}
	for _, u := range changed {
		if strings.HasPrefix(u.Ref, "refs/heads/") && u.New != codehost.ZeroSHA {
			_, err := dir.Output(ctx, "symbolic-ref", "HEAD", u.Ref)
			return err
		}
	}
	return nil
}
