package coder_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"yardmaster/internal/box/driver"
)

// peer is a provider of chat completions that answers each call as f says, which is
// given the number of results so far and the size of the call in bytes.
func peer(t *testing.T, f func(w http.ResponseWriter, results, size int)) (url string, calls *atomic.Int64) {
	t.Helper()
	calls = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		var q map[string]any
		if err := json.Unmarshal(body, &q); err != nil {
			t.Error(err)
		}
		f(w, len(chatResults(q)), len(body))
	}))
	t.Cleanup(s.Close)
	return s.URL, calls
}

func stream(w http.ResponseWriter, chunks ...any) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, c := range chunks {
		b, _ := json.Marshal(c)
		fmt.Fprintf(w, "data: %s\n\n", b)
	}
	io.WriteString(w, "data: [DONE]\n\n")
}

func delta(delta m, finish any) m {
	return m{"id": "c", "choices": []m{{"index": 0, "delta": delta, "finish_reason": finish}}}
}

// Three calls of one turn are three calls, however the server tells them apart.
func TestParallelCallsAreToldApart(t *testing.T) {
	t.Parallel()
	args := func(name string) string {
		b, _ := json.Marshal(m{"path": name, "old_string": "", "new_string": "x\n"})
		return string(b)
	}
	whole := func(more func(name string) m) func() []any {
		return func() (out []any) {
			for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
				c := m{"type": "function", "function": m{"name": "edit", "arguments": args(name)}}
				for k, v := range more(name) {
					c[k] = v
				}
				out = append(out, delta(m{"tool_calls": []m{c}}, nil))
			}
			return append(out, delta(m{}, "tool_calls"))
		}
	}
	for name, chunks := range map[string]func() []any{
		"one index, ids apart": whole(func(name string) m { return m{"index": 0, "id": "call_" + name} }),
		"no index":             whole(func(name string) m { return m{"id": "call_" + name} }),
		"one index, no id":     whole(func(string) m { return m{"index": 0} }),
		"neither":              whole(func(string) m { return m{} }),
		"a name in each piece": func() (out []any) {
			for i, name := range []string{"a.txt", "b.txt", "c.txt"} {
				for _, piece := range []string{args(name)[:5], args(name)[5:]} {
					f := m{"name": "edit", "arguments": piece}
					out = append(out, delta(m{"tool_calls": []m{{"index": i, "id": "call_" + name, "function": f}}}, nil))
				}
			}
			return append(out, delta(m{}, "tool_calls"))
		},
		"an object as arguments": func() (out []any) {
			for i, name := range []string{"a.txt", "b.txt", "c.txt"} {
				f := m{"name": "edit", "arguments": json.RawMessage(args(name))}
				out = append(out, delta(m{"tool_calls": []m{{"index": i, "function": f}}}, nil))
			}
			return append(out, delta(m{}, "stop"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, calls := peer(t, func(w http.ResponseWriter, results, _ int) {
				if results > 0 {
					stream(w, delta(m{"content": "Wrote them."}, nil), delta(m{}, "stop"))
					return
				}
				stream(w, chunks()...)
			})
			w := begin(t, url, nil)
			out, err := w.drive(t.Context(), "Write three files.", nil)
			if err != nil || out.FinalText != "Wrote them." || calls.Load() != 2 {
				t.Errorf("%+v, %v, %d calls", out, err, calls.Load())
			}
			for _, file := range []string{"a.txt", "b.txt", "c.txt"} {
				if b, err := os.ReadFile(filepath.Join(w.dir, file)); err != nil || string(b) != "x\n" {
					t.Errorf("%s: %q, %v", file, b, err)
				}
			}
		})
	}
}

// An error in an answer of 200 is told in the provider's words, at once; a whole answer
// in the place of a stream is an answer.
func TestErrorsInAnAnswerOf200(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, kind, body, says string }{
		{"typed", "application/json", `{"error":{"message":"Your plan does not include this model.","type":"invalid_request_error","code":"plan_required"}}`,
			"the model provider refused the request: invalid_request_error: Your plan does not include this model. (plan_required)"},
		{"bare", "application/json", `{"error":{"message":"Your plan does not include this model."}}`,
			"the model provider failed: Your plan does not include this model."},
		{"a text", "application/json", `{"error":"Your plan does not include this model."}`, "Your plan does not include this model."},
		{"as a stream", "text/event-stream", "data: " + `{"error":{"message":"You have no credits left.","code":402}}` + "\n\n",
			"the model provider's quota is spent: 402 Payment Required: You have no credits left."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url, calls := peer(t, func(w http.ResponseWriter, _, _ int) {
				w.Header().Set("Content-Type", c.kind)
				io.WriteString(w, c.body)
			})
			w := begin(t, url, nil)
			_, err := w.drive(t.Context(), "Go.", nil)
			var e *driver.AgentError
			if !errors.As(err, &e) || !strings.Contains(e.Message, c.says) || strings.Contains(e.Message, "EOF") || calls.Load() != 1 {
				t.Errorf("%v, after %d calls", err, calls.Load())
			}
		})
	}
	url, _ := peer(t, func(w http.ResponseWriter, _, _ int) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":[{"type":"text","text":"All at once."}]}}]}`)
	})
	w := begin(t, url, nil)
	if out, err := w.drive(t.Context(), "Go.", nil); err != nil || out.FinalText != "All at once." {
		t.Errorf("%+v, %v", out, err)
	}
}

// When the conversation is longer than the model's context, old results are dropped and
// the work goes on, in the words of every server.
func TestContextErrorsOfServers(t *testing.T) {
	t.Parallel()
	for name, say := range map[string]string{
		"OpenAI":     `{"error":{"message":"This model's maximum context length is 16384 tokens. However, your messages resulted in 20000 tokens.","code":"context_length_exceeded"}}`,
		"Anthropic":  `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 20000 tokens > 16384 maximum"}}`,
		"Google":     `[{"error":{"code":400,"message":"The input token count (20000) exceeds the maximum number of tokens allowed (16384).","status":"INVALID_ARGUMENT"}}]`,
		"vLLM":       `{"object":"error","message":"This model's maximum context length is 16384 tokens. However, you requested 20000 tokens (19000 in the messages, 1000 in the completion).","type":"BadRequestError","code":400}`,
		"llama.cpp":  `{"error":{"code":400,"message":"request (20000 tokens) exceeds the available context size (16384 tokens), try increasing it","type":"exceed_context_size_error"}}`,
		"Ollama":     `{"error":{"message":"the input length exceeds the context length","type":"api_error"}}`,
		"LM Studio":  `{"error":"Trying to keep the first 20000 tokens when context the overflows. However, the model is loaded with context length of only 16384 tokens, which is not enough."}`,
		"OpenRouter": `{"error":{"message":"This endpoint's maximum context length is 16384 tokens. However, you requested about 20000 tokens.","code":400}}`,
		"Bedrock":    `{"message":"Input is too long for requested model."}`,
		"Azure":      `{"error":{"message":"This model's maximum context length is 16384 tokens. However, you requested 20000 tokens (19000 in the messages, 1000 in the completion).","type":"invalid_request_error","code":"context_length_exceeded"}}`,
	} {
		for _, status := range []int{400, 200} {
			if status == 200 && !strings.Contains(say, `"error"`) {
				continue
			}
			t.Run(fmt.Sprint(name, " ", status), func(t *testing.T) {
				t.Parallel()
				var refused atomic.Int64
				url, _ := peer(t, func(w http.ResponseWriter, results, size int) {
					switch {
					case size > 50_000:
						refused.Add(1)
						w.Header().Set("Content-Type", "application/json")
						w.WriteHeader(status)
						io.WriteString(w, say)
					case results == 8:
						stream(w, delta(m{"content": "I have read it all."}, nil), delta(m{}, "stop"))
					default:
						f := m{"name": "shell", "arguments": `{"command":"seq 1700"}`}
						stream(w, delta(m{"tool_calls": []m{{"index": 0, "id": fmt.Sprint("c", results), "function": f}}}, nil),
							delta(m{}, "tool_calls"))
					}
				})
				w := begin(t, url, nil)
				out, err := w.drive(t.Context(), "Read it.", nil)
				if err != nil || out.FinalText != "I have read it all." || refused.Load() == 0 {
					t.Errorf("%+v, %v, refused %d times", out, err, refused.Load())
				}
			})
		}
	}
}

// The failure of a run has the kind of the model's failure, whatever its words are.
func TestFailuresNameTheirKind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		status     int
		body, kind string
		says       string
	}{
		{"quota", 429, `{"error":{"message":"Pay.","code":"insufficient_quota"}}`, driver.KindQuota, "quota is spent"},
		{"rate limit", 429, `{"error":{"message":"Please retry in 3700s"}}`, driver.KindRateLimit, "rate limit holds"},
		{"overloaded", 529, `{"error":{"message":"Retry after 3700 seconds","type":"overloaded_error"}}`, driver.KindUnavailable, "is overloaded"},
		{"auth", 403, `{"error":{"message":"No."}}`, driver.KindAuth, "refused the credential"},
		{"too long", 200, `{"error":{"message":"Context size has been exceeded."}}`, driver.KindContextOverflow, "longer than the model's context length"},
		{"no model", 404, `{"error":{"message":"What?"}}`, driver.KindModel, "model not found"},
		{"bad request", 200, `{"error":{"message":"Bad temperature.","type":"invalid_request_error"}}`, driver.KindError, "Bad temperature."},
		{"failed", 200, `{"error":{"message":"Segmentation fault"}}`, driver.KindUnavailable, "Segmentation fault"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url, calls := peer(t, func(w http.ResponseWriter, _, _ int) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			w := begin(t, url, nil)
			_, err := w.drive(t.Context(), "Go.", nil)
			var e *driver.AgentError
			if !errors.As(err, &e) || e.Kind != c.kind || !strings.Contains(e.Message, c.says) || calls.Load() != 1 {
				t.Errorf("%v, want %s, after %d calls", err, c.kind, calls.Load())
			}
		})
	}
}
