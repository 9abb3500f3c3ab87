package pull

import (
	"cmp"
	"context"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// A request of a member for changes counts as a review at a host that requests changes does:
// it holds the merge until whoever has made it approves or takes it back, and a round answers
// it. It is a no to the question about the head, and takes the order of the same person back.

// Requested is what a member requests about a head, in the member's words.
type Requested struct{ ID, PRID, HeadSHA, Text string }

// RequestChanges records what the actor of tx requests. It fails with fault.NotFound, and
// with the reasons head_moved and pr_not_open.
func (s *Service) RequestChanges(tx *db.Tx, w Requested) error {
	pr, err := atHead(tx, w.PRID, w.HeadSHA)
	if err != nil {
		return err
	}
	label := by(tx)
	earlier, err := record.EarlierReviews.All(tx, record.EarlierArgs{AccountID: tx.Account, PRID: pr.ID, Login: label, Label: label})
	if err != nil {
		return err
	}
	if _, err := record.InsertHostReview.Exec(tx, record.InsertHostReviewArgs{
		ID: w.ID, AccountID: tx.Account, RepoID: pr.RepoID, PRID: pr.ID, HostKey: record.HereKey + w.ID, Login: label, Label: label,
		State: record.ReviewObjects, Counts: record.CountsYes, HeadSHA: w.HeadSHA, Text: w.Text, SaidAt: tx.Micros(), Now: tx.Micros(),
	}); err != nil {
		return err
	}
	for _, e := range earlier {
		if e.State == record.ReviewObjects && !e.Answered {
			continue // both are answered together
		}
		if _, err := record.SetHostReview.Exec(tx, e.ID, record.ReviewSuperseded); err != nil {
			return err
		}
	}
	about := event.Subject{ID: pr.ID, RepoID: pr.RepoID}
	if err := record.RequestedEvent.Record(tx, about, record.RequestData{HeadSHA: w.HeadSHA, RequestID: w.ID}); err != nil {
		return err
	}
	if err := record.Recount(tx, s.Hub, pr); err != nil {
		return err
	}
	if err := s.Refuse(tx, pr, label); err != nil {
		return err
	}
	if err := s.TakeOrderBack(tx, pr, label); err != nil {
		return err
	}
	s.Hub.Notify(tx, event.PullTopic)
	return s.Move(tx, pr)
}

// TakeBack ends requests of changes in a pull request of tx.Account: those of the actor, or
// the one with an id. That of somebody else takes the scope write:account. The head is asked
// about again if nobody requests changes any more. It fails with fault.NotFound and
// fault.Forbidden, and with the reasons pr_not_open and no_request.
func (s *Service) TakeBack(tx *db.Tx, prID, requestID string) (ended []string, err error) {
	pr, ok, err := record.Lock(tx, prID)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, fault.Missing("pull request")
	case pr.State != record.Open:
		return nil, fault.Reason("pr_not_open", "The pull request is "+pr.State+".")
	}
	all, err := record.RequestsOf.All(tx, tx.Account, pr.ID)
	if err != nil {
		return nil, err
	}
	actor := policy.From(tx.Context())
	for _, r := range all {
		own := r.Label == actor.Label()
		if requestID == "" && !own || requestID != "" && r.ID != requestID {
			continue
		}
		if admins := policy.Scopes(policy.WriteAccount); !own && !actor.Scopes.Has(admins) {
			return nil, policy.MissingScope(admins)
		}
		if err := s.TakenBack(tx, pr, r.ID, record.ReviewDismissed); err != nil {
			return nil, err
		}
		ended = append(ended, r.ID)
	}
	if len(ended) == 0 {
		return nil, fault.Reason("no_request", "Nothing that is requested of this pull request can be taken back.")
	}
	if err := record.Recount(tx, s.Hub, pr); err != nil {
		return ended, err
	}
	if pr.Objections == 0 { // the no that a request was to the question is no answer any more
		if _, err := record.NoAnswer.Exec(tx, pr.ID, pr.HeadSHA); err != nil {
			return ended, err
		}
	}
	return ended, s.Move(tx, pr)
}

// Answered are requests that a head answers: those that were made here, and the reviews at the
// host.
type Answered struct {
	PRID       string
	RequestIDs []string
	ReviewKeys []string // ids of reviews, as the host calls them
	SHA        string
}

// RequestsAnswered is sent when a pull request gets a head after a round was begun that
// answers what people request.
var RequestsAnswered = event.DeclareSignal[Answered]("pull.requests_answered", "A head answers what people have requested of a pull request.")

// answeredBy tells which requests a new head answers, each once: a thread that somebody opens
// again stays open.
func (s *Service) answeredBy(tx *db.Tx, pr *record.Pull, sha string) error {
	if pr.Objections == 0 {
		return nil
	}
	all, err := record.ToAnswer.All(tx, tx.Account, pr.ID)
	if err != nil || len(all) == 0 {
		return err
	}
	a := Answered{PRID: pr.ID, SHA: sha}
	for _, r := range all {
		if _, err := record.SetAnswered.Exec(tx, r.ID, sha); err != nil {
			return err
		}
		if strings.HasPrefix(r.HostKey, record.HereKey) {
			a.RequestIDs = append(a.RequestIDs, r.ID)
		} else {
			a.ReviewKeys = append(a.ReviewKeys, r.HostKey)
		}
	}
	return RequestsAnswered.Send(tx, a)
}

// Spoken is a pull request as a conversation about it needs it.
type Spoken struct {
	ID, RepoID, HeadSHA string
	Number              int64
}

// ForTalk reads a pull request of tx.Account; false if there is none.
func ForTalk(tx *db.Tx, prID string) (Spoken, bool, error) {
	pr, ok, err := record.ByID.Maybe(tx, tx.Account, prID)
	return Spoken{pr.ID, pr.RepoID, pr.HeadSHA, pr.Number}, ok, err
}

// AtTalk locks an open pull request of tx.Account, at a head unless that is "". It fails with
// fault.NotFound, and with the reasons head_moved and pr_not_open.
func AtTalk(tx *db.Tx, prID, headSHA string) (Spoken, error) {
	if headSHA == "" {
		known, ok, err := ForTalk(tx, prID)
		if err != nil || !ok {
			return known, cmp.Or(err, error(fault.Missing("pull request")))
		}
		headSHA = known.HeadSHA
	}
	pr, err := atHead(tx, prID, headSHA)
	return Spoken{pr.ID, pr.RepoID, pr.HeadSHA, pr.Number}, err
}

// Hunks reads the lines of a file that an open pull request of the account of ctx shows at a
// head; false if the file has not changed. It fails as AtTalk, and with commits_gone.
func (s *Service) Hunks(ctx context.Context, prID, headSHA, path string) (hunks []codehost.Hunk, ok bool, err error) {
	pr, r, err := s.read(ctx, prID)
	switch {
	case err != nil:
		return nil, false, err
	case pr.HeadSHA != headSHA:
		return nil, false, movedTo(pr.HeadSHA)
	case pr.State != record.Open:
		return nil, false, fault.Reason("pr_not_open", "The pull request is "+pr.State+".")
	}
	d, err := s.changes(ctx, r.HostRepo(), &pr, "", unquoted(path))
	if err != nil || d.File == nil {
		return nil, false, err
	}
	return d.File.Hunks, true, nil
}
