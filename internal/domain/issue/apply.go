package issue

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/id"
)

// Limits of what is stored of an issue, which anybody may write: characters, and labels.
const (
	maxTitle  = 500
	maxBody   = 64 << 10
	maxName   = 200
	maxLabels = 50
)

// HostChanged records what a host says of an issue. What is older than what is recorded
// changes nothing. What is as old, and says something else, has the issue read again.
func (s *Service) HostChanged(ctx context.Context, r repo.Ref, e codehost.IssueChanged) error {
	if e.Issue.Pull {
		return nil
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		if e.Action == codehost.ActionDeleted || e.Action == codehost.ActionTransferred {
			known, ok, err := byNumber.Maybe(tx, tx.Account, r.ID, e.Issue.Number)
			if err == nil && ok {
				err = s.lose(tx, known.ID)
			}
			return err
		}
		known, fresh, err := s.known(tx, r, e.Issue, !e.Issue.Author.Own) // the answer of the host records what the server opens
		at := db.Micros(e.Issue.UpdatedAt)
		switch {
		case err != nil || known.ID == "":
			return err
		case fresh: // it is recorded as it is
		case at > known.HostAt:
			return s.apply(tx, r, known, e, true)
		case at == known.HostAt:
			alike := same(known, r, e.Issue)
			if alike && e.Action != codehost.ActionLabeled {
				return nil
			}
			if !alike {
				if err := s.askAgain(tx, &known); err != nil {
					return err
				}
			}
		}
		if err := s.consider(tx, r, &known, e, true); err != nil { // a label counts, however late its delivery is
			return err
		}
		return s.save(tx, known)
	})
}

// known is an issue as it is recorded, locked. Without a row it is recorded as the host
// says, if add is set; then fresh is set. Two deliveries of a new issue may come at the
// same time: one of them finds the row of the other.
func (s *Service) known(tx *db.Tx, r repo.Ref, i codehost.Issue, add bool) (known row, fresh bool, err error) {
	known, ok, err := byNumber.Maybe(tx, tx.Account, r.ID, i.Number)
	if err != nil || ok || !add {
		return known, false, err
	}
	a := mirrorOf(r, i)
	a.ID = id.New()
	n, err := insert.Exec(tx, a)
	if err != nil {
		return row{}, false, err
	}
	known, err = byNumber.One(tx, tx.Account, r.ID, i.Number)
	return known, n == 1, err
}

// apply records what a host says of an issue that is known. It begins triage if the
// policy says so; all says that the policy "all" counts.
func (s *Service) apply(tx *db.Tx, r repo.Ref, known row, e codehost.IssueChanged, all bool) error {
	a := mirrorOf(r, e.Issue)
	a.ID = known.ID
	if _, err := mirror.Exec(tx, a); err != nil {
		return err
	}
	now, err := lockID.One(tx, tx.Account, a.ID)
	if err != nil {
		return err
	}
	if err := s.consider(tx, r, &now, e, all); err != nil {
		return err
	}
	return s.save(tx, now)
}

// hearsay is the time for which a label waits whose author is not known yet: a look may
// see it before its delivery is applied.
const hearsay = time.Minute

// consider has an ask filed for an issue, with the text that the event shows. Issues of
// programs, and what programs do to issues, begin nothing. An issue of which no work came
// goes back to triage when a person puts the label on it anew: each label counts once, by
// the time of the host.
func (s *Service) consider(tx *db.Tx, r repo.Ref, to *row, e codehost.IssueChanged, all bool) error {
	i := e.Issue
	wanted := r.Enabled && i.Open && r.Policy.Triages(i.Labels) && (all || r.Policy.Issues.Triage == "labelled")
	if !wanted || i.Author.Bot || i.Author.Own || e.By.Bot || e.By.Own {
		return nil
	}
	labelled := e.Action == codehost.ActionLabeled && e.By.Login != "" && e.Label == r.Policy.Issues.Label &&
		slices.Contains(i.Labels, e.Label)
	anew := labelled && db.Micros(i.UpdatedAt) > to.LabelledAt
	if anew {
		to.LabelledAt = db.Micros(i.UpdatedAt)
	}
	switch {
	case to.Triage == None:
	case anew && to.decided():
		if err := s.beginAnew(tx, to); err != nil {
			return err
		}
	default:
		return nil
	}
	if to.Filing && !labelled {
		return nil
	}
	// A person who labels stands behind the text that the event shows, also if a look or an
	// edit of the author, which may say something else, was recorded before.
	to.SeenTitle, to.SeenBody = clip(oneLine(i.Title), maxTitle), clip(i.Body, maxBody)
	if to.Filing {
		to.Voucher = clip(e.By.Login, maxName)
		s.look(tx, *to, 0)
		return nil
	}
	to.Voucher = clip(i.Author.Login, maxName)
	after := time.Duration(0)
	switch {
	case labelled:
		to.Voucher = clip(e.By.Login, maxName)
	case r.Policy.Issues.Triage == "labelled":
		after = hearsay
	}
	to.Filing = true
	to.LabelledAt = max(to.LabelledAt, db.Micros(i.UpdatedAt)) // of a label that came with it, too
	s.look(tx, *to, after)
	return nil
}

// mirrorOf are the columns of an issue. The label of the policy comes first, so that a
// flood of labels does not hide it.
func mirrorOf(r repo.Ref, i codehost.Issue) mirrorArgs {
	labels := []string{}
	if slices.Contains(i.Labels, r.Policy.Issues.Label) {
		labels = append(labels, r.Policy.Issues.Label)
	}
	for _, l := range i.Labels {
		if len(labels) < maxLabels && l != r.Policy.Issues.Label {
			labels = append(labels, clip(l, maxName))
		}
	}
	state := Closed
	if i.Open {
		state = Open
	}
	return mirrorArgs{
		AccountID: r.AccountID, RepoID: r.ID, Number: &i.Number, HostKey: clip(i.Key, maxName), NodeID: clip(i.NodeID, maxName),
		Title: clip(oneLine(i.Title), maxTitle), Body: clip(i.Body, maxBody), URL: clip(i.URL, maxTitle), State: state,
		Author: clip(i.Author.Login, maxName), AuthorBot: i.Author.Bot || i.Author.Own, Labels: db.JSON[[]string]{V: labels},
		Milestone: clip(oneLine(i.Milestone), maxName), Comments: int64(i.Comments), HostAt: db.Micros(i.UpdatedAt),
		CreatedAt: db.Micros(i.CreatedAt),
	}
}

// same tells whether an issue is recorded as it is.
func same(known row, r repo.Ref, i codehost.Issue) bool {
	a := mirrorOf(r, i)
	return known.GoneAt == nil && known.Title == a.Title && known.Body == a.Body && known.State == a.State &&
		slices.Equal(known.Labels.V, a.Labels.V) && known.Milestone == a.Milestone && known.Comments == a.Comments
}

// Import records an issue that an operator has imported, and files its ask. trusted says
// that a person who may write to the repository stands behind the issue. Import tells
// whether there was no ask before. An issue that was handed off, or put to people, gets none.
func (s *Service) Import(tx *db.Tx, repoID, by string, i codehost.Issue, trusted bool) (filed bool, err error) {
	r, ok, err := repo.ByID(tx, repoID)
	if err != nil || !ok {
		return false, err
	}
	known, fresh, err := s.known(tx, r, i, true)
	if err != nil {
		return false, err
	}
	if fresh || db.Micros(i.UpdatedAt) >= known.HostAt {
		if err := s.apply(tx, r, known, codehost.IssueChanged{Issue: i}, false); err != nil {
			return false, err
		}
		if known, err = lockID.One(tx, tx.Account, known.ID); err != nil {
			return false, err
		}
	}
	if known.AskID != nil || known.decided() {
		return false, nil
	}
	known.SeenTitle, known.SeenBody = clip(oneLine(i.Title), maxTitle), clip(i.Body, maxBody)
	return s.file(tx, r, known, trusted, by)
}

// clip cuts a text, and replaces what no database stores.
func clip(text string, most int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

const (
	patience = time.Minute // for a page of a host's issues
	longest  = 15 * time.Minute
	batch    = 50
	// maxTries are the tries to ask a host for a permission; then the person has none.
	maxTries = 10
)
