package notification

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"yardmaster/internal/client/inert"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/id"
	"yardmaster/internal/mail"
	"yardmaster/internal/secretscan"
)

// Characters of what is stored.
const (
	maxTitle = 200
	maxText  = 2000
)

// Tell tells everybody in n.To, by the channels that each has chosen, and those who read
// the channels of the account. It is for the transaction in which the event is read.
func (s *Service) Tell(tx *db.Tx, n Notice) error {
	k, ok := kindOf(n.Kind)
	if !ok {
		panic("notification: no kind " + n.Kind)
	}
	n.Title, n.Text, n.About = tidy(inert.Line(n.Title), maxTitle), tidy(inert.Lines(n.Text), maxText), tidy(inert.Line(n.About), maxTitle)
	slices.Sort(n.To)
	var hear []string
	for _, userID := range slices.Compact(n.To) {
		if userID == "" {
			continue
		}
		hears, err := people.Hears(tx, userID)
		if err != nil {
			return err
		}
		if hears {
			hear = append(hear, userID)
		}
	}
	n.To = hear
	for _, userID := range n.To {
		// Who acts alone is told of what nobody else can settle.
		if alone := k.waits && len(n.To) == 1; n.Actor == "user:"+userID && !alone && !n.Unaware {
			continue
		}
		if err := s.tell(tx, k, n, userID); err != nil {
			return err
		}
	}
	if n.Personal {
		return nil
	}
	m := Message{Notice: n, URL: s.address(n.Path), After: tx.Now}
	if err := s.Routes.Deliver(tx, m); err != nil {
		return err
	}
	return s.Webhook.Deliver(tx, m)
}

// tell tells one person.
func (s *Service) tell(tx *db.Tx, k kind, n Notice, userID string) error {
	p, err := s.person(tx, userID)
	if err != nil {
		return err
	}
	r, err := s.file(tx, p, k, n, userID)
	if err != nil {
		return err
	}
	m := Message{ID: r.ID, UserID: userID, Notice: n, URL: s.address(n.Path), Urgent: k.urgent, After: p.opens(tx.Now, k)}
	if p.wants(k, Email) && !k.own && (r.MailedAt == nil || tx.Now.Sub(*r.MailedAt) >= mailEvery) {
		sent, err := s.mail(tx, k, m)
		if err != nil {
			return err
		}
		if sent {
			if _, err := setMailed.Exec(tx, r.ID, tx.Micros()); err != nil {
				return err
			}
		}
	}
	if p.wants(k, Push) {
		if err := s.Push.Deliver(tx, m); err != nil {
			return err
		}
	}
	if p.wants(k, Webhook) {
		return s.Webhook.Deliver(tx, m)
	}
	return nil
}

// file adds the row of an inbox, or counts the notice in the row that is there and was not
// read. A person who wants none in the inbox has a row that no list shows, by which
// mails are held back.
func (s *Service) file(tx *db.Tx, p person, k kind, n Notice, userID string) (row, error) {
	r, ok, err := unread.Maybe(tx, unreadArgs{AccountID: tx.Account, UserID: userID, Kind: k.name, Noun: n.Noun, Subject: n.Subject})
	if err != nil {
		return r, err
	}
	if r.Rev, err = s.advance(tx, userID); err != nil {
		return r, err
	}
	r.Title, r.Text, r.Path, r.Repo, r.UpdatedAt, r.Shown = n.Title, n.Text, n.Path, n.Repo, tx.Now, p.wants(k, Inbox)
	if ok {
		r.Count++
		_, err = again.Exec(tx, r)
		return r, err
	}
	r.ID, r.AccountID, r.UserID, r.Kind, r.Noun, r.Subject = id.New(), tx.Account, userID, k.name, n.Noun, n.Subject
	r.Count, r.CreatedAt = 1, tx.Now
	_, err = insert.Exec(tx, r)
	return r, err
}

// Settle marks the rows about a subject as settled: nobody has to look any more.
func (s *Service) Settle(tx *db.Tx, kindName, noun, subject string) error {
	rows, err := unsettled.All(tx, unsettledArgs{AccountID: tx.Account, Kind: kindName, Noun: noun, Subject: subject})
	if err != nil {
		return err
	}
	for _, r := range rows {
		rev, err := s.advance(tx, r.UserID)
		if err != nil {
			return err
		}
		if _, err := settle.Exec(tx, r.ID, tx.Micros(), rev); err != nil {
			return err
		}
	}
	return nil
}

// mail queues the mail of a person. It answers false for a person without an address, and
// for one who had maxMails of the kind.
func (s *Service) mail(tx *db.Tx, k kind, m Message) (bool, error) {
	address, err := people.Email(tx, m.UserID)
	if err != nil || address == "" {
		return false, err
	}
	ok, notes, err := s.CountMail(tx, m.UserID, k.name)
	if err != nil || !ok {
		return false, err
	}
	letter := mail.Page{
		Title: m.Title, Lead: k.doc, Quote: m.Text, Repo: m.Repo,
		Links:  []Link{{Label: "Look at it", URL: m.URL}},
		Reason: "You get this mail because of the kind " + k.name + " of your notifications.", Notes: notes,
	}
	if m.Links != nil {
		more, err := m.Links.For(tx, m.UserID, m.After)
		if err != nil {
			return false, err
		}
		letter.Links = append(more, letter.Links...)
	}
	message := letter.Message(address, subjectOf(m))
	message.List, message.Thread, message.After = k.name, k.name+"/"+m.Noun+"/"+m.Subject, m.After
	message.Reader = mail.Reader{AccountID: tx.Account, UserID: m.UserID}
	if !k.locked {
		message.Unsubscribe = s.Unsubscribe(tx, m.UserID, k.name)
	}
	return true, s.Mail.Post(tx, message)
}

// CountMail counts a mail of a kind to a person of tx.Account. ok is false for one who had
// maxMails within the hour; the last of them has notes that say so.
func (s *Service) CountMail(tx *db.Tx, userID, kindName string) (ok bool, notes []string, err error) {
	n, err := counted.One(tx, countedArgs{
		AccountID: tx.Account, UserID: userID, Kind: kindName, Now: tx.Micros(), Within: mailEvery.Microseconds(),
	})
	if n == maxMails {
		notes = []string{"This is the 30th mail of this kind within an hour. No more of them are sent before it is over."}
	}
	return n <= maxMails, notes, err
}

// subjectOf is the subject of a mail.
func subjectOf(m Message) string {
	about := cmp.Or(m.About, m.Title)
	if m.Repo == "" {
		return about
	}
	return "[" + m.Repo + "] " + about
}

// address makes a whole address of a path.
func (s *Service) address(path string) string {
	if strings.HasPrefix(path, "/") || path == "" {
		return s.BaseURL + cmp.Or(path, "/ui/")
	}
	return path
}

// tidy makes a text of others fit to be stored: without what looks like a secret, of at
// most so many characters.
func tidy(text string, most int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	text = secretscan.Scrub(text)
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most-1]) + "…"
	}
	return text
}

// opens is when a kind may reach a person: now, or at the end of their quiet hours.
func (p person) opens(now time.Time, k kind) time.Time {
	if k.urgent || p.Quiet == nil {
		return now
	}
	return p.Quiet.ends(now)
}
