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
	"yardmaster/internal/fault"
)

// receive answers a push. If the client disconnects while it sends, git sees a
// truncated pack and changes nothing; once everything has arrived, the push is
// completed and announced even if the client has gone.
func (q *request) receive() {
	if len(q.access.Push) == 0 {
		q.readsOnly()
		return
	}
	body := q.body("git-receive-pack")
	if body == nil {
		return
	}
	leave, err := q.host.transferLimit.take(q.r.Context(), q.access.Who)
	if err != nil {
		return // the client has disconnected
	}
	defer leave()
	buffered := bufio.NewReaderSize(body, 64<<10)
	p, err := readPush(buffered)
	if err != nil {
		note(q.r.Context(), fault.Invalid.Slug(), fmt.Errorf("read the push: %w", err))
		http.Error(q.w, "The push is malformed.", http.StatusBadRequest)
		return
	}
	// A client that wants no report could move refs without an event.
	if len(p.updates) > 0 && !p.reports() {
		http.Error(q.w, "The client must support report-status.", http.StatusBadRequest)
		return
	}
	q.w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
	if len(p.updates) == 0 {
		return
	}
	ctx, cancel := q.w.bound(context.WithoutCancel(q.r.Context()))
	defer cancel()

	reasons, err := q.judge(ctx, p)
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
			_, _ = q.w.Write(p.refusal(reasons))
		}
		return
	}
	if err := q.run(ctx, p, buffered); err != nil {
		broke(ctx, fmt.Errorf("push: %w", err))
	}
}

// judge returns the reasons to refuse refs of a push; none means that all refs may
// be pushed.
func (q *request) judge(ctx context.Context, p push) (map[string]string, error) {
	reasons := make(map[string]string)
	protected := ""
	if q.exists {
		branch, err := q.host.defaultBranch(ctx, q.host.path(q.repo))
		if err != nil {
			return nil, err
		}
		protected = "refs/heads/" + branch
	}
	full := q.host.full()
	for _, u := range p.updates {
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
func (q *request) create(ctx context.Context, p push) (map[string]string, error) {
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
	for _, u := range p.updates {
		reasons[u.Ref] = f.Detail
	}
	return reasons, nil
}

// run makes git execute the push, and announces the changed refs.
func (q *request) run(ctx context.Context, p push, rest io.Reader) error {
	dir := q.host.path(q.repo)
	before, err := q.host.refs(ctx, dir, p.updates)
	if err != nil {
		return err
	}
	empty, err := q.host.empty(ctx, dir)
	if err != nil {
		return err
	}
	report := newReport(p.sideBand())
	c := q.host.command(ctx, "", "receive-pack", "--stateless-rpc", dir)
	c.Stdout = io.MultiWriter(report, &lossy{w: &flusher{w: q.w}})
	stdin, err := c.StdinPipe()
	if err != nil {
		return err
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		feed(stdin, io.MultiReader(bytes.NewReader(p.raw), rest))
	}()
	defer func() { <-sent }()
	failed := run(ctx, c, "receive-pack")

	var changed []codehost.RefUpdate
	for _, u := range p.updates {
		if report.ok[u.Ref] && before[u.Ref] != u.New {
			changed = append(changed, u)
		}
	}
	if len(changed) > 0 {
		if empty {
			if err := q.host.adopt(ctx, dir, changed); err != nil {
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
func (h *Host) refs(ctx context.Context, dir string, updates []codehost.RefUpdate) (map[string]string, error) {
	at := make(map[string]string)
	args := []string{"for-each-ref", "--format=%(objectname) %(refname)"}
	for _, u := range updates {
		at[u.Ref] = codehost.ZeroSHA
		args = append(args, u.Ref)
	}
	out, err := h.output(ctx, dir, args...)
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
func (h *Host) adopt(ctx context.Context, dir string, changed []codehost.RefUpdate) error {
	branch, err := h.defaultBranch(ctx, dir)
	if err != nil {
		return err
	}
	if _, err := h.resolve(ctx, dir, branch); !errors.Is(err, codehost.ErrNotFound) {
		return err
	}
	for _, u := range changed {
		if strings.HasPrefix(u.Ref, "refs/heads/") && u.New != codehost.ZeroSHA {
			_, err := h.output(ctx, dir, "symbolic-ref", "HEAD", u.Ref)
			return err
		}
	}
	return nil
}

// lossy discards output after the first failed write, so that a client that
// disconnects does not stop git between moving a ref and reporting it.
type lossy struct {
	w    io.Writer
	gone bool
}

func (l *lossy) Write(p []byte) (int, error) {
	if !l.gone {
		_, err := l.w.Write(p)
		l.gone = err != nil
	}
	return len(p), nil
}
