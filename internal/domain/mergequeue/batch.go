package mergequeue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/flake"
	"yardmaster/internal/observe"
)

// mostLost is how often a candidate is made anew whose check ended without a result.
const mostLost = 3

// retryAfter is the time until a batch is tried again that the host or the queue of tasks
// did not take.
const retryAfter = 30 * time.Second

func number(n int64) string { return strconv.FormatInt(n, 10) }

// build makes the candidate of a batch. If its files were checked before, the heads are
// merged at once, or the batch fails at once.
func (s *Service) build(ctx context.Context, b batchRow) (again bool, err error) {
	var r repo.Ref
	var members []entryRow
	mine := false
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		n, err := holdBatch.Exec(tx, b.ID, tx.Micros(), db.Micros(tx.Now.Add(buildHold)))
		if mine = n > 0; err != nil || !mine {
			return err // another node builds it, or it waits
		}
		if r, _, err = repo.ByID(tx, b.RepoID); err != nil {
			return err
		}
		members, err = s.members(tx, b)
		return err
	})
	if err != nil || !mine || len(members) == 0 {
		return false, err
	}
	host, err := s.Hosts.Of(r.HostRepo())
	if err != nil {
		return false, errors.Join(err, s.putOff(ctx, b))
	}
	ctx = codehost.WithUrgency(ctx, codehost.ForPeople)
	base, err := host.Head(ctx, r.HostRepo(), b.BaseRef)
	if err != nil {
		return false, errors.Join(err, s.putOff(ctx, b))
	}
	o := codehost.StackOptions{BaseSHA: base, Author: s.Bot, Title: fmt.Sprintf("Candidate %s, try %d", b.ID, b.Try)}
	for _, e := range members {
		o.Heads = append(o.Heads, e.HeadSHA)
	}
	made, err := host.Stack(ctx, r.HostRepo(), o)
	if err != nil {
		return false, errors.Join(err, s.putOff(ctx, b))
	}
	if made.Conflict >= 0 {
		return true, s.DB.Write(ctx, func(tx *db.Tx) error { return s.conflicts(tx, b, members, base, made.Conflict) })
	}
	demanded, err := s.demanded(ctx, r, b.BaseRef)
	if err != nil {
		return false, errors.Join(err, s.putOff(ctx, b))
	}
	var known resultRow
	have := false
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		known, have, err = resultOf.Maybe(tx, b.RepoID, made.Tree, demanded)
		return err
	})
	if err != nil {
		return false, err
	}
	// The head of each member has passed its checks: a candidate with the same files has.
	if made.SHA == base || slices.Contains(made.HeadTrees, made.Tree) {
		known, have = resultRow{Passed: true}, true
	}
	if !have {
		if err := s.putCandidate(ctx, host, r, b, made.SHA); err != nil {
			return false, errors.Join(err, s.putOff(ctx, b))
		}
	}
	b.BaseSHA, b.SHA, b.Tree, b.Command = base, made.SHA, made.Tree, demanded
	err = s.DB.Write(ctx, func(tx *db.Tx) error { return s.built(tx, r, b, members, known, have) })
	var f *fault.Error
	if errors.As(err, &f) && f.Kind != fault.Internal {
		return false, s.putOff(ctx, b) // the queue of tasks is full
	}
	return true, err
}

// demanded is what a candidate has to pass, as one text: the command of the repository, and
// the checks that the rules of the base demand. A result counts for files as long as both
// are the same.
func (s *Service) demanded(ctx context.Context, r repo.Ref, base string) (string, error) {
	forge, err := s.Hosts.Forge(r.HostRepo())
	if err != nil || !forge.Can(codehost.KeepRules) {
		return r.Policy.Checks.Command, err
	}
	rules, _, err := forge.BranchRules(ctx, r.HostRepo(), base, "")
	if err != nil {
		return "", err
	}
	var checks []string
	for _, c := range rules.Required {
		checks = append(checks, strconv.Quote(c.Name)+" of "+strconv.Quote(c.Source))
	}
	slices.Sort(checks)
	return strings.Join(append([]string{r.Policy.Checks.Command}, checks...), "\n"), nil
}

// putCandidate puts the branch of a candidate to its host. That it may be there is stored
// before, so that it is deleted in the end whatever happens.
func (s *Service) putCandidate(ctx context.Context, host codehost.Host, r repo.Ref, b batchRow, sha string) error {
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		_, err := putSoon.Exec(tx, b.ID, int64(never))
		return err
	})
	if err != nil {
		return err
	}
	return host.PutBranch(ctx, r.HostRepo(), b.Ref, sha)
}

func (s *Service) putOff(ctx context.Context, b batchRow) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		_, err := putOffBatch.Exec(tx, b.ID, db.Micros(tx.Now.Add(retryAfter)))
		return err
	})
}

// conflicts moves a batch on whose head number i conflicts. The first one conflicts with
// the base: its merge is made, and fails as one without a queue does. A later one is tried
// on its own afterwards.
func (s *Service) conflicts(tx *db.Tx, b batchRow, members []entryRow, base string, i int) error {
	now, open, err := batchByID.Maybe(tx, b.ID)
	if err != nil || !open || now.State != Building || now.Try != b.Try {
		return err
	}
	if i > 0 {
		e := members[i]
		_, err := setEntry.Exec(tx, setEntryArgs{ID: e.ID, Was: Batched, State: Waiting, Most: 1, Now: tx.Micros()})
		if err == nil {
			_, err = putOffBatch.Exec(tx, b.ID, tx.Micros())
		}
		return err
	}
	for _, e := range members[1:] {
		if err := s.back(tx, e); err != nil {
			return err
		}
	}
	return s.goOn(tx, b, base)
}

// goOn has the heads of a batch merged that is built, beginning at a commit of the base.
func (s *Service) goOn(tx *db.Tx, b batchRow, base string) error {
	n, err := candidate.Exec(tx, candidateArgs{
		ID: b.ID, State: Merging, BaseSHA: base, SHA: b.SHA, Tree: b.Tree, Command: b.Command, Try: b.Try, Now: tx.Micros(),
	})
	if err != nil || n == 0 {
		return err
	}
	return s.advance(tx, b, base)
}

// built records the candidate of a batch, and has it checked unless that is not needed.
func (s *Service) built(tx *db.Tx, r repo.Ref, b batchRow, was []entryRow, known resultRow, have bool) error {
	now, open, err := batchByID.Maybe(tx, b.ID)
	if err != nil || !open || now.State != Building || now.Try != b.Try {
		return err
	}
	members, err := s.members(tx, b)
	if err != nil {
		return err
	}
	if len(members) != len(was) {
		_, err := putOffBatch.Exec(tx, b.ID, tx.Micros())
		return err
	}
	switch {
	case have && known.Passed:
		if err := s.goOn(tx, b, b.BaseSHA); err != nil {
			return err
		}
		return passedEvent.Record(tx, event.Subject{ID: b.ID, RepoID: b.RepoID},
			passedData{BaseRef: b.BaseRef, BaseSHA: b.BaseSHA, SHA: b.SHA, Reused: true})
	case have:
		return s.red(tx, b, members, known.Why, known.Log)
	}
	taskID, err := s.Checks.Check(tx, r, b.BaseRef, b.SHA, s.keepsChecks(r))
	if err != nil {
		return err
	}
	_, err = candidate.Exec(tx, candidateArgs{
		ID: b.ID, State: Checking, BaseSHA: b.BaseSHA, SHA: b.SHA, Tree: b.Tree, TaskID: taskID, Command: b.Command, Try: b.Try,
		Now: tx.Micros(),
	})
	return err
}

// keepsChecks tells whether the host of a repository keeps checks.
func (s *Service) keepsChecks(r repo.Ref) bool {
	forge, err := s.Hosts.Forge(r.HostRepo())
	return err == nil && forge.Can(codehost.KeepChecks)
}

// judge moves a batch on whose candidate is checked.
func (s *Service) judge(ctx context.Context, b batchRow) (again bool, err error) {
	var r repo.Ref
	var got Result
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if r, _, err = repo.ByID(tx, b.RepoID); err == nil {
			got, err = s.Checks.Result(tx, r, b.SHA, s.keepsChecks(r))
		}
		return err
	})
	if err != nil || got.State == CheckPending {
		return false, err
	}
	var failure *flake.Failure
	rerun := got.State == CheckLost && b.Try < mostLost
	if got.State == CheckFailed {
		if failure, rerun, err = s.verdict(ctx, r, b, got); err != nil {
			return false, err
		}
	}
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		now, open, err := batchByID.Maybe(tx, b.ID)
		if err != nil || !open || now.State != Checking || now.Try != b.Try {
			return err
		}
		switch {
		case rerun:
			a := rebuildArgs{ID: b.ID, Try: b.Try, DueAt: tx.Micros()}
			if a.Prints.V = []flake.Print{}; failure != nil {
				a.Prints.V = failure.Prints
			}
			_, err := rebuild.Exec(tx, a)
			return err
		case got.State == CheckPassed:
			return s.green(tx, b)
		}
		members, err := s.members(tx, b)
		if err != nil {
			return err
		}
		if got.State == CheckLost {
			return s.lost(tx, b, members, got.Why)
		}
		if _, err := noteResult.Exec(tx, noteArgs{
			RepoID: b.RepoID, Tree: b.Tree, Command: b.Command, AccountID: b.AccountID, Why: got.Why, Log: got.Log, Now: tx.Micros(),
		}); err != nil {
			return err
		}
		return s.red(tx, b, members, got.Why, got.Log)
	})
	return true, err
}

// verdict tells whether a failed candidate is made and checked once more: its failure may
// come and go.
func (s *Service) verdict(ctx context.Context, r repo.Ref, b batchRow, got Result) (*flake.Failure, bool, error) {
	f := flake.Read(flake.Job{Repo: r.ID, Name: "check", Log: got.Log})
	c := flake.Case{Failure: &f, Reruns: int(b.Try - 1)}
	if len(b.Prints.V) > 0 {
		c.Before = &flake.Failure{Prints: b.Prints.V}
	}
	host, err := s.Hosts.Of(r.HostRepo())
	if err != nil {
		return nil, false, err
	}
	changed, err := host.Compare(ctx, r.HostRepo(), b.BaseSHA, b.SHA)
	if err != nil && !errors.Is(err, codehost.ErrNotFound) {
		return nil, false, err
	}
	c.Changed = changed.Paths
	return &f, flake.Judge(c).Verdict == flake.Rerun, nil
}

// green has the heads of a batch merged that has passed.
func (s *Service) green(tx *db.Tx, b batchRow) error {
	if _, err := noteResult.Exec(tx, noteArgs{
		RepoID: b.RepoID, Tree: b.Tree, Command: b.Command, AccountID: b.AccountID, Passed: true, Now: tx.Micros(),
	}); err != nil {
		return err
	}
	n, err := setMerging.Exec(tx, b.ID)
	if err != nil || n == 0 {
		return err
	}
	if err := s.advance(tx, b, b.BaseSHA); err != nil {
		return err
	}
	return passedEvent.Record(tx, event.Subject{ID: b.ID, RepoID: b.RepoID},
		passedData{BaseRef: b.BaseRef, BaseSHA: b.BaseSHA, SHA: b.SHA})
}

// red ends a batch that has failed. The head of a batch of one is thrown out; a larger
// one is cut: its heads are tried in halves.
func (s *Service) red(tx *db.Tx, b batchRow, members []entryRow, why, log string) error {
	half := int64(len(members)+1) / 2
	alone := len(members) == 1
	for _, e := range members {
		if alone {
			if err := s.refuse(tx, e, ByCheck, fmt.Sprintf("together with %s, %s", b.BaseRef, why), log); err != nil {
				return err
			}
			continue
		}
		if _, err := setEntry.Exec(tx, setEntryArgs{ID: e.ID, Was: e.State, State: Waiting, Most: half, Now: tx.Micros()}); err != nil {
			return err
		}
	}
	return s.end(tx, b, Failed, why)
}

// lost ends a batch whose checks have brought no result again and again. A person sees to
// its heads.
func (s *Service) lost(tx *db.Tx, b batchRow, members []entryRow, why string) error {
	for _, e := range members {
		if err := s.refuse(tx, e, ByLost, why, ""); err != nil {
			return err
		}
	}
	return s.end(tx, b, Failed, why)
}

// passRefs deletes the branches of candidates whose batches have ended.
func (s *Service) passRefs(ctx context.Context) {
	due, err := db.Claim(ctx, s.DB, anyRefDue, func(tx *db.Tx) ([]refRow, error) {
		return takeRefs.All(tx, tx.Micros(), db.Micros(tx.Now.Add(refHold)))
	})
	if err != nil {
		observe.Complain(ctx, s.Logger, "take the branches of candidates", err)
	}
	for _, d := range due {
		if err := s.deleteRef(db.WithAccount(ctx, d.AccountID), d); err != nil {
			observe.Complain(ctx, s.Logger, "delete the branch of a candidate", err, slog.String("ref", d.Ref))
		}
	}
}

func (s *Service) deleteRef(ctx context.Context, d refRow) error {
	var r repo.Ref
	there := false
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, there, err = repo.ByID(tx, d.RepoID)
		return err
	})
	if err != nil {
		return err
	}
	if there && strings.HasPrefix(d.Ref, codehost.QueuePrefix) {
		host, err := s.Hosts.Of(r.HostRepo())
		if err != nil {
			return err
		}
		at, err := host.Head(ctx, r.HostRepo(), d.Ref)
		if err == nil {
			err = host.DeleteBranch(ctx, r.HostRepo(), d.Ref, at)
		}
		if err != nil && !errors.Is(err, codehost.ErrNotFound) {
			return err
		}
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		_, err := refGone.Exec(tx, d.ID)
		return err
	})
}
