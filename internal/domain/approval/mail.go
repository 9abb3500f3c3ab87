package approval

import (
	"context"
	"fmt"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/id"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

// Limits of a mail.
const (
	mailedFiles = 40
	mailedPaths = 20
	titleRunes  = 120
	pathRunes   = 200
	textRunes   = 4000 // of the question
)

// mails answers what writes the mails about a question, to those who may answer it, and makes
// their links; nil if the question is not open any more.
func (s *Service) mails(ctx context.Context, actionID string, tries int) (record func(*db.Tx) error, err error) {
	var q Question
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		var ok bool
		var err error
		if q, ok, err = s.Questions.ByID(tx, actionID); err == nil && !ok {
			q.State = Stale
		}
		return err
	})
	if err != nil || q.useless() != nil {
		return nil, err
	}
	if !q.Looked && tries < lookFor {
		return nil, errUnseen
	}
	change, unread := s.Questions.Change(ctx, q.PRID)
	if unread != nil && tries < withoutChange {
		return nil, unread
	}
	return func(tx *db.Tx) error {
		now, ok, err := s.Questions.ByID(tx, actionID)
		if err != nil || !ok || now.useless() != nil {
			return err
		}
		asker, err := s.Questions.RequestedBy(tx, now)
		if err != nil {
			return err
		}
		to, err := s.recipients(tx, asker)
		if err != nil {
			return err
		}
		asked, _, err := people.UserByID(tx, asker)
		if err != nil {
			return err
		}
		for _, u := range to {
			if err := s.post(tx, now, asked, u, change, unread == nil); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// person is somebody who is written to.
type person struct{ ID, Email string }

// recipients are the person who asked for the work, if they may decide about it, else
// the owners and admins of tx.Account.
func (s *Service) recipients(tx *db.Tx, asker string) (out []person, err error) {
	if asker != "" {
		if out, err = add(tx, nil, asker); err != nil || len(out) > 0 {
			return out, err
		}
	}
	members, err := people.Roster(tx, tx.Account)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if m.Role != policy.Owner && m.Role != policy.Admin {
			continue
		}
		if out, err = add(tx, out, m.UserID); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// add adds a person who may decide and has an address.
func add(tx *db.Tx, to []person, userID string) ([]person, error) {
	_, ok, err := mayDecide(tx, userID)
	if err != nil || !ok {
		return to, err
	}
	address, err := people.Email(tx, userID)
	if err != nil || address == "" {
		return to, err
	}
	return append(to, person{userID, address}), nil
}

// post makes the links of one person, and queues their mail. Others than the one who asked
// are told who that is.
func (s *Service) post(tx *db.Tx, q Question, asked people.User, u person, change Change, known bool) error {
	wish, err := s.Wishes.Mailed(tx, u.ID)
	if err != nil || !wish.Wanted {
		return err
	}
	expires := wish.From.Add(linkLife).Truncate(time.Second)
	if q.ExpiresAt.Before(expires) {
		expires = q.ExpiresAt.Truncate(time.Second)
	}
	links := map[string]string{}
	for _, verb := range []string{Approve, Skip} {
		l := linkRow{
			ID: id.New(), AccountID: tx.Account, ActionID: q.ID, UserID: u.ID, Verb: verb, HeadSHA: q.HeadSHA, CreatedAt: tx.Now,
			ExpiresAt: expires,
		}
		if _, err := insertLink.Exec(tx, l); err != nil {
			return err
		}
		token := s.Ring.SignLink(linkPurpose, seal.Link{Subject: l.ID, Account: tx.Account, Expires: expires})
		links[verb] = s.BaseURL + "/actions/" + token
	}
	letter := page(q, links, expires, change, known)
	letter.Notes = append(letter.Notes, wish.Notes...)
	if asked.ID != u.ID && asked.Login != "" {
		letter.Facts = append(letter.Facts, mail.Fact{Name: "asked by", Value: asked.Login})
	}
	message := letter.Message(u.Email,
		fmt.Sprintf("%s #%d waits for your decision: %s", q.Repo, q.Number, mail.Short(q.Title, titleRunes)))
	message.List = "approval" // the kind of notification
	message.Thread, message.After, message.Unsubscribe = "approval/pr/"+q.PRID, wish.From, wish.Unsubscribe
	message.Reader = mail.Reader{AccountID: tx.Account, UserID: u.ID}
	return s.Mail.Post(tx, message)
}

// page is the mail.
func page(q Question, links map[string]string, expires time.Time, change Change, known bool) mail.Page {
	p := mail.Page{
		Lead: "A pull request of " + q.Repo + " waits for your decision.",
		Repo: q.Repo, Title: fmt.Sprintf("#%d  %s", q.Number, mail.Short(q.Title, titleRunes)),
		Facts: []mail.Fact{{Name: "head", Value: q.HeadSHA}}, Quote: mail.Short(q.Text, textRunes),
		Links: []mail.Link{
			{Label: "Read it first", URL: q.URL}, {Label: "Approve " + q.Thing(), URL: links[Approve], Main: true},
			{Label: "Decline it", URL: links[Skip]},
		},
		Notes: []string{
			"A link shows what it would do, and does it when you press the button. Each works once, until " +
				expires.UTC().Format("2006-01-02 15:04") + " UTC. They act in your name: do not forward this mail."},
	}
	if len(q.Protected) > 0 {
		paths := mail.List{Heading: "What is protected and would change:", More: q.More}
		for i, name := range q.Protected {
			if i == mailedPaths {
				paths.More += len(q.Protected) - mailedPaths
				break
			}
			paths.Lines = append(paths.Lines, mail.Short(name, pathRunes))
		}
		p.Lists = append(p.Lists, paths)
	}
	if !known {
		p.Notes = append([]string{"The code host did not say which files it changes."}, p.Notes...)
		return p
	}
	all := len(change.Files) + change.More
	files := mail.List{
		Heading: fmt.Sprintf("It changes %d %s, +%d -%d:", all, plural(all, "file"), change.Additions, change.Deletions),
		More:    all - min(len(change.Files), mailedFiles),
	}
	for i, f := range change.Files {
		if i == mailedFiles {
			break
		}
		counts := fmt.Sprintf("+%d -%d", f.Additions, f.Deletions)
		if f.Binary {
			counts = "binary"
		}
		files.Lines = append(files.Lines, fmt.Sprintf("%-12s %s  %s", f.Kind, counts, mail.Short(f.Path, pathRunes)))
	}
	p.Lists = append(p.Lists, files)
	return p
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
