package review

import (
	"context"
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
)

// earlier is a finding of an earlier review, on the head of this one.
type earlier struct {
	Finding
	was  Finding // as it was on the earlier head
	near bool    // its lines, or the section around them, have changed
	here bool    // it was on this head before: the review of the head runs again
	text string  // around its lines; "" if they are not at the head
}

// due tells whether the verifier is to look at it again: what holds the merge is looked at on
// every head that is reviewed, since what mends it may be anywhere, the rest where its code has
// changed. A review that runs again looks at all that is open.
func (e earlier) due(block string) bool {
	if !isOpen(e.State) {
		return false
	}
	return e.Unlooked || e.near || e.State == Posted && (e.here || holds(e.State, e.Severity, block))
}

// turn orders what is looked at again: what holds the merge first, and what an earlier head
// left over before the rest.
func (e earlier) turn(block string) int {
	n := 0
	if !holds(e.State, e.Severity, block) {
		n += 2
	}
	if !e.was.Unlooked {
		n++
	}
	return n
}

// before follows the findings of earlier reviews to the head of a run.
func (c *code) before(run Run, seen []Finding, heads []headOf) ([]earlier, error) {
	bases := map[string]string{}
	for _, h := range heads {
		bases[h.HeadSHA] = h.MergeBase
	}
	all := make([]earlier, len(seen))
	for i, f := range seen {
		e := earlier{Finding: f, was: f, here: f.HeadSHA == run.HeadSHA}
		var err error
		if e.Finding, e.near, err = c.follow(run, f, bases); err != nil {
			return nil, err
		}
		if e.Side != sideBase && e.HeadSHA == run.HeadSHA {
			lines, err := c.lines(run.HeadSHA, e.File)
			if err != nil {
				return nil, err
			}
			e.text = excerpt(lines, e.Line)
		}
		all[i] = e
	}
	return all, nil
}

// sort holds the answer of a finder against the code, the earlier findings and the rules,
// and queues the verifier of what is left.
func (s *Service) sort(ctx context.Context, run Run) (record func(*db.Tx) error, err error) {
	c, before, err := s.carried(ctx, run)
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, n := range readFindings(run.Raw) {
		f, err := c.locate(run, n)
		if err != nil {
			return nil, err
		}
		found = append(found, f)
	}
	return func(tx *db.Tx) error { return s.sorted(tx, run, slices.Clone(found), slices.Clone(before)) }, nil
}

// carried reads the findings that were shown before on the head of a run.
func (s *Service) carried(ctx context.Context, run Run) (c *code, before []earlier, err error) {
	var r repo.Ref
	var seen []Finding
	var heads []headOf
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if r, _, err = repo.ByID(tx, run.RepoID); err != nil {
			return err
		}
		if heads, err = headsOf.All(tx, tx.Account, run.PRID); err != nil {
			return err
		}
		seen, err = shownOf.All(tx, tx.Account, run.PRID)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	host, err := s.Hosts.Of(r.HostRepo())
	if err != nil {
		return nil, nil, err
	}
	c = newCode(ctx, host, r.HostRepo())
	before, err = c.before(run, seen, heads)
	return c, before, err
}

// carry follows the findings of a pull request to a head that is not reviewed, since it only
// moves what was.
func (s *Service) carry(ctx context.Context, run Run) (record func(*db.Tx) error, err error) {
	_, before, err := s.carried(ctx, run)
	return func(tx *db.Tx) error {
		_, known, err := s.Pulls.Lock(tx, run.PRID)
		if err != nil {
			return err
		}
		last, _, err := lastRun.Maybe(tx, tx.Account, run.PRID)
		if err != nil {
			return err
		}
		if !known || last.ID != run.ID { // a newer run follows them
			_, err := setCarried.Exec(tx, run.ID)
			return err
		}
		before := slices.Clone(before)
		same, err := unchanged(tx, before)
		if err != nil {
			return err
		}
		for i := range before {
			before[i].Unlooked = before[i].Unlooked || before[i].near
		}
		if err := store(tx, before, same); err != nil {
			return err
		}
		_, err = setCarried.Exec(tx, run.ID)
		return err
	}, err
}

// unchanged tells which of the earlier findings are as they were read. The others become what
// they are by now, because a person was faster.
func unchanged(tx *db.Tx, before []earlier) ([]bool, error) {
	same := make([]bool, len(before))
	for i, e := range before {
		now, known, err := findingByID.Maybe(tx, tx.Account, e.ID)
		if err != nil {
			return nil, err
		}
		same[i] = known && now.State == e.was.State && now.HeadSHA == e.was.HeadSHA
		if known && !same[i] {
			before[i].Finding = now
		}
	}
	return same, nil
}

// store stores where earlier findings are on a head, those that are as they were read.
func store(tx *db.Tx, before []earlier, same []bool) error {
	for i, e := range before {
		if !same[i] || e.Finding == e.was {
			continue
		}
		e.UpdatedAt = tx.Now
		if _, err := updateFinding.Exec(tx, e.Finding); err != nil {
			return err
		}
	}
	return nil
}

// claim is what a verifier is asked about.
type claim struct {
	Finding
	again bool   // it was confirmed on an earlier head
	text  string // around its lines at the head; "": they are not there
}

// again picks those of the earlier findings that the verifier looks at again, at most maxAgain.
// What is due beyond them stays so, and comes first at the next head.
func again(before []earlier, same []bool, block string) (claims []claim) {
	var order []int
	for i := range before {
		if same[i] && before[i].due(block) {
			before[i].Unlooked = true
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return before[a].turn(block) - before[b].turn(block) })
	for n, i := range order[:min(len(order), maxAgain)] {
		before[i].ClaimNo = n + 1
		claims = append(claims, claim{before[i].Finding, true, before[i].text})
	}
	return claims
}

// sorted stores what sort has learned, and goes on with the verifier, or ends the run if
// nothing is to be verified.
func (s *Service) sorted(tx *db.Tx, d Run, found []Finding, before []earlier) error {
	run, p, r, ok, err := s.locked(tx, d)
	if err != nil || !ok {
		return err
	}
	rules, err := rulesOf.All(tx, tx.Account, run.RepoID)
	if err != nil {
		return err
	}
	same, err := unchanged(tx, before)
	if err != nil {
		return err
	}
	claims := again(before, same, r.Policy.Review.Block)
	if err := store(tx, before, same); err != nil {
		return err
	}
	kept := make([]Finding, len(before))
	for i, e := range before {
		kept[i] = e.Finding
	}
	most := len(claims) + maxVerified
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
		if f.State == Raw && len(claims) >= most {
			f.State, f.StateWhy = Below, "beyond the limit"
			run.More++
		}
		if f.State == Raw {
			f.ClaimNo = len(claims) + 1
			claims = append(claims, claim{Finding: *f})
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
	return s.Poster.Answer(tx, r, p, *old, "A later review calls this "+string(f.Severity)+".", false)
}

// sift decides about a finding before anybody verifies it: it stays Raw, or it is a
// Duplicate or Below.
func sift(f Finding, before, found []Finding, rules []rule, least repo.Severity) (state, why string) {
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
