package inbound

import (
	"cmp"
	"time"
)

// signedGitea checks X-Gitea-Signature: the digest of the body in hex (Gitea
// documentation, Webhooks, "Authorization and signature").
func signedGitea(secret string, r Request, _ time.Time) bool {
	return hexOfBody(secret, r, "X-Gitea-Signature", "")
}

// signedForgejo checks X-Forgejo-Signature, or X-Gitea-Signature of a webhook whose type
// is Gitea (Forgejo documentation, Webhooks).
func signedForgejo(secret string, r Request, _ time.Time) bool {
	if r.Header("X-Forgejo-Signature") != "" {
		return hexOfBody(secret, r, "X-Forgejo-Signature", "")
	}
	return hexOfBody(secret, r, "X-Gitea-Signature", "")
}

// readGitea reads an event of Gitea or Forgejo. Issues that are opened, reopened or
// labelled are work.
func readGitea(r Request, d Document, _ Mapping) Event {
	name := cmp.Or(r.Header("X-Forgejo-Event"), r.Header("X-Gitea-Event"))
	action := d.text("/action")
	repo := d.text("/repository/full_name")
	e := Event{
		Name: name, Act: Ignored, IDs: []string{cmp.Or(r.Header("X-Forgejo-Delivery"), r.Header("X-Gitea-Delivery"))},
		Projects: []string{repo}, Senders: []string{d.first("/sender/login", "/sender/username")},
		Title: d.text("/issue/title"), Text: d.text("/issue/body"), URL: d.text("/issue/html_url"),
		Labels: d.names("/issue/labels", "name"),
		Key:    keyed(repo+"#", d.first("/issue/number", "/number")),
	}
	if action != "" {
		e.Name += "." + action
	}
	if name != "issues" && name != "issue_label" {
		return e
	}
	switch action {
	case "opened", "reopened":
		e.Act = Work
	case "label_updated", "labeled":
		e.Act, e.Labelled = Work, true
	default:
		return e
	}
	if d.at("/issue/pull_request") != nil || d.at("/issue") == nil || d.text("/issue/state") == "closed" {
		e.Act = Nothing
	}
	return e
}
