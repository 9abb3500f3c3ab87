package pull

import (
	"fmt"
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/moves"
	"yardmaster/internal/domain/repo"
)

// Difference is a pull request about which the table of package moves says something else
// than what was done, or what it waits for.
type Difference struct {
	PRID    string
	Is      string      // what was done: the need, or what goes on
	Step    moves.Step  // what the table says
	Decided string      // why that is so, and the table is right; "": nobody has decided about it
	Cannot  bool        // the facts cannot occur together
	Facts   moves.Facts // from which the table says it
}

func (d Difference) String() string {
	if d.Cannot {
		return fmt.Sprintf("these facts cannot occur together: %+v", d.Facts)
	}
	return fmt.Sprintf("it is %s, and should be %v: %+v", d.Is, d.Step, d.Facts)
}

// Compare lists the differences about the pull requests of tx.Account that have not ended.
// At rest tells that a pass has ended and nothing was due, so that a step which the server
// takes in its next pass is a difference, too. Nothing calls Compare but tests, until the
// table decides.
func (s *Service) Compare(tx *db.Tx, atRest bool) (out []Difference, err error) {
	ids, err := unended.All(tx, tx.Account)
	if err != nil {
		return nil, err
	}
	for _, prID := range ids {
		pr, err := byID.One(tx, tx.Account, prID)
		if err != nil {
			return nil, err
		}
		r, _, err := repo.ByID(tx, pr.RepoID)
		if err != nil {
			return nil, err
		}
		f, err := s.factsOf(tx, r, pr)
		if err != nil {
			return nil, err
		}
		is, err := pr.goesOn(tx)
		if err != nil {
			return nil, err
		}
		rules := rulesOf(r)
		step := moves.Next(f, rules)
		d := Difference{PRID: prID, Is: is.String(), Step: step, Facts: f, Cannot: !moves.Valid(f)}
		if is.agrees(step, atRest) && !d.Cannot {
			continue
		}
		for _, c := range decided {
			if !d.Cannot && c.is(is, step, f, rules) {
				d.Decided = c.why
				break
			}
		}
		out = append(out, d)
	}
	return out, nil
}

// today is what the columns of a pull request say of what goes on.
type today struct {
	needs    string
	ordered  bool // the merge of the head is
	byPolicy bool
	round    bool // an agent works on the branch
	row      row
}

func (r row) goesOn(tx *db.Tx) (today, error) {
	is := today{needs: r.Needs, round: r.repairing(), row: r}
	a, open, err := openAction.Maybe(tx, r.ID)
	if is.ordered = open && a.State == ActionApproved; is.ordered {
		is.byPolicy = *a.DecidedBy == byPolicy
	}
	return is, err
}

func (is today) String() string {
	switch {
	case is.needs != "":
		return "waiting with " + is.needs
	case is.ordered && is.byPolicy:
		return "ordered by the policy"
	case is.ordered:
		return "ordered by a person"
	case is.round:
		return "repaired"
	}
	return "left to the next pass"
}

// agrees tells whether what goes on is what the table says.
func (is today) agrees(s moves.Step, atRest bool) bool {
	switch s.Do {
	case moves.DoPerson:
		// The pass that would begin a round notes that none is left.
		next := !atRest && s.Of == moves.NeedRearm && is.row.Babysit == BabysitWatching
		return is.needs == s.Of || next
	case moves.DoMerge, moves.DoEnter:
		return is.ordered && is.byPolicy == (s.Of == moves.ByPolicy)
	case moves.DoWait:
		return is.waits(s.Of)
	case moves.DoDone:
		return is.needs == ""
	}
	// The server takes the step in its next pass. Until then it keeps what it said before.
	return !atRest
}

// waits tells whether what goes on is a wait for something.
func (is today) waits(what string) bool {
	switch what {
	case moves.ForRound:
		return is.round
	case moves.ForGrace, moves.ForBelow, moves.ForTurn, moves.ForIntent, moves.ForMerge:
		return is.ordered
	}
	return is.needs == ""
}

// decided are the differences that are meant: the server is to do as the table says, and
// does otherwise until the table decides. The first that holds is named.
var decided = []struct {
	why string
	is  func(today, moves.Step, moves.Facts, moves.Rules) bool
}{
	{"new: what waits because its repository is not enabled says so", func(_ today, s moves.Step, _ moves.Facts, _ moves.Rules) bool {
		return s == moves.Step{Do: moves.DoPerson, Of: moves.NeedEnable}
	}},
	{"new: what the draft, the missing base, the missing permission or a branch that agents do not push to waits for has a name",
		func(_ today, s moves.Step, _ moves.Facts, _ moves.Rules) bool {
			return s.Do == moves.DoPerson && (s.Of == moves.NeedReady || s.Of == moves.NeedBaseBranch || s.Of == moves.NeedPermission ||
				s.Of == moves.NeedHands)
		}},
	{"old is wrong: work below that was dropped is no end, and a person may say yes to it",
		func(is today, s moves.Step, f moves.Facts, _ moves.Rules) bool {
			return is.needs == NeedsEnd || f.Names.Is(moves.NamesSomething) && s.Do == moves.DoAsk
		}},
	{"old is wrong: a pull request that is kept although its task was cancelled waits for a person, also where work below was dropped",
		func(is today, s moves.Step, f moves.Facts, _ moves.Rules) bool {
			return f.Abandoned.Is(moves.GivenUp) && is.needs == "" && s.Do == moves.DoPerson
		}},
	{"old is wrong: whoever takes over a pull request of a cancelled task has agents look after it, too",
		func(is today, _ moves.Step, f moves.Facts, _ moves.Rules) bool {
			return is.row.Babysit == BabysitOff && f.Branch.Is(moves.OwnBranch) && f.Abandoned.Is(moves.CaredFor)
		}},
	{"old is wrong: what is left to people says that its question was declined or has expired",
		func(is today, s moves.Step, _ moves.Facts, _ moves.Rules) bool {
			return is.needs == NeedsMerge && s.Do == moves.DoPerson && (s.Of == moves.NeedAgain || s.Of == moves.NeedExpired)
		}},
	{"old is wrong: what has to be mended goes before a decision, also where no round is left",
		func(is today, s moves.Step, _ moves.Facts, _ moves.Rules) bool {
			mends := s.Do == moves.DoRepair || s.Do == moves.DoWait && (s.Of == moves.ForRest || s.Of == moves.ForRound) ||
				s == moves.Step{Do: moves.DoPerson, Of: moves.NeedRearm}
			return mends && slices.Contains([]string{NeedsDecision, NeedsMerge, NeedsExpired, NeedsAgain, NeedsRetry}, is.needs)
		}},
	{"old is wrong: a round whose conflict, request or finding has gone ends, as one for a check does",
		func(_ today, s moves.Step, _ moves.Facts, _ moves.Rules) bool { return s.Do == moves.DoStopWork }},
	{"old is wrong: nobody is told to decide about a head whose checks run again", func(is today, s moves.Step, _ moves.Facts, _ moves.Rules) bool {
		return is.needs == NeedsDecision && s == moves.Step{Do: moves.DoWait, Of: moves.ForChecks}
	}},
	{"old is wrong: nobody is asked before the review has ended", func(is today, s moves.Step, _ moves.Facts, _ moves.Rules) bool {
		return is.needs != "" && (s.Do == moves.DoReview || s == moves.Step{Do: moves.DoWait, Of: moves.ForReview})
	}},
	{"old is wrong: a review that was not made opens no merge by the policy", func(is today, s moves.Step, f moves.Facts, r moves.Rules) bool {
		return is.ordered && is.byPolicy && s.Do == moves.DoAsk && r.Reviewer.Is(moves.ReviewAuto) && !f.Review.Is(moves.ReviewLooked)
	}},
}
