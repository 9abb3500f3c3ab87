package inbound

import (
	"encoding/json"
	"strings"
	"time"
)

// signedLinear checks Linear-Signature, the digest of the body in hex, and that the
// webhookTimestamp in the body is fresh (Linear developers, Webhooks, "Securing
// webhooks").
func signedLinear(secret string, r Request, now time.Time) bool {
	if !hexOfBody(secret, r, "Linear-Signature", "") {
		return false
	}
	var body struct {
		At int64 `json:"webhookTimestamp"` // milliseconds
	}
	return json.Unmarshal(r.Body, &body) == nil && fresh(time.UnixMilli(body.At), now)
}

// readLinear reads an event of Linear. Issues that are made or labelled are work.
func readLinear(r Request, d Document, _ Mapping) Event {
	kind, action := d.text("/type"), d.text("/action")
	e := Event{
		Name: kind + "." + action, Act: Ignored, IDs: []string{r.Header("Linear-Delivery")},
		Projects: []string{d.text("/data/team/key"), d.text("/data/project/name"), d.text("/data/team/name"), d.text("/data/teamId")},
		Senders:  []string{d.text("/actor/id"), d.text("/actor/name"), d.text("/actor/email")},
		Title:    d.text("/data/title"), Text: d.text("/data/description"), URL: d.first("/url", "/data/url"),
		Labels: d.names("/data/labels", "name"), Key: d.text("/data/id"),
	}
	if kind != "Issue" || e.Key == "" {
		return e
	}
	switch {
	case action == "create":
		e.Act = Work
	case action == "update" && d.at("/updatedFrom/labelIds") != nil:
		e.Act, e.Labelled = Work, true
	default:
		return e
	}
	if state := d.text("/data/state/type"); state == "completed" || strings.HasPrefix(state, "cancel") {
		e.Act = Nothing
	}
	return e
}
