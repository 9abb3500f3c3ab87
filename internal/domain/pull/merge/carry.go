package merge

import (
	"path"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
)

// A new head makes the question or the approval of a head stale. If the new head has the
// same change, it takes the decision over instead: the branch was rebased, or its base was
// merged in, and each file that was looked at is the same to the byte. Git at the code host
// tells (package trial); nothing is asked about the new head before that is known, and
// the decision moves once the checks of the new head have passed.

// Decided is what a decision was made about.
type Decided struct {
	BaseRef    string
	MergeBases int64
	Change     string // codehost.Comparison.Change; "": not known
	By         string // label of who approved; "" for an open question
}

// Moved is a new head, and what forbids that it takes a decision over.
type Moved struct {
	Decided           // By: label of who pushed
	Paths    []string // that the pull request changes
	LastPush bool     // the branch wants the last push approved by somebody else
	Same     bool     // whoever approved may be who pushed
	Carry    string   // approvals.carry of the policy
	Floors   repo.Floors
}

// Carries tells whether a new head takes a decision over.
func Carries(was Decided, is Moved) bool {
	switch {
	case is.Carry == "never", was.Change == "", was.Change != is.Change, was.BaseRef != is.BaseRef,
		was.MergeBases != 1, is.MergeBases != 1, was.By == record.ByPolicy,
		is.LastPush && was.By != "" && (was.By == is.By || is.By == "" || is.Same):
		return false
	}
	for _, p := range is.Paths {
		if guarded(p) || is.Floors.Protects(p, false) {
			return false
		}
	}
	return true
}

// guarded tells whether a path decides what is run or who is asked. A decision about it is
// for one commit only.
func guarded(file string) bool {
	file = strings.ToLower(file)
	return strings.HasPrefix(file, ".svc/") || strings.HasPrefix(file, ".github/workflows/") || path.Base(file) == "codeowners"
}

// SetAside makes the open action of a pull request stale whose head moves to sha. carry is
// carryLook if a decision of the pull request may hold for the new head.
func (s *Merger) SetAside(tx *db.Tx, pr *record.Pull) (carry string, err error) {
	if err := s.ended(tx, pr, func() error {
		_, err := record.SetAsideAction.Exec(tx, pr.ID, tx.Micros())
		return err
	}); err != nil {
		return "", err
	}
	if pr.AbandonedAt != nil {
		return "", EndCarry(tx, pr)
	}
	if any, err := record.MayCarry.One(tx, pr.ID); err != nil || !any {
		return "", err
	}
	return record.CarryLook, nil
}

// JudgeCarry decides, once the facts of a new head are known, whether the head takes a
// decision over. If its checks have passed, the pull request goes on from here.
func (s *Merger) JudgeCarry(tx *db.Tx, r repo.Ref, pr *record.Pull, f record.InGit, by *string) error {
	if pr.Carry != record.CarryLook {
		return nil
	}
	pr.Carry = ""
	is := Moved{Decided: Decided{BaseRef: pr.BaseRef, MergeBases: int64(f.MergeBases), Change: f.Change}, Paths: f.Paths,
		LastPush: f.LastPush, Carry: r.Policy.Approvals.Carry, Floors: r.Floors}
	if by != nil {
		is.By = *by
	}
	if f.Change != "" {
		a, ok, err := record.SameChange.Maybe(tx, pr.ID, f.Change)
		if err != nil {
			return err
		}
		was := Decided{BaseRef: a.BaseRef, MergeBases: a.MergeBases, Change: a.Change}
		if a.DecidedBy != nil {
			was.By = *a.DecidedBy
		}
		if is.LastPush && was.By != "" && is.By != "" {
			if is.Same, err = s.People.Same(tx, r.HostRepo().Host, was.By, is.By); err != nil {
				return err
			}
		}
		if ok && Carries(was, is) {
			pr.Carry = a.ID
		}
	}
	_, asked, err := record.OpenAction.Maybe(tx, pr.ID)
	if asked {
		pr.Carry = "" // a person has decided about the new head meanwhile
	}
	if err != nil {
		return err
	}
	return record.Save(tx, pr)
}

// notCarried leaves what was decided about an earlier head behind: somebody is asked about the
// present one, or has ordered its merge.
func notCarried(tx *db.Tx, pr *record.Pull) error {
	if pr.Carry == "" {
		return nil
	}
	pr.Carry = ""
	return record.Save(tx, pr)
}

// EndCarry has no head of a pull request take over what was decided before its end, or before
// agents were told to leave it alone.
func EndCarry(tx *db.Tx, pr *record.Pull) error {
	if _, err := record.DropAside.Exec(tx, pr.ID); err != nil {
		return err
	}
	return notCarried(tx, pr)
}

// TakeOver moves a decision to the present head of a pull request, if there is one to move.
func (s *Merger) TakeOver(tx *db.Tx, pr *record.Pull) error {
	from := pr.Carry
	if err := notCarried(tx, pr); err != nil {
		return err
	}
	if _, open, err := record.OpenAction.Maybe(tx, pr.ID); err != nil || open {
		return err
	}
	a, ok, err := record.AsideByID.Maybe(tx, pr.ID, from)
	if err != nil || !ok {
		return err
	}
	state := record.ActionApproved
	if a.DecidedBy == nil {
		state = record.ActionPending
	}
	if n, err := record.CarryAction.Exec(tx, record.CarryArgs{ID: a.ID, State: state, HeadSHA: pr.HeadSHA}); err != nil || n == 0 {
		return err
	}
	if state == record.ActionApproved {
		s.orders.Add(tx, a.ID, due.Entry{Account: tx.Account})
	}
	if from = a.HeadSHA; a.CarriedFrom != nil {
		from = *a.CarriedFrom // the head that the person saw
	}
	s.Hub.Notify(tx, event.PullTopic)
	about := event.Subject{ID: a.ID, RepoID: pr.RepoID}
	if state == record.ActionPending { // it is told anew, with links for this head
		if err := record.AskedEvent.Record(tx, about, record.AskedData{HeadSHA: pr.HeadSHA, Kind: record.KindMerge,
			PRID: pr.ID}); err != nil {
			return err
		}
	}
	return record.CarriedEvent.Record(tx, about,
		record.CarriedData{Change: a.Change, From: from, PRID: pr.ID, PushedBy: pr.PushedBy, To: pr.HeadSHA})
}
