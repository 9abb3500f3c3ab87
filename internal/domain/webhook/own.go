package webhook

import (
	"context"
	"encoding/json"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/hook"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// ownName is the name of the webhook of a person, which no name of an account is like.
func ownName(userID string) string { return "@" + userID }

// ownOps are the capabilities of the webhook that each person may have for notifications.
func (s *Service) ownOps() []op.Op {
	mine := policy.Require(policy.ReadAccount).OfUser()
	const group, path = "Knowledge base, dashboards, digests, notifications", "/v1/me/notification-webhook"
	return []op.Op{
		op.New(op.Row{ID: "notification.webhook_get", Method: "GET", Path: path, Group: group, Rule: mine,
			Summary: "The caller's own webhook for notifications",
			Doc:     "webhook is null when there is none. What is sent there is chosen in the caller's preferences, in the column webhook."}, s.own),
		op.New(op.Row{ID: "notification.webhook_set", Method: "PUT", Path: path, Group: group, Rule: mine, NoStore: true,
			Summary: "Name the address of the caller's own webhook for notifications, in the place of the one before",
			Doc: "Messages of the format json are signed, with the secret that is shown once; the others are what incoming webhooks of " +
				"chat programs take. A webhook that was unhealthy is well again."}, s.setOwn),
		op.New(op.Row{ID: "notification.webhook_clear", Method: "DELETE", Path: path, Group: group, Rule: mine,
			Summary: "Forget the caller's own webhook for notifications; again is no error",
			Doc:     "Nothing more is sent there."}, s.clearOwn),
		op.New(op.Row{ID: "notification.webhook_test", Method: "POST", Path: path + "/test", Group: group, Rule: mine, Status: 202,
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}},
			Summary: "Send a message to the caller's own webhook, to see whether it comes",
			Doc:     "404 when there is none. It is sent even to a webhook that is not healthy."}, s.testOwn),
	}
}

// OwnWebhook is the webhook of a person.
type OwnWebhook struct {
	_           struct{}    `doc:"The webhook of a person." schema:"OwnWebhook"`
	URL         string      `json:"url" example:"https://hooks.example.com/…" doc:"its address without path and query"`
	Format      hook.Format `json:"format" doc:"what it understands"`
	State       State       `json:"state" example:"healthy" doc:"failing: the last attempts have all failed, and more are made; unhealthy: a message used up its attempts"`
	Healthy     bool        `json:"healthy" doc:"false: a message used up its attempts, and nothing more is sent until the address is set again"`
	UnhealthyAt *time.Time  `json:"unhealthy_at" example:"null" doc:"when that was; null while it is healthy"`
	CreatedAt   time.Time   `json:"created_at" doc:"when it was set"`
}

// Own is the answer of notification.webhook_get.
type Own struct {
	_       struct{}    `doc:"The caller's own webhook." schema:"NotificationWebhook"`
	Webhook *OwnWebhook `json:"webhook" doc:"null: there is none"`
}

func (r row) own() *OwnWebhook {
	return &OwnWebhook{
		URL: r.Masked, Format: r.Format, State: r.state(), Healthy: r.UnhealthyAt == nil, UnhealthyAt: r.UnhealthyAt,
		CreatedAt: r.CreatedAt,
	}
}

func (s *Service) own(ctx context.Context, _ op.None) (out Own, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		h, ok, err := byName.Maybe(tx, tx.Account, ownName(policy.From(ctx).UserID))
		if ok {
			out.Webhook = h.own()
		}
		return err
	})
	return out, err
}

type setOwnIn struct {
	URL    string      `json:"url" minLength:"1" maxLength:"2000" example:"https://hooks.example.com/services/T0001" doc:"where messages are sent"`
	Format hook.Format `json:"format,omitempty" doc:"what it understands; json unless sent"`
}

// SetOwn is the answer of notification.webhook_set.
type SetOwn struct {
	_       struct{}    `doc:"The webhook that was set." schema:"NotificationWebhookSet"`
	Webhook *OwnWebhook `json:"webhook" doc:"the webhook"`
	Secret  string      `json:"secret" example:"dev_whk_example" doc:"signs what is sent; it is not shown again"`
}

func (s *Service) setOwn(ctx context.Context, in setOwnIn) (out SetOwn, err error) {
	if in.Format == "" {
		in.Format = hook.JSON
	}
	to, wrong := s.Guard.Destination(ctx, in.URL)
	if wrong != "" {
		return out, fault.Field("url", wrong)
	}
	secret := id.Secret(id.Webhook)
	userID := policy.From(ctx).UserID
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		if _, err := s.forgetOwn(tx, userID); err != nil {
			return err
		}
		h, err := s.add(tx, insertArgs{
			Name: ownName(userID), Masked: to.Masked, Types: db.JSON[[]string]{V: []string{}}, Format: in.Format, UserID: &userID,
			CreatedBy: policy.From(ctx).Label(),
		}, hook.Target{URL: to.URL, Secret: secret})
		out = SetOwn{Webhook: h.own(), Secret: secret}
		if err != nil {
			return err
		}
		return ownSetEvent.Record(tx, event.Subject{ID: userID}, ownData{Format: in.Format, URL: to.Masked})
	})
	return out, err
}

// add stores a webhook of tx.Account.
func (s *Service) add(tx *db.Tx, a insertArgs, to hook.Target) (row, error) {
	text, err := json.Marshal(to)
	if err != nil {
		return row{}, err
	}
	a.ID = id.New()
	a.AccountID, a.Sealed, a.CreatedAt = tx.Account, s.Ring.Seal(purpose(a.ID), text), tx.Micros()
	if _, err := insert.Exec(tx, a); err != nil {
		return row{}, err
	}
	return byID.One(tx, tx.Account, a.ID)
}

// forgetOwn erases the webhook of a person in tx.Account. It tells whether there was one.
func (s *Service) forgetOwn(tx *db.Tx, userID string) (bool, error) {
	h, ok, err := byName.Maybe(tx, tx.Account, ownName(userID))
	if err != nil || !ok {
		return false, err
	}
	if _, err := erase.Exec(tx, tx.Account, h.ID, tx.Micros()); err != nil {
		return false, err
	}
	_, err = dropAll.Exec(tx, h.ID)
	return true, err
}

// ClearedOwn is the answer of notification.webhook_clear.
type ClearedOwn struct {
	_       struct{} `doc:"What notification.webhook_clear did." schema:"NotificationWebhookCleared"`
	Cleared bool     `json:"cleared" doc:"false: there was none"`
}

func (s *Service) clearOwn(ctx context.Context, _ op.None) (out ClearedOwn, err error) {
	userID := policy.From(ctx).UserID
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if out.Cleared, err = s.forgetOwn(tx, userID); err != nil || !out.Cleared {
			return err
		}
		return ownClearedEvent.Record(tx, event.Subject{ID: userID}, event.None{})
	})
	return out, err
}

func (s *Service) testOwn(ctx context.Context, _ op.None) (out Queued, err error) {
	userID := policy.From(ctx).UserID
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		h, ok, err := byName.Maybe(tx, tx.Account, ownName(userID))
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("webhook")
		}
		return s.ping(tx, h, "your own", &out)
	})
	return out, err
}
