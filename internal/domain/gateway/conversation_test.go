package gateway

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
)

// kinds lists the events of a session in order.
func (f *fixture) kinds(sessionID string) (out []string) {
	f.t.Helper()
	for line := range strings.Lines(f.api(200, "GET", "/v1/sessions/"+sessionID+"/events.jsonl", "", nil)) {
		var e struct{ Kind string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			f.t.Fatal(err)
		}
		out = append(out, e.Kind)
	}
	return out
}

// TestConversation: a conversation of the platform's own goes over the account's
// key, is counted and noted in its session, and its token dies with it.
func TestConversation(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.addKey(`{"provider":"scripted"}`)
		o := Opening{AccountID: "acme", RepoID: "repo", Trigger: "ask", Kind: "triage", Model: "small", MaxTokens: 100}
		c, err := f.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := c.Say(t.Context(), "Be brief.", []string{"hello"}); err != nil || answer != "Scripted session" {
			t.Fatalf("%q, %v", answer, err)
		}
		s := f.get(c.ID())
		if s.Calls != 1 || s.Trigger != "ask" || s.Kind != "triage" || *s.Repo != "acme/app" || *s.Model != "small" || s.Outcome != nil {
			t.Errorf("session %+v", s)
		}
		c.End(t.Context(), "succeeded")
		if s := f.get(c.ID()); s.Outcome == nil || *s.Outcome != "succeeded" {
			t.Errorf("session %+v after its end", s)
		}
		if got := f.kinds(c.ID()); !slices.Equal(got, []string{"session.opened", "prompt", "answer", "session.ended"}) {
			t.Errorf("events %q", got)
		}
		if _, err := f.Service.attempt(t.Context(), c.token); !fault.IsKind(err, fault.Unauthenticated) {
			t.Errorf("the token of a conversation that is over: %v", err)
		}
	})
}

// TestConversationBefore: Open ends the conversation of an earlier try.
func TestConversationBefore(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.addKey(`{"provider":"scripted"}`)
		first, err := f.Open(t.Context(), Opening{AccountID: "acme", Trigger: "ask", Kind: "triage", Model: "small"})
		if err != nil {
			t.Fatal(err)
		}
		second, err := f.Open(t.Context(), Opening{AccountID: "acme", Trigger: "ask", Kind: "triage", Model: "small", Before: first.ID()})
		if err != nil {
			t.Fatal(err)
		}
		if s := f.get(first.ID()); s.Outcome == nil || *s.Outcome != "lost" {
			t.Errorf("the first: %+v", s)
		}
		if s := f.get(second.ID()); s.Outcome != nil {
			t.Errorf("the second: %+v", s)
		}
	})
}

// TestConversationIsRefused: without a key or a model there is no session; a call
// that fails is noted.
func TestConversationIsRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		o := Opening{AccountID: "acme", Trigger: "ask", Kind: "triage", MaxTokens: 100}
		if _, err := f.Open(t.Context(), o); !fault.IsKind(err, fault.Forbidden) || fault.From(err).Slug != "no_credential" {
			t.Errorf("without a key: %v", err)
		}
		f.addKey(`{"provider":"compatible","base_url":"http://127.0.0.1:9","model":"m"}`)
		if _, err := f.Open(t.Context(), o); !fault.IsKind(err, fault.Unprocessable) || fault.From(err).Slug != llm.SlugModel {
			t.Errorf("without a model: %v", err)
		}
		o.Model = "m"
		c, err := f.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Say(t.Context(), "", []string{"hello"}); fault.From(err).Slug != llm.SlugUnavailable {
			t.Errorf("a provider that is not there: %v", err)
		}
		if got := f.kinds(c.ID()); !slices.Equal(got, []string{"session.opened", "prompt", "call.failed"}) {
			t.Errorf("events %q", got)
		}
	})
}
