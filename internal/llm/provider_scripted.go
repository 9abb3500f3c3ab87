package llm

var script = adapter{
	provider: Scripted,
	apis:     []API{Chat, Responses, Messages, CountTokens, Gemini, GeminiCount, ModelList},
	model:    "scripted",
	local:    true,
	keyless:  true,
}
