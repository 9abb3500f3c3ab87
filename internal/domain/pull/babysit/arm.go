package babysit

import (
	"fmt"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/facts"
	"yardmaster/internal/domain/pull/moves"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
)

var errFork = fault.Reason("fork", "Its branch is in another repository, where agents never push.")

// lockLookedAfter locks an open pull request that agents may look after. It fails with the reasons
// pr_not_open, repo_disabled, fork and default_branch.
func (s *Sitter) lockLookedAfter(tx *db.Tx, prID string) (pr *record.Pull, r repo.Ref, err error) {
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

// Arm has agents look after a locked pull request again, with new rounds: those that
// no longer count are forgiven, and it goes on with another step, see began. It fails with
// the reasons pr_not_open, repo_disabled and fork.
func (s *Sitter) Arm(tx *db.Tx, pr *record.Pull, reason string) (forgiven int64, goesOn *string, err error) {
	r, _, err := tendable(tx, pr)
	if err == nil && pr.Fork {
		err = errFork
	}
	if err != nil {
		return 0, nil, err
	}
	before, _, err := s.Look(tx, pr)
	if err != nil {
		return 0, nil, err
	}
	forgiven = pr.Rounds()
	if !pr.Repairing() {
		pr.Babysit = record.BabysitWatching
	}
	if pr.Watch == record.WatchOff || pr.AuthorKind != record.ByAgent && !r.Policy.Watches(pr.AuthorKind == record.ByBot, pr.Labels.V) {
		pr.Watch = record.WatchOn
	}
	pr.Forgiven += forgiven
	pr.Arm(pr.Babysit, reason, tx.Now)
	if err := record.Save(tx, pr); err != nil {
		return 0, nil, err
	}
	if _, err := record.AnswerRemarks.Exec(tx, pr.ID, false); err != nil {
		return 0, nil, err
	}
	if err := record.Recount(tx, s.Hub, pr); err != nil {
		return 0, nil, err
	}
	if err := record.SeenTo.Send(tx, record.Note{PRID: pr.ID, Text: "It was armed again."}); err != nil {
		return 0, nil, err
	}
	again, err := s.checkOutside(tx, r, pr)
	switch {
	case err != nil:
		return 0, nil, err
	case again:
		err = s.Pulls.Move(tx, pr)
	default:
		err = s.armed(tx, r, pr)
	}
	if err != nil {
		return 0, nil, err
	}
	after, _, err := s.Look(tx, pr)
	if err != nil {
		return 0, nil, err
	}
	s.Hub.Notify(tx, event.PullTopic)
	return forgiven, began(before.Step, after.Step), record.RearmedEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID},
		record.RearmedData{Forgiven: forgiven, Reason: reason})
}

// began names what a pull request goes on with after it was armed; nil: nothing else than before.
func began(before, after moves.Step) *string {
	switch {
	case before == after:
		return nil
	case facts.Ordered(after):
		return new("merge")
	case after == moves.Step{Do: moves.DoPerson, Of: moves.NeedDecision}:
		return new("question")
	case after.Do == moves.DoLook:
		return new("look")
	case after.Do == moves.DoReview:
		return new("review")
	case after.Do == moves.DoRepair:
		return new("round")
	case after.Do == moves.DoWait:
		switch after.Of {
		case moves.ForChecks, moves.ForReview, moves.ForRound:
			return new(after.Of)
		}
	}
	return nil
}

// Adopt takes over a pull request that was kept although its task was cancelled.
func Adopt(tx *db.Tx, pr *record.Pull) error {
	pr.AbandonedAt = nil
	return record.Save(tx, pr)
}

// armed moves on a pull request that was just armed: checks that wait for a person, that
// nobody has read while it was left alone, or of a task that was cancelled, begin anew.
func (s *Sitter) armed(tx *db.Tx, r repo.Ref, pr *record.Pull) error {
	kept := pr.AbandonedAt != nil
	if kept {
		if err := Adopt(tx, pr); err != nil {
			return err
		}
	}
	switch {
	case pr.ChecksHold != "", kept && !record.Passed(pr.Checks):
		return s.Pulls.Check(tx, r, pr)
	case pr.HostChecks == record.ChecksPending:
		if err := s.Checks.Follow(tx, r, pr.ID, pr.BaseRef, pr.HeadSHA); err != nil {
			return err
		}
	}
	return s.Pulls.Move(tx, pr)
}

// checkOutside begins the check of a head anew that was thrown out of its queue by its
// check and had passed before, because a person asked for that; done tells that nothing
// else is to be begun. A round that repairs the head ends if the check passes. It fails
// with the fault of Checks.Queue.
func (s *Sitter) checkOutside(tx *db.Tx, r repo.Ref, pr *record.Pull) (done bool, err error) {
	if pr.OwnChecks != record.ChecksFailed || pr.AbandonedAt != nil || pr.Repairing() &&
		(pr.Babysit != record.BabysitCI || pr.RoundSHA != pr.HeadSHA) {
		return false, nil
	}
	if _, _, thrown, err := s.failedTogether(tx, pr); err != nil || !thrown {
		return false, err
	}
	own := ""
	if r.Policy.Checks.Command != "" && !pr.Fork {
		own = record.ChecksPending
		if err := s.Checks.Queue(tx, r, pr.ID, pr.HeadSHA); err != nil {
			return false, err
		}
	}
	if err := record.SetResults(tx, pr, record.Judgement{Own: own, Host: pr.HostChecks}); err != nil || pr.Checks == record.ChecksFailed {
		return false, err // the host's checks fail, which is to be repaired
	}
	return true, nil
}

// Watch has agents look after a pull request of tx.Account from now on, because somebody
// asked for it. It fails with the reasons pr_not_open, repo_disabled, fork,
// default_branch and round_under_way.
func (s *Sitter) Watch(tx *db.Tx, prID, by string) error {
	pr, _, err := s.lockLookedAfter(tx, prID)
	if err != nil {
		return err
	}
	if pr.Repairing() {
		return fault.Reason("round_under_way", "An agent works on its branch already.")
	}
	_, _, err = s.Arm(tx, pr, by+" asked for it in a comment.")
	return err
}

// TakeBase begins a round that brings the base into the branch of a pull request of
// tx.Account, because somebody asked for it. Whether agents look after the pull request
// does not change. It fails with the reasons pr_not_open, repo_disabled, fork,
// round_under_way, up_to_date, unknown and spent, and with the faults of Tasks.Repair.
func (s *Sitter) TakeBase(tx *db.Tx, prID string) error {
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
func (s *Sitter) beginAsked(tx *db.Tx, r repo.Ref, pr *record.Pull, round Round) error {
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
	if err := s.Pulls.Move(tx, pr); err != nil {
		return err
	}
	return record.RoundEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: r.ID},
		record.RoundData{CIRounds: pr.CIRounds, ConflictRounds: pr.ConflictRounds, ReviewRounds: pr.ReviewRounds,
			RequestRounds: pr.RequestRounds, HeadSHA: pr.HeadSHA, State: record.BabysitConflict, TaskID: taskID})
}
