package webhook

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
)

// Outcome is what has become of an event that is for one webhook alone: IssueHandoff.
type Outcome struct {
	Type  string
	Data  jsontext.Value // of the event
	State string         // Pending, OK, Exhausted or Skipped
	Why   string         // why it failed, for people; empty unless it is Exhausted or Skipped
}

// Told is sent when an event that is for one webhook alone is on its way there, has arrived,
// or was given up.
var Told = event.DeclareSignal[Outcome]("webhook.told", "An event for one webhook is on its way, has arrived, or was given up.")

// tell tells of an outcome, unless others may get the event too.
func tell(tx *db.Tx, o Outcome) error {
	if o.Type != IssueHandoff {
		return nil
	}
	return Told.Send(tx, o)
}

// tellOf tells of the outcome of an event that is stored.
func tellOf(tx *db.Tx, e eventRow, state, why string) error {
	if e.Type != IssueHandoff {
		return nil
	}
	var body Envelope
	if err := json.Unmarshal([]byte(e.Body), &body); err != nil {
		return err
	}
	return tell(tx, Outcome{Type: e.Type, Data: jsontext.Value(body.Data), State: state, Why: why})
}

// drop ends the deliveries of a webhook, and says why.
func drop(tx *db.Tx, hookID, why string) error {
	events, err := handoffsDue.All(tx, hookID)
	if err != nil {
		return err
	}
	if _, err := dropAll.Exec(tx, hookID); err != nil {
		return err
	}
	for _, e := range events {
		if err := tellOf(tx, e, Skipped, why); err != nil {
			return err
		}
	}
	return nil
}
