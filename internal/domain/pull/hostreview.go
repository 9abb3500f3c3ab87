package pull

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/babysit"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
)

// A review of a person at a host counts as its first delivery tells of it: for the commit
// that is named there, with the permission that the person has then. Later deliveries of
// the same review only take it back. An approval answers the question about the head, or
// stands until the question would be put. It does not answer a question about what is
// protected, because nobody at the host sees what gets weaker. A review that requests
// changes holds the merge until its author approves or somebody dismisses it.

// HostReviewed records a review at a host. It asks the host what its author may do, and
// fails with its errors that pass.
func (s *Service) HostReviewed(ctx context.Context, r repo.Ref, e codehost.ReviewPosted) error {
	v := e.Review
	if e.Action == codehost.ActionDismissed {
		return s.hostDismissed(ctx, r, e.Number, v)
	}
	if e.Action != codehost.ActionSubmitted && e.Action != codehost.ActionEdited || v.State != record.ReviewApproved &&
		v.State != record.ReviewObjects {
		return nil
	}
	if known, err := s.heard(ctx, r, e.Number, v.ID); err != nil || known {
		return err
	}
	forge, err := s.Hosts.Forge(r.HostRepo())
	if err != nil {
		return err
	}
	counts := record.CountsYes
	switch {
	case e.Action != codehost.ActionSubmitted:
		counts = record.NotFirst
	case v.Author.Own || v.Author.Bot || e.By.Own || e.By.Bot || v.Author.Login == "" ||
		!strings.EqualFold(e.By.Login, v.Author.Login):
		counts = record.NotPerson
	default:
		may, err := forge.Permission(ctx, r.HostRepo(), v.Author.Login)
		if _, busy := errors.AsType[*codehost.BusyError](err); busy {
			return err // the delivery is applied again
		}
		if err != nil || may < codehost.PermitWrite {
			counts = record.NotAllowed
		}
	}
	text := ""
	if counts == record.CountsYes {
		if err := s.catchUp(ctx, forge, r, e.Number, v.HeadSHA); err != nil {
			return err
		}
		if v.State == record.ReviewObjects {
			if text, err = remark(ctx, forge, r, e.Number, v); err != nil {
				return err
			}
		}
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error { return s.hostReviewed(tx, r, e.Number, v, counts, text) })
}

// heard tells whether a review is known already: a sweep finds what was delivered, too.
func (s *Service) heard(ctx context.Context, r repo.Ref, number int64, key string) (known bool, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		prID, ok, err := record.ByNumber.Maybe(tx, tx.Account, r.ID, number)
		if err == nil && ok {
			_, known, err = record.HostReview.Maybe(tx, tx.Account, prID, key)
		}
		return err
	})
	return known, err
}

// catchUp reads a pull request whose recorded head is not the given one: the delivery of
// a push may come after that of a review. It fails with a *codehost.BusyError while the
// server is opening the pull request.
func (s *Service) catchUp(ctx context.Context, forge codehost.Forge, r repo.Ref, number int64, sha string) error {
	behind := false
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		prID, ok, err := record.ByNumber.Maybe(tx, tx.Account, r.ID, number)
		if err != nil || !ok {
			behind = !ok
			return err
		}
		pr, err := record.ByID.One(tx, tx.Account, prID)
		behind = pr.HeadSHA != sha
		return err
	})
	if err != nil || !behind {
		return err
	}
	p, _, err := forge.Pull(ctx, r.HostRepo(), number, "")
	if errors.Is(err, codehost.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.HostChanged(ctx, r, codehost.PullChanged{
		Happening: codehost.Happening{Repo: r.HostRepo(), Action: codehost.ActionOther, At: p.UpdatedAt}, Pull: p,
	})
}

// CatchUp records a pull request that the host has and the server does not know.
func (s *Service) CatchUp(ctx context.Context, r repo.Ref, number int64) error {
	forge, err := s.Hosts.Forge(r.HostRepo())
	if err != nil {
		return err
	}
	return s.catchUp(ctx, forge, r, number, "")
}

// remark is what a review says that requests changes: its text, and what its author has
// said in threads that are open.
func remark(ctx context.Context, forge codehost.Forge, r repo.Ref, number int64, v codehost.Review) (string, error) {
	threads, err := forge.Threads(ctx, r.HostRepo(), number)
	if _, busy := errors.AsType[*codehost.BusyError](err); busy {
		return "", err
	}
	var b strings.Builder
	b.WriteString(strings.TrimSpace(v.Body))
	for _, t := range threads { // none after a failure: the text of the review is left
		for _, c := range t.Comments {
			if t.Resolved || !strings.EqualFold(c.Author.Login, v.Author.Login) {
				continue
			}
			fmt.Fprintf(&b, "\n\n%s:%d\n%s", t.Path, t.Line, strings.TrimSpace(c.Body))
		}
	}
	text := strings.ReplaceAll(b.String(), "\x00", "")
	return strings.ToValidUTF8(strings.TrimSpace(text[:min(len(text), babysit.MaxRemark)]), ""), nil
}

// hostReviewed stores the first delivery of a review, and has it count.
func (s *Service) hostReviewed(tx *db.Tx, r repo.Ref, number int64, v codehost.Review, counts, text string) error {
	prID, ok, err := record.ByNumber.Maybe(tx, tx.Account, r.ID, number)
	if err != nil || !ok {
		return err
	}
	pr, ok, err := record.Lock(tx, prID)
	if err != nil || !ok {
		return err
	}
	who, err := s.People.At(tx, r.HostRepo().Host, v.Author)
	if err != nil {
		return err
	}
	if counts == record.CountsYes {
		if counts, err = s.mayCount(tx, r, pr, v, who); err != nil {
			return err
		}
	}
	label := who.Label
	if label == "" {
		label = HostLabel(v.Author)
	}
	now := record.InsertHostReviewArgs{
		ID: id.New(), AccountID: tx.Account, RepoID: r.ID, PRID: pr.ID, HostKey: v.ID, Login: strings.ToLower(v.Author.Login), Label: label,
		State: v.State, Counts: counts, HeadSHA: v.HeadSHA, Text: text, SaidAt: saidAt(v), Now: tx.Micros(),
	}
	late, err := overtaken(tx, now)
	if err != nil {
		return err
	}
	if late {
		now.State = record.ReviewSuperseded
	}
	earlier, err := record.EarlierReviews.All(tx, record.EarlierArgs{AccountID: tx.Account, PRID: pr.ID, Login: now.Login, Label: label})
	if err != nil {
		return err
	}
	n, err := record.InsertHostReview.Exec(tx, now)
	if err != nil || n == 0 {
		return err // it was delivered before
	}
	data := record.ReviewedData{Counts: counts, HeadSHA: v.HeadSHA, Login: now.Login, ReviewKey: v.ID, State: now.State}
	if err := record.ReviewedEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID}, data); err != nil {
		return err
	}
	if counts != record.CountsYes || late {
		return nil
	}
	for _, e := range earlier {
		if e.Counts != record.CountsYes {
			continue
		}
		if _, err := record.SetHostReview.Exec(tx, e.ID, record.ReviewSuperseded); err != nil {
			return err
		}
		if v.State == record.ReviewApproved && e.State == record.ReviewApproved &&
			e.ActionID != nil { // what it has ordered stands on this one now
			if _, err := record.SetApproved.Exec(tx, now.ID, *e.ActionID); err != nil {
				return err
			}
		}
	}
	if err := record.Recount(tx, s.Hub, pr); err != nil {
		return err
	}
	if v.State == record.ReviewObjects {
		for _, e := range earlier {
			if e.Counts == record.CountsYes && e.State == record.ReviewApproved {
				if err := s.withdrawn(tx, pr, e); err != nil {
					return err
				}
			}
		}
		if err := s.TakeOrderBack(tx, pr, label); err != nil { // which may have been given here
			return err
		}
		return s.Move(tx, pr)
	}
	return s.hostApproved(tx, pr, now.ID, label)
}

// saidAt is when a review was given, in microseconds; 0: its host does not say.
func saidAt(v codehost.Review) int64 {
	if v.SubmittedAt.IsZero() {
		return 0
	}
	return db.Micros(v.SubmittedAt)
}

// overtaken tells whether a later review of the same person was delivered before a review.
// A later one that does not count ends an approval, too, but no objection.
func overtaken(tx *db.Tx, v record.InsertHostReviewArgs) (bool, error) {
	if v.SaidAt == 0 {
		return false, nil
	}
	later, err := record.LaterReviews.All(tx, record.LaterArgs{AccountID: tx.Account, PRID: v.PRID, Login: v.Login, SaidAt: v.SaidAt})
	return slices.Contains(later, record.CountsYes) || v.State == record.ReviewApproved && len(later) > 0, err
}

// mayCount tells whether a review of somebody who may write counts.
func (s *Service) mayCount(tx *db.Tx, r repo.Ref, pr *record.Pull, v codehost.Review, who Known) (string, error) {
	switch {
	case who.Barred:
		return record.NotAllowed, nil
	case pr.State != record.Open:
		return record.NotOpen, nil
	case v.State == record.ReviewObjects:
		return record.CountsYes, nil
	case pr.Author != "" && strings.EqualFold(pr.Author, v.Author.Login):
		return record.OfAuthor, nil
	case v.HeadSHA != pr.HeadSHA:
		return record.OtherHead, nil
	case pr.TaskID == nil:
		return record.CountsYes, nil
	}
	label, login, err := s.People.Asker(tx, *pr.TaskID, r.HostRepo().Host)
	if label != "" && label == who.Label || login != "" && strings.EqualFold(login, v.Author.Login) {
		return record.OfAsker, err
	}
	return record.CountsYes, err
}

// hostApproved has an approval answer the question about the head. Without a question the
// approval stands until there would be one.
func (s *Service) hostApproved(tx *db.Tx, pr *record.Pull, reviewID, label string) error {
	a, open, err := record.OpenAction.Maybe(tx, pr.ID)
	if err != nil {
		return err
	}
	if open && a.State == record.ActionPending && a.HeadSHA == pr.HeadSHA && !a.Names() && tx.Now.Before(a.ExpiresAt) {
		if _, err := record.SetApproved.Exec(tx, reviewID, a.ID); err != nil {
			return err
		}
		if _, err := s.Answer(tx, pr, a, record.ActionApproved, label); err != nil {
			return err
		}
	}
	return s.Move(tx, pr)
}

// hostDismissed takes back what a review has decided. A review that is not known yet is
// stored as dismissed: its first delivery may come later.
func (s *Service) hostDismissed(ctx context.Context, r repo.Ref, number int64, v codehost.Review) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		prID, ok, err := record.ByNumber.Maybe(tx, tx.Account, r.ID, number)
		if err != nil || !ok {
			return err
		}
		pr, ok, err := record.Lock(tx, prID)
		if err != nil || !ok {
			return err
		}
		known, ok, err := record.HostReview.Maybe(tx, tx.Account, pr.ID, v.ID)
		if err != nil {
			return err
		}
		if !ok {
			_, err := record.InsertHostReview.Exec(tx, record.InsertHostReviewArgs{
				ID: id.New(), AccountID: tx.Account, RepoID: r.ID, PRID: pr.ID, HostKey: v.ID, Login: strings.ToLower(v.Author.Login),
				Label: HostLabel(v.Author), State: record.ReviewDismissed, Counts: record.NotFirst, HeadSHA: v.HeadSHA, SaidAt: saidAt(v),
				Now: tx.Micros(),
			})
			return err
		}
		if known.State == record.ReviewDismissed {
			return nil
		}
		if _, err := record.SetHostReview.Exec(tx, known.ID, record.ReviewDismissed); err != nil || known.Counts != record.CountsYes {
			return err
		}
		data := record.ReviewedData{Counts: known.Counts, HeadSHA: v.HeadSHA, Login: strings.ToLower(v.Author.Login), ReviewKey: v.ID,
			State: record.ReviewDismissed}
		if err := record.ReviewedEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID}, data); err != nil {
			return err
		}
		if known.State == record.ReviewApproved {
			return s.withdrawn(tx, pr, known)
		}
		if err := record.Recount(tx, s.Hub, pr); err != nil {
			return err
		}
		return s.Move(tx, pr)
	})
}

// withdrawn takes back an approval that is not carried out yet, and asks again.
func (s *Service) withdrawn(tx *db.Tx, pr *record.Pull, known record.HostReviewRow) error {
	if known.ActionID == nil {
		return nil
	}
	a, open, err := record.OpenAction.Maybe(tx, pr.ID)
	if err != nil {
		return err
	}
	if _, err := record.TakeBack.Exec(tx, *known.ActionID); err != nil || !open || a.ID != *known.ActionID ||
		a.State != record.ActionApproved {
		return err
	}
	s.OrderEnded(tx, a)
	if err := record.StaleEvent.Record(tx, event.Subject{ID: a.ID, RepoID: pr.RepoID},
		record.QuestionData{HeadSHA: a.HeadSHA, PRID: pr.ID}); err != nil {
		return err
	}
	return s.Move(tx, pr)
}
