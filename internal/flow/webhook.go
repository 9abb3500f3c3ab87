package flow

import (
	"encoding/json"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/issue"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/webhook"
	"yardmaster/internal/event"
)

// IssueWebhooks implements issue.Webhooks.
type IssueWebhooks struct{}

// TakesHandoff looks for a webhook of tx.Account.
func (IssueWebhooks) TakesHandoff(tx *db.Tx, name string) (bool, issue.Obstacle, error) {
	there, asks, healthy, err := webhook.Takes(tx, name, webhook.IssueHandoff)
	switch {
	case !there || err != nil:
		return false, issue.NoObstacle, err
	case !asks:
		return true, issue.OtherEvents, nil
	case !healthy:
		return true, issue.NotHealthy, nil
	}
	return true, issue.NoObstacle, nil
}

// TellWebhooks has webhooks told of what they are for. The data of each event is that of
// the audited one.
func TellWebhooks(hooks *webhook.Service) event.Consumer {
	return event.Consumer{
		Name: "webhook.send", Kinds: []event.Any{record.MergedEvent, issue.EscalatedEvent, issue.HandoffEvent},
		Handle: func(tx *db.Tx, e event.Recorded) error {
			n := webhook.News{Type: e.Kind, Source: e.ID, At: e.At, Data: e.Data}
			switch e.Kind {
			case webhook.PullMerged:
				if watched, err := pull.Attended(tx, e.Object); err != nil || !watched {
					return err
				}
			case webhook.IssueHandoff:
				handed, err := issue.HandoffEvent.Decode(e)
				if err != nil {
					return err
				}
				n.Hook = handed.WebhookRef
			}
			return hooks.Send(tx, n)
		},
	}
}

// FollowHandoff notes at its issue what became of a hand-off.
func FollowHandoff(issues *issue.Service) func(*db.Tx, webhook.Outcome) error {
	states := map[string]string{
		webhook.Pending: issue.Sent, webhook.OK: issue.Delivered, webhook.Exhausted: issue.Failed, webhook.Skipped: issue.Failed,
	}
	return func(tx *db.Tx, o webhook.Outcome) error {
		var handed struct {
			HandoffID string `json:"handoff_id"`
		}
		if err := json.Unmarshal(o.Data, &handed); err != nil {
			return err
		}
		return issues.HandoffMoved(tx, handed.HandoffID, states[o.State], o.Why)
	}
}

// NoticeHooks implements notification.Channel by webhooks: those of the account and of
// persons.
type NoticeHooks struct{ Hooks *webhook.Service }

// Deliver has a message sent to the webhook of its person or, without one, to those of
// tx.Account that ask for its kind.
func (h NoticeHooks) Deliver(tx *db.Tx, m notification.Message) error {
	return h.Hooks.Tell(tx, webhook.Notice{
		Kind: notification.Kind(m.Kind), Title: m.Title, Text: m.Text, Repo: db.NullText(m.Repo), Noun: m.Noun,
		Subject: m.Subject, URL: m.URL,
	}, m.Source, m.UserID)
}
