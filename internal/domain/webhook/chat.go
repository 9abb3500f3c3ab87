package webhook

import (
	"encoding/json"
	"fmt"
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/hook"
)

// ofNotices begins the types of events that tell people something: a kind of notification
// follows.
const ofNotices = "notification."

// chatTypes are what a chat is told of unless somebody chooses.
func chatTypes() []string { return append(ofKinds(notification.ForChats()), PullMerged, TestPing) }

// ofKinds lists the types of events that tell of kinds of notifications.
func ofKinds(kinds []string) []string {
	out := make([]string, 0, len(kinds)+2)
	for _, k := range kinds {
		out = append(out, ofNotices+k)
	}
	return out
}

// EventType is the type of an event that a webhook is sent.
type EventType string

// Values lists all types.
func (EventType) Values() []string { return Types() }

// Types are the types of events that a webhook can ask for.
func Types() []string {
	return append(slices.Clone(types), ofKinds(notification.Kind("").Values())...)
}

// Notice is something that people are told, as data of an event.
type Notice struct {
	_       struct{}          `doc:"What people are told."`
	Kind    notification.Kind `json:"kind" doc:"kind of the notification, as in the type of the event"`
	Title   string            `json:"title" doc:"one line"`
	Text    string            `json:"text" example:"It is the work of an agent." doc:"a few sentences"`
	Repo    *string           `json:"repo" doc:"owner/name; null: it is about no one repository"`
	Noun    string            `json:"noun" example:"pull" doc:"what it is about"`
	Subject string            `json:"subject" example:"0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"id of what it is about"`
	URL     string            `json:"url" doc:"the page about it"`
}

// Tell has a notice delivered to the webhooks of tx.Account that ask for its kind or, if
// userID is not empty, to the webhook of that person, who may have none. source is the id
// of the audited event.
func (s *Service) Tell(tx *db.Tx, n Notice, source, userID string) error {
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	news := News{Type: ofNotices + string(n.Kind), Source: source + "/" + ofNotices + string(n.Kind), At: tx.Now, Data: data}
	if userID == "" {
		return s.Send(tx, news)
	}
	news.Source += "/" + userID
	h, ok, err := byName.Maybe(tx, tx.Account, ownName(userID))
	if err != nil || !ok {
		return err
	}
	eventID, fresh, err := s.store(tx, news)
	if err != nil || !fresh {
		return err
	}
	_, err = s.queue(tx, h, eventID, news.Type, false)
	return err
}

// told is what an event says to people.
func told(kind, body string) (hook.Said, error) {
	var e struct {
		Data struct {
			Title, Text, URL, Repo, Reason, Category, Name string
			Number                                         int64
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return hook.Said{}, fmt.Errorf("the body of an event: %w", err)
	}
	d := e.Data
	out := hook.Said{Title: d.Title, Text: d.Text, Repo: d.Repo, URL: d.URL}
	switch kind {
	case PullMerged:
		out.Title = fmt.Sprintf("Merged: #%d", d.Number)
	case IssueEscalated:
		out.Title, out.Text = "An issue needs a person: "+d.Category, d.Reason
	case IssueHandoff:
		out.Title, out.Text = fmt.Sprintf("An issue is yours: #%d %s", d.Number, d.Title), d.Reason
	case TestPing:
		out.Title = "A test of the webhook " + d.Name
	}
	return out, nil
}

// sent is the body that a webhook of a format gets of an event: the same at each attempt.
func sent(format hook.Format, e eventRow) (string, error) {
	if format == hook.JSON {
		return e.Body, nil
	}
	said, err := told(e.Type, e.Body)
	if err != nil {
		return "", err
	}
	return hook.Chat(format, said)
}
