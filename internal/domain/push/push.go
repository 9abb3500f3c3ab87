// Package push sends notifications to the browsers of people (Web Push). A browser
// subscribes; a message is a row until the service of the browser's maker has taken it. A
// message that is not sent yet is replaced by the next one about the same subject.
package push

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/url"
	"time"
	"unicode/utf8"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/dial"
	"yardmaster/internal/id"
	"yardmaster/internal/needs"
	"yardmaster/internal/seal"
	"yardmaster/internal/webpush"
)

// Limits.
const (
	maxBrowsers = 10             // of a person in an account
	life        = 24 * time.Hour // of a message that cannot be sent
	maxTitle    = 150            // characters
	maxText     = 300
	atOnce      = 16 // messages that a node sends at the same time
)

// Needs are the dependencies of Service.
type Needs struct {
	DB     *db.DB
	Due    *due.Kernel
	Ring   *seal.Keyring
	Guard  *dial.Guard
	Sender *webpush.Sender
	Logger *slog.Logger
}

// Service has the capabilities of subscriptions, and sends what is due.
type Service struct {
	Needs
	queue due.Entries
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n}
	s.queue = due.Register(n.Due, due.Queue[queued]{
		Name: "push", Hold: webpush.Patience + time.Minute, AtOnce: atOnce, Retry: ladder, Load: load, Work: s.send, Open: open,
	})
	return s
}

// Notice is what is shown to a person.
type Notice struct {
	UserID string
	Topic  string // of what it is; a later notice of the same topic takes its place
	Kind   string
	Title  string
	Text   string
	URL    string
	Urgent bool
	After  time.Time // not sent before
}

// shown is a message as the browser's script gets it.
type shown struct {
	Kind  string `json:"kind"`
	Title string `json:"title"`
	Text  string `json:"text"`
	URL   string `json:"url"`
	Tag   string `json:"tag"`
}

// Tell queues a notice for each browser of a person in tx.Account.
func (s *Service) Tell(tx *db.Tx, n Notice) error {
	all, err := ofPerson.All(tx, tx.Account, n.UserID)
	if err != nil || len(all) == 0 {
		return err
	}
	sum := sha256.Sum256([]byte(n.Topic))
	tag := base64.RawURLEncoding.EncodeToString(sum[:18])
	body, err := json.Marshal(shown{Kind: n.Kind, Title: cut(n.Title, maxTitle), Text: cut(n.Text, maxText), URL: n.URL, Tag: tag})
	if err != nil {
		return err
	}
	for _, to := range all {
		m := messageRow{
			ID: id.New(), AccountID: tx.Account, SubscriptionID: to.ID, Topic: tag, Urgent: n.Urgent, CreatedAt: tx.Micros(),
		}
		// The purpose is that of the place, which a later message takes over.
		m.Sealed = s.Ring.Seal(purposeOf(to.ID, tag), body)
		if _, err := put.Exec(tx, m); err != nil {
			return err
		}
		s.order(tx, key(to.ID, tag), n.After.Sub(tx.Now))
	}
	return nil
}

// order has a message sent after a wait, whatever the one before it in its place waits for.
func (s *Service) order(tx *db.Tx, key string, after time.Duration) {
	if after > 0 {
		s.queue.Drop(tx, key)
		s.queue.Add(tx, key, due.Entry{Account: tx.Account, After: after})
		return
	}
	s.queue.Add(tx, key, due.Entry{Account: tx.Account})
	s.queue.Hurry(tx, key)
}

func purpose(subscriptionID string) string { return "push/" + subscriptionID }

func purposeOf(subscriptionID, tag string) string {
	return "push-message/" + subscriptionID + "/" + tag
}

func digest(endpoint string) string {
	sum := sha256.Sum256([]byte(endpoint))
	return hex.EncodeToString(sum[:])
}

// serviceOf is the host of an endpoint, by which people tell browsers apart.
func serviceOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}
