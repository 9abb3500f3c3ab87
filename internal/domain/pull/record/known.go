package record

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/moves"
	"yardmaster/internal/domain/repo"
)

// PlainFacts are those that a column tells.
func (r Pull) PlainFacts(at repo.Ref, f *moves.Facts) {
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
	case r.Unwatched():
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
	case r.OnDefault(at):
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

// ReviewFacts are those about what the reviewer and people say.
func (r Pull) ReviewFacts(at repo.Ref, f *moves.Facts) {
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

// RoundFacts are those about the repair by agents.
func (r Pull) RoundFacts(tx *db.Tx, f *moves.Facts) {
	f.Round, f.CI, f.Conflicts = moves.NoRound, moves.RoundsLeft, moves.RoundsLeft
	f.Requests, f.Reviews = moves.RoundsLeft, moves.RoundsLeft
	switch {
	case r.Repairing() && (r.RoundSHA != r.HeadSHA || r.RoundAsked):
		f.Round = moves.RoundGoingOn
	case r.Repairing():
		f.Round = moves.RoundRunning
	case r.Babysit == BabysitWatching && r.AttendAt > tx.Micros():
		f.Round = moves.Resting
	}
	spent := r.Babysit == BabysitSpent
	if spent || r.CIRounds >= maxCIRounds {
		f.CI = moves.RoundsSpent
	}
	if spent || r.ConflictRounds >= MaxConflictRound {
		f.Conflicts = moves.RoundsSpent
	}
	if spent || r.ReviewRounds >= maxReviewRounds {
		f.Reviews = moves.RoundsSpent
	}
	if spent || r.RequestRounds >= maxRequestRounds {
		f.Requests = moves.RoundsSpent
	}
}

// CarryFacts are those about a decision of an earlier head.
func (r Pull) CarryFacts(tx *db.Tx, f *moves.Facts) error {
	switch r.Carry {
	case "":
		return nil
	case CarryLook:
		yes, err := mayCarryYes.One(tx, r.ID)
		if f.Carry = moves.MaybeQuestion; yes {
			f.Carry = moves.MaybeYes
		}
		return err
	}
	a, ok, err := AsideByID.Maybe(tx, r.ID, r.Carry)
	switch {
	case err != nil || !ok || a.over(tx.Now):
	case a.DecidedBy != nil:
		f.Carry = moves.CarryYes
	default:
		f.Carry = moves.CarryQuestion
	}
	return err
}

// OtherFacts are those about what else people are asked.
func (r Pull) OtherFacts(tx *db.Tx, f *moves.Facts) error {
	f.Push = moves.NoPush
	open, err := OpenAll.All(tx, r.ID)
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
