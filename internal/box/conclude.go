package box

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"yardmaster/internal/box/worktree"
	"yardmaster/internal/fault"
	"yardmaster/internal/protocol"
)

// repairKind is the kind of a task that works on the branch of a pull request.
const repairKind = "babysit"

const (
	reportBytes  = 64 << 10
	pathsListed  = 500
	lateSave     = 3 * time.Minute // for pushing work whose lease is over
	missingTries = 4               // to push to a repository that the server says does not exist
	fullTries    = 30              // to collect work while the disk is full, Timing.Retry apart
)

// conclude saves the work of an attempt and spools its last event. No process of
// the agent runs any more. w is nil if there is no checkout yet.
func (b *box) conclude(a *attempt, w *workspace, r result) {
	before := a.endingNow()
	var done work
	var troubled error
	if isDone(a.fenced) {
		b.rescue(a, w)
	}
	if b.dropsEnd(a) {
		return
	}
	done.report = readReport(a.homePath())
	if before != nil && before.kind == "storage_failed" || a.filledDisk() {
		// Removing the agent's home makes space for its work.
		if err := worktree.RemoveTree(a.homePath()); err != nil {
			a.log.Warn("home not removed", "error", err)
		}
	}
	if w != nil {
		done.base = w.Base
	}
	if w != nil && a.start.Branch != "" && (before == nil || before.severity < haltNow) {
		unfinished := before != nil || r.kind != "" || r.stop != "end_turn" && a.start.Agent != commandAgent
		troubled = b.collect(a, w, unfinished, &done)
	}
	f := judge(a.start, r, done)
	if troubled != nil && f.State == protocol.Succeeded {
		r := b.checkBox(a, failed("checkout_failed", troubled))
		f.State, f.Kind, f.Error = protocol.Failed, r.kind, r.detail
	}
	if before != nil {
		before.overrule(&f)
	}
	if troubled != nil {
		a.log.Error("work not collected", "error", troubled)
	} else if a.start.Kind == repairKind && f.State != protocol.Succeeded {
		// The branch belongs to a pull request: work on it may be merged.
		if done.tip != "" && done.tip != w.Base && a.worthSaving() {
			if err := b.pushLate(a, w, done.tip); err != nil {
				a.log.Warn("unfinished repair not saved", "error", err)
			}
		}
	} else if done.something {
		ctx, cancel := b.cfg.clock.WithTimeout(a.killed, b.cfg.Timing.Wrap)
		b.push(ctx, a, w, done, &f)
		cancel()
	}
	// A request that came during the push counts only if it was more severe than
	// graceful.
	if late := a.endingNow(); late != before && late.severity > graceful {
		late.overrule(&f)
	}
	if b.dropsEnd(a) {
		return
	}
	if e := a.endingNow(); e == nil || e.severity == graceful {
		b.storeArtifacts(a)
	}
	if e := a.endingNow(); e != nil && e.severity == leaseLost {
		a.event(protocol.EventLeaseLost, nil)
	}
	if a.endingNow() != nil {
		<-a.announced // nothing is recorded after the end
	}
	a.event(protocol.EventFinished, f)
	a.log.Info("run finished", "state", f.State, "kind", f.Kind, "error", f.Error, "tip", f.Tip, "wip", f.WIP)
}

// overrule replaces a judgement by the ending that was asked for.
func (e *ending) overrule(f *protocol.Finished) {
	f.State, f.Kind, f.Error, f.Busy = e.state, e.kind, e.detail, false
	f.WIP = f.Tip != ""
}

// collect takes the work into the cache. It needs no lease, only disk space and a
// box that is fit. While the box is unfit, the work stays in the checkout, unless
// the attempt has to end at once.
func (b *box) collect(a *attempt, w *workspace, unfinished bool, done *work) error {
	ctx, cancel := context.WithTimeout(b.life, b.cfg.Timing.Wrap)
	defer cancel()
	if a.filledDisk() {
		w.checkout.Frugal = true
		// Commits are copied before they are checked.
		if free, _ := diskFree(w.cache.Objects()); diskUse(filepath.Join(a.taskPath(), ".git")) > free/2 {
			return errors.New("the run has committed more than there is room to save")
		}
	}
	for full, healed := 0, false; ; {
		err := w.collect(ctx, a, unfinished, done)
		if !healed && worktree.Broken(err) && ctx.Err() == nil {
			healed = true
			a.log.Warn("the cache is damaged and is repaired", "error", err)
			if err := errors.Join(w.cache.Heal(ctx, err), b.fetch(ctx, a, w.cache)); err != nil {
				a.log.Warn("the cache was not repaired", "error", err)
			}
			continue
		}
		if noSpace(err) && full < fullTries && a.killed.Err() == nil && ctx.Err() == nil {
			full++ // the run that filled the disk may be freeing it
			sleep(ctx, b.cfg.Timing.Retry)
			continue
		}
		if err == nil || noSpace(err) || a.killed.Err() != nil || ctx.Err() != nil || b.retest(ctx) == "" {
			return err
		}
		a.log.Warn("work not collected, trying again when the box is fit", "error", err)
		for ctx.Err() == nil && a.killed.Err() == nil && b.unfitReason() != "" {
			sleep(ctx, b.cfg.Timing.Retry)
		}
	}
}

// dropsEnd tells whether the last event is to be left out: the attempt is fenced, or
// this process ends before it could send the event, and the next one will.
func (b *box) dropsEnd(a *attempt) bool {
	return isDone(a.fenced) || b.life.Err() != nil
}

// push pushes the work and notes the place in f: the run's branch, finished or not;
// or, after the lease is lost, a ref of its own, because the branch may belong to
// another box by then. Meanwhile the cache of this box keeps the work for the next
// attempt: the repository may be out of reach for longer than this one can wait, and the
// box may be stopped or killed.
func (b *box) push(ctx context.Context, a *attempt, w *workspace, done work, f *protocol.Finished) {
	if err := w.keep(b.life, a, done.tip); err != nil {
		a.log.Warn("work not kept on this box", "error", err)
	}
	ref, err := a.branchRef(), context.Canceled
	if ctx.Err() == nil {
		err = b.pushTo(ctx, a, w, done.tip, ref)
	}
	if e := a.endingNow(); err != nil && e != nil && (e.severity != graceful || e.state == protocol.Halted) && a.worthSaving() {
		ref = a.savedRef()
		e.overrule(f)
		err = b.pushLate(a, w, done.tip)
	}
	if err == nil || rejected(err) {
		if err := w.unkeep(b.life, a); err != nil {
			a.log.Warn("work is still kept on this box", "error", err)
		}
	}
	if err != nil {
		a.log.Warn("work not pushed", "ref", ref, "error", err)
		if f.State == protocol.Succeeded {
			*f = pushFailed(*f, err)
		}
		return
	}
	f.Tip, f.WIP, f.Paths = done.tip, f.State != protocol.Succeeded, done.paths
	a.event(protocol.EventPushed, protocol.Pushed{SHA: done.tip, Ref: ref, WIP: f.WIP, Paths: done.paths})
}

// rescue saves the work of an attempt that was taken from this box. It reports
// nothing: the box that continues the task looks for the saved work itself, and
// stops waiting when it finds none.
func (b *box) rescue(a *attempt, w *workspace) {
	if w == nil || a.start.Branch == "" || !a.worthSaving() || b.life.Err() != nil {
		return
	}
	var done work
	err := b.collect(a, w, true, &done)
	if err == nil {
		err = b.pushLate(a, w, done.tip)
	}
	if err != nil {
		a.log.Warn("work not saved", "error", err)
	}
}

// pushLate pushes work whose lease is over to the attempt's own ref. The attempt's
// token is valid for no other ref, and only for a while.
func (b *box) pushLate(a *attempt, w *workspace, tip string) error {
	ctx, cancel := context.WithTimeout(b.life, min(lateSave, b.cfg.Timing.Wrap))
	defer cancel()
	for n, missing := 0, 0; ; n++ {
		err := w.push(ctx, a, tip, a.savedRef())
		if errors.Is(err, worktree.ErrMissing) {
			missing++
		}
		if err == nil || refused(err) || missing == missingTries || ctx.Err() != nil {
			return err
		}
		a.log.Warn("work not saved, trying again", "error", err)
		sleep(ctx, b.pushPause(n))
	}
}

// pushPause is the wait after the failed push n, from 0: Timing.Retry at first, twice as
// long each time, a minute at most.
func (b *box) pushPause(n int) time.Duration { return min(b.cfg.Timing.Retry<<min(n, 10), time.Minute) }

func pushFailed(f protocol.Finished, err error) protocol.Finished {
	r := failed("push_rejected", err)
	f.State, f.Kind, f.Error, f.Busy = protocol.Failed, r.kind, r.detail, r.busy
	return f
}

// pushTo pushes with a fresh token, and tries again while the server is out of
// reach. If an answer was lost, the control plane may have replaced the token by
// one that never arrived; a refusal is not final then. The error is that of the last
// push which was answered.
func (b *box) pushTo(ctx context.Context, a *attempt, w *workspace, tip, ref string) error {
	var last error
	for n, missing := 0, 0; ; n++ {
		certain := b.refreshGitToken(ctx, a) || isDone(a.fenced)
		err := w.push(ctx, a, tip, ref)
		stale := !certain && errors.Is(err, worktree.ErrAuth)
		if errors.Is(err, worktree.ErrMissing) {
			missing++
		}
		if ctx.Err() != nil && err != nil && last != nil {
			return last
		}
		if err == nil || refused(err) && !stale || missing == missingTries || ctx.Err() != nil {
			return err
		}
		last = err
		a.log.Warn("push failed, trying again", "ref", ref, "error", err)
		sleep(ctx, b.pushPause(n))
	}
}

// refreshGitToken asks for a push token, because the one of the start may be hours
// old. It tells whether the attempt's token is certainly the newest one.
func (b *box) refreshGitToken(ctx context.Context, a *attempt) (certain bool) {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timing.Renew/2)
	defer cancel()
	var t protocol.GitToken
	ask := protocol.GitTokenAsk{Run: a.start.Run, Attempt: a.start.Attempt}
	err := b.conn.Call(ctx, protocol.CallGitToken, ask, &t)
	var fresh protocol.Tokens
	if err == nil {
		if fresh, err = b.open(a.start.Run, t.Sealed); err != nil {
			b.greetAgain()
		}
	}
	if err != nil || fresh.Git == "" {
		a.log.Debug("no fresh git token", "error", err)
		var refused *fault.Error
		return errors.As(err, &refused) && (refused.Kind == fault.NotFound || refused.Kind == fault.Forbidden)
	}
	a.secrets.Add(fresh.Git)
	a.start.GitToken = fresh.Git
	return true
}

func (a *attempt) savedRef() string { return protocol.SavedRef(a.start.Run, a.start.Attempt) }

// reportCut ends a report of which the rest was left out.
const reportCut = "\n\n(The report is longer than 64 KiB. The rest was left out.)"

// readReport reads the report that the agent left. Of one that is longer than 64 KiB it
// reads as much as fits with a sentence that says so. It answers "" if the file is
// missing or not a regular file.
func readReport(home string) string {
	root, err := os.OpenRoot(home)
	if err != nil {
		return ""
	}
	defer root.Close()
	info, err := root.Lstat(reportFile)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	file, err := root.Open(reportFile)
	if err != nil {
		return ""
	}
	defer file.Close()
	// Beyond twice as much, blanks around a text count like the rest of it.
	all, err := io.ReadAll(io.LimitReader(file, 2*reportBytes))
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(all), ""))
	if len(text) > reportBytes {
		return strings.TrimSpace(strings.ToValidUTF8(text[:reportBytes-len(reportCut)], "")) + reportCut
	}
	return text
}
