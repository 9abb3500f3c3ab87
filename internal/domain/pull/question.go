package pull

import (
	"context"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
)

// Question is a pending action with its pull request, for those who ask people about it
// elsewhere than on its page.
type Question struct {
	ID      string
	PRID    string
	RepoID  string
	State   string // of the action
	HeadSHA string // that the question is about
	Present string // the present head of the pull request
	Looked  bool   // whether the merge was tried, so that Protected is known

	Repo      string // owner/name
	Number    int64
	Title     string
	URL       string // of the page
	Kind      string
	Text      string // the sentence
	Open      bool   // whether it can be carried out in the state of the pull request
	Protected *record.Protected
	DecidedBy *string
	ExpiresAt time.Time
	Cost      *string // of the work so far, in decimal US dollars; nil: nothing has a price
}

// QuestionByID answers a question of tx.Account, whatever its state; false if there is
// none.
func (s *Service) QuestionByID(tx *db.Tx, actionID string) (Question, bool, error) {
	r, ok, err := record.QuestionByID.Maybe(tx, tx.Account, actionID)
	if err != nil || !ok {
		return Question{}, false, err
	}
	q := Question{
		ID: r.ID, PRID: r.PRID, RepoID: r.RepoID, State: r.State, HeadSHA: r.HeadSHA, Present: r.Present, Kind: r.Kind,
		Looked: r.LookedSHA == r.HeadSHA || r.Kind != record.KindMerge,
		Open:   r.PullState == record.StateFor(r.Kind), Repo: r.Owner + "/" + r.Name, Number: r.Number, Title: r.Title, URL: s.url(r.PRID),
		DecidedBy: r.DecidedBy, ExpiresAt: r.ExpiresAt,
	}
	if r.Protected != nil {
		q.Protected = &r.Protected.V
	}
	q.Text = r.Asked()
	costs, err := s.costs(tx, r.ApprovalRow)
	q.Cost = costs[r.ID]
	return q, true, err
}

// Decide answers a question of tx.Account as the actor of tx: yes approves the merge of
// its head, no skips it. It fails as pr.approve_pending does.
func (s *Service) Decide(tx *db.Tx, q Question, yes bool) error {
	state := record.ActionSkipped
	if yes {
		state = record.ActionApproved
	}
	_, err := s.decide(tx, decideIn{ID: q.PRID, HeadSHA: q.HeadSHA, ActionID: q.ID}, state)
	return err
}

// Summary answers the files that a pull request of the account of ctx changes, with
// their counts. It asks the code host, and fails as pr.diff does.
func (s *Service) Summary(ctx context.Context, prID string) (Diff, error) {
	pr, r, err := s.read(ctx, prID)
	if err != nil {
		return Diff{}, err
	}
	return s.diffOf(ctx, r.HostRepo(), &pr, "", "")
}
