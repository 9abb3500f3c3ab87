package llm

import "net/http"

// Compatible is any server of one of the wire forms at an address that the account gives,
// such as vLLM, Ollama or llama.cpp.
const Compatible Provider = "compatible"

var _ = known(adapter{
	provider:  Compatible,
	place:     5,
	apis:      []API{Chat, Responses, Messages, CountTokens, ModelList},
	addressed: true,
	keyless:   true,
	authorize: func(r *http.Request, key string, api API) {
		if api == Messages || api == CountTokens {
			versioned(r)
			if key != "" {
				r.Header.Set("X-Api-Key", key)
			}
		}
		bearer(r, key, api)
	},
})
