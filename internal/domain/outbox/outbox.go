// Package outbox shows operators the mails that are not sent, and the addresses that mail
// servers have refused, and lets them try again. It says nothing of what a mail says. The
// rows are those of package mail.
package outbox

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/mail"
	"yardmaster/internal/needs"
)

// Needs are the dependencies of Service.
type Needs struct {
	DB   *db.DB
	Mail *mail.Outbox
}

// Service has the capabilities of operators over mails.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{n}
}

// Mail is a mail that is not sent, without what it says.
type Mail struct {
	_         struct{}  `doc:"A mail that is not sent, without what it says." schema:"QueuedMail"`
	ID        string    `json:"id" format:"uuid" doc:"id of the mail; its Message-ID begins with it"`
	To        string    `json:"to" format:"email" doc:"the address"`
	State     string    `json:"state" enum:"due,failed,sent" doc:"due: it waits for its next try; failed: it is not tried again by itself; sent: it was sent meanwhile"`
	Tries     int64     `json:"tries" doc:"how often a server began to send it"`
	DueAt     time.Time `json:"due_at" doc:"when it is tried next; of a mail that has failed, when that was"`
	CreatedAt time.Time `json:"created_at" doc:"when it was written"`
	Age       int64     `json:"age_seconds" doc:"how long ago that is, in seconds"`
	LastError *string   `json:"last_error" example:"null" doc:"why the last try failed; null: none has"`
}

func wire(q mail.Queued, now time.Time) Mail {
	return Mail{
		ID: q.ID, To: q.Recipient, State: q.State, Tries: q.Tries, DueAt: q.DueAt, CreatedAt: q.CreatedAt,
		Age: int64(now.Sub(q.CreatedAt) / time.Second), LastError: q.LastError,
	}
}

// Refusal is an address that a mail server has refused.
type Refusal struct {
	_         struct{}  `doc:"An address that a mail server has refused for good." schema:"MailRefusal"`
	Address   string    `json:"address" format:"email" doc:"the address, in lower case"`
	Reason    string    `json:"reason" example:"550 5.1.1 no such user" doc:"what the mail server said"`
	RefusedAt time.Time `json:"refused_at" doc:"when it said so"`
}

func wireRefusal(r mail.Refusal) Refusal {
	return Refusal{Address: r.Address, Reason: r.Reason, RefusedAt: r.At}
}
