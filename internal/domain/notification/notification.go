// Package notification tells people what concerns them: a row of their inbox, a mail, a
// push message, a message to a webhook, as each person has chosen. What an event means to
// whom is not decided here, but in flow.Notify; this package has the inbox, the
// preferences, quiet hours, and the way from one notice to the channels of each person.
package notification

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/mail"
	"yardmaster/internal/needs"
	"yardmaster/internal/seal"
)

// Notice is what has happened, and whom it concerns.
type Notice struct {
	Kind string
	// Noun and Subject are what it is about, such as pr and its id. Unread rows of one kind
	// and subject are one row with a count.
	Noun, Subject string
	Repo          string // owner/name; empty: of no one repository
	// Title is one line, and Text some lines; both may hold text of others.
	Title, Text string
	// About is the subject of mails, which is the same for all that is told of Subject, so
	// that mail programs keep them together; empty: Title.
	About string
	// Path is where to look, below the address of the server, or a whole address.
	Path string
	// To are ids of users. Who is no member of the account is left out, and who acted.
	To []string
	// Personal says that nobody else has to hear of it: no channel of the account does.
	Personal bool
	// Unaware says that who acted is told as well, as they may not know what it led to.
	Unaware bool
	// Source is the id of the audited event, by which a channel knows what it has sent.
	Source string
	// Actor is who did it, as audit rows have it.
	Actor string
	// Links are what a mail has besides Path; nil: nothing.
	Links Links
}

// Link is something to press in a mail.
type Link = mail.Link

// Links are made for each person whom a mail is for.
type Links interface {
	// For makes the links of a message that leaves at a time.
	For(tx *db.Tx, userID string, leaves time.Time) ([]Link, error)
}

// Message is a notice on its way to one person by one channel.
type Message struct {
	ID     string // of the notification; of a team's message: empty
	UserID string // empty: for everybody who reads the channel
	Notice
	URL    string
	Urgent bool
	// After is when it may be sent: the end of quiet hours, or now.
	After time.Time
}

// Channel takes messages in the transaction of their cause, and sends them after it.
type Channel interface {
	Deliver(tx *db.Tx, m Message) error
}

// Needs are the dependencies of Service.
type Needs struct {
	DB      *db.DB
	Hub     *event.Hub
	Ring    *seal.Keyring
	Mail    *mail.Outbox
	BaseURL string
	Logger  *slog.Logger
	// Push sends to the browsers of a person.
	Push Channel
	// Webhook sends to the webhook of a person, and those of the account.
	Webhook Channel
	// Routes sends to addresses of teams, which read each notice of the account.
	Routes Channel
	// Keep is how long a row is kept after its last change; 0: kept.
	Keep time.Duration
}

// Service keeps inboxes and preferences.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	n.Keep = cmp.Or(n.Keep, kept)
	return &Service{n}
}

const (
	kept   = 90 * 24 * time.Hour
	tidyUp = time.Hour
	// mailEvery is how often one unread row is mailed, however often it counts.
	mailEvery = time.Hour
	// maxMails is how many mails of a kind a person gets within mailEvery, whatever they are
	// about. The rest is told by the other channels alone.
	maxMails = 30
)

// Topic is notified when rows of a person change.
func Topic(userID string) string { return "notifications/" + userID }

// Loop removes old rows until ctx ends.
func (s *Service) Loop(ctx context.Context) error {
	s.Hub.Sweep(ctx, "notifications.tidy", "notifications", tidyUp, func(ctx context.Context) {
		err := s.DB.Write(ctx, func(tx *db.Tx) error {
			_, err := forget.Exec(tx, db.Micros(tx.Now.Add(-s.Keep)))
			return err
		})
		if err != nil && ctx.Err() == nil {
			s.Logger.ErrorContext(ctx, "remove old notifications", slog.Any("error", err))
		}
	})
	return nil
}
