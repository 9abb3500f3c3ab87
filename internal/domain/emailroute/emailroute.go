// Package emailroute sends notices of an account to addresses of teams. An address gets
// nothing before somebody who reads its mails has confirmed it by a link, and each mail has
// a link that ends its kind.
//
//   - emailroute.go: the types, and the mails
//   - ops.go: the capabilities of accounts
//   - link.go: the pages of the links in mails
package emailroute

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/mail"
	"yardmaster/internal/needs"
	"yardmaster/internal/seal"
)

// Limits of routes.
const (
	maxRoutes = 20 // of an account
	maxAsked  = 40 // mails that ask for a confirmation, of an account in askedIn
	askedIn   = 24 * time.Hour
	maxThere  = 3  // questions of one address in askedIn, by an account
	maxAnyone = 10 // questions of one mailbox, by all accounts together
	maxMails  = 30 // notices of a kind that an address gets in mailsIn
	mailsIn   = time.Hour
	forgetIn  = 2 * askedIn // deleted rows

	confirmLife = 48 * time.Hour
	stopLife    = 60 * 24 * time.Hour
)

// Purposes of links.
const (
	confirmPurpose = "email-route-confirm"
	stopPurpose    = "email-route-stop"
)

// Kind is a kind of notices.
type Kind struct {
	Name string
	Doc  string // what it tells
}

// Notice is what has happened.
type Notice struct {
	Kind, Noun, Subject string
	Repo                string // owner/name; empty: of no one repository
	About               string // the subject of the mail
	Title, Text         string // may hold text of others
	URL                 string // where to look
}

// Needs are the dependencies of Service.
type Needs struct {
	DB      *db.DB
	Ring    *seal.Keyring
	Mail    *mail.Outbox
	BaseURL string
	Kinds   []Kind // that can be routed
}

// Service keeps routes, and sends notices by them.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{n}
}

// kind finds a kind that can be routed.
func (s *Service) kind(name string) (Kind, bool) {
	i := slices.IndexFunc(s.Kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return s.Kinds[i], true
}

// link makes the address of a page, with a token for a subject.
func (s *Service) link(tx *db.Tx, path, purpose, subject string, life time.Duration) string {
	token := s.Ring.SignLink(purpose, seal.Link{Subject: subject, Account: tx.Account, Expires: tx.Now.Add(life).Truncate(time.Second)})
	return s.BaseURL + path + "?token=" + url.QueryEscape(token)
}

// Deliver mails a notice of tx.Account to the addresses that are confirmed for its kind,
// once to each.
func (s *Service) Deliver(tx *db.Tx, n Notice) error {
	k, ok := s.kind(n.Kind)
	if !ok {
		return nil
	}
	routes, err := living.All(tx, tx.Account)
	if err != nil {
		return err
	}
	for _, r := range routes {
		if r.ConfirmedAt == nil || !slices.Contains(r.Kinds.V, n.Kind) {
			continue
		}
		if err := s.send(tx, r, k, n); err != nil {
			return err
		}
	}
	return nil
}

// send mails a notice, unless the address had maxMails of its kind.
func (s *Service) send(tx *db.Tx, r row, k Kind, n Notice) error {
	account, err := people.AccountLogin(tx, tx.Account)
	if err != nil {
		return err
	}
	count, err := counted.One(tx, countedArgs{RouteID: r.ID, Kind: k.Name, Now: tx.Micros(), Within: mailsIn.Microseconds()})
	if err != nil || count > maxMails {
		return err
	}
	subject := cmp.Or(n.About, n.Title)
	if n.Repo != "" {
		subject = "[" + n.Repo + "] " + subject
	}
	var notes []string
	if count == maxMails {
		notes = []string{"This is the 30th mail of this kind within an hour. No more of them are sent here before it is over."}
	}
	m := mail.Page{
		Lead: k.Doc, Notes: notes, Repo: n.Repo, Title: n.Title, Quote: n.Text,
		Links:  []mail.Link{{Label: "Look at it", URL: n.URL}},
		Reason: "The account " + account + " sends the kind " + k.Name + " to this address.",
	}.Message(r.Address, subject)
	m.List, m.Thread = k.Name, strings.Join([]string{r.ID, n.Kind, n.Noun, n.Subject}, "/")
	m.Unsubscribe = s.link(tx, stopPath, stopPurpose, r.ID+"/"+k.Name, stopLife)
	return s.Mail.Post(tx, m)
}

// ask mails the question whether an address is to get notices.
func (s *Service) ask(tx *db.Tx, r row, by string) error {
	account, err := people.AccountLogin(tx, tx.Account)
	if err != nil {
		return err
	}
	kinds := mail.List{Heading: "It would get these notices:"}
	for _, name := range r.Kinds.V {
		k, _ := s.kind(name)
		kinds.Lines = append(kinds.Lines, name+": "+k.Doc)
	}
	return s.Mail.Post(tx, mail.Page{
		Lead:  by + " wants notices of the account " + account + " at Yardmaster to be sent to this address.",
		Lists: []mail.List{kinds},
		Links: []mail.Link{{
			Label: "Look at it, and confirm", URL: s.link(tx, confirmPath, confirmPurpose, r.ID, confirmLife),
		}},
		Notes: []string{"The link is good for 48 hours. If you do nothing, nothing is sent."},
	}.Message(r.Address, "Shall notices of "+account+" come here?"))
}
