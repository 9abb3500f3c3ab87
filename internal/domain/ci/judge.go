package ci

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/flake"
	"yardmaster/internal/id"
)

// trial is the newest end of a job of a head that is to be judged.
type trial struct {
	end    endRow
	c      flake.Case
	busy   bool // other jobs of its workflow go on: the host runs none of it again yet
	silent bool // the host was asked to run it again, and has not begun it for too long
}

// Pulls is the part of pull requests that checks need. All are of tx.Account.
type Pulls interface {
	// LookedAfter tells whether a pull request is open, looked after, and at a head.
	LookedAfter(tx *db.Tx, prID, sha string) (bool, error)
	// Page is the address of the page of a pull request.
	Page(prID string) string
}

// Broken is a job that fails at a base as it fails at a pull request.
type Broken struct {
	RepoID, BaseRef, Job string
	Prints               []string // sentences about the failures
}

// BaseBroke is sent once for a base and a set of failures.
var BaseBroke = event.DeclareSignal[Broken]("ci.base_broke", "A job fails at a base branch, and at the pull requests to it.")

// Healed is a base that fails in no known way any more.
type Healed struct{ RepoID, BaseRef string }

// BaseHealed is sent when the last job passes at a base that was broken.
var BaseHealed = event.DeclareSignal[Healed]("ci.base_healed", "The jobs pass again that failed at a base branch.")

// trials collects the ends of jobs of a head that are to be judged, and all that decides
// about them. It asks the host, so it runs outside of a transaction.
func (s *Service) trials(ctx context.Context, r repo.Ref, h headRow, rules codehost.BranchRules) (out []trial, err error) {
	if h.Side != sidePull {
		return nil, nil
	}
	jobs := map[string][]endRow{} // id of an end -> ends of its job, newest first
	before := map[string]endRow{}
	var now time.Time
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out, now = nil, tx.Now
		lookedAfter, err := s.Pulls.LookedAfter(tx, h.PRID, h.SHA)
		if err != nil || !lookedAfter {
			return err
		}
		checks, err := checksOf.All(tx, h.RepoID, h.SHA)
		if err != nil {
			return err
		}
		all, err := endsOf.All(tx, h.RepoID, h.SHA)
		if err != nil {
			return err
		}
		for _, c := range checks {
			e, ok := endOf(all, c)
			if !ok || c.State == codehost.CheckPending || len(rules.Required) > 0 && !c.Required {
				continue
			}
			if i := slices.IndexFunc(all, func(b endRow) bool {
				return b.Source == e.Source && b.Job == e.Job && b.Attempt == e.Attempt-1 && !b.Passed
			}); i >= 0 {
				before[e.ID] = all[i]
			}
			t := trial{end: e, busy: slices.ContainsFunc(checks, func(o checkRow) bool {
				return o.State == codehost.CheckPending && o.Job != "" && o.Source == c.Source && o.Workflow == c.Workflow
			})}
			_, again := before[e.ID]
			switch e.Verdict {
			case "":
				if e.Passed && !again {
					continue
				}
			case verdictWaits, string(flake.BaseBroken):
			case string(flake.Rerun):
				at, known, err := rerunAt.Maybe(tx, e.ID)
				if err != nil {
					return err
				}
				if t.silent = !known || tx.Now.Sub(at) >= r.Policy.MissingAfter(); !t.silent {
					continue
				}
			default:
				continue
			}
			if jobs[e.ID], err = endsOfJob.All(tx, endsOfJobArgs{
				RepoID: h.RepoID, Source: e.Source, Job: e.Job, After: db.Micros(tx.Now.Add(-flake.Window)), Most: mostEnds,
			}); err != nil {
				return err
			}
			out = append(out, t)
		}
		return nil
	})
	if err != nil || len(out) == 0 {
		return nil, err
	}
	look, err := s.looks(ctx, r)
	if err != nil {
		return nil, err
	}
	changed, err := look.host.Compare(ctx, look.at, h.BaseRef, h.SHA)
	if err != nil && !errors.Is(err, codehost.ErrNotFound) {
		return nil, err
	}
	for i := range out {
		t := &out[i]
		t.c = flake.Case{Failure: t.end.failure(), Changed: changed.Paths, Evidence: map[string]flake.Evidence{}}
		if b, ok := before[t.end.ID]; ok {
			t.c.Before = b.failure()
		}
		hist := history(now, h, jobs[t.end.ID], look)
		about := t.end.Prints.V
		if t.c.Failure == nil {
			about = before[t.end.ID].Prints.V
		}
		for _, p := range about {
			t.c.Evidence[p.FP] = hist.Of(p)
		}
		for _, e := range jobs[t.end.ID] {
			if e.Side == sideBase && e.BaseRef == h.BaseRef {
				t.c.Base = e.failure()
				break
			}
		}
	}
	return out, nil
}

// decide judges the ends of jobs of a head, and has the host run those again that may
// come and go. Another node may have judged an end meanwhile: it is left alone.
func (s *Service) decide(tx *db.Tx, r repo.Ref, h headRow, trials []trial) error {
	if err := repo.Lock(tx, r.ID); err != nil { // the re-runs of an hour are counted
		return err
	}
	var again []endRow
	for _, t := range trials {
		e := t.end
		d, err := s.judge(tx, h, t, len(again))
		if err != nil {
			return err
		}
		verdict, said := string(d.Verdict), told{}
		if d.Verdict == flake.Rerun && (d.Wait || t.busy) {
			verdict = verdictWaits
		}
		for _, p := range d.Prints {
			said.Repair = append(said.Repair, sentence(p, t.c.Evidence[p.FP]))
		}
		for _, p := range d.Known {
			said.Leave = append(said.Leave, sentence(p, t.c.Evidence[p.FP]))
		}
		n, err := judgeEnd.Exec(tx, judgeEndArgs{ID: e.ID, Was: e.Verdict, Verdict: verdict, Told: db.JSON[told]{V: said}})
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		for fp, about := range t.c.Evidence {
			if _, err := countPrint.Exec(tx, countPrintArgs{RepoID: h.RepoID, FP: fp, N: about.N, D: about.D}); err != nil {
				return err
			}
		}
		switch verdict {
		case string(flake.Rerun):
			again = append(again, e)
		case string(flake.BaseBroken):
			if err := s.brokeBase(tx, h, e, d.Prints, said.Repair); err != nil {
				return err
			}
		}
	}
	if len(again) == 0 {
		return nil
	}
	return s.rerun(tx, r, h, again)
}

// judge is the verdict about an end. taken re-runs were decided about in this
// transaction already.
func (s *Service) judge(tx *db.Tx, h headRow, t trial, taken int) (d flake.Decision, err error) {
	e := t.end
	broken, err := brokenBases.All(tx, brokenBasesArgs{RepoID: h.RepoID, BaseRef: h.BaseRef, Source: e.Source, Job: e.Job})
	if err != nil {
		return d, err
	}
	covered := func(prints []flake.Print) bool { // by what is known to fail at the base
		return len(prints) > 0 && slices.ContainsFunc(broken, func(b brokenRow) bool {
			return !slices.ContainsFunc(prints, func(p flake.Print) bool { return !slices.Contains(b.Prints.V, p.FP) })
		})
	}
	if t.silent || e.Verdict == string(flake.BaseBroken) {
		d = flake.Decision{Verdict: flake.Real, Prints: e.Prints.V}
	} else {
		if t.c.Reruns, err = rerunsOfJob.One(tx, rerunsOfJobArgs{RepoID: h.RepoID, SHA: h.SHA, Source: e.Source, Job: e.Job}); err != nil {
			return d, err
		}
		if t.c.RepoReruns, err = rerunsOfRepo.One(tx, h.RepoID, db.Micros(tx.Now.Add(-time.Hour))); err != nil {
			return d, err
		}
		t.c.RepoReruns += taken
		d = flake.Judge(t.c)
	}
	if (d.Verdict == flake.Rerun || d.Verdict == flake.Real) && covered(d.Prints) {
		d.Verdict, d.Wait = flake.BaseBroken, false
	}
	return d, nil
}

// brokeBase records that a base fails as a head does, and tells of it once.
func (s *Service) brokeBase(tx *db.Tx, h headRow, e endRow, prints []flake.Print, said []string) error {
	fps := []string{}
	for _, p := range prints {
		fps = append(fps, p.FP)
	}
	slices.Sort(fps)
	n, err := breakBase.Exec(tx, breakBaseArgs{
		ID: id.New(), AccountID: h.AccountID, RepoID: h.RepoID, BaseRef: h.BaseRef, Source: e.Source, Job: e.Job,
		Prints: db.JSON[[]string]{V: fps}, Now: tx.Micros(),
	})
	if err != nil || n == 0 {
		return err
	}
	return BaseBroke.Send(tx, Broken{RepoID: h.RepoID, BaseRef: h.BaseRef, Job: e.Job, Prints: said})
}

// sentence is a failure and how often it was seen to come and go.
func sentence(p flake.Print, e flake.Evidence) string {
	out := cmp.Or(p.Test, p.Scope)
	if p.Error != "" {
		out += ": " + p.Error
	}
	if e.N > 0 {
		share, often, _ := strings.Cut(e.String(), ",")
		out += " (" + share + " runs"
		if often != "" {
			out += "," + often
		}
		out += ")"
	}
	return out
}

// rerunAtHost has the failed jobs of a commit run again.
var rerunAtHost = intent.Declare[rerunArgs, struct{}]("ci.rerun", false)

type rerunArgs struct {
	PRID, SHA string
	Checks    []string // ids at the host
}

// rerun puts one intent for the jobs of a head that are to be run again.
func (s *Service) rerun(tx *db.Tx, r repo.Ref, h headRow, ends []endRow) error {
	args := rerunArgs{PRID: h.PRID, SHA: h.SHA}
	for _, e := range ends {
		args.Checks = append(args.Checks, e.HostID)
	}
	put, err := rerunAtHost.Put(tx, intent.Want[rerunArgs]{Repo: r, Object: "checks:" + h.SHA, Rank: intent.ForRuns, Args: args})
	for _, e := range ends {
		if err != nil {
			return err
		}
		_, err = insertRerun.Exec(tx, insertRerunArgs{
			FailureID: e.ID, IntentID: put, RepoID: h.RepoID, SHA: h.SHA, Source: e.Source, Job: e.Job, Now: tx.Micros(),
		})
	}
	return err
}

// rerunner carries out ci.rerun.
type rerunner struct{ s *Service }

// Still implements intent.Handler.
func (h rerunner) Still(tx *db.Tx, c intent.Call[rerunArgs]) (bool, error) {
	return h.s.Pulls.LookedAfter(tx, c.Args.PRID, c.Args.SHA)
}

// Do implements intent.Handler.
func (rerunner) Do(ctx context.Context, f codehost.Forge, c intent.Call[rerunArgs]) (struct{}, error) {
	return struct{}{}, f.RerunFailed(ctx, c.Repo.HostRepo(), c.ID, c.Args.Checks)
}

// Done implements intent.Handler. A failure that the host does not run again is one that
// an agent sees to.
func (h rerunner) Done(tx *db.Tx, c intent.Call[rerunArgs], _ struct{}, failure error) error {
	if failure != nil {
		if _, err := refuseReruns.Exec(tx, string(c.ID)); err != nil {
			return err
		}
	}
	return h.s.wantHead(tx, c.Repo.ID, c.Args.SHA)
}
