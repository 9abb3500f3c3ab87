package gateway

import (
	"testing"
	"time"

	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/llm"
)

// TestPreferenceOfWhoAsked: calls of an attempt that began by what its person likes best go
// there while it is that person's alone and a key is there for it, and else as the template
// says, to a model of whoever is asked then.
func TestPreferenceOfWhoAsked(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		shared := f.addKey(`{"provider":"openai","key":"sk-openai-shared-01"}`)
		var own modelkey.BillingKey
		f.api(201, "POST", "/v1/me/keys", `{"provider":"openrouter","key":"sk-router-ann-0001"}`, &own)
		liked := modelkey.Pref{Provider: llm.OpenRouter, Model: "best"}
		for _, x := range []struct {
			name       string
			attempt    Attempt
			key, model string
		}{
			{"what is liked best", Attempt{Person: "ann", Prefer: liked}, own.ID, "best"},
			{"a default of theirs", Attempt{Person: "ann", Prefer: modelkey.Pref{Provider: llm.OpenRouter}}, own.ID, ""},
			{"somebody else had a part since", Attempt{Prefer: liked}, shared.ID, llm.OpenAI.DefaultModel()},
			{"it is somebody else's", Attempt{Person: "bob", Prefer: liked}, shared.ID, llm.OpenAI.DefaultModel()},
			{"the template names a model since", Attempt{Person: "ann", Prefer: liked, Model: "m"}, shared.ID, "m"},
			{"the template names a provider since", Attempt{Person: "ann", Prefer: liked, Provider: "openai"}, shared.ID,
				llm.OpenAI.DefaultModel()},
			{"there is no key for it", Attempt{Person: "bob", Prefer: modelkey.Pref{Provider: llm.Scripted, Model: "x"}}, shared.ID,
				llm.OpenAI.DefaultModel()},
			{"nothing is liked", Attempt{Person: "bob"}, shared.ID, ""},
		} {
			x.attempt.SessionID, x.attempt.AccountID = f.session, "acme"
			f.mu.Lock()
			f.attempt = &x.attempt
			f.now = f.now.Add(time.Minute) // forget the grant
			f.mu.Unlock()
			g, err := f.Authorize(t.Context(), "tok", llm.Chat, "named by the agent")
			if err != nil || len(g.Routes) == 0 || g.Routes[0].ID != x.key || g.Routes[0].Model != x.model {
				t.Errorf("%s: %v, %v", x.name, g.Routes, err)
			}
		}
	})
}
