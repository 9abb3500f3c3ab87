package pull

import (
	"fmt"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/moves"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
)

var errFork = fault.Reason("fork", "Its branch is in another repository, where agents never push.")

// lockLookedAfter locks an open pull request that agents may look after. It fails with the reasons
// pr_not_open, repo_disabled, fork and default_branch.
func (s *Service) lockLookedAfter(tx *db.Tx, prID string) (pr *record.Pull, r repo.Ref, err error) {
	pr, ok, err := record.Lock(tx, prID)
	if err != nil {
		return pr, r, err
	}
	if !ok {
		return pr, r, fault.Missing("pull request")
	}
	switch r, ok, err = tendable(tx, pr); {
	case err != nil || !ok:
	case pr.Fork:
		err = errFork
	case pr.OnDefault(r):
		err = fault.Reason("default_branch", "Its branch is the default branch, where agents never push.")
	}
	return pr, r, err
}

// tendable fails with pr_not_open and repo_disabled.
func tendable(tx *db.Tx, pr *record.Pull) (repo.Ref, bool, error) {
	r, ok, err := repo.ByID(tx, pr.RepoID)
	switch {
	case err != nil:
	case pr.State != record.Open:
		err = fault.Reason("pr_not_open", "The pull request is "+pr.State+".")
	case !ok || !r.Enabled:
		err = fault.Reason("repo_disabled", "The repository "+pr.Owner+"/"+pr.Name+" is not enabled.")
	}
	return r, ok, err
}

// arm has agents look after a locked pull request again, with new rounds. It fails with
// the reasons pr_not_open, repo_disabled and fork.
func (s *Service) arm(tx *db.Tx, pr *record.Pull, reason string) (out Rearmed, err error) {
	r, _, err := tendable(tx, pr)
	if err == nil && pr.Fork {
		err = errFork
	}
	if err != nil {
		return out, err
	}
	before, _, err := s.Look(tx, pr)
	if err != nil {
		return out, err
	}
	out = Rearmed{Forgiven: pr.Rounds(), Sweep: "queued"}
	if !pr.Repairing() {
		pr.Babysit = record.BabysitWatching
	}
	if pr.Watch == record.WatchOff || pr.AuthorKind != record.ByAgent && !r.Policy.Watches(pr.AuthorKind == record.ByBot, pr.Labels.V) {
		pr.Watch = record.WatchOn
	}
	pr.Forgiven += out.Forgiven
	pr.Arm(pr.Babysit, reason, tx.Now)
	if err := record.Save(tx, pr); err != nil {
		return out, err
	}
	if _, err := record.AnswerRemarks.Exec(tx, pr.ID, false); err != nil {
		return out, err
	}
	if err := record.Recount(tx, s.Hub, pr); err != nil {
		return out, err
	}
	if err := record.SeenTo.Send(tx, record.Note{PRID: pr.ID, Text: "It was armed again."}); err != nil {
		return out, err
	}
	again, err := s.checkOutside(tx, r, pr)
	switch {
	case err != nil:
		return out, err
	case again:
		err = s.Move(tx, pr)
	default:
		err = s.armed(tx, r, pr)
	}
	if err != nil {
		return out, err
	}
	after, _, err := s.Look(tx, pr)
	if err != nil {
		return out, err
	}
	out.Babysit, out.Began = after.Babysitting(), began(before.Step, after.Step)
	s.Hub.Notify(tx, event.PullTopic)
	return out, record.RearmedEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID},
		record.RearmedData{Forgiven: out.Forgiven, Reason: reason})
}

// adopt takes over a pull request that was kept although its task was cancelled.
func adopt(tx *db.Tx, pr *record.Pull) error {
	pr.AbandonedAt = nil
	return record.Save(tx, pr)
}

// armed moves on a pull request that was just armed: checks that wait for a person, that
// nobody has read while it was left alone, or of a task that was cancelled, begin anew.
func (s *Service) armed(tx *db.Tx, r repo.Ref, pr *record.Pull) error {
	kept := pr.AbandonedAt != nil
	if kept {
		if err := adopt(tx, pr); err != nil {
			return err
		}
	}
	switch {
	case pr.ChecksHold != "", kept && !record.Passed(pr.Checks):
		return s.check(tx, r, pr)
	case pr.HostChecks == record.ChecksPending:
		if err := s.Checks.Follow(tx, r, pr.ID, pr.BaseRef, pr.HeadSHA); err != nil {
			return err
		}
	}
	return s.Move(tx, pr)
}

// Watch has agents look after a pull request of tx.Account from now on, because somebody
// asked for it. It fails with the reasons pr_not_open, repo_disabled, fork,
// default_branch and round_under_way.
func (s *Service) Watch(tx *db.Tx, prID, by string) error {
	pr, _, err := s.lockLookedAfter(tx, prID)
	if err != nil {
		return err
	}
	if pr.Repairing() {
		return fault.Reason("round_under_way", "An agent works on its branch already.")
	}
	_, err = s.arm(tx, pr, by+" asked for it in a comment.")
	return err
}

// Unwatch has agents leave a pull request of tx.Account alone, because somebody asked for
// it: its round ends, and its question is closed. A merge that has begun goes on. It fails
// with the reason pr_not_open.
func (s *Service) Unwatch(tx *db.Tx, prID, by string) error {
	pr, ok, err := record.Lock(tx, prID)
	switch {
	case err != nil:
		return err
	case !ok:
		return fault.Missing("pull request")
	case pr.State != record.Open:
		return fault.Reason("pr_not_open", "The pull request is "+pr.State+".")
	}
	taskID := pr.BabysitTask
	pr.Watch = record.WatchOff
	pr.EndRound(record.BabysitOff)
	if err := record.Save(tx, pr); err != nil {
		return err
	}
	if taskID != nil { // after the row has let go of it: its end is no end of a round any more
		if err := record.TaskUnneeded.Send(tx, *taskID); err != nil {
			return err
		}
	}
	if err := s.Unask(tx, pr); err != nil {
		return err
	}
	if err := s.Move(tx, pr); err != nil {
		return err
	}
	if err := record.SeenTo.Send(tx, record.Note{PRID: pr.ID, Text: "Somebody has had agents leave it alone."}); err != nil {
		return err
	}
	s.Hub.Notify(tx, event.PullTopic)
	return record.UnwatchedEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID}, record.UnwatchedData{By: by})
}

// TakeBase begins a round that brings the base into the branch of a pull request of
// tx.Account, because somebody asked for it. Whether agents look after the pull request
// does not change. It fails with the reasons pr_not_open, repo_disabled, fork,
// round_under_way, up_to_date, unknown and spent, and with the faults of Tasks.Repair.
func (s *Service) TakeBase(tx *db.Tx, prID string) error {
	pr, r, err := s.lockLookedAfter(tx, prID)
	if err != nil {
		return err
	}
	switch {
	case pr.Repairing():
		return fault.Reason("round_under_way", "An agent works on its branch already.")
	case pr.MergeBase == "":
		return fault.Reason("unknown", "How its branch stands to the base is not known yet. Ask again in a minute.")
	case pr.MergeBase == pr.BaseSHA && pr.Mergeable == "clean":
		return fault.Reason("up_to_date", "Its branch has all that the base has.")
	case pr.ConflictRounds >= record.MaxConflictRound:
		return fault.Reason("spent", "Agents have used up their rounds at its conflicts.")
	}
	round := Round{PRID: pr.ID, Branch: pr.HeadRef, Title: fmt.Sprintf("Bring %s into #%d", pr.BaseRef, pr.Number)}
	if pr.TaskID != nil {
		round.TaskID = *pr.TaskID
	}
	round.Problem = fmt.Sprintf("The branch %s (pull request #%d, %q) is behind its base. Merge origin/%s into it, resolve conflicts so that "+
		"both sides keep what they were for, run the checks and commit the merge. Change nothing else. Do not rebase: the branch only grows.",
		pr.HeadRef, pr.Number, pr.Title, pr.BaseRef)
	return s.beginAsked(tx, r, pr, round)
}

// beginAsked begins a round that somebody asked for.
func (s *Service) beginAsked(tx *db.Tx, r repo.Ref, pr *record.Pull, round Round) error {
	off := pr.Babysit == record.BabysitOff
	if round.apart(r, pr); r.Policy.Pulls.Push == "never" && pr.AuthorKind != record.ByAgent {
		return fault.Reason("push_never", "The policy file of the repository does not let agents push to branches of people.")
	}
	if waits, err := record.PushAsked.One(tx, pr.ID); err != nil {
		return err
	} else if waits {
		return fault.Reason("push_asked", "What an agent has done before waits for a person.")
	}
	taskID, err := s.Tasks.Repair(tx, r, round)
	if err != nil {
		return err
	}
	if pr.BeginRound(record.BabysitConflict, moves.KindConflict, taskID, true); off {
		pr.RoundThen = record.BabysitOff
	}
	if err := record.Save(tx, pr); err != nil {
		return err
	}
	if err := s.Move(tx, pr); err != nil {
		return err
	}
	return record.RoundEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: r.ID},
		record.RoundData{CIRounds: pr.CIRounds, ConflictRounds: pr.ConflictRounds, ReviewRounds: pr.ReviewRounds,
			RequestRounds: pr.RequestRounds, HeadSHA: pr.HeadSHA, State: record.BabysitConflict, TaskID: taskID})
}

// Standing is how a pull request stands, for people.
type Standing struct {
	State, HeadRef, HeadSHA, BaseRef, Mergeable, Checks string
	Draft, Fork, Watched                                bool
	Round                                               string // what an agent does on the branch: a state of Babysit; ""
	WaitsUntil                                          string // what a person has to do; ""
	Asked                                               bool   // the question about the head waits
	Ordered                                             bool   // its merge was ordered
	Objections                                          int64
}

// StandingOf answers how a pull request of tx.Account stands; false if there is none.
func StandingOf(tx *db.Tx, prID string) (Standing, bool, error) {
	pr, ok, err := record.ByID.Maybe(tx, tx.Account, prID)
	if err != nil || !ok {
		return Standing{}, false, err
	}
	out := Standing{State: pr.State, HeadRef: pr.HeadRef, HeadSHA: pr.HeadSHA, BaseRef: pr.BaseRef,
		Mergeable: pr.Mergeable, Checks: pr.Checks, Draft: pr.Draft,
		Fork: pr.Fork, Watched: !pr.Unwatched() && pr.Watch != record.WatchOff, Objections: pr.Objections}
	if pr.Repairing() {
		out.Round = pr.Babysit
	}
	if n, ok := pr.Need(""); ok {
		out.WaitsUntil = n.ClearsWhen
	}
	a, open, err := record.OpenAction.Maybe(tx, pr.ID)
	out.Asked, out.Ordered = open && a.State == record.ActionPending, open && a.State == record.ActionApproved
	return out, true, err
}
