package mail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/observe"
	"yardmaster/internal/seal"
)

// The outbox leases a mail while it tries to send it, and looks for due mails at
// each Post and every sweep.
const (
	lease = 5 * time.Minute // longer than a batch of deliveries takes
	sweep = 15 * time.Second
)

// ladder is the wait after each failure. After the last step the mail is failed;
// its row remains.
var ladder = []time.Duration{
	10 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// Outbox stores mails, and sends them.
type Outbox struct {
	DB        *db.DB
	Hub       *event.Hub
	Ring      *seal.Keyring
	Transport Transport
	From      string // address of the sender
	Logger    *slog.Logger
}

const topic = "mails"

// Post stores a mail in the transaction of its cause. It is sent after the commit.
func (o *Outbox) Post(tx *db.Tx, m Message) error {
	mail := id.New()
	whole, err := json.Marshal(content{Text: m.Text, HTML: m.HTML, Unsubscribe: m.Unsubscribe, Thread: m.Thread})
	if err != nil {
		return err
	}
	at := tx.Micros()
	if m.After.After(tx.Now) {
		at = db.Micros(m.After)
	}
	if _, err := insert.Exec(tx, insertArgs{
		ID: mail, Recipient: m.To, Subject: m.Subject, Sealed: o.Ring.Seal(purpose(mail), whole), DueAt: at, CreatedAt: tx.Micros(),
	}); err != nil {
		return err
	}
	o.Hub.Notify(tx, topic)
	return nil
}

// content is what is sealed of a mail. Servers before stored its text alone.
type content struct {
	Text        string `json:"text"`
	HTML        string `json:"html,omitempty"`
	Unsubscribe string `json:"unsubscribe,omitempty"`
	Thread      string `json:"thread,omitempty"`
}

func purpose(mail string) string { return "mail/" + mail }

// Loop sends due mails until ctx ends. Every node may run it: a lease in the
// database keeps two nodes from the same mail.
func (o *Outbox) Loop(ctx context.Context) error {
	o.Hub.Sweep(ctx, "mails.sweep", topic, sweep, func(ctx context.Context) {
		err := o.Pass(ctx)
		observe.Failed(ctx, err)
		if err != nil && ctx.Err() == nil {
			o.Logger.ErrorContext(ctx, "send mails", slog.Any("error", err))
		}
	})
	return nil
}

// Oldest is the time at which the oldest due mail was posted; nil if no mail is
// due.
func (o *Outbox) Oldest(tx *db.Tx) (*time.Time, error) { return selectOldest.One(tx, tx.Micros()) }

// Pass sends all mails that are due now.
func (o *Outbox) Pass(ctx context.Context) error {
	for {
		var batch []row
		err := o.DB.Write(ctx, func(tx *db.Tx) (err error) {
			batch, err = takeDue.All(tx, tx.Micros(), db.Micros(tx.Now.Add(lease)))
			return err
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		for _, r := range batch {
			if err := o.deliver(ctx, r); err != nil {
				return fmt.Errorf("mail %s: %w", r.ID, err)
			}
		}
	}
}

// deliver makes one attempt and stores its outcome. If the process ends before,
// the attempt is repeated after the lease.
func (o *Outbox) deliver(ctx context.Context, r row) error {
	err := o.send(ctx, r)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return o.DB.Write(ctx, func(tx *db.Tx) error {
		if err == nil {
			_, err := delivered.Exec(tx, r.ID, r.Tries, tx.Micros())
			return err
		}
		o.Logger.WarnContext(ctx, "a mail was not sent", slog.String("mail", r.ID), slog.Int("try", r.Tries), slog.Any("error", err))
		state, at := failed, tx.Now
		if r.Tries <= len(ladder) && !errors.Is(err, errPermanent) {
			state, at = due, tx.Now.Add(ladder[r.Tries-1])
		}
		_, err := refused.Exec(tx, refusedArgs{ID: r.ID, Tries: r.Tries, State: state, DueAt: at, LastError: err.Error()})
		return err
	})
}

func (o *Outbox) send(ctx context.Context, r row) error {
	opened, err := o.Ring.Unseal(purpose(r.ID), r.Sealed)
	if err != nil {
		return permanent(err)
	}
	var c content
	if err := json.Unmarshal(opened, &c); err != nil || c.Text == "" {
		c = content{Text: string(opened)}
	}
	return o.Transport.Send(ctx, Letter{Message: Message{
		To: r.Recipient, Subject: r.Subject, Text: c.Text, HTML: c.HTML, Unsubscribe: c.Unsubscribe, Thread: c.Thread,
	}, ID: r.ID, From: o.From, At: r.CreatedAt})
}
