package llm

import "net/http"

const (
	googleKey = "X-Goog-Api-Key"
	// chatOfGoogle is the folder of Google's chat completions, below the folder
	// of Google's own API.
	chatOfGoogle = "/openai"
)

// Google is the maker of Gemini.
const Google Provider = "google"

var _ = known(adapter{
	provider: Google,
	place:    3,
	base:     "https://generativelanguage.googleapis.com/v1beta" + chatOfGoogle,
	apis:     []API{Chat, Gemini, GeminiCount, ModelList},
	model:    "gemini-2.5-pro",
	authorize: func(r *http.Request, key string, api API) {
		if api != Gemini && api != GeminiCount {
			bearer(r, key, api)
		} else if key != "" {
			r.Header.Set(googleKey, key)
		}
	},
})
