package review

import (
	"context"
	"errors"
	"slices"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
)

// code reads files and differences of a repository, each once.
type code struct {
	ctx   context.Context
	host  codehost.Host
	repo  codehost.Repo
	files map[[2]string][]string       // by commit and path; nil: there is no such text file
	diffs map[[3]string]*codehost.File // by both commits and path; nil: it has not changed
}

func newCode(ctx context.Context, host codehost.Host, r codehost.Repo) *code {
	return &code{ctx, host, r, map[[2]string][]string{}, map[[3]string]*codehost.File{}}
}

// lines are the lines of a file; none if there is no such file, or it is no text.
func (c *code) lines(sha, path string) ([]string, error) {
	at := [2]string{sha, path}
	if l, ok := c.files[at]; ok {
		return l, nil
	}
	text, _, err := c.host.ReadFile(c.ctx, c.repo, sha, path)
	switch {
	case errors.Is(err, codehost.ErrNotFound), errors.Is(err, codehost.ErrTooLarge), isInvalid(err):
		c.files[at] = nil
		return nil, nil
	case err != nil:
		return nil, err
	}
	c.files[at] = splitLines(text)
	return c.files[at], nil
}

// isInvalid tells whether the host refused a path, which an agent made up.
func isInvalid(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && f.Kind == fault.Invalid
}

// diff is the change of one file between two commits; nil if it has not changed.
func (c *code) diff(from, to, path string) (*codehost.File, error) {
	at := [3]string{from, to, path}
	if f, ok := c.diffs[at]; ok {
		return f, nil
	}
	d, err := c.host.Diff(c.ctx, c.repo, codehost.DiffOptions{From: from, To: to, Path: path})
	if err != nil && !isInvalid(err) {
		return nil, err
	}
	c.diffs[at] = d.File
	return d.File, nil
}

// locate finds the place of what a finder named. A finding that names no line of the code
// is refuted by that.
func (c *code) locate(run Run, n named) (Finding, error) {
	f := Finding{ID: id.New(), AccountID: run.AccountID, RepoID: run.RepoID, PRID: run.PRID, RunID: run.ID, HeadSHA: run.HeadSHA,
		File: n.File, Side: n.Side, StartLine: n.StartLine, Line: n.Line, Severity: n.Severity, Kind: n.Kind, Claim: n.Claim, Why: n.Why,
		HowToSee: n.HowToSee, Suggestion: n.Suggestion, Confidence: n.Confidence, State: Raw}
	sha := run.HeadSHA
	if n.Side == codehost.SideBase {
		sha = run.MergeBase
	}
	lines, err := c.lines(sha, n.File)
	if err != nil {
		return f, err
	}
	f.Anchor, f.Symbol = anchorOf(lines, n.Line), symbolOf(lines, n.Line)
	if n.Line > len(lines) {
		f.State, f.StateWhy = Refuted, "it names no line of the code"
	}
	change, err := c.diff(run.MergeBase, run.HeadSHA, n.File)
	if err != nil {
		return f, err
	}
	called := n.File
	if change != nil && change.Was != "" {
		called = change.Was
	}
	f.Key = keyOf(run.RepoID, run.PRID, called, n.Kind, f.Symbol, f.Anchor)
	first := n.StartLine
	if first == 0 {
		first = n.Line
	}
	at := placeOf(change, n.Side, first, n.Line, func(line int) string { return symbolOf(lines, line) })
	f.PlaceStart, f.PlaceLine = at.StartLine, at.Line
	return f, nil
}

// carryOn maps the lines of an earlier finding to the head of a run. changed tells that its
// claim has to be verified again.
func (c *code) carryOn(run Run, f Finding) (_ Finding, changed bool, err error) {
	if f.HeadSHA == run.HeadSHA || f.Side == codehost.SideBase {
		return f, false, nil
	}
	change, err := c.diff(f.HeadSHA, run.HeadSHA, f.File)
	if errors.Is(err, codehost.ErrNotFound) {
		return f, true, nil // the earlier head is gone
	}
	if err != nil {
		return f, false, err
	}
	f.HeadSHA = run.HeadSHA
	switch {
	case change == nil:
		return f, false, nil
	case change.Kind == codehost.Deleted || change.Binary || change.Cut:
		return f, true, nil
	}
	start, end, touched := moveRange(change.Hunks, f.first(), f.Line)
	if f.StartLine > 0 && start < end {
		f.StartLine = start
	} else {
		f.StartLine = 0
	}
	f.Line = end
	return f, touched, nil
}

// earlier is a finding of an earlier review, on the head of this one.
type earlier struct {
	Finding
	changed bool
}

// sort holds the answer of a finder against the code, the earlier findings and the rules,
// and queues the verifier of what is left.
func (s *Service) sort(ctx context.Context, d due) error {
	var run Run
	var r repo.Ref
	var seen []Finding
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		var ok bool
		if run, ok, err = runByID.Maybe(tx, tx.Account, d.ID); err != nil || !ok {
			return err
		}
		if r, _, err = repo.ByID(tx, run.RepoID); err != nil {
			return err
		}
		seen, err = shownOf.All(tx, tx.Account, run.PRID)
		return err
	})
	if err != nil || run.State != Sorting {
		return err
	}
	host, err := s.Hosts.Of(r.HostRepo())
	if err != nil {
		return err
	}
	c := newCode(ctx, host, r.HostRepo())
	var found []Finding
	for _, n := range readFindings(run.Raw) {
		f, err := c.locate(run, n)
		if err != nil {
			return err
		}
		found = append(found, f)
	}
	before := make([]earlier, len(seen))
	for i, f := range seen {
		before[i].Finding = f
		if before[i].Finding, before[i].changed, err = c.carryOn(run, f); err != nil {
			return err
		}
	}
	err = s.DB.Write(ctx, func(tx *db.Tx) error { return s.sorted(tx, d, slices.Clone(found), before) })
	if full(err) {
		return s.DB.Write(ctx, func(tx *db.Tx) error {
			_, err := waitForRoom.Exec(tx, run.ID, tx.Now.Add(time.Minute))
			return err
		})
	}
	return err
}

// sorted stores what sort has learned, and goes on with the verifier, or ends the run if
// nothing is to be verified.
func (s *Service) sorted(tx *db.Tx, d due, found []Finding, before []earlier) error {
	run, p, r, ok, err := s.locked(tx, d)
	if err != nil || !ok {
		return err
	}
	rules, err := rulesOf.All(tx, tx.Account, run.RepoID)
	if err != nil {
		return err
	}
	var claims, kept []Finding
	for _, e := range before {
		now, known, err := findingByID.Maybe(tx, tx.Account, e.ID)
		if err != nil || !known || now.State != e.State {
			kept = append(kept, e.Finding)
			if err != nil {
				return err
			}
			continue // a person was faster
		}
		e.UpdatedAt = tx.Now
		if e.changed && (e.State == Posted || e.State == Answered) && len(claims) < maxVerified {
			e.ClaimNo = len(claims) + 1
			claims = append(claims, e.Finding)
		}
		kept = append(kept, e.Finding)
		if _, err := updateFinding.Exec(tx, e.Finding); err != nil {
			return err
		}
	}
	slices.SortStableFunc(found, worse)
	for i := range found {
		f := &found[i]
		f.CreatedAt = tx.Now
		if f.State == Raw {
			if err := s.raise(tx, r, p, *f, kept); err != nil {
				return err
			}
			f.State, f.StateWhy = sift(*f, kept, found[:i], rules, r.Policy.Review.MinSeverity)
		}
		if f.State == Raw && len(claims) >= maxVerified {
			f.State, f.StateWhy = Below, "beyond the limit"
			run.More++
		}
		if f.State == Raw {
			f.ClaimNo = len(claims) + 1
			claims = append(claims, *f)
		}
		if _, err := insertFinding.Exec(tx, *f); err != nil {
			return err
		}
	}
	if len(claims) == 0 {
		return s.conclude(tx, run, p, nil, nil)
	}
	template, err := s.Models.Other(tx, run.Template)
	if err != nil {
		return err
	}
	taskID, err := s.Tasks.Queue(tx, r, Pass{PRID: p.ID, Title: verifyTitle(p), Problem: verifyProblem(r, p, run, claims),
		Schema: verdictsSchema, Template: template, HeadSHA: run.HeadSHA, RequestedBy: run.RequestedBy})
	if err != nil {
		return err
	}
	_, err = setVerify.Exec(tx, run.ID, taskID, run.More)
	return err
}

// raise says once, in the thread of an earlier finding that waits or was answered, that a
// later review calls it worse. The finding stays as it was verified.
func (s *Service) raise(tx *db.Tx, r repo.Ref, p Pull, f Finding, before []Finding) error {
	i := slices.IndexFunc(before, func(old Finding) bool { return f.repeats(old) })
	if i < 0 {
		return nil
	}
	old := &before[i]
	if old.Raised || old.State != Posted && old.State != Answered || f.Severity == old.Severity || !atLeast(f.Severity, old.Severity) {
		return nil
	}
	old.Raised, old.UpdatedAt = true, tx.Now
	if _, err := updateFinding.Exec(tx, *old); err != nil {
		return err
	}
	return s.Poster.Answer(tx, r, p, *old, "A later review calls this "+f.Severity+".", false)
}

// sift decides about a finding before anybody verifies it: it stays Raw, or it is a
// Duplicate or Below.
func sift(f Finding, before, found []Finding, rules []rule, least string) (state, why string) {
	for _, old := range before {
		if f.repeats(old) {
			return Duplicate, "of an earlier review"
		}
	}
	for _, other := range found {
		if other.State != Refuted && f.repeats(other) {
			return Duplicate, "of the same review"
		}
	}
	if slices.Contains(rules, rule{f.Kind, f.Symbol, f.Anchor}) {
		return Duplicate, "dismissed before"
	}
	if !atLeast(f.Severity, least) {
		return Below, "below the threshold"
	}
	return Raw, ""
}
