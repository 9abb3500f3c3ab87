package llm

import (
	"net/http"
	"strings"
)

// OpenRouter sells the models of others.
const OpenRouter Provider = "openrouter"

var _ = known(adapter{
	provider: OpenRouter,
	place:    4,
	base:     "https://openrouter.ai/api/v1",
	apis:     []API{Chat, Responses, Messages, ModelList},
	model:    "anthropic/claude-sonnet-4.5",
	own:      "/key", // its list of models is open to everybody
	authorize: func(r *http.Request, key string, api API) {
		if api == Messages {
			versioned(r)
		}
		bearer(r, key, api)
	},
	// It charges the makers' prices, under names of the form vendor/model.
	maker: func(model string) (Provider, string) {
		vendor, name, _ := strings.Cut(model, "/")
		if vendor == string(Anthropic) {
			name = dashed(name)
		}
		return Provider(vendor), name
	},
})
