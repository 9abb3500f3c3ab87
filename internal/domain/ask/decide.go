package ask

import (
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
)

// Decision is what a person, or the policy of a repository, has decided about what an ask
// wants, whatever triage may think.
type Decision struct {
	AskID, Reason string
	// Category and EscalationID are those of the question to people; empty: nothing is left
	// to decide, and the ask is dropped.
	Category, EscalationID string
}

// Lock locks an ask of tx.Account, which may be gone.
func Lock(tx *db.Tx, askID string) error {
	_, _, err := lockID.Maybe(tx, tx.Account, askID)
	return err
}

// Decide ends the triage of an ask: it is dropped, or escalated by the escalation that
// there is. A judge that has it comes too late. An ask of which work has come, or that was
// dropped, stays as it is.
func Decide(tx *db.Tx, d Decision) error {
	r, err := find(tx, d.AskID, true)
	if err != nil {
		return err
	}
	if r.State != Pending && r.State != Escalated {
		return nil
	}
	to, v := Dropped, Verdict{Kind: NotNeeded, Reason: clip(d.Reason, maxReason), TaskIDs: []string{}}
	if r.EscalationReason = nil; d.EscalationID != "" {
		to, v.Kind, r.EscalationReason = Escalated, ToPerson, &d.Category
	}
	if _, err := decide.Exec(tx, settleArgs{
		AccountID: tx.Account, ID: r.ID, State: to, Verdict: db.JSON[Verdict]{V: v}, EscalationReason: r.EscalationReason,
		TriagedAt: tx.Now,
	}); err != nil {
		return err
	}
	if err := TurnChanged.Send(tx, Turn{r.ID, false}); err != nil {
		return err
	}
	return settled(tx, &r, to, v, d.EscalationID)
}

// fileOfIssue files an ask about an issue, which follows it from then on. If the issue
// follows one that waits for a judge, or of which work has come, that one is answered.
func (s *Service) fileOfIssue(tx *db.Tx, in fileIn, f Filing) (out Filed, err error) {
	i, err := s.Issues.ForAsk(tx, in.IssueID)
	if err != nil {
		return out, err
	}
	if in.Repo != "" && in.Repo != i.Repo {
		return out, fault.Field("repo", "is not that of the issue")
	}
	if i.AskID != "" {
		r, err := find(tx, i.AskID, false)
		return Filed{Kind: "existing", AskID: r.ID, State: r.State}, err
	}
	f.RepoIDs, f.IssueID, f.IssueURL = []string{i.RepoID}, in.IssueID, i.URL
	a, existing, err := s.File(tx, f)
	switch {
	case err != nil:
		return out, err
	case existing:
		return Filed{Kind: "existing", AskID: a.AskID, State: a.State}, nil
	case !i.Enabled:
		return out, fault.Reason("repo_disabled", "The repository "+i.Repo+" is not enabled.")
	}
	return Filed{Kind: "filed", AskID: a.AskID, State: a.State}, s.Issues.Follow(tx, in.IssueID, a.AskID)
}
