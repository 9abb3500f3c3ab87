package llm

import "time"

// OpenAI is the maker of GPT.
const OpenAI Provider = "openai"

var _ = known(adapter{
	provider:  OpenAI,
	place:     2,
	base:      "https://api.openai.com/v1",
	apis:      []API{Chat, Responses, ModelList},
	model:     "gpt-5",
	cacheLife: 10 * time.Minute,
	outputCap: "max_completion_tokens", // newer models refuse max_tokens
	authorize: bearer,
})
