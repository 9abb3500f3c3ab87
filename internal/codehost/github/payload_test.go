package github

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"yardmaster/internal/codehost"
)

// FuzzEvents holds that no body makes the translation of a kind panic, and that a body
// without what its kind has is an error.
func FuzzEvents(f *testing.F) {
	h := &Host{cfg: Config{Name: hostName, AppID: 7, Slug: "yard", Now: time.Now}, log: slog.New(slog.DiscardHandler)}
	for kind := range translations {
		f.Add(kind, `{}`)
		f.Add(kind, `{"repository": {"id": 1, "full_name": "a/b"}}`)
		f.Add(
			kind,
			`{"action": "rerequested", "repository": {"id": 1, "full_name": "a"}, "check_run": {}, "check_suite": {}, "pull_request": {},
			"review": {}, "comment": {}, "thread": {"comments": [{}]}, "issue": {}, "workflow_run": {}, "workflow_job": {}, "merge_group": {},
			"installation": {}, "account": {}, "ref": "refs/heads/a"}`,
		)
	}
	f.Add(
		"push",
		`{"repository": {"id": 1, "full_name": "a/b", "created_at": 1777889400, "pushed_at": "2026-05-04T10:11:12Z"}, "ref": "refs/heads/a b",
		"before": "0000000000000000000000000000000000000000", "after": "1111111111111111111111111111111111111111"}`,
	)
	f.Add("issues", `{"repository": {"id": 1}, "issue": {"labels": null, "milestone": null, "user": null, "closed_at": ""}}`)
	f.Fuzz(func(t *testing.T, kind, body string) {
		events, err := h.Events(codehost.Delivery{Host: hostName, GUID: "1", Kind: kind, Body: []byte(body)})
		if err != nil && len(events) > 0 {
			t.Errorf("%d events, and %v", len(events), err)
		}
		for _, e := range events {
			if about := e.About(); about.Repo.ID == "0" && about.Repo.Validate() == nil {
				t.Errorf("an event of no repository: %+v", about)
			}
		}
	})
}

// TestDeliveriesThatLackSomething holds that a delivery without its object fails, and is
// not taken for one that means nothing.
func TestDeliveriesThatLackSomething(t *testing.T) {
	t.Parallel()
	h := &Host{cfg: Config{Name: hostName}}
	for _, kind := range []string{
		"push", "pull_request", "issues", "issue_comment", "check_run", "merge_group", "pull_request_review", "installation",
	} {
		_, err := h.Events(codehost.Delivery{Kind: kind, Body: []byte(`{"repository": {"id": 1, "full_name": "a/b"}}`)})
		if !errors.Is(err, errPayload) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for _, kind := range []string{"ping", "create", "member", "unheard_of"} {
		if events, err := h.Events(codehost.Delivery{Kind: kind, Body: []byte(`{`)}); events != nil || err != nil {
			t.Errorf("%s: %v, %v", kind, events, err)
		}
	}
}
