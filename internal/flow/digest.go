package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/digest"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/mail"
)

// DigestMails implements digest.Mails.
type DigestMails struct{ Outbox *mail.Outbox }

// Mail mails a digest to the members of tx.Account who have an address.
func (m DigestMails) Mail(tx *db.Tx, l digest.Letter) error {
	to, err := people.Addresses(tx, tx.Account)
	for _, address := range to {
		if err == nil {
			err = m.Outbox.Post(tx, mail.Message{To: address, Subject: l.Subject, Text: l.Text})
		}
	}
	return err
}
