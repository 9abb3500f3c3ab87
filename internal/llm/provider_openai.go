package llm

var openAI = adapter{
	provider:  OpenAI,
	base:      "https://api.openai.com/v1",
	apis:      []API{Chat, Responses, ModelList},
	model:     "gpt-5",
	outputCap: "max_completion_tokens", // newer models refuse max_tokens
	authorize: bearer,
}
