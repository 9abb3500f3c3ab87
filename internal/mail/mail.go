// Package mail sends the service's mails to people. A mail is a row of the outbox,
// written in the transaction of its cause, so neither exists without the other.
// The outbox passes mails to the configured transport: an SMTP server, or a folder
// of .eml files if no server is configured. The outbox retries a mail that cannot
// be sent (see ladder), and never loses its row; it drops the notice of somebody who
// has left the account before it was sent.
package mail

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	netmail "net/mail"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// Message is a mail as its author writes it, to one person.
type Message struct {
	To      string
	Subject string
	Text    string
	HTML    string // the same for programs that show it; empty: there is none
	// Unsubscribe is the address by which the person gets no more mails of this sort, by a
	// POST without more (RFC 8058); empty: there is none.
	Unsubscribe string
	// List is the sort of notification that the mail is, a word by which programs sort it
	// (RFC 2919); empty: it is none, but a mail that its reader has asked for. Notifications
	// alone are kept from an address that a mail server has refused.
	List string
	// Thread is the same in mails that belong together, which have the same subject; empty:
	// the mail stands alone.
	Thread string
	After  time.Time // not sent before; the zero time: at once
	// Reader is who is told something as a member of an account; the zero Reader: nobody
	// as a member.
	Reader Reader
}

// Reader is a person in an account.
type Reader struct{ AccountID, UserID string }

// Letter is a mail ready to send. A letter that is sent twice has the same ID both
// times, by which mail programs recognise the copy.
type Letter struct {
	Message
	ID      string
	From    string
	ReplyTo string // empty: answers go to From
	At      time.Time
}

// Transport sends letters. The outbox retries a letter after an error, unless the
// error wraps errPermanent. After one that wraps errDown it sends no letter for a while.
type Transport interface {
	Send(ctx context.Context, l Letter) error
}

// ErrAddress is wrapped by an error of a Transport if the server has refused the address of
// a letter for good.
var ErrAddress = errors.New("the address is refused")

var (
	errPermanent = errors.New("the mail will never be accepted")
	errDown      = errors.New("the mail server takes no mails") // the letter is not to blame
)

func permanent(err error) error { return fmt.Errorf("%w: %w", errPermanent, err) }

// compose encodes a letter as RFC 5322 says.
func (l Letter) compose() (*gomail.Msg, error) {
	m := gomail.NewMsg(gomail.WithEncoding(gomail.EncodingQP), gomail.WithNoDefaultUserAgent())
	if err := m.From(l.From); err != nil {
		return nil, fmt.Errorf("%w: the sender's address: %w", errDown, err)
	}
	if err := m.To(l.To); err != nil {
		return nil, permanent(fmt.Errorf("%w: %w", ErrAddress, err))
	}
	m.Subject(l.Subject)
	m.SetMessageIDWithValue(l.ID + "@" + domainOf(l.From))
	m.SetDateWithValue(l.At)
	m.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834, section 5
	if l.ReplyTo != "" {
		if err := m.ReplyTo(l.ReplyTo); err != nil {
			return nil, fmt.Errorf("%w: the address for answers: %w", errDown, err)
		}
	}
	if l.List != "" {
		m.SetGenHeader("List-Id", "<"+l.List+listDomain+domainOf(l.From)+">")
	}
	if l.Unsubscribe != "" {
		m.SetGenHeader("List-Unsubscribe", "<"+l.Unsubscribe+">")
		m.SetGenHeader("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
	}
	if l.Thread != "" {
		// No mail has this ID: programs put those that refer to it together.
		root := sha256.Sum256([]byte(l.To + "\x00" + l.Thread))
		of := "<thread." + hex.EncodeToString(root[:12]) + "@" + domainOf(l.From) + ">"
		m.SetGenHeader("In-Reply-To", of)
		m.SetGenHeader("References", of)
	}
	m.SetBodyString(gomail.TypeTextPlain, l.Text)
	if l.HTML != "" {
		m.AddAlternativeString(gomail.TypeTextHTML, l.HTML)
	}
	return m, nil
}

// listDomain is between the word and the domain of a List-Id.
const listDomain = ".notifications."

// domainOf is the domain of an address, with or without a display name.
func domainOf(from string) string {
	a, err := netmail.ParseAddress(from)
	if err != nil {
		return "yardmaster.invalid" // compose refuses such a sender
	}
	return a.Address[strings.LastIndexByte(a.Address, '@')+1:]
}

// foreign tells whether a letter needs SMTPUTF8, because an address has characters
// outside ASCII. Headers and text have encodings of their own.
func (l Letter) foreign() bool {
	from, err := netmail.ParseAddress(l.From)
	return err == nil && !ascii(from.Address) || !ascii(l.To)
}

func ascii(s string) bool { return !strings.ContainsFunc(s, func(r rune) bool { return r > 0x7e }) }

func (l Letter) bytes() ([]byte, error) {
	m, err := l.compose()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if _, err := m.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("write mail %s: %w", l.ID, err)
	}
	return b.Bytes(), nil
}
