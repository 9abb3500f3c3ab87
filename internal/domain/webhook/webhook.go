// Package webhook tells the systems of customers of events. An account names an address;
// each event that is due there is a delivery, which is tried up to nine times and signed
// anew each time. Every attempt is a row of the ledger.
//
//   - webhook.go: the types, what is sent, and to whom
//   - loop.go: the attempts that are due
//   - ops.go: the capabilities
package webhook

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/db"
	"yardmaster/internal/dial"
	"yardmaster/internal/event"
	"yardmaster/internal/hook"
	"yardmaster/internal/id"
	"yardmaster/internal/needs"
	"yardmaster/internal/seal"
)

// Types of events that are sent.
const (
	PullMerged     = "pr.merged"
	IssueEscalated = "issue.escalated"
	IssueHandoff   = "issue.handoff"
	TestPing       = "test.ping"
)

// types are those that a webhook can ask for.
var types = []string{PullMerged, IssueEscalated, IssueHandoff, TestPing}

// AttemptState is how an attempt ended.
type AttemptState string

// States of a delivery, and of an attempt in the ledger.
const (
	Pending   = "pending"
	OK        = "ok"
	Retrying  = "retrying"
	Exhausted = "exhausted"
	Skipped   = "skipped" // the webhook was not healthy, so nothing was sent
)

// Values lists all states.
func (AttemptState) Values() []string { return []string{OK, Retrying, Exhausted, Skipped} }

// Limits of webhooks.
const (
	maxHooks  = 50  // of an account
	maxLedger = 100 // attempts that an account is shown
)

// ladder is the least time to the next attempt after each failure. After the failure of
// the attempt beyond it the webhook is unhealthy.
var ladder = []time.Duration{
	time.Second, 5 * time.Second, 30 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// Needs are the dependencies of Service.
type Needs struct {
	DB     *db.DB
	Hub    *event.Hub
	Ring   *seal.Keyring
	Guard  *dial.Guard
	Sender *hook.Sender
	Logger *slog.Logger
	// Process is the name of this process among all that there were.
	Process string
	Keep    time.Duration // how long events and deliveries are kept; 0: kept
}

// Service has the capabilities of webhooks, and makes the attempts that are due.
type Service struct {
	Needs
	working working
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	n.Keep = cmp.Or(n.Keep, kept)
	return &Service{Needs: n}
}

func purpose(hookID string) string { return "webhook/" + hookID }

// News is an event that is due at webhooks.
type News struct {
	Type   string
	Source string // id of the audited event; the same one is sent once
	At     time.Time
	Data   jsontext.Value // an object
	Hook   string         // name of the only webhook that is told; "" for each that asks for the type
}

// Send has an event delivered to the webhooks of tx.Account that are to hear of it, which
// were there when it happened. It is
// recorded as skipped for those that are not healthy. The same Source again changes
// nothing.
func (s *Service) Send(tx *db.Tx, n News) error {
	hooks, err := living.All(tx, tx.Account)
	if err != nil {
		return err
	}
	hooks = slices.DeleteFunc(hooks, func(h row) bool {
		return n.Hook != "" && h.Name != n.Hook || !slices.Contains(h.Types.V, n.Type) || h.CreatedAt.After(n.At)
	})
	if len(hooks) == 0 {
		return tell(tx, Outcome{n.Type, n.Data, Exhausted, "The account has no webhook of that name any more that takes it."})
	}
	eventID, fresh, err := s.store(tx, n)
	if err != nil || !fresh {
		return err
	}
	for _, h := range hooks {
		if _, err := s.queue(tx, h, eventID, n.Type, false); err != nil {
			return err
		}
		out := Outcome{Type: n.Type, Data: n.Data, State: Pending}
		if h.UnhealthyAt != nil {
			out.State, out.Why = Skipped, unhealthyWhy
		}
		if err := tell(tx, out); err != nil {
			return err
		}
	}
	return nil
}

// unhealthyWhy is why a delivery is skipped.
const unhealthyWhy = "The webhook is not healthy, so nothing was sent."

// eventPrefix begins the ids of events on the wire.
const eventPrefix = "evt_"

// store keeps the body of an event; fresh is false if there is one of its source.
func (s *Service) store(tx *db.Tx, n News) (eventID string, fresh bool, err error) {
	eventID = eventPrefix + id.New()
	body, err := envelope(eventID, n)
	if err != nil {
		return "", false, err
	}
	if n.Source == "" {
		n.Source = eventID
	}
	rows, err := insertEvent.Exec(tx, insertEventArgs{
		ID: eventID, AccountID: tx.Account, Type: n.Type, Body: string(body), Source: n.Source, CreatedAt: tx.Micros(),
	})
	return eventID, rows == 1, err
}

// millis is the form of occurred_at.
const millis = "2006-01-02T15:04:05.000Z"

// Envelope is the body of an event.
type Envelope struct {
	ID   string          `json:"id" example:"evt_0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"begins with evt_ and is the same at each attempt and at each webhook; a receiver that has seen it answers 2xx and does nothing"`
	Type string          `json:"type" doc:"type of the event"`
	At   string          `json:"occurred_at" format:"date-time" example:"2026-03-14T09:26:53.000Z" doc:"when it happened, in UTC with milliseconds"`
	Data json.RawMessage `json:"data" doc:"what the type carries"`
}

// envelope is the body of an event: in the canonical form of RFC 8785, so that each
// attempt sends the same bytes.
func envelope(eventID string, n News) ([]byte, error) {
	text, err := json.Marshal(Envelope{
		ID: eventID, Type: n.Type, At: n.At.UTC().Format(millis), Data: json.RawMessage(n.Data),
	})
	if err != nil {
		return nil, err
	}
	v := jsontext.Value(text)
	err = v.Canonicalize()
	return v, err
}

// queue makes the delivery of an event to a webhook. A webhook that is not healthy gets
// none, unless forced, and the ledger says so.
func (s *Service) queue(tx *db.Tx, h row, eventID, kind string, forced bool) (deliveryID string, err error) {
	d := insertDeliveryArgs{
		ID: id.New(), AccountID: tx.Account, HookID: h.ID, EventID: eventID, State: Pending, CreatedAt: tx.Micros(),
	}
	if h.UnhealthyAt != nil && !forced {
		d.State = Skipped
	} else {
		now := tx.Micros()
		d.DueAt = &now
		s.Hub.Notify(tx, event.WebhookTopic)
	}
	if _, err := insertDelivery.Exec(tx, d); err != nil || d.State != Skipped {
		return d.ID, err
	}
	if h.UserID != nil {
		return d.ID, nil // the ledger is the account's
	}
	why := unhealthyWhy
	return d.ID, s.note(tx, attemptRow{
		ID: id.New(), AccountID: tx.Account, HookID: h.ID, EventID: eventID, DeliveryID: d.ID, Type: kind, State: Skipped, Error: &why,
		At: tx.Now,
	})
}

// note adds attempts to the ledger of tx.Account, and drops the oldest beyond its size.
func (s *Service) note(tx *db.Tx, all ...attemptRow) error {
	for _, a := range all {
		if _, err := insertAttempt.Exec(tx, a); err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return nil
	}
	_, err := trimLedger.Exec(tx, tx.Account, maxLedger)
	return err
}

// Sent tells whether the event with the id is one that was sent to tx.Account's webhooks.
// Events are kept for Needs.Keep.
func Sent(tx *db.Tx, eventID string) (bool, error) { return eventKept.One(tx, tx.Account, eventID) }

// Takes tells whether tx.Account has a webhook of a name, whether that asks for a type of
// events, and whether it is healthy. The own webhook of a person is none of the account.
func Takes(tx *db.Tx, name, kind string) (there, asks, healthy bool, err error) {
	h, ok, err := byName.Maybe(tx, tx.Account, name)
	if err != nil || !ok || h.UserID != nil {
		return false, false, false, err
	}
	return true, slices.Contains(h.Types.V, kind), h.UnhealthyAt == nil, nil
}
