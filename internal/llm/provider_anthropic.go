package llm

import (
	"net/http"
	"strings"
)

// anthropicVersion is the version of the Messages API that calls get which name none.
const anthropicVersion = "2023-06-01"

// Anthropic is the maker of Claude.
const Anthropic Provider = "anthropic"

var _ = known(adapter{
	provider: Anthropic,
	place:    1,
	base:     "https://api.anthropic.com/v1",
	apis:     []API{Messages, CountTokens, ModelList},
	model:    "claude-sonnet-4-5",
	list:     "limit=1000",
	authorize: func(r *http.Request, key string, _ API) {
		versioned(r)
		if key != "" {
			r.Header.Set("X-Api-Key", key)
		}
	},
})

// versioned names the version of the Messages API, unless the caller has.
func versioned(r *http.Request) {
	if r.Header.Get("Anthropic-Version") == "" {
		r.Header.Set("Anthropic-Version", anthropicVersion)
	}
}

// dashed is how Anthropic spells the name of a model that others spell with dots.
func dashed(model string) string { return strings.ReplaceAll(model, ".", "-") }
