package llm

// Scripted answers from a scenario file, in process and without a network.
const Scripted Provider = "scripted"

var _ = known(adapter{
	provider: Scripted,
	place:    6,
	apis:     []API{Chat, Responses, Messages, CountTokens, Gemini, GeminiCount, ModelList},
	model:    "scripted",
	local:    true,
	keyless:  true,
})
