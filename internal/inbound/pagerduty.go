package inbound

import (
	"crypto/hmac"
	"encoding/hex"
	"strings"
	"time"
)

// signedPagerDuty checks that X-PagerDuty-Signature has the digest of the body in hex, as
// one of its entries v1=… (PagerDuty developer documentation, Verifying Signatures).
func signedPagerDuty(secret string, r Request, _ time.Time) bool {
	want := []byte("v1=" + hex.EncodeToString(digest([]byte(secret), r.Body)))
	found := false
	for i, entry := range strings.Split(r.Header("X-PagerDuty-Signature"), ",") {
		if hmac.Equal([]byte(strings.ToLower(strings.TrimSpace(entry))), want) {
			found = true
		}
		if i >= maxEntries {
			break
		}
	}
	return found
}

// readPagerDuty reads an event of PagerDuty's webhooks v3. An incident that is triggered
// or reopened is work.
func readPagerDuty(_ Request, d Document, _ Mapping) Event {
	const at = "/event/data"
	kind := d.text("/event/event_type")
	e := Event{
		Name: kind, Act: Ignored, Again: true, IDs: []string{d.text("/event/id")},
		Projects: []string{d.text(at + "/service/summary"), d.text(at + "/service/id")},
		Senders:  []string{d.text("/event/agent/summary"), d.text("/event/agent/id")},
		Title:    d.text(at + "/title"), URL: d.text(at + "/html_url"), Key: keyed("incident/", d.text(at+"/id")),
		Text: paragraphs(d, [][2]string{
			{"Incident", at + "/number"}, {"Service", at + "/service/summary"}, {"Urgency", at + "/urgency"},
			{"Priority", at + "/priority/summary"}, {"Status", at + "/status"}, {"Key", at + "/incident_key"},
			{"Created", at + "/created_at"},
		}),
	}
	switch kind {
	case "pagey.ping":
		e.Act = Ping
	case "incident.triggered":
		e.Act = Work
	case "incident.reopened":
		// What was solved and has come back is work anew, once a day at most.
		e.Act = Work
		e.Key = keyed(e.Key+"/reopened/", day(d.text("/event/occurred_at")))
	}
	return e
}
