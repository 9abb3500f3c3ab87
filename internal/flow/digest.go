package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/digest"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/mail"
)

// DigestMails implements digest.Mails.
type DigestMails struct {
	Outbox        *mail.Outbox
	Notifications *notification.Service
}

// Mail mails a digest to the members of tx.Account who have an address, as each has
// chosen: not at all, or after their quiet hours.
func (m DigestMails) Mail(tx *db.Tx, l digest.Letter) error {
	to, err := people.Addressees(tx, tx.Account)
	if err != nil {
		return err
	}
	for _, person := range to {
		wanted, after, err := m.Notifications.Wants(tx, person.ID, notification.Digest, notification.Email)
		if err != nil {
			return err
		}
		if !wanted {
			continue
		}
		if err := m.Outbox.Post(tx, mail.Message{
			To: person.Email, Subject: l.Subject, Text: l.Text, HTML: l.HTML, After: after,
			Reader: mail.Reader{AccountID: tx.Account, UserID: person.ID},
			List:   notification.Digest, Unsubscribe: m.Notifications.Unsubscribe(tx, person.ID, notification.Digest),
		}); err != nil {
			return err
		}
	}
	return nil
}
