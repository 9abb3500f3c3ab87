package cli

import (
	"strings"
	"testing"

	"yardmaster/internal/cli/exit"
)

// pr review has agents review a head again, or says what a person thinks of it; pr comment
// and pr comments are the conversation.
func TestTalk(t *testing.T) {
	t.Parallel()
	at := "/v1/prs/" + someID
	f := newFake(t, map[string]string{
		"GET " + at:                        strings.Replace(somePull, "HEAD", strings.Repeat("a", 40), 1),
		"POST " + at + "/review-runs":      `{"rerun": true}`,
		"POST " + at + "/request-changes":  `{"id": "` + otherID + `", "threads": []}`,
		"POST " + at + "/withdraw-request": `{"request_ids": ["` + otherID + `"]}`,
		"POST " + at + "/approve-pending":  `{}`,
		"POST " + at + "/comments":         `{"id": "` + otherID + `", "state": "open", "comments": []}`,
		"POST " + at + "/resolve-thread":   `{"id": "` + otherID + `", "state": "resolved", "comments": []}`,
		"GET " + at + "/comments": `{"data": [{"id": "` + otherID + `", "state": "open", "path": "a.go", "line": 3, "request_id": "` + otherID + `",
			"comments": [{"author": "user:ada", "body": "Not so.\u001b[31m"}]}]}`,
	})
	p := f.person(t)
	p.holds("pr review "+someID, 0, "It is reviewed again.")
	p.holds("pr review "+someID+" --request-changes Raise a TypeError.", 0, "Requested", "Undo: yardmaster pr review "+someID+" --withdraw")
	if !f.was("POST "+at+"/request-changes", `"body":"Raise a TypeError."`, `"head_sha":"`+strings.Repeat("a", 40)+`"`) {
		t.Errorf("%q", f.calls)
	}
	p.holds("pr review "+someID+" --request-changes Again. --json id", 0, otherID)
	p.holds("pr review "+someID+" --withdraw", 0, "Taken back.")
	p.holds("pr review "+someID+" --approve", 0, "Approved: acme/web#3")
	p.holds("pr review "+someID+" --approve --withdraw", exit.CodeMisused, "give one of")
	p.holds("pr review "+someID+" Raise it.", exit.CodeMisused, "--request-changes")
	p.holds("pr review "+someID+" --question x", exit.CodeMisused, "another use")
	p.holds("pr comment "+someID+" Why? --path a.go --line 3", 0, "Said.")
	if !f.was("POST "+at+"/comments", `"body":"Why?"`, `"line":3`) {
		t.Errorf("%q", f.calls)
	}
	if shown := p.holds("pr comments "+someID, 0, "a.go:3", "requests changes", "Not so."); strings.Contains(shown, "\x1b[31m") {
		t.Errorf("the output controls the terminal: %q", shown)
	}
	p.holds("pr resolve "+someID+" "+otherID, 0, "It is resolved.")
	if !f.was("POST "+at+"/resolve-thread", `"thread_id":"`+otherID+`"`) {
		t.Errorf("%q", f.calls)
	}
}
