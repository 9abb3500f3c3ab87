package approval

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"yardmaster/internal/client/inert"
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

// write writes the mails about a question that is still open, to those who may answer
// it. The mails, their links and the end of the order are one transaction.
func (s *Service) write(ctx context.Context, m mailRow) error {
	var q Question
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		var ok bool
		var err error
		if q, ok, err = s.Questions.ByID(tx, m.ActionID); err == nil && !ok {
			q.State = Stale
		}
		return err
	})
	if err != nil {
		return errors.Join(err, s.putOff(ctx, m))
	}
	if q.useless() != nil {
		return s.DB.Write(ctx, func(tx *db.Tx) error {
			_, err := doneMail.Exec(tx, m.ActionID, m.Tries)
			return err
		})
	}
	if !q.Looked && m.Tries < lookFor {
		return s.putOff(ctx, m)
	}
	change, unread := s.Questions.Change(ctx, q.PRID)
	if unread != nil && m.Tries < withoutChange {
		return errors.Join(unread, s.putOff(ctx, m))
	}
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		n, err := doneMail.Exec(tx, m.ActionID, m.Tries)
		if err != nil || n == 0 {
			return err // another node has it
		}
		now, ok, err := s.Questions.ByID(tx, m.ActionID)
		if err != nil || !ok || now.useless() != nil {
			return err
		}
		to, err := s.recipients(tx, now)
		if err != nil {
			return err
		}
		for _, u := range to {
			if err := s.post(tx, now, u, change, unread == nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, s.putOff(ctx, m))
	}
	return nil
}

// person is somebody who is written to.
type person struct{ ID, Email string }

// recipients are the person who asked for the work, if they may decide about it, else
// the owners and admins of tx.Account.
func (s *Service) recipients(tx *db.Tx, q Question) (out []person, err error) {
	asker, err := s.Questions.RequestedBy(tx, q)
	if err != nil {
		return nil, err
	}
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

// post makes the links of one person, and queues their mail.
func (s *Service) post(tx *db.Tx, q Question, u person, change Change, known bool) error {
	wanted, from, unsubscribe, err := s.Wishes.Mailed(tx, u.ID)
	if err != nil || !wanted {
		return err
	}
	expires := from.Add(linkLife).Truncate(time.Second)
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
	subject := fmt.Sprintf("%s #%d waits for your decision: %s", q.Repo, q.Number, quiet(q.Title, titleRunes))
	return s.Mail.Post(tx, mail.Message{
		To: u.Email, Subject: subject, Text: text(q, links, expires, change, known), Thread: "approval/pr/" + q.PRID, After: from,
		Unsubscribe: unsubscribe,
	})
}

// text is the mail. What agents and repositories have written is indented, on lines of
// its own, and no part of it is an address.
func text(q Question, links map[string]string, expires time.Time, change Change, known bool) string {
	var b strings.Builder
	say := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	say("A pull request of %s waits for your decision.\n", q.Repo)
	say("  #%d  %s", q.Number, quiet(q.Title, titleRunes))
	say("  head %s\n", q.HeadSHA)
	say("%s\n", quiet(q.Text, textRunes))
	if len(q.Protected) > 0 {
		say("What is protected and would change:\n")
		for i, p := range q.Protected {
			if i == mailedPaths {
				break
			}
			say("  %s", quiet(p, pathRunes))
		}
		if more := len(q.Protected) - mailedPaths; more > 0 || q.More > 0 {
			say("  and %d more", max(more, 0)+q.More)
		}
		say("")
	}
	if known {
		all := len(change.Files) + change.More
		say("It changes %d %s, +%d -%d:\n", all, plural(all, "file"), change.Additions, change.Deletions)
		for i, f := range change.Files {
			if i == mailedFiles {
				break
			}
			counts := fmt.Sprintf("+%d -%d", f.Additions, f.Deletions)
			if f.Binary {
				counts = "binary"
			}
			say("  %-12s %s  %s", f.Kind, counts, quiet(f.Path, pathRunes))
		}
		if more := all - mailedFiles; more > 0 {
			say("  and %d more", more)
		}
		say("")
	} else {
		say("The code host did not say which files it changes.\n")
	}
	say("Read it first:\n%s\n", q.URL)
	say("Approve %s:\n%s\n", q.Thing(), links[Approve])
	say("Decline it:\n%s\n", links[Skip])
	say("A link shows what it would do, and does it when you press the button. Each works once, until %s UTC. They act in your name:",
		expires.UTC().Format("2006-01-02 15:04"))
	say("do not forward this mail.")
	return b.String()
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// quiet makes a text of others harmless in a mail: one line without hidden characters,
// of at most so many characters, in which no program finds an address to link to.
func quiet(s string, most int) string {
	s = inert.Line(s)
	if n := utf8.RuneCountInString(s); n > most {
		s = string([]rune(s)[:most]) + "…"
	}
	return strings.NewReplacer("://", ": //", "www.", "www .", "WWW.", "WWW .", "Www.", "Www .", "mailto:", "mailto :").Replace(s)
}
