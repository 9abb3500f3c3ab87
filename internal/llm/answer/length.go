package answer

import (
	"strconv"
	"strings"
	"sync"

	"yardmaster/internal/lazy"
)

// long has a pattern for each way in which a server says with its numbers that a
// prompt is too long for the model. limit and asked are the names of the groups;
// asked stands twice where it is a sum.
type long struct {
	names   string // the groups in their order, l for limit and a for asked
	pattern lazy.Regexp
}

// longs are built when they are first needed: most programs read no answer.
var longs = sync.OnceValue(func() []long {
	return []long{
		// Anthropic
		{"al", lazy.New(`prompt is too long: ([\d,]+) tokens > ([\d,]+)`)},
		{"aal", lazy.New(`exceed context limit: ([\d,]+) \+ ([\d,]+) > ([\d,]+)`)},
		// OpenAI, Azure, OpenRouter, DeepSeek, older vLLM
		{"la", lazy.New(`maximum context length is ([\d,]+) tokens.*?(?:requested|resulted in)(?: about)?(?: a total of)? ([\d,]+) tokens`)},
		// vLLM
		{"la", lazy.New(`maximum context length is ([\d,]+) tokens and your request has ([\d,]+) input tokens`)},
		{"aal", lazy.New(`passed ([\d,]+) input tokens and requested ([\d,]+) output tokens.*?context length is only ([\d,]+) tokens`)},
		{"la", lazy.New(`maximum context length is ([\d,]+) tokens.*?(?:prompt|input)[^.]*? ([\d,]+) (?:input )?tokens`)},
		{"al", lazy.New(`prompt \(?(?:of )?length (?:of )?([\d,]+)\)? (?:is longer than|exceeds) the (?:maximum model length|max_model_len)(?: of)? ([\d,]+)`)},
		// SGLang
		{"al", lazy.New(`(?i)input(?: length)? \(([\d,]+) tokens\) (?:is longer than|exceeds) the (?:model's|maximum)[^(]*\(([\d,]+) tokens\)`)},
		{"la", lazy.New(`maximum context length of ([\d,]+) tokens.*?total of ([\d,]+) tokens`)},
		// Google
		{"al", lazy.New(`input token count \(?([\d,]+)\)? exceeds the maximum number of tokens allowed \(?([\d,]+)`)},
		{"al", lazy.New(`input token count is ([\d,]+) but (?:the )?model only supports up to ([\d,]+)`)},
		// llama.cpp
		{"al", lazy.New(`request \(([\d,]+) tokens\) exceeds the available context size \(([\d,]+) tokens\)`)},
		{"l", lazy.New(`exceeds the available context size \(([\d,]+) tokens\)`)},
		// LM Studio
		{"al", lazy.New(`n_keep:? ?\(?([\d,]+)\)? ?>= ?n_ctx:? ?\(?([\d,]+)`)},
		{"al", lazy.New(`keep the first ([\d,]+) tokens.*context length of only ([\d,]+)`)},
		// xAI, Groq, Mistral, Bedrock, Moonshot, Cohere, GitHub
		{"la", lazy.New(`maximum prompt length is ([\d,]+) but the request contains ([\d,]+) tokens`)},
		{"la", lazy.New(`Request too large.*Limit ([\d,]+), Requested ([\d,]+)`)},
		{"al", lazy.New(`[Pp]rompt contains ([\d,]+) tokens.*?too large for model with ([\d,]+) maximum context length`)},
		{"la", lazy.New(`Max input tokens: ([\d,]+), request input token count: ([\d,]+)`)},
		{"la", lazy.New(`exceeded model token limit: ([\d,]+) \(requested: ([\d,]+)\)`)},
		{"la", lazy.New(`number of tokens in the prompt cannot exceed ([\d,]+) - received ([\d,]+)`)},
		{"al", lazy.New(`prompt token count of ([\d,]+) exceeds the limit of ([\d,]+)`)},
		// whoever gives only the limit
		{"l", lazy.New(`maximum context length is ([\d,]+)`)},
	}
})

// tooLong tells whether an error says that the prompt is too long for the model, and
// notes the numbers that it tells.
func (s *said) tooLong(words string) bool {
	if len(s.text) < 16<<10 && s.mayBeLong() {
		for _, l := range longs() {
			if m := l.pattern.FindStringSubmatch(s.text); m != nil {
				s.numbers(l.names, m[1:])
				return true
			}
		}
	}
	return s.limit > 0 ||
		has(words, "context_length_exceeded", "exceed_context_size", "context_window_exceeded", "model_max_prompt_tokens_exceeded") ||
		has(s.text,
			"prompt is too long", "prompt too long", "exceeds the context window", "exceeds the available context size",
			"exceeds the context length", "exceeds the model's context", "exceeds maximum context length",
			"exceeds the maximum context length",
			"exceeded max context length", "greater than the context length", "context size has been exceeded", "context window exceed",
			"input is too long for requested model", "number of input tokens exceeds maximum length", "too many input tokens",
			"reduce the length of the messages", "prompt exceeds max length", "exceeds context window")
}

// mayBeLong is a cheap look before the patterns.
func (s *said) mayBeLong() bool {
	return has(s.text, "token", "context", "n_ctx")
}

func (s *said) numbers(names string, groups []string) {
	s.limit, s.asked = 0, 0
	for i, name := range names {
		n, err := strconv.ParseInt(strings.ReplaceAll(groups[i], ",", ""), 10, 64)
		if err != nil || n > 1<<40 {
			continue
		}
		if name == 'l' {
			s.limit += n
		} else {
			s.asked += n
		}
	}
}
