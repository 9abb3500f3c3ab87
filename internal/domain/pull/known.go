package pull

import (
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/moves"
	"yardmaster/internal/domain/repo"
)

// rulesOf are the rules of a repository for its pull requests.
func rulesOf(r repo.Ref) moves.Rules {
	out := moves.Rules{Mode: moves.ModeAsk, Reviewer: moves.ReviewUnasked, OnCancel: moves.CancelCloses, Pushes: moves.PushesAsk}
	switch r.Policy.Merge.Mode {
	case "auto":
		out.Mode = moves.ModeAuto
	case "never":
		out.Mode = moves.ModeNever
	}
	if r.Policy.Review.Mode == "auto" {
		out.Reviewer = moves.ReviewAuto
	}
	if r.Policy.Merge.OnCancel == "keep" {
		out.OnCancel = moves.CancelKeeps
	}
	switch r.Policy.Pulls.Push {
	case "auto":
		out.Pushes = moves.PushesAuto
	case "never":
		out.Pushes = moves.PushesNever
	}
	return out
}

// factsOf reads all that the next step of a pull request depends on. It is the one place
// that knows where each fact is stored.
func (s *Service) factsOf(tx *db.Tx, r repo.Ref, pr *row) (f moves.Facts, err error) {
	pr.plainFacts(r, &f)
	switch {
	case pr.FactsHave < pr.FactsWant:
		f.Known = moves.Unread
	case pr.Mergeable == "unknown":
		f.Known = moves.NoBase
	}
	pr.reviewFacts(r, &f)
	pr.roundFacts(tx, &f)
	below, dropped, err := s.below(tx, pr)
	if err != nil {
		return f, err
	}
	if f.Under = moves.NoneBelow; below != "" && !dropped {
		f.Under = moves.UnmergedBelow
	}
	if !dropped {
		below = ""
	}
	if err := s.askedFacts(tx, r, pr, below, &f); err != nil {
		return f, err
	}
	if err := pr.otherFacts(tx, &f); err != nil {
		return f, err
	}
	if pr.Unreadable && f.Known.Is(moves.Unread) {
		f.Host = moves.HostRefuses
	}
	return f, s.placeFacts(tx, r, pr, &f)
}

// below is the task on whose work the head of a pull request was begun, while that is not
// merged; "": there is none. Dropped tells that it never will be.
func (s *Service) below(tx *db.Tx, pr *row) (on string, dropped bool, err error) {
	if pr.TaskID == nil {
		return "", false, nil
	}
	if on, dropped, err = s.Tasks.Unmerged(tx, *pr.TaskID); err != nil || !dropped {
		return on, false, err
	}
	// A person may have merged the work of a task that was cancelled.
	if _, merged, err := mergedOfTask.Maybe(tx, tx.Account, on); err != nil || merged {
		return "", false, err
	}
	return on, true, nil
}

// plainFacts are those that a column tells.
func (r row) plainFacts(at repo.Ref, f *moves.Facts) {
	f.State = map[string]moves.State{Opening: moves.Opening, Open: moves.Open, Merged: moves.Merged, Closed: moves.Closed}[r.State]
	f.Abandoned, f.Enabled, f.Draft = moves.CaredFor, moves.RepoOff, moves.Ready
	if r.AbandonedAt != nil {
		f.Abandoned = moves.GivenUp
	}
	if at.Enabled {
		f.Enabled = moves.RepoOn
	}
	if r.Draft {
		f.Draft = moves.Drafted
	}
	switch {
	case r.unwatched():
		f.Watch = moves.Shown
	case r.Watch == WatchOff:
		f.Watch = moves.Stopped
	default:
		f.Watch = moves.Watched
	}
	switch {
	case r.Fork:
		f.Branch = moves.ForkBranch
	case r.AuthorKind == ByAgent:
		f.Branch = moves.OwnBranch
	case r.onDefault(at):
		f.Branch = moves.DefaultBranch
	default:
		f.Branch = moves.TheirBranch
	}
	f.Known, f.Fit, f.Seat = moves.Read, moves.Clean, moves.SeatFree
	if r.Mergeable == "conflict" {
		f.Fit = moves.Conflict
	}
	f.Checks = map[string]moves.Checks{ChecksNone: moves.ChecksNone, ChecksPending: moves.ChecksPending,
		ChecksPassed: moves.ChecksPassed, ChecksFailed: moves.ChecksFailed}[r.Checks]
	switch r.ChecksHold {
	case NeedsBase:
		f.Checks = moves.ChecksBase
	case NeedsCheck:
		f.Checks = moves.ChecksMissing
	case NeedsApproval:
		f.Checks = moves.ChecksAction
	case NeedsMachine:
		f.Checks = moves.ChecksInfra
	}
}

// reviewFacts are those about what the reviewer and people say.
func (r row) reviewFacts(at repo.Ref, f *moves.Facts) {
	f.Findings, f.Objections = moves.NoFindings, moves.NoRequest
	switch r.Review {
	case ReviewRunning:
		f.Review = moves.ReviewRunning
	case ReviewHeld:
		f.Review = moves.ReviewHeld
	case ReviewReviewed:
		f.Review = moves.ReviewLooked
	case ReviewBlind, ReviewFailed, ReviewCancelled:
		f.Review = moves.ReviewBlind
	case ReviewOff:
		if f.Review = moves.ReviewNone; at.Policy.Review.Mode == "auto" {
			f.Review = moves.ReviewBlind
		}
	default:
		f.Review = moves.ReviewNone
	}
	switch {
	case r.Findings > 0 && (r.Review == ReviewDue || r.Review == ReviewRunning || r.Review == ReviewHeld):
		f.Findings = moves.AgainFindings
	case r.Findings > 0:
		f.Findings = moves.OpenFindings
	}
	switch {
	case r.Remarks > 0, r.Objections > 0 && r.RoundOf == moves.KindRequest && r.RoundSHA == r.HeadSHA: // a round answers them
		f.Objections = moves.FreshRequest
	case r.Objections > 0:
		f.Objections = moves.AnsweredRequest
	}
}

// roundFacts are those about the repair by agents.
func (r row) roundFacts(tx *db.Tx, f *moves.Facts) {
	f.Round, f.CI, f.Conflicts = moves.NoRound, moves.RoundsLeft, moves.RoundsLeft
	f.Requests, f.Reviews = moves.RoundsLeft, moves.RoundsLeft
	switch {
	case r.repairing() && (r.RoundSHA != r.HeadSHA || r.RoundAsked):
		f.Round = moves.RoundGoingOn
	case r.repairing():
		f.Round = moves.RoundRunning
	case r.Babysit == BabysitWatching && r.AttendAt > tx.Micros():
		f.Round = moves.Resting
	}
	spent := r.Babysit == BabysitSpent
	if spent || r.CIRounds >= maxCIRounds {
		f.CI = moves.RoundsSpent
	}
	if spent || r.ConflictRounds >= maxConflictRound {
		f.Conflicts = moves.RoundsSpent
	}
	if spent || r.ReviewRounds >= maxReviewRounds {
		f.Reviews = moves.RoundsSpent
	}
	if spent || r.RequestRounds >= maxRequestRounds {
		f.Requests = moves.RoundsSpent
	}
}

// askedFacts are those about the question, and the order, to merge the head.
// dropped is the task below whose work was dropped; "": none was.
func (s *Service) askedFacts(tx *db.Tx, at repo.Ref, pr *row, dropped string, f *moves.Facts) error {
	f.Names, f.Question, f.Refused, f.Carry = moves.NamesNothing, moves.NoQuestion, moves.NeverRefused, moves.NoCarry
	f.Yes, f.Act, f.Host = moves.NoYes, moves.NoAct, moves.HostAnswers
	a, ok, err := lastAsked.Maybe(tx, pr.ID, pr.HeadSHA)
	if err != nil {
		return err
	}
	if dropped != "" || ok && a.Protected != nil {
		f.Names = moves.NamesSomething
	}
	byPerson := a.DecidedBy != nil && *a.DecidedBy != byPolicy
	switch {
	case !ok:
		_, agreed, err := standing.Maybe(tx, pr.ID, pr.HeadSHA)
		if err != nil {
			return err
		}
		if agreed {
			f.Yes = moves.YesFirm
		}
	case a.State == ActionPending:
		f.Question = moves.Asked
	case a.State == ActionSkipped:
		f.Question = moves.Declined
	case a.State == ActionExpired:
		f.Question = moves.Expired
	case a.State == ActionFailed && a.StaleWhy != toMend && pr.AbandonedAt == nil:
		f.Act = moves.ActFailed
		if byPerson {
			f.Yes = moves.YesFirm
		}
	case a.State == ActionApproved:
		if byPerson {
			f.Yes = moves.YesFirm
		}
		if a.Called {
			f.Act = moves.ActCalled
		} else if byPerson && a.DecidedAt != nil && tx.Now.Before(a.DecidedAt.Add(time.Duration(at.Policy.Merge.Grace)*time.Second)) {
			f.Yes = moves.YesFresh
		}
		f.Host = hostOf(a)
	}
	if dropped != "" && a.Details.V.Dropped != dropped { // what was asked, or ordered, does not name it
		if f.Question.Is(moves.Asked) {
			f.Question = moves.Narrow
		}
		if f.Yes.Is(moves.YesFirm, moves.YesFresh) {
			f.Yes = moves.YesNarrow
		}
	}
	no, err := refused.One(tx, pr.ID)
	if err != nil {
		return err
	}
	if no {
		f.Refused = moves.WasRefused
	}
	return pr.carryFacts(tx, f)
}

// hostOf reads how the host took the last call of an order from the words about that.
func hostOf(a actionRow) moves.Host {
	switch {
	case a.Error == nil:
	case *a.Error == limited || *a.Error == unanswered:
		return moves.HostBusy
	case strings.HasPrefix(*a.Error, ungrantedWords):
		return moves.HostRefuses
	}
	return moves.HostAnswers
}

// carryFacts are those about a decision of an earlier head.
func (r row) carryFacts(tx *db.Tx, f *moves.Facts) error {
	switch r.Carry {
	case "":
		return nil
	case carryLook:
		yes, err := mayCarryYes.One(tx, r.ID)
		if f.Carry = moves.MaybeQuestion; yes {
			f.Carry = moves.MaybeYes
		}
		return err
	}
	a, ok, err := asideByID.Maybe(tx, r.ID, r.Carry)
	switch {
	case err != nil || !ok || a.over(tx.Now):
	case a.DecidedBy != nil:
		f.Carry = moves.CarryYes
	default:
		f.Carry = moves.CarryQuestion
	}
	return err
}

// otherFacts are those about what else people are asked.
func (r row) otherFacts(tx *db.Tx, f *moves.Facts) error {
	f.Push = moves.NoPush
	open, err := openAll.All(tx, r.ID)
	for _, a := range open {
		agreed := a.State == ActionApproved
		switch {
		case a.Kind == KindPush && agreed:
			f.Push = moves.PushGranted
		case a.Kind == KindPush:
			f.Push = moves.PushAsked
		case a.Kind == KindClose && agreed && r.State == Open:
			f.State = moves.Closing
		case a.Kind == KindReopen && agreed && r.State == Closed:
			f.State = moves.Reopening
		}
	}
	return err
}

// placeFacts are those about the place of a head in a merge queue.
func (s *Service) placeFacts(tx *db.Tx, at repo.Ref, pr *row, f *moves.Facts) error {
	f.Turn = moves.TurnFree
	if f.Act.Is(moves.ActFailed) {
		return nil // it has left the queue
	}
	places, err := s.Queue.Places(tx, []string{pr.ID})
	if err != nil {
		return err
	}
	switch place, in := places[pr.ID]; {
	case in && place.State != "going":
		f.Turn, f.Act = moves.TurnWaiting, moves.NoAct
	case !in && at.Policy.Merge.Queue == "batch" && f.Act.Is(moves.NoAct):
		f.Turn = moves.TurnOut
	}
	return nil
}
