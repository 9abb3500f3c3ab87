package ci

import (
	"context"
	"slices"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/flake"
	"yardmaster/internal/id"
	"yardmaster/internal/observe"
)

// What is known of failures is kept for so long. A job that passed is of no use after the
// time for which evidence counts.
const (
	keepTexts    = 14 * 24 * time.Hour // excerpts of logs
	keepFailures = 90 * 24 * time.Hour
	tidyEvery    = 6 * time.Hour
	mostEnds     = 1000 // of a job that are looked at
	mostLooks    = 60   // calls of git for one judgement
)

// told is what an agent is told of a failure. The texts come from logs.
type told struct {
	Repair []string `json:"repair,omitempty"`
	Leave  []string `json:"leave,omitempty"`
}

// verdictWaits is the verdict of a failure that will be run again, but not now: the
// repository has used up its re-runs of this hour, or the workflow goes on.
const verdictWaits = "waits"

// spared tells whether a failure is not to be repaired, as it stands.
func (e endRow) spared() bool {
	switch e.Verdict {
	case verdictWaits, string(flake.Rerun), string(flake.Infra), string(flake.BaseBroken), string(flake.Flake):
		return true
	}
	return false
}

// endOf finds the end of a check among those of its commit.
func endOf(ends []endRow, c checkRow) (endRow, bool) {
	i := slices.IndexFunc(ends, func(e endRow) bool { return e.Source == c.Source && e.Job == c.Name && e.HostID == c.HostID })
	if i < 0 {
		return endRow{}, false
	}
	return ends[i], true
}

// record stores the ends of the jobs of a commit, each once. A job that was left out is
// no evidence, nor is a check without a job, which has no log.
func (s *Service) record(tx *db.Tx, h headRow, set codehost.CheckSet, logs map[string]string) error {
	mended := false
	for _, c := range set.Checks {
		if c.Own || c.Job == "" || c.State == codehost.CheckPending || c.End == codehost.EndLeftOut || c.End == codehost.EndHeld {
			continue
		}
		at := tx.Now
		if c.EndedAt != nil && c.EndedAt.Before(at) {
			at = *c.EndedAt
		}
		a := insertEndArgs{
			ID: id.New(), AccountID: h.AccountID, RepoID: h.RepoID, SHA: h.SHA, Source: c.Source, Job: c.Name, HostID: c.ID, Side: h.Side,
			BaseRef: h.BaseRef, PRID: h.PRID, Passed: c.State == codehost.CheckPassed, At: db.Micros(at),
		}
		if !a.Passed {
			f := flake.Read(flake.Job{Repo: h.RepoID, Name: c.Name, End: c.End, Log: logs[c.Source+"/"+c.Name]})
			a.Class, a.Prints.V, a.Excerpt = string(f.Class), f.Prints, f.Excerpt()
		} else {
			a.Prints.V = []flake.Print{}
		}
		n, err := insertEnd.Exec(tx, a)
		if err != nil {
			return err
		}
		if n == 0 {
			continue // it is known
		}
		for _, p := range a.Prints.V {
			if _, err := notePrint.Exec(tx, notePrintArgs{
				RepoID: h.RepoID, FP: p.FP, AccountID: h.AccountID, Job: c.Name, Test: p.Test, Error: p.Error, Now: tx.Micros(),
			}); err != nil {
				return err
			}
		}
		if h.Side == sideBase && a.Passed {
			n, err := mendBase.Exec(tx, mendBaseArgs{RepoID: h.RepoID, BaseRef: h.BaseRef, Source: c.Source, Job: c.Name, Now: tx.Micros()})
			if err != nil {
				return err
			}
			mended = mended || n > 0
		}
	}
	if !mended {
		return nil
	}
	held, err := wakeHeld.All(tx, h.RepoID, h.BaseRef)
	if err != nil {
		return err
	}
	for _, sha := range held {
		s.headQueue.Add(tx, headKey(h.RepoID, sha), due.Entry{Account: h.AccountID})
	}
	if broken, err := anyBroken.One(tx, h.RepoID, h.BaseRef); err != nil || broken {
		return err
	}
	return BaseHealed.Send(tx, Healed{RepoID: h.RepoID, BaseRef: h.BaseRef})
}

// looks answers questions of git about commits, at most mostLooks of them. What cannot be
// answered is no evidence.
type looks struct {
	ctx   context.Context
	host  codehost.Host
	at    codehost.Repo
	left  int
	blobs map[[2]string]string
}

// contains tells whether a commit contains another one.
func (l *looks) contains(sha, other string) bool {
	if l.left--; l.left < 0 {
		return true
	}
	c, err := l.host.Compare(l.ctx, l.at, sha, other)
	return err != nil || c.Ahead == 0
}

// blob is the blob of a file at a commit; "" if it is not known.
func (l *looks) blob(sha, file string) string {
	key := [2]string{sha, file}
	if known, ok := l.blobs[key]; ok {
		return known
	}
	if l.left--; l.left < 0 {
		return ""
	}
	_, blob, err := l.host.ReadFile(l.ctx, l.at, sha, file)
	if err != nil {
		blob = ""
	}
	l.blobs[key] = blob
	return blob
}

func (s *Service) looks(ctx context.Context, r repo.Ref) (*looks, error) {
	host, err := s.Hosts.Of(r.HostRepo())
	return &looks{ctx: ctx, host: host, at: r.HostRepo(), left: mostLooks, blobs: map[[2]string]string{}}, err
}

// history is what the ends of a job say, for the judgement of a head.
func history(now time.Time, h headRow, ends []endRow, l *looks) flake.History {
	out := flake.History{Now: now, Pull: h.PRID, Contains: l.contains, Blob: l.blob}
	for _, e := range ends {
		run := flake.Run{SHA: e.SHA, Attempt: int(e.Attempt), Side: flake.Side(e.Side), Pull: e.PRID, At: e.At}
		for _, p := range e.Prints.V {
			run.Prints = append(run.Prints, p.FP)
		}
		if !e.Passed && len(run.Prints) == 0 {
			continue
		}
		out.Runs = append(out.Runs, run)
	}
	return out
}

// tidy deletes what is known of failures and is too old, on one node at a time.
func (s *Service) tidy(ctx context.Context) {
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		n, err := takeTidying.Exec(tx, tx.Micros(), db.Micros(tx.Now.Add(tidyEvery)))
		if err != nil || n == 0 {
			return err
		}
		texts, failures := db.Micros(tx.Now.Add(-keepTexts)), db.Micros(tx.Now.Add(-keepFailures))
		for _, do := range []struct {
			statement db.Stmt
			before    int64
		}{
			{dropPassed, texts}, {dropTexts, texts}, {dropFailures, failures}, {dropPrints, failures}, {dropReruns, failures},
			{dropBroken, failures},
		} {
			if _, err := do.statement.Exec(tx, do.before); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		observe.Complain(ctx, s.Logger, "tidy up what is known of failures", err)
	}
}
