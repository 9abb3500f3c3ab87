package mail

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/client/inert"
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

// pauses are the waits after each time that the mail server takes no mails; the last is
// repeated. Mails lose no try by that.
var pauses = []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute}

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
	ReplyTo   string // address for answers; empty: From
	Logger    *slog.Logger
	Keep      time.Duration // how long mails are kept that were sent or have failed; 0: for good
	// Hears tells whether a user may be told what happens in tx.Account. It is asked when a
	// mail with a Reader is sent, and has to be set before one is.
	Hears func(tx *db.Tx, userID string) (bool, error)

	every time.Duration // between two looks without a Post; 0: sweep
}

const topic = "mails"

// Post stores a mail in the transaction of its cause. It is sent after the commit. A
// notification for an address that was refused is not stored.
func (o *Outbox) Post(tx *db.Tx, m Message) error {
	if m.List != "" {
		if r, err := Refused(tx, m.To); err != nil || r != nil {
			return err
		}
	}
	mail := id.New()
	whole, err := json.Marshal(content{Text: m.Text, HTML: m.HTML, Unsubscribe: m.Unsubscribe, List: m.List, Thread: m.Thread})
	if err != nil {
		return err
	}
	at := tx.Micros()
	if m.After.After(tx.Now) {
		at = db.Micros(m.After)
	}
	in := insertArgs{
		ID: mail, Recipient: m.To, Subject: inert.Line(m.Subject), Sealed: o.Ring.Seal(purpose(mail), whole), DueAt: at,
		CreatedAt: tx.Micros(), AccountID: m.Reader.AccountID, UserID: m.Reader.UserID,
	}
	if m.List != "" {
		in.Notice = 1
	}
	if _, err := insert.Exec(tx, in); err != nil {
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
	List        string `json:"list,omitempty"`
	Thread      string `json:"thread,omitempty"`
}

func purpose(mail string) string { return "mail/" + mail }

// Loop sends due mails until ctx ends. Every node may run it: a lease in the
// database keeps two nodes from the same mail.
func (o *Outbox) Loop(ctx context.Context) error {
	var tidy db.Hourly
	o.Hub.Sweep(ctx, "mails.sweep", topic, cmp.Or(o.every, sweep), func(ctx context.Context) {
		err := errors.Join(o.Pass(ctx), tidy.Do(ctx, o.DB, o.forget))
		observe.Failed(ctx, err)
		if err != nil && ctx.Err() == nil {
			o.Logger.ErrorContext(ctx, "send mails", slog.Any("error", err))
		}
	})
	return nil
}

// forget removes old mails that are over.
func (o *Outbox) forget(tx *db.Tx) error {
	if o.Keep == 0 {
		return nil
	}
	_, err := forget.Exec(tx, tx.Now.Add(-o.Keep))
	return err
}

// Oldest is the time at which the oldest due mail was posted; nil if no mail is
// due.
func (o *Outbox) Oldest(tx *db.Tx) (*time.Time, error) { return selectOldest.One(tx, tx.Micros()) }

// Pass sends all mails that are due now, in the order in which they were posted:
// notifications after those that people wait for. It sends none while the mail server takes
// none.
func (o *Outbox) Pass(ctx context.Context) error {
	for {
		batch, down, err := o.take(ctx)
		if err != nil || len(batch) == 0 {
			return err
		}
		for i, r := range batch {
			err := o.send(ctx, r)
			if ctx.Err() != nil {
				return ctx.Err() // the lease ends, and the mail is tried again
			}
			if errors.Is(err, errLeft) {
				if err := o.drop(ctx, r); err != nil {
					return fmt.Errorf("mail %s: %w", r.ID, err)
				}
				continue
			}
			if errors.Is(err, errDown) {
				return o.pause(ctx, batch[i:], err)
			}
			if err := o.settle(ctx, r, err, down); err != nil {
				return fmt.Errorf("mail %s: %w", r.ID, err)
			}
			down = false
		}
	}
}

// take leases mails that are due. down tells whether the server took none the last time.
func (o *Outbox) take(ctx context.Context) (batch []row, down bool, err error) {
	err = o.DB.Write(ctx, func(tx *db.Tx) error {
		batch, down = nil, false
		out, err := Down(tx)
		if err != nil || out != nil && tx.Now.Before(out.Until) {
			return err
		}
		down = out != nil
		batch, err = takeDue.All(tx, tx.Micros(), db.Micros(tx.Now.Add(lease)))
		return err
	})
	slices.SortFunc(batch, func(a, b row) int { return cmp.Or(cmp.Compare(a.Notice, b.Notice), strings.Compare(a.ID, b.ID)) })
	return batch, down, err
}

// pause gives mails back, because the mail server takes none, and has all nodes wait.
func (o *Outbox) pause(ctx context.Context, batch []row, cause error) error {
	o.Logger.WarnContext(ctx, "the mail server takes no mails", slog.Any("error", cause))
	return o.DB.Write(ctx, func(tx *db.Tx) error {
		for _, r := range batch {
			if _, err := refused.Exec(tx, refusedArgs{
				ID: r.ID, Tries: r.Tries, State: due, DueAt: tx.Now, LastError: reason(cause), Failures: r.Failures,
			}); err != nil {
				return err
			}
		}
		now := outageRow{Server: theServer, Reason: reason(cause), Tries: 1, Since: tx.Now}
		before, err := outage.All(tx)
		if err != nil {
			return err
		}
		if len(before) > 0 {
			now.Tries, now.Since = before[0].Tries+1, before[0].Since
		}
		now.Until = tx.Now.Add(pauses[min(now.Tries, int64(len(pauses)))-1])
		_, err = setOutage.Exec(tx, now)
		return err
	})
}

// theServer is the name of the one mail server that there is.
const theServer = "smtp"

// settle stores the outcome of an attempt. If the process ends before, the attempt is
// repeated after the lease.
func (o *Outbox) settle(ctx context.Context, r row, cause error, down bool) error {
	return o.DB.Write(ctx, func(tx *db.Tx) error {
		if down {
			if _, err := endOutage.Exec(tx); err != nil {
				return err
			}
		}
		if cause == nil {
			if _, err := endRefusal.Exec(tx, canonical(r.Recipient)); err != nil {
				return err
			}
			_, err := delivered.Exec(tx, r.ID, r.Tries, tx.Micros())
			return err
		}
		o.Logger.WarnContext(ctx, "a mail was not sent", slog.String("mail", r.ID), slog.Int("try", r.Tries), slog.Any("error", cause))
		if errors.Is(cause, ErrAddress) {
			if _, err := setRefusal.Exec(tx, canonical(r.Recipient), reason(cause), tx.Micros()); err != nil {
				return err
			}
		}
		r.Failures++
		state, at := failed, tx.Now
		if r.Failures <= len(ladder) && !errors.Is(cause, errPermanent) && !errors.Is(cause, ErrAddress) {
			state, at = due, tx.Now.Add(ladder[r.Failures-1])
		}
		_, err := refused.Exec(tx, refusedArgs{
			ID: r.ID, Tries: r.Tries, State: state, DueAt: at, LastError: reason(cause), Failures: r.Failures,
		})
		return err
	})
}

// errLeft says that the reader of a mail is told nothing of the account any more.
var errLeft = errors.New("the reader has left the account")

// drop forgets a mail whose reader has left. What it says is not for them.
func (o *Outbox) drop(ctx context.Context, r row) error {
	o.Logger.InfoContext(ctx, "a mail was dropped: its reader has left the account", slog.String("mail", r.ID))
	return o.DB.Write(ctx, func(tx *db.Tx) error {
		_, err := dropped.Exec(tx, r.ID, r.Tries)
		return err
	})
}

// stays fails with errLeft if the reader of a mail is told nothing of its account any more.
func (o *Outbox) stays(ctx context.Context, r row) error {
	if r.UserID == "" {
		return nil
	}
	return o.DB.Read(db.WithAccount(ctx, r.AccountID), func(tx *db.Tx) error {
		hears, err := o.Hears(tx, r.UserID)
		if err == nil && !hears {
			err = errLeft
		}
		return err
	})
}

func (o *Outbox) send(ctx context.Context, r row) error {
	if err := o.stays(ctx, r); err != nil {
		return err
	}
	opened, err := o.Ring.Unseal(purpose(r.ID), r.Sealed)
	if err != nil {
		return permanent(err)
	}
	var c content
	if err := json.Unmarshal(opened, &c); err != nil || c.Text == "" {
		c = content{Text: string(opened)}
	}
	if c.List != "" {
		var before *Refusal
		if err := o.DB.Read(ctx, func(tx *db.Tx) (err error) {
			before, err = Refused(tx, r.Recipient)
			return err
		}); err != nil {
			return err
		}
		if before != nil {
			return permanent(errStopped)
		}
	}
	return o.Transport.Send(ctx, Letter{Message: Message{
		To: r.Recipient, Subject: r.Subject, Text: c.Text, HTML: c.HTML, Unsubscribe: c.Unsubscribe, List: c.List, Thread: c.Thread,
	}, ID: r.ID, From: o.From, ReplyTo: o.ReplyTo, At: r.CreatedAt})
}
