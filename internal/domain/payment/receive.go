package payment

import (
	"context"
	"errors"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/stripe"
)

const (
	maxBody = 1 << 20
	// keep is for how long events are known to have come. Stripe repeats one for some days.
	keep = 90 * 24 * time.Hour
)

// EventOutcome is what came of an event.
type EventOutcome string

// Outcomes of an event.
const (
	accepted = "accepted" // the customer is looked at
	known    = "known"    // it has come before
	ignored  = "ignored"  // it is about no customer of this server
)

// Values lists all outcomes.
func (EventOutcome) Values() []string { return []string{accepted, known, ignored} }

// Payload is the body of an event, as far as all have it.
type Payload struct {
	_    struct{}       `doc:"An event of Stripe: an object whose data depends on its type." schema:"StripeEvent"`
	ID   string         `json:"id" example:"evt_1NG8Du2eZvKYlo2CUI79vXWy" doc:"its id, the same each time it is sent"`
	More map[string]any `json:",embed"`
}

// Receipt answers an event.
type Receipt struct {
	_    struct{}     `doc:"What became of an event." schema:"StripeReceipt"`
	Kind EventOutcome `json:"kind" example:"accepted" doc:"accepted: the customer will be looked at; known: the event has come before; ignored: it is about no customer of this server"`
}

var (
	errForged = fault.New(fault.Invalid, "payment-signature",
		"The event is not signed with the secret of this server's endpoint at Stripe.")
	errStale = fault.New(fault.Invalid, "payment-signature", "The signature of the event is older than five minutes.")
)

// receive takes an event. Its body is read as it was sent, for that is what is signed.
func (s *Service) receive(ctx context.Context, p *op.Pipeline, c *op.Call) op.Answer {
	if c.Refused != nil {
		return p.RefuseFor(c, c.Refused)
	}
	body, err := c.JSON()
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.UnsupportedMedia {
		return p.RefuseFor(c, errForged) // Stripe sends JSON
	} else if err != nil {
		return p.RefuseFor(c, err)
	}
	e, err := stripe.Read(body, c.Header(stripe.Header), s.Secret, s.Clock())
	switch {
	case errors.Is(err, stripe.ErrForged):
		return p.RefuseFor(c, errForged)
	case errors.Is(err, stripe.ErrStale):
		return p.RefuseFor(c, errStale)
	case err != nil:
		return p.RefuseFor(c, fault.Field("", "is no event of Stripe"))
	}
	var out Receipt
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System, RequestID: c.Request.ID})
	err = s.DB.Write(ctx, func(tx *db.Tx) (err error) {
		out.Kind, err = s.accept(tx, e)
		return err
	})
	if err != nil {
		return p.Refuse(c, err)
	}
	return p.Reply(c, out)
}

// accept stores an event that has not come before, and has its customer looked at.
func (s *Service) accept(tx *db.Tx, e stripe.Event) (kind EventOutcome, err error) {
	account, ours := "", false
	if e.Customer != "" {
		if account, ours, err = accountOf.Maybe(tx, e.Customer); err != nil {
			return "", err
		}
	}
	n, err := addEvent.Exec(tx, addEventArgs{ID: e.ID, AccountID: db.NullText(account), Kind: e.Type, ReceivedAt: tx.Now})
	switch {
	case err != nil:
		return "", err
	case n == 0:
		return known, nil
	case !ours:
		kind = ignored
	default:
		kind = accepted
		s.look(tx, account)
	}
	_, err = oldEvents.Exec(tx, tx.Now.Add(-keep))
	return kind, err
}

// look has the customer of an account read at once, and once more if that is going on.
func (s *Service) look(tx *db.Tx, account string) {
	s.queue.Add(tx, account, due.Entry{Account: account})
	s.queue.Hurry(tx, account)
}
