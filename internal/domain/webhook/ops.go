package webhook

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/hook"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

const group = "Outbound webhooks"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.ReadWebhooks), policy.Require(policy.WriteWebhooks)
	return append([]op.Op{
		op.New(op.Row{ID: "webhook.list", Method: "GET", Path: "/v1/webhooks", Group: group, Rule: read,
			Paging:  &op.Paging{Default: 25, Max: 100},
			Summary: "The account's webhooks, newest first",
			Doc:     "Addresses are masked, because a path is often a secret."}, s.list),
		op.New(op.Row{ID: "webhook.create", Method: "POST", Path: "/v1/webhooks", Group: group, Rule: write, Status: 201, NoStore: true,
			Refuses: []op.Refusal{{Status: 409, Slug: "webhook-exists"}, {Status: 409, Slug: "too-many-webhooks"}},
			Summary: "Have events sent to an address; the secret that signs them is shown once",
			Doc: "The address must be https or http, and lie in the public network or in one that the operator allows; it is judged " +
				"again at each attempt, and redirects are not followed. Each attempt is a POST signed with the secret: " +
				"X-Service-Signature is sha256= and the HMAC-SHA256, in hex, of X-Service-Timestamp, a full stop and the body. " +
				"An answer of 2xx within 10 seconds ends a delivery; else there are up to 8 more attempts over a day and a half, " +
				"with the same id and the same bytes. After the ninth failure the webhook is unhealthy, and gets nothing more."}, s.create),
		op.New(op.Row{ID: "webhook.delete", Method: "DELETE", Path: "/v1/webhooks/{id}", Group: group, Rule: write,
			Summary: "Delete a webhook; again is no error",
			Doc:     "Its address and its secret are forgotten, and what was on its way is not sent any more. Its name is free again."}, s.delete),
		op.New(op.Row{ID: "webhook.test", Method: "POST", Path: "/v1/webhooks/{id}/test", Group: group, Rule: write, Status: 202,
			Summary: "Send a test.ping to a webhook",
			Doc:     "It is delivered as any other event is, and its attempts are in the ledger. A webhook that is unhealthy is tried once."}, s.test),
		op.New(op.Row{ID: "webhook.revive", Method: "POST", Path: "/v1/webhooks/{id}/revive", Group: group, Rule: write,
			Summary: "Send events to a webhook again that was unhealthy; again is no error",
			Doc:     "What happened in between was skipped, and is not sent by itself: see webhook.redeliver."}, s.revive),
		op.New(op.Row{ID: "webhook.deliveries", Method: "GET", Path: "/v1/webhooks/deliveries", Group: group, Rule: read,
			Paging:  &op.Paging{Default: 50, Max: 100},
			Summary: "The account's last 100 attempts, newest first",
			Doc:     "Of all its webhooks, with the status and the first 2 KB of each answer. Older attempts are not kept."}, s.deliveries),
		op.New(op.Row{ID: "webhook.redeliver", Method: "POST", Path: "/v1/webhooks/deliveries/{id}/redeliver", Group: group, Rule: write,
			Status: 202, Refuses: []op.Refusal{{Status: 409, Slug: "webhook-deleted"}, {Status: 409, Slug: "event-gone"}},
			Summary: "Send the event of an attempt to its webhook once more",
			Doc:     "With the same id and the same bytes, so that a receiver that has handled it can tell. An event is kept for 30 days, unless the operator says otherwise."}, s.redeliver),
	}, s.ownOps()...)
}

// Webhook is a webhook as the API shows it.
type Webhook struct {
	_           struct{}    `doc:"An address that is told of events."`
	ID          string      `json:"id" format:"uuid" doc:"id of the webhook"`
	Name        string      `json:"name" example:"coder" doc:"its name, which no other webhook of the account has"`
	URL         string      `json:"url" example:"https://hooks.example.com/…" doc:"its address without path and query"`
	Events      []string    `json:"events" example:"[\"pr.merged\",\"issue.handoff\"]" doc:"types of events that are sent there"`
	Format      hook.Format `json:"format" doc:"what the address understands"`
	State       State       `json:"state" example:"healthy" doc:"failing: no attempt since failing_since has succeeded, and more are made; unhealthy: an event used up its attempts, and nothing more is sent"`
	FailingAt   *time.Time  `json:"failing_since" example:"null" doc:"when the first of the attempts was made that failed one after another up to now; null: the last one succeeded, or none was made"`
	Healthy     bool        `json:"healthy" doc:"false: it is unhealthy"`
	UnhealthyAt *time.Time  `json:"unhealthy_at" example:"null" doc:"when that was; null while it is healthy"`
	CreatedBy   string      `json:"created_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who made it"`
	CreatedAt   time.Time   `json:"created_at" doc:"when it was made"`
}

// State is how a webhook does.
type State string

// The states of a webhook.
const (
	Healthy   = "healthy"
	Failing   = "failing"
	Unhealthy = "unhealthy"
)

// Values lists all.
func (State) Values() []string { return []string{Healthy, Failing, Unhealthy} }

func (r row) state() State {
	switch {
	case r.UnhealthyAt != nil:
		return Unhealthy
	case r.FailingAt != nil:
		return Failing
	}
	return Healthy
}

func (r row) wire() Webhook {
	return Webhook{
		ID:          r.ID,
		Name:        r.Name,
		URL:         r.Masked,
		Events:      r.Types.V,
		Format:      r.Format,
		State:       r.state(),
		FailingAt:   r.FailingAt,
		Healthy:     r.UnhealthyAt == nil,
		UnhealthyAt: r.UnhealthyAt,
		CreatedBy:   r.CreatedBy,
		CreatedAt:   r.CreatedAt,
	}
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (op.Page[Webhook], error) {
	var rows []row
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = list(tx, in.PageIn)
		return err
	})
	return op.ShowPage(in.PageIn, rows, func(r row) []string { return op.TimeKey(r.CreatedAt, r.ID) }, row.wire), err
}

type createIn struct {
	Name   string      `json:"name" minLength:"1" maxLength:"100" pattern:"^[^\\s@\\x00-\\x1f\\x7f]([^\\x00-\\x1f\\x7f]*[^\\s\\x00-\\x1f\\x7f])?$" says:"must be one line, without @ or a space at the beginning, or a space at the end" example:"coder" doc:"name of the webhook; policy files call it by this"`
	URL    string      `json:"url" minLength:"1" maxLength:"2000" example:"https://hooks.example.com/services/T0001" doc:"where events are sent"`
	Events []string    `json:"events,omitempty" example:"[\"pr.merged\"]" doc:"types of events that are sent there, among them notification. with a kind. Other kinds of the audit record are taken, and deliver nothing; left out: pr.merged, issue.escalated, issue.handoff and test.ping or, for a chat, what people want to see there"`
	Format hook.Format `json:"format,omitempty" doc:"what the address understands: json, unless sent, is the signed envelope; the others are incoming webhooks of chat programs"`
}

// Created is the answer of webhook.create.
type Created struct {
	_ struct{} `doc:"A webhook that was made, with its secret." schema:"CreatedWebhook"`
	Webhook
	Secret string `json:"secret" example:"dev_whk_example" doc:"signs what is sent; it is not shown again"`
}

func (s *Service) create(ctx context.Context, in createIn) (out Created, err error) {
	for _, t := range in.Events {
		if !slices.Contains(Types(), t) && !slices.ContainsFunc(event.Kinds(), func(k event.Any) bool { return k.Name() == t }) {
			return out, fault.Field("events", "has a type that there is not, "+t+": those that are sent are "+strings.Join(Types(), ", "))
		}
	}
	if in.Format == "" {
		in.Format = hook.JSON
	}
	switch {
	case in.Events == nil && in.Format == hook.JSON:
		in.Events = slices.Clone(types)
	case in.Events == nil:
		in.Events = chatTypes()
	}
	slices.Sort(in.Events)
	in.Events = slices.Compact(in.Events)
	to, wrong := s.Guard.Destination(ctx, in.URL)
	if wrong != "" {
		return out, fault.Field("url", wrong)
	}
	secret := id.Secret(id.Webhook)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		all, err := living.All(tx, tx.Account)
		if err != nil {
			return err
		}
		if len(all) >= maxHooks {
			return fault.Reason("too-many-webhooks", "The account has 50 webhooks. Delete one first.")
		}
		h, err := s.add(tx, insertArgs{
			Name: in.Name, Masked: to.Masked, Types: db.JSON[[]string]{V: in.Events}, Format: in.Format,
			CreatedBy: policy.From(ctx).Label(),
		}, hook.Target{URL: to.URL, Secret: secret})
		if err != nil {
			return err
		}
		out = Created{Webhook: h.wire(), Secret: secret}
		return createdEvent.Record(tx, event.Subject{ID: h.ID}, createdData{Events: in.Events, Name: in.Name, URL: to.Masked})
	})
	if db.IsUnique(err) {
		err = fault.Reason("webhook-exists", "There is a webhook of that name.")
	}
	return out, err
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the webhook"`
}

// Deleted is the answer of webhook.delete.
type Deleted struct {
	_       struct{} `doc:"What webhook.delete did." schema:"DeletedWebhook"`
	ID      string   `json:"id" format:"uuid" doc:"id of the webhook"`
	Deleted bool     `json:"deleted" doc:"false: it was deleted before"`
}

// find reads a webhook of tx.Account, deleted or not.
func find(tx *db.Tx, hookID string) (row, error) {
	h, ok, err := byID.Maybe(tx, tx.Account, hookID)
	if err == nil && (!ok || h.UserID != nil) {
		err = fault.Missing("webhook")
	}
	return h, err
}

// alive reads a webhook of tx.Account that was not deleted.
func alive(tx *db.Tx, hookID string) (row, error) {
	h, err := find(tx, hookID)
	if err == nil && h.DeletedAt != nil {
		err = fault.Missing("webhook")
	}
	return h, err
}

func (s *Service) delete(ctx context.Context, in idIn) (out Deleted, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		h, err := find(tx, in.ID)
		if err != nil {
			return err
		}
		n, err := erase.Exec(tx, tx.Account, h.ID, tx.Micros())
		if out = (Deleted{ID: h.ID, Deleted: n > 0}); err != nil || n == 0 {
			return err
		}
		if err := drop(tx, h.ID, "The webhook was deleted before it was told."); err != nil {
			return err
		}
		return deletedEvent.Record(tx, event.Subject{ID: h.ID}, deletedData{Name: h.Name})
	})
	return out, err
}

// Queued is the answer of webhook.test and webhook.redeliver.
type Queued struct {
	_          struct{} `doc:"A delivery that is queued." schema:"QueuedDelivery"`
	DeliveryID string   `json:"delivery_id" format:"uuid" doc:"id of the delivery; its attempts in the ledger name it"`
	EventID    string   `json:"event_id" example:"evt_0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"id of the event that is sent"`
	State      string   `json:"state" enum:"pending" doc:"it is sent soon"`
}

func (s *Service) test(ctx context.Context, in idIn) (out Queued, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		h, err := alive(tx, in.ID)
		if err != nil {
			return err
		}
		return s.ping(tx, h, h.Name, &out)
	})
	return out, err
}

// Ping is the data of test.ping.
type Ping struct {
	_      struct{} `doc:"The data of test.ping."`
	HookID string   `json:"hook_id" format:"uuid" doc:"id of the webhook"`
	Name   string   `json:"name" doc:"of the webhook; your own is called your own"`
}

// ping queues a test for a webhook.
func (s *Service) ping(tx *db.Tx, h row, name string, out *Queued) error {
	data, err := json.Marshal(Ping{HookID: h.ID, Name: name})
	if err != nil {
		return err
	}
	eventID, _, err := s.store(tx, News{Type: TestPing, At: tx.Now, Data: data})
	if err != nil {
		return err
	}
	return s.send(tx, h, eventID, TestPing, testedEvent, out)
}

// send queues an event for a webhook because a person wants it.
func (s *Service) send(tx *db.Tx, h row, eventID, kind string, told event.Kind[testedData], out *Queued) error {
	deliveryID, err := s.queue(tx, h, eventID, kind, true)
	if err != nil {
		return err
	}
	*out = Queued{DeliveryID: deliveryID, EventID: eventID, State: Pending}
	if e, ok, err := handoffEvent.Maybe(tx, tx.Account, eventID); err != nil {
		return err
	} else if ok {
		if err := tellOf(tx, e, Pending, ""); err != nil {
			return err
		}
	}
	name, err := nameOf(tx, h)
	if err != nil {
		return err
	}
	return told.Record(tx, event.Subject{ID: h.ID}, testedData{DeliveryID: deliveryID, EventID: eventID, Name: name})
}

func (s *Service) revive(ctx context.Context, in idIn) (out Webhook, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		h, err := alive(tx, in.ID)
		if err != nil {
			return err
		}
		n, err := revive.Exec(tx, tx.Account, h.ID)
		if n > 0 {
			h.UnhealthyAt, h.FailingAt = nil, nil
		}
		if out = h.wire(); err != nil || n == 0 {
			return err
		}
		return RevivedEvent.Record(tx, event.Subject{ID: h.ID}, deletedData{Name: h.Name})
	})
	return out, err
}

// Attempt is a row of the ledger.
type Attempt struct {
	_              struct{}     `doc:"An attempt to send an event to a webhook." schema:"WebhookAttempt"`
	ID             string       `json:"id" format:"uuid" doc:"id of the attempt"`
	HookID         string       `json:"hook_id" format:"uuid" doc:"the webhook"`
	HookName       string       `json:"hook_name" example:"coder" doc:"name of the webhook"`
	DeliveryID     string       `json:"delivery_id" format:"uuid" doc:"the delivery that it is an attempt of"`
	EventID        string       `json:"event_id" example:"evt_0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"the event; receivers know it by this"`
	Type           EventType    `json:"type" example:"pr.merged" doc:"type of the event"`
	Attempt        int64        `json:"attempt" example:"1" doc:"1 to 9; 0 for an event that was skipped"`
	Status         AttemptState `json:"status" example:"ok" doc:"retrying: it failed, and next_attempt_at says when it is tried again; exhausted: it failed for good; skipped: the webhook was unhealthy"`
	ResponseStatus *int64       `json:"response_status" example:"200" doc:"status of the answer; null: there was none"`
	Response       string       `json:"response_excerpt" example:"ok" doc:"the first 2 KB of the answer's body"`
	Error          *string      `json:"error" example:"null" doc:"why it failed; null: it did not"`
	DurationMS     int64        `json:"duration_ms" example:"84" doc:"how long it took"`
	NextAttemptAt  *time.Time   `json:"next_attempt_at" example:"null" doc:"when it is tried again, or up to 15 seconds later; null: it is not"`
	At             time.Time    `json:"at" doc:"when it was over"`
}

type ledgerIn struct{ op.PageIn }

func (s *Service) deliveries(ctx context.Context, in ledgerIn) (op.Page[Attempt], error) {
	var rows []shownAttempt
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = ledger.All(tx, tx.Account, maxLedger)
		return err
	})
	if after := in.After(); len(after) > 0 { // ids are ordered as the attempts were
		rows = slices.DeleteFunc(rows, func(r shownAttempt) bool { return r.ID >= after[0] })
	}
	key := func(r shownAttempt) []string { return []string{r.ID} }
	return op.ShowPage(in.PageIn, rows[:min(len(rows), in.Size())], key, func(r shownAttempt) Attempt {
		return Attempt{
			ID: r.ID, HookID: r.HookID, HookName: r.Name, DeliveryID: r.DeliveryID, EventID: r.EventID,
			Type: EventType(r.Type), Attempt: r.Attempt,
			Status: AttemptState(r.State), ResponseStatus: r.ResponseStatus, Response: r.Excerpt, Error: r.Error, DurationMS: r.Took / 1000,
			NextAttemptAt: r.NextAt, At: r.At,
		}
	}), err
}

type attemptIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the attempt"`
}

func (s *Service) redeliver(ctx context.Context, in attemptIn) (out Queued, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		a, ok, err := attemptByID.Maybe(tx, tx.Account, in.ID)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("attempt")
		}
		h, err := find(tx, a.HookID)
		if err != nil {
			return err
		}
		if h.DeletedAt != nil {
			return fault.Reason("webhook-deleted", "The webhook was deleted.")
		}
		if there, err := eventKept.One(tx, tx.Account, a.EventID); err != nil {
			return err
		} else if !there {
			return fault.Reason("event-gone", "The event is so old that it is not kept any more.")
		}
		return s.send(tx, h, a.EventID, a.Type, redeliveredEvent, &out)
	})
	return out, err
}
