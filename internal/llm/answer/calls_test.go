package answer_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"yardmaster/internal/llm/answer"
)

func events(chunks ...string) string {
	return "data: " + strings.Join(chunks, "\n\ndata: ") + "\n\n"
}

func read(api answer.API, status int, body string) answer.Answer {
	r := answer.New(answer.Options{API: api, Status: status, Header: http.Header{}, Keep: true})
	r.Write([]byte(body))
	r.End(nil)
	return r.Answer()
}

// Tool calls are told apart as servers send them: by id, by index, by order, or by a
// name behind whole arguments. A name that is said again is not added to itself.
func TestCallsAreToldApart(t *testing.T) {
	t.Parallel()
	const whole = `{\"path\":\"%s\"}`
	call := func(index, id, name, args string) string {
		if index != "" {
			index = `"index":` + index + `,`
		}
		if id != "" {
			id = `"id":"` + id + `",`
		}
		if name != "" {
			name = `"name":"` + name + `",`
		}
		return `{` + index + id + `"type":"function","function":{` + name + `"arguments":"` + args + `"}}`
	}
	chunk := func(calls ...string) string {
		return `{"choices":[{"index":0,"delta":{"tool_calls":[` + strings.Join(calls, ",") + `]},"finish_reason":null}]}`
	}
	file := func(name string) string { return fmt.Sprintf(whole, name) }
	for _, c := range []struct {
		name   string
		chunks []string
		want   string
	}{
		{"one index, ids apart", []string{chunk(call("0", "a", "edit", file("a"))), chunk(call("0", "b", "edit", file("b"))),
			chunk(call("0", "c", "edit", file("c")))}, `a edit {"path":"a"}, b edit {"path":"b"}, c edit {"path":"c"}`},
		{"ids alone", []string{chunk(call("", "a", "edit", `{\"path\":`)), chunk(call("", "b", "read", `{\"path\":`)),
			chunk(call("", "a", "", `\"a\"}`)), chunk(call("", "b", "", `\"b\"}`))}, `a edit {"path":"a"}, b read {"path":"b"}`},
		{"index alone", []string{chunk(call("0", "", "edit", `{\"path\":`), call("1", "", "edit", `{\"path\":`)),
			chunk(call("1", "", "", `\"b\"}`)), chunk(call("0", "", "", `\"a\"}`))}, ` edit {"path":"a"},  edit {"path":"b"}`},
		{"order alone", []string{chunk(call("", "", "edit", file("a")), call("", "", "edit", file("b"))),
			chunk(call("", "", "read", file("c")))},
			` edit {"path":"a"},  edit {"path":"b"},  read {"path":"c"}`},
		{"one index, no ids", []string{chunk(call("0", "", "edit", file("a"))), chunk(call("0", "", "edit", file("b")))},
			` edit {"path":"a"},  edit {"path":"b"}`},
		{"the name in each piece", []string{chunk(call("0", "", "edit", "")), chunk(call("0", "", "edit", `{\"path\":`)),
			chunk(call("0", "", "edit", `\"a\"}`)), chunk(call("0", "", "edit", ""))}, ` edit {"path":"a"}`},
		{"id and name in each piece", []string{chunk(call("0", "a", "edit", `{\"path\":`)), chunk(call("0", "a", "edit", `\"a\"}`))},
			`a edit {"path":"a"}`},
		{"the id comes late", []string{chunk(call("0", "", "edit", `{\"path\":`)), chunk(call("0", "a", "", `\"a\"}`))},
			`a edit {"path":"a"}`},
		{"pieces without anything", []string{chunk(call("0", "a", "edit", `{\"path\":`)), chunk(call("", "", "", `\"a\"}`))},
			`a edit {"path":"a"}`},
		{"no arguments", []string{chunk(call("0", "a", "list", "")), chunk(call("0", "b", "list", ""))}, `a list {}, b list {}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			end := `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
			a := read(answer.Chat, 200, events(append(c.chunks, end, "[DONE]")...))
			var got []string
			for _, tool := range a.Tools {
				got = append(got, tool.ID+" "+tool.Name+" "+string(tool.Arguments))
			}
			if d := cmp.Diff(c.want, strings.Join(got, ", ")); d != "" || a.Failure != nil || a.Stop != answer.ToolUse {
				t.Error(d, a.Failure, a.Stop)
			}
		})
	}
}

// A count never goes down within an answer: neither by a zero that comes late, nor by
// a null, a repetition or a piece of it.
func TestCountsNeverGoDown(t *testing.T) {
	t.Parallel()
	start := `{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_creation_input_tokens":10000,` +
		`"cache_read_input_tokens":50000,"output_tokens":1}}}`
	want := answer.Usage{Input: 10, Output: 100, CacheRead: 50000, CacheWrite: 10000}
	for _, late := range []string{
		`{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":100}`,
		`{"input_tokens":null,"cache_creation_input_tokens":null,"cache_read_input_tokens":null,"output_tokens":100}`,
		`{"input_tokens":10,"cache_creation_input_tokens":10000,"cache_read_input_tokens":50000,"output_tokens":100}`,
		`{"output_tokens":100}`,
		`{"output_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0}}`,
	} {
		delta := `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":`
		body := events(start, delta+`{"output_tokens":60}}`, delta+late+`}`, delta+`{"output_tokens":0}}`, `{"type":"message_stop"}`)
		a := read(answer.Messages, 200, body)
		if a.Usage == nil || *a.Usage != want || a.Failure != nil {
			t.Errorf("%s: %+v %v", late, a.Usage, a.Failure)
		}
	}
	hour := strings.Replace(start, `"output_tokens":1`, `"output_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":4000,"ephemeral_1h_input_tokens":6000}`, 1)
	a := read(answer.Messages, 200, events(hour, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"cache_creation_input_tokens":10000,"output_tokens":100}}`, `{"type":"message_stop"}`))
	want.CacheWrite, want.CacheWrite1h = 4000, 6000
	if a.Usage == nil || *a.Usage != want {
		t.Errorf("%+v", a.Usage)
	}
	// The same of chat completions, whose servers repeat the usage in each chunk.
	a = read(answer.Chat, 200, events(`{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":0,"completion_tokens":0}}`))
	if a.Usage == nil || *a.Usage != (answer.Usage{Input: 7, Output: 3}) {
		t.Errorf("%+v", a.Usage)
	}
}

// A prompt that is too long for the model is told by every server in words of its own;
// the numbers are read where there are some.
func TestContextLengths(t *testing.T) {
	t.Parallel()
	message := func(format string) string { return `{"error":{"message":"` + format + `"}}` }
	for _, c := range []struct {
		server, body string
		asked, limit int64
	}{
		{"OpenAI", `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 131900 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, 131900, 128000},
		{"OpenAI, responses", `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","code":"context_length_exceeded"}}`, 0, 0},
		{"Azure", `{"error":{"message":"This model's maximum context length is 16384 tokens. However, you requested 20000 tokens (16000 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","code":"context_length_exceeded"}}`, 20000, 16384},
		{"Anthropic", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 214120 tokens > 200000 maximum"}}`, 214120, 200000},
		{"Anthropic, sum", message("input length and `max_tokens` exceed context limit: 199000 + 20300 > 200000, decrease input length or `max_tokens` and try again"), 219300, 200000},
		{"Google", `{"error":{"code":400,"message":"The input token count (1203344) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}`, 1203344, 1048575},
		{"Google, Vertex", message("Unable to submit request because the input token count is 45000 but model only supports up to 32768. Reduce the input token count and try again."), 45000, 32768},
		{"vLLM", message("This model's maximum context length is 16384 tokens. However, you requested 20384 tokens (16384 in the messages, 4000 in the completion)."), 20384, 16384},
		{"vLLM, max_tokens", message("'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and your request has 7000 input tokens (4096 > 8192 - 7000)."), 7000, 8192},
		{"vLLM, newest", message("You passed 9001 input tokens and requested 100 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 8092 tokens."), 9101, 8192},
		{"vLLM, decoder", message("The decoder prompt (length 9001) is longer than the maximum model length of 8192. Make sure that `max_model_len` is no smaller than the number of text tokens."), 9001, 8192},
		{"llama.cpp", `{"error":{"code":400,"message":"request (20000 tokens) exceeds the available context size (16384 tokens), try increasing it","type":"exceed_context_size_error"}}`, 20000, 16384},
		{"llama.cpp, members", `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":4512,"n_ctx":4096}}`, 4512, 4096},
		{"llama.cpp, older", message("the request exceeds the available context size. try increasing the context size or enable context shift"), 0, 0},
		{"Ollama", `{"error":{"message":"the input length exceeds the context length","type":"api_error"}}`, 0, 0},
		{"Ollama, runner", `{"error":"prompt too long; exceeded max context length by 133 tokens"}`, 0, 0},
		{"LM Studio", `{"error":"Trying to keep the first 12900 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`, 12900, 4096},
		{"LM Studio, n_keep", message("Cannot truncate prompt with n_keep (12900) >= n_ctx (4096)"), 12900, 4096},
		{"LM Studio, words", message("The number of tokens to keep from the initial prompt is greater than the context length."), 0, 0},
		{"OpenRouter", `{"error":{"message":"This endpoint's maximum context length is 65536 tokens. However, you requested about 70000 tokens (66000 of text input, 4000 in the output).","code":400}}`, 70000, 65536},
		{"OpenRouter, behind it", `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long: 210000 tokens > 200000 maximum\"}}","provider_name":"Anthropic"}}}`, 210000, 200000},
		{"Bedrock", `{"message":"Input is too long for requested model."}`, 0, 0},
		{"Bedrock, Claude", `{"message":"The model returned the following errors: input length and max_tokens exceed context limit: 200000 + 11200 > 200000, decrease input length or max_tokens and try again"}`, 211200, 200000},
		{"Bedrock, Nova", `{"message":"The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again."}`, 0, 0},
		{"Bedrock, Mistral", `{"message":"Too many input tokens. Max input tokens: 32768, request input token count: 40000"}`, 40000, 32768},
		{"Mistral", `{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","code":"3051"}`, 40000, 32768},
		{"xAI", message("This model's maximum prompt length is 131072 but the request contains 140077 tokens."), 140077, 131072},
		{"Groq", `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","code":"context_length_exceeded"}}`, 0, 0},
		{"Moonshot", message("Your request exceeded model token limit: 131072 (requested: 140000)"), 140000, 131072},
		{"GitHub", `{"error":{"message":"prompt token count of 140000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}`, 140000, 128000},
		{"SGLang", message("The input (9001 tokens) is longer than the model's context length (8192 tokens)."), 9001, 8192},
	} {
		t.Run(c.server, func(t *testing.T) {
			t.Parallel()
			for _, status := range []int{400, 413, 500, 200} { // some send it with another status, or as an answer of 200
				body := c.body
				if status == 200 && !strings.Contains(body, `"error"`) {
					continue
				}
				f := read(answer.Chat, status, body).Failure
				if f == nil || f.Kind != answer.ContextLength || f.Asked != c.asked || f.Limit != c.limit || f.Elsewhere {
					t.Errorf("%d: %+v", status, f)
				}
			}
		})
	}
}

// What is no prompt that is too long is not taken for one.
func TestOtherLengths(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]answer.Kind{
		`{"error":{"message":"Rate limit reached for tokens per min. Limit: 30000, Used: 29000","type":"tokens","code":"rate_limit_exceeded"}}`: answer.RateLimited,
		`{"error":{"message":"max_tokens must be at least 1","type":"invalid_request_error"}}`:                                                  answer.BadRequest,
		`{"error":{"message":"messages: text content blocks must be non-empty","type":"invalid_request_error"}}`:                                answer.BadRequest,
		`{"error":{"message":"Your plan does not include this model.","type":"invalid_request_error","code":"plan_required"}}`:                  answer.BadRequest,
		`{"error":{"message":"token is malformed","type":"authentication_error"}}`:                                                              answer.Auth,
	} {
		if f := read(answer.Chat, 200, body).Failure; f == nil || f.Kind != want || !f.Elsewhere != (want == answer.BadRequest) {
			t.Errorf("%s: %+v", body, f)
		}
	}
}

// An event that is too long to be read is passed over, and does not make an answer of
// one that has ended properly into one that is cut.
func TestLongEvents(t *testing.T) {
	t.Parallel()
	long := `{"type":"response.completed","response":{"status":"completed","output":["` + strings.Repeat("x", 9<<20) + `"]}}`
	text := `{"type":"response.output_text.delta","output_index":0,"delta":"a"}`
	for _, c := range []struct {
		body string
		cut  bool
		want answer.Kind
	}{
		{events(`{"type":"response.created"}`, text, long), false, ""},
		{events(`{"type":"response.created"}`, text, long), true, answer.Cut},
		{events(`{"type":"response.created"}`, text), false, answer.Cut},
		{`{"choices":[{"message":{"content":"` + strings.Repeat("x", 9<<20) + `"}}]}`, false, ""},
	} {
		r := answer.New(answer.Options{API: answer.Responses, Status: 200, Header: http.Header{}, Keep: true})
		for rest := []byte(c.body); len(rest) > 0; rest = rest[min(len(rest), 32<<10):] {
			r.Write(rest[:min(len(rest), 32<<10)])
		}
		var broken error
		if c.cut {
			broken = io.ErrUnexpectedEOF
		}
		r.End(broken)
		a := r.Answer()
		if f := a.Failure; f == nil && c.want != "" || f != nil && f.Kind != c.want || !r.Begun() {
			t.Errorf("%.40s: %v, begun %v", c.body, f, r.Begun())
		}
	}
}

// A model that the key may not use is one that is not there, not a key that is refused.
func TestModelsThatAreNotThere(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 400, 403, 404} {
		f := read(answer.Chat, status, `{"error":{"message":"Project does not have access to model gpt-9","code":"model_not_found"}}`).Failure
		if f == nil || f.Kind != answer.BadRequest || f.Status != http.StatusNotFound || !f.Elsewhere {
			t.Errorf("%d: %+v", status, f)
		}
	}
}
