package builtin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/gitfolder"
	"yardmaster/internal/codehost/smarthttp"
	"yardmaster/internal/fault"
	"yardmaster/internal/unixfile"
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
	if errors.Is(err, smarthttp.ErrTooLong) {
		q.w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
		// Clients read the answer only after they have sent everything.
		if _, err := io.Copy(io.Discard, buffered); err == nil {
			_, _ = q.w.Write(p.Unpacked(tooLong))
		}
		return
	}
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
	if q.exists {
		err = q.run(ctx, p, room, buffered)
	} else {
		err = q.first(ctx, p, room, buffered)
	}
	if err != nil {
		broke(ctx, fmt.Errorf("push: %w", err))
	}
}

// tooLong is the sentence for a push whose commands need more than smarthttp.MaxHead.
const tooLong = "a push may name some 70,000 branches and tags (8 MiB of names): push them in parts"

// judge returns the reasons to refuse refs of a push; none means that all refs may
// be pushed.
func (q *request) judge(ctx context.Context, p smarthttp.Push) (map[string]string, error) {
	reasons := make(map[string]string)
	if q.hooks.Writes != nil {
		err := q.hooks.Writes(ctx, q.access)
		if !fault.IsKind(err, fault.RateLimited) && err != nil {
			return nil, err
		}
		if err != nil {
			for _, u := range p.Updates {
				reasons[u.Ref] = fault.From(err).Detail
			}
			return reasons, nil
		}
	}
	protected := ""
	if q.exists {
		branch, err := q.dir().DefaultBranch(ctx)
		if err != nil {
			return nil, err
		}
		protected = "refs/heads/" + branch
	}
	if begins := slices.ContainsFunc(p.Updates, func(u codehost.RefUpdate) bool {
		return strings.HasPrefix(u.Ref, "refs/heads/") && u.New != codehost.ZeroSHA
	}); !q.exists && !begins {
		for _, u := range p.Updates {
			reasons[u.Ref] = "the first push to a repository brings a branch with a commit, from which work begins"
		}
		return reasons, nil
	}
	full := q.host.full()
	for _, u := range p.Updates {
		switch {
		case full:
			reasons[u.Ref] = "the server has no room left; its operator has to make some"
		case !q.access.MayPush(u.Ref):
			reasons[u.Ref] = "this token may only push to " + strings.Join(q.access.Push, ", ")
		case u.New == codehost.ZeroSHA && u.Ref == protected:
			reasons[u.Ref] = "the default branch cannot be deleted: make another the default first (yardmaster repo settings OWNER/NAME --default-branch NAME)"
		case u.Old == codehost.ZeroSHA && u.New != codehost.ZeroSHA && codehost.InTheWay(u.Ref):
			reasons[u.Ref] = "branches svc/… are made by this service: git cannot have one of this name beside them, choose another"
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
	s, err := unixfile.Room(h.root)
	return err == nil && s.Free < leastFree
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
	report, failed := q.git(ctx, dir.Path(), p, room, rest, &smarthttp.Lossy{To: &smarthttp.Flusher{To: q.w}})
	var changed []codehost.RefUpdate
	for _, u := range p.Updates {
		if report.OK[u.Ref] && before[u.Ref] != u.New {
			changed = append(changed, u)
		}
	}
	if len(changed) > 0 {
		if empty {
			if err := adopt(ctx, dir.Folder, changed, q.r.Header.Get(DefaultBranchHeader)); err != nil {
				q.host.log.ErrorContext(ctx, "git: default branch", "repo", q.repo.String(), "err", err)
			}
		}
		q.hooks.Pushed(ctx, codehost.PushEvent{Repo: q.repo, Who: q.access.Who, Updates: changed})
	}
	return failed
}

// git makes git execute a push in a folder. The answer goes to out; that to a push which
// does not fit goes to the client, once all of the push has come.
func (q *request) git(
	ctx context.Context, folder string, p smarthttp.Push, room *room, rest io.Reader, out io.Writer,
) (*smarthttp.Report, error) {
	report := smarthttp.NewReport(p.SideBand())
	git := q.host.git.At("", "")
	if !q.exists {
		git = git.Unsynced()
	}
	c := git.Command(ctx, "receive-pack", "--stateless-rpc", folder)
	c.Stdout = room.answer(io.MultiWriter(report, out))
	stdin, err := c.StdinPipe()
	if err != nil {
		return report, err
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
		return report, nil
	}
	return report, failed
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

// mostNamed is how many refs git is asked for by their names; for more, all are read.
const mostNamed = 500

// refs returns the commits of the refs of updates; codehost.ZeroSHA for a missing
// ref.
func refs(ctx context.Context, dir gitfolder.Folder, updates []codehost.RefUpdate) (map[string]string, error) {
	at := make(map[string]string)
	args := []string{"for-each-ref", "--format=%(objectname) %(refname)"}
	for _, u := range updates {
		at[u.Ref] = codehost.ZeroSHA
		if len(updates) <= mostNamed {
			args = append(args, u.Ref)
		}
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

// adopt makes a branch that was pushed to an empty repository its default: the one that
// the client wishes or, where it wishes none of them, main or else the first.
func adopt(ctx context.Context, dir gitfolder.Folder, changed []codehost.RefUpdate, wish string) error {
	branch, err := dir.DefaultBranch(ctx)
	if err != nil {
		return err
	}
	first := ""
	for _, u := range changed {
		name, isBranch := strings.CutPrefix(u.Ref, "refs/heads/")
		switch {
		case !isBranch || u.New == codehost.ZeroSHA:
		case name == wish:
			return dir.SetDefaultBranch(ctx, name)
		case name == branch:
			first = branch
		case first == "":
			first = name
		}
	}
	if first == "" || first == branch {
		return nil
	}
	if wish == "" {
		if _, err := dir.Resolve(ctx, branch); !errors.Is(err, codehost.ErrNotFound) {
			return err
		}
	}
	return dir.SetDefaultBranch(ctx, first)
}
