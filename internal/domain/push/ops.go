package push

import (
	"context"
	"encoding/json"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/client/inert"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/webpush"
)

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	mine := policy.Require(policy.ReadAccount).OfUser()
	const group, path = "Knowledge base, dashboards, digests, notifications", "/v1/me/push"
	return []op.Op{
		op.New(op.Row{ID: "push.list", Method: "GET", Path: path, Group: group, Rule: mine, Paging: paging,
			Summary: "The caller's browsers that take messages, and the key that a browser subscribes with",
			Doc:     "What is sent there is chosen in the caller's preferences, in the column push."}, s.list),
		op.New(op.Row{ID: "push.subscribe", Method: "POST", Path: path, Group: group, Rule: mine, Status: 201,
			Refuses: []op.Refusal{{Status: 409, Slug: "too-many-browsers"}},
			Summary: "Have messages sent to a browser of the caller",
			Doc: "With what the browser's own subscription says (PushSubscription.toJSON). The same browser again takes the place of " +
				"itself; if another person had it before, it shows nothing of theirs any more. Messages are encrypted for the browser: the service that passes them on cannot read them."}, s.subscribe),
		op.New(op.Row{ID: "push.unsubscribe", Method: "DELETE", Path: path + "/{id}", Group: group, Rule: mine,
			Summary: "Send no more messages to a browser of the caller",
			Doc:     "404 for one that is not there. A browser that has unsubscribed by itself is forgotten at the next message."}, s.unsubscribe),
		op.New(op.Row{ID: "push.test", Method: "POST", Path: path + "/test", Group: group, Rule: mine, Status: 202,
			Summary: "Send a message to all browsers of the caller, to see whether it comes",
			Doc:     "Quiet hours do not hold it back."}, s.test),
	}
}

// Browser is a subscription.
type Browser struct {
	_         struct{}   `doc:"A browser that takes messages." schema:"PushSubscription"`
	ID        string     `json:"id" format:"uuid" doc:"id of the subscription"`
	Label     string     `json:"label" example:"Firefox on the laptop" doc:"what its person calls it; empty: nothing"`
	Service   string     `json:"service" example:"push.example.com" doc:"host of the service that messages go through"`
	CreatedAt time.Time  `json:"created_at" doc:"when it subscribed"`
	SentAt    *time.Time `json:"sent_at" example:"null" doc:"when its service last took a message; null: never"`
}

func (r subscriptionRow) wire() Browser {
	return Browser{ID: r.ID, Label: r.Label, Service: r.Service, CreatedAt: r.CreatedAt, SentAt: r.SentAt}
}

// Browsers is the answer of push.list.
type Browsers struct {
	_          struct{}  `doc:"The caller's browsers." schema:"PushSubscriptions"`
	Data       []Browser `json:"data" doc:"oldest first"`
	NextCursor *string   `json:"next_cursor" doc:"send it back as cursor for the page after this one; null: nothing follows"`
	PublicKey  string    `json:"public_key" example:"BEl62iUYgUivxIkv69yViEuiBIa-Ib9-SkvMeAtA3LFgDzkrxZJjSgSnfckjBJuBkr3qBUYIHBQFLXYp5Nksh8U" doc:"applicationServerKey of a subscription, in base64url"`
}

type listIn struct{ op.PageIn }

var paging = &op.Paging{Default: 25, Max: 100}

func (s *Service) list(ctx context.Context, in listIn) (Browsers, error) {
	var all []subscriptionRow
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		all, err = ofPerson.All(tx, tx.Account, policy.From(ctx).UserID)
		return err
	})
	key := func(r subscriptionRow) []string { return op.TimeKey(r.CreatedAt, r.ID) }
	page := op.ShowPage(in.PageIn, op.Rest(in.PageIn, all, key), key, subscriptionRow.wire)
	return Browsers{Data: page.Data, NextCursor: page.NextCursor, PublicKey: s.Sender.PublicKey()}, err
}

type subscribeIn struct {
	Endpoint string `json:"endpoint" minLength:"1" maxLength:"2000" example:"https://push.example.com/wpush/v2/gAAAA" doc:"where messages go, as the browser says"`
	Keys     keysIn `json:"keys" doc:"keys of the browser"`
	Label    string `json:"label,omitempty" maxLength:"100" example:"Firefox on the laptop" doc:"a name for people"`
}

type keysIn struct {
	_      struct{} `doc:"Keys of a browser." schema:"PushKeys"`
	P256DH string   `json:"p256dh" maxLength:"200" example:"BNcRdreALRFXTkOOUHK1EtK2wtaz5Ry4YfYCA_0QTpQtUbVlUls0VJXg7A8u-Ts1XbjhazAkj7I99e8QcYP7DkM" doc:"its public key, in base64url"`
	Auth   string   `json:"auth" maxLength:"100" example:"tBHItJI5svbpez7KI4CCXg" doc:"its secret, 16 bytes in base64url"`
}

func (s *Service) subscribe(ctx context.Context, in subscribeIn) (out Browser, err error) {
	sub := webpush.Subscription{Endpoint: in.Endpoint, P256DH: in.Keys.P256DH, Auth: in.Keys.Auth}
	if field, wrong := sub.Check(); wrong != "" {
		return out, fault.Field("keys."+field, wrong)
	}
	to, wrong := s.Guard.Destination(ctx, in.Endpoint)
	if wrong != "" {
		return out, fault.Field("endpoint", wrong)
	}
	sub.Endpoint = to.URL
	userID := policy.From(ctx).UserID
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		all, err := ofPerson.All(tx, tx.Account, userID)
		if err != nil {
			return err
		}
		r := subscriptionRow{
			ID: id.New(), AccountID: tx.Account, UserID: userID, Digest: digest(sub.Endpoint), Service: serviceOf(sub.Endpoint),
			Label: inert.Line(in.Label), CreatedAt: tx.Now,
		}
		if err := s.handOver(tx, r.Digest, userID); err != nil {
			return err
		}
		n := len(all)
		for _, known := range all {
			if known.Digest == r.Digest {
				if err := s.remove(tx, known.ID); err != nil {
					return err
				}
				n--
			}
		}
		if n >= maxBrowsers {
			return fault.Reason("too-many-browsers", "You have 10 browsers that take messages. Unsubscribe one first.")
		}
		text, err := json.Marshal(sub)
		if err != nil {
			return err
		}
		r.Sealed = s.Ring.Seal(purpose(r.ID), text)
		if _, err := insert.Exec(tx, r); err != nil {
			return err
		}
		out = r.wire()
		return subscribedEvent.Record(tx, event.Subject{ID: r.ID}, browserData{Label: r.Label, Service: r.Service})
	})
	return out, err
}

// handOver ends what other people have subscribed in a browser that is userID's now: a
// browser that is shared would show each of them what the other is told.
func (s *Service) handOver(tx *db.Tx, digest, userID string) error {
	others, err := ofOthers.All(tx, digest, userID)
	if err != nil {
		return err
	}
	for _, r := range others {
		if err := s.remove(tx, r.ID); err != nil {
			return err
		}
		err := tx.As(r.AccountID, func() error {
			return unsubscribedEvent.Record(tx, event.Subject{ID: r.ID}, browserData{Label: r.Label, Service: r.Service})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the subscription"`
}

// Unsubscribed is the answer of push.unsubscribe.
type Unsubscribed struct {
	_  struct{} `doc:"A browser that takes no more messages." schema:"PushUnsubscribed"`
	ID string   `json:"id" format:"uuid" doc:"id of the subscription"`
}

func (s *Service) unsubscribe(ctx context.Context, in idIn) (out Unsubscribed, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, ok, err := byID.Maybe(tx, tx.Account, in.ID)
		if err != nil {
			return err
		}
		if !ok || r.UserID != policy.From(ctx).UserID {
			return fault.Missing("subscription")
		}
		out.ID = r.ID
		if err := s.remove(tx, r.ID); err != nil {
			return err
		}
		return unsubscribedEvent.Record(tx, event.Subject{ID: r.ID}, browserData{Label: r.Label, Service: r.Service})
	})
	return out, err
}

// Tested is the answer of push.test.
type Tested struct {
	_        struct{} `doc:"A message that is queued." schema:"PushTested"`
	Browsers int      `json:"browsers" doc:"how many it is for"`
}

func (s *Service) test(ctx context.Context, _ op.None) (out Tested, err error) {
	userID := policy.From(ctx).UserID
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		all, err := ofPerson.All(tx, tx.Account, userID)
		if err != nil {
			return err
		}
		out.Browsers = len(all)
		return s.Tell(tx, Notice{UserID: userID, Topic: "test", Kind: "test", Title: "A test of Yardmaster", Text: "It came."})
	})
	return out, err
}
