package pull

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
)

// HostEnd is the result of the checks that a host has of a commit.
type HostEnd struct {
	RepoID, SHA string
	Result      string // ChecksNone, ChecksPending, ChecksPassed or ChecksFailed
	Hold        string // why the checks wait for a person; "": they wait for none
	Why         string // the checks that it is about, for people
}

// HostChecked moves the pull requests on whose head a host has checked.
func (s *Service) HostChecked(tx *db.Tx, e HostEnd) error {
	ids, err := record.OpenAtSHA.All(tx, tx.Account, e.RepoID, e.SHA)
	if err != nil {
		return err
	}
	host := e.Result
	if host == record.ChecksNone {
		host = ""
	}
	for _, prID := range ids {
		pr, ok, err := record.Lock(tx, prID)
		if err != nil {
			return err
		}
		if !ok || pr.State != record.Open || pr.HeadSHA != e.SHA {
			continue
		}
		pr.ChecksHold = e.Hold
		if err := record.SetResults(tx, pr, record.Judgement{Own: pr.OwnChecks, Host: host, Why: e.Why}); err != nil {
			return err
		}
		if err := s.Move(tx, pr); err != nil {
			return err
		}
	}
	return nil
}

// LookedAfter tells whether a pull request of tx.Account is open, looked after, and at a head.
func LookedAfter(tx *db.Tx, prID, sha string) (bool, error) {
	pr, ok, err := record.ByID.Maybe(tx, tx.Account, prID)
	return ok && pr.State == record.Open && pr.Babysit != record.BabysitOff && pr.AbandonedAt == nil && pr.HeadSHA == sha, err
}
