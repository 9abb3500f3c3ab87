package mail

import (
	"errors"
	"strings"
	"time"

	"yardmaster/internal/client/inert"
	"yardmaster/internal/db"
	"yardmaster/internal/id"
)

// reasonRunes bounds what is kept of an answer of a mail server.
const reasonRunes = 500

// reason is an error as it is kept: a line, since a mail server has written most of it.
func reason(err error) string {
	return Short(inert.Line(strings.ToValidUTF8(err.Error(), "\uFFFD")), reasonRunes)
}

// Queued is a mail that is not sent. It has nothing of what the mail says.
type Queued struct {
	ID        string
	Recipient string
	State     string // due or failed; sent, of one that was sent meanwhile
	Tries     int64
	Failures  int64
	DueAt     time.Time
	CreatedAt time.Time
	LastError *string
}

// Queue lists mails in a state, due or failed, or empty for both, by id: those after an id,
// at most limit.
func Queue(tx *db.Tx, state, after string, limit int) ([]Queued, error) {
	return queued.All(tx, state, after, limit)
}

// Outage is a time in which the mail server takes no mails.
type Outage struct {
	Reason       string
	Since, Until time.Time // until: when it is tried next
}

// Down answers the outage of the mail server; nil: there is none.
func Down(tx *db.Tx) (*Outage, error) {
	rows, err := outage.All(tx)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &Outage{Reason: rows[0].Reason, Since: rows[0].Since, Until: rows[0].Until}, nil
}

// Retry makes a mail due now, with all its tries. ok is false if there is no such mail,
// and was is its state before. A mail that was sent, or that a node is sending, stays as
// it is.
func (o *Outbox) Retry(tx *db.Tx, mailID string) (q Queued, was string, ok bool, err error) {
	if !id.Valid(mailID) {
		return q, "", false, nil
	}
	q, ok, err = queuedByID.Maybe(tx, mailID)
	if err != nil || !ok || q.State == sent {
		return q, q.State, ok, err
	}
	was = q.State
	if _, err := again.Exec(tx, mailID, tx.Micros()); err != nil {
		return q, was, true, err
	}
	if _, err := endOutage.Exec(tx); err != nil { // it is to be tried now
		return q, was, true, err
	}
	o.Hub.Notify(tx, topic)
	q, ok, err = queuedByID.Maybe(tx, mailID)
	return q, was, ok, err
}

// Refusal is an address that a mail server has refused for good.
type Refusal struct {
	Address string
	Reason  string
	At      time.Time
}

// Refused answers whether a mail server has refused an address; nil: none has. Mails that
// are notifications are not sent to it, until the address changes, somebody clears it, or
// another mail arrives there.
func Refused(tx *db.Tx, address string) (*Refusal, error) {
	r, ok, err := refusal.Maybe(tx, canonical(address))
	if err != nil || !ok {
		return nil, err
	}
	return &Refusal{Address: r.Address, Reason: r.Reason, At: r.RefusedAt}, nil
}

// Refusals lists refused addresses in the order of the alphabet: those after one, at most
// limit.
func Refusals(tx *db.Tx, after string, limit int) ([]Refusal, error) {
	rows, err := refusals.All(tx, after, limit)
	out := make([]Refusal, len(rows))
	for i, r := range rows {
		out[i] = Refusal{Address: r.Address, Reason: r.Reason, At: r.RefusedAt}
	}
	return out, err
}

// Clear forgets that an address was refused. It answers false if none has refused it.
func Clear(tx *db.Tx, address string) (bool, error) {
	n, err := endRefusal.Exec(tx, canonical(address))
	return n > 0, err
}

// canonical is the form of an address in which it is compared.
func canonical(address string) string { return strings.ToLower(strings.TrimSpace(address)) }

var errStopped = errors.New("the address was refused before")
