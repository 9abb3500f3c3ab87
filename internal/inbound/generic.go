package inbound

import (
	"strings"
	"time"
)

// signedGeneric takes the scheme of outbound webhooks of this server and, from systems
// that do not know it, Standard Webhooks 1.0 and the digest of the body that many send as
// X-Hub-Signature-256.
func signedGeneric(secret string, r Request, now time.Time) bool {
	switch {
	case r.Header("X-Service-Signature") != "":
		return ours(secret, r, now)
	case r.Header("Webhook-Signature") != "":
		return standard(secret, r, now)
	}
	return hexOfBody(secret, r, "X-Hub-Signature-256", "sha256=")
}

// readGeneric reads a delivery with a mapping. A body of the form
// {"type": "url_verification", "challenge": …} asks to be answered with its challenge.
func readGeneric(r Request, d Document, m Mapping) Event {
	m = m.full()
	e := Event{
		Name: d.first("/type", "/event", "/event_type"), Act: Work, Again: true, IDs: []string{r.Header("Webhook-Id")},
		Key: d.fill(m.DedupeKey), Projects: []string{d.fill(m.Project)}, Senders: []string{d.fill(m.Sender)},
		Title: d.fill(m.Title), Text: d.fill(m.Body), URL: d.fill(m.URL),
	}
	e.Timed = r.Header("X-Service-Signature") != ""
	e.Signed = r.Header("Webhook-Id") != "" && r.Header("Webhook-Signature") != "" && r.Header("X-Service-Signature") == ""
	if own := d.text("/id"); strings.HasPrefix(own, "evt_") && r.Header("X-Service-Event-Version") != "" {
		e.Ours, e.IDs = short(own), append(e.IDs, own) // webhooks of this server try again for a day and a half
	}
	switch challenge := d.text("/challenge"); {
	case e.Name == "url_verification" && challenge != "" && len(challenge) <= maxLink:
		e.Act, e.Challenge = Ping, clean(challenge)
	case e.Name == "test.ping" || e.Name == "ping":
		e.Act = Ping
	case !d.holds(m.When):
		e.Act = Nothing
	}
	return e
}
