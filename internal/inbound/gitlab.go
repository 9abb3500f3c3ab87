package inbound

import (
	"strings"
	"time"
)

// signedGitLab checks the secret token of a webhook in X-Gitlab-Token or, of a secret that
// begins with whsec_, the signature that a signing token makes, which is one of Standard
// Webhooks (GitLab documentation, Webhooks, "Validate payloads").
func signedGitLab(secret string, r Request, now time.Time) bool {
	if strings.HasPrefix(secret, standardPrefix) {
		return standard(secret, r, now)
	}
	return sameToken(secret, r, "X-Gitlab-Token")
}

// readGitLab reads an event of GitLab. Issues, incidents and other work items that are
// opened, reopened or labelled are work.
func readGitLab(r Request, d Document, _ Mapping) Event {
	kind, action := d.text("/object_kind"), d.text("/object_attributes/action")
	project := d.text("/project/path_with_namespace")
	e := Event{
		Name: kind, Act: Ignored, IDs: []string{r.Header("Idempotency-Key"), r.Header("Webhook-Id")},
		Projects: []string{project, d.text("/project/id")}, Senders: []string{d.text("/user/username"), d.text("/user/id")},
		Title: d.text("/object_attributes/title"), Text: d.text("/object_attributes/description"), URL: d.text("/object_attributes/url"),
		Labels: d.names("/labels", "title"), Key: keyed(project+"#", d.text("/object_attributes/iid")),
	}
	if action != "" {
		e.Name += "." + action
	}
	if kind != "issue" && kind != "work_item" {
		return e
	}
	switch {
	case action == "open", action == "reopen":
		e.Act = Work
	case action == "update" && d.at("/changes/labels") != nil:
		e.Act, e.Labelled = Work, true
	default:
		return e
	}
	if d.text("/object_attributes/state") == "closed" {
		e.Act = Nothing
	}
	return e
}
