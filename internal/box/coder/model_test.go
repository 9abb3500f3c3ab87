package coder_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// step is one answer of the scripted model: prose, then a tool call if Tool is
// set. Refuse makes the first of so many requests for it fail with Status.
type step struct {
	Text   string
	Tool   string
	Args   map[string]any
	Status int
	Refuse int
	Error  string // its text
	Hang   bool   // after the prose, until the client goes away
}

// scripted is a model provider that speaks all three APIs. The step it plays is
// the number of tool results since the last prompt, so it holds no session.
type scripted struct {
	*httptest.Server
	steps []step

	mu       sync.Mutex
	requests []map[string]any
	refused  map[int]int
	results  []string // of the last request
}

func script(t *testing.T, steps ...step) *scripted {
	t.Helper()
	s := &scripted{steps: steps, refused: map[int]int{}}
	mux := http.NewServeMux()
	for path, api := range map[string]func(map[string]any) []string{
		"/v1/chat/completions": chatResults, "/v1/messages": messagesResults, "/v1/responses": responsesResults,
	} {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, path, api) })
	}
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *scripted) serve(w http.ResponseWriter, r *http.Request, path string, resultsOf func(map[string]any) []string) {
	body, _ := io.ReadAll(r.Body)
	var q map[string]any
	if json.Unmarshal(body, &q) != nil || r.Header.Get("Authorization") != "Bearer secret-token" {
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"error":{"type":"authentication_error","message":"bad key"}}`)
		return
	}
	results := resultsOf(q)
	s.mu.Lock()
	s.requests = append(s.requests, q)
	s.results = results
	st := s.steps[min(len(results), len(s.steps)-1)]
	refuse := s.refused[len(results)] < st.Refuse
	if refuse {
		s.refused[len(results)]++
	}
	s.mu.Unlock()
	if refuse {
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(st.Status)
		fmt.Fprintf(w, `{"error":{"type":"scripted","message":"scripted %d %s"}}`, st.Status, st.Error)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(v any) {
		b, _ := json.Marshal(v)
		fmt.Fprintf(w, "data: %s\n\n", b)
		w.(http.Flusher).Flush()
	}
	args, _ := json.Marshal(st.Args)
	id := fmt.Sprintf("id_%d", len(results))
	switch path {
	case "/v1/chat/completions":
		chatAnswer(send, st, id, string(args))
	case "/v1/messages":
		messagesAnswer(send, st, id, string(args))
	default:
		responsesAnswer(send, st, id, string(args))
	}
	if st.Hang {
		<-r.Context().Done()
		return
	}
	if path == "/v1/chat/completions" {
		io.WriteString(w, "data: [DONE]\n\n")
	}
}

func (s *scripted) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

type m = map[string]any

func chatAnswer(send func(any), st step, id, args string) {
	chunk := func(delta m, finish any) {
		send(m{"object": "chat.completion.chunk", "choices": []m{{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	for _, word := range strings.SplitAfter(st.Text, " ") {
		chunk(m{"content": word}, nil)
	}
	if st.Hang {
		return
	}
	if st.Tool == "" {
		chunk(m{}, "stop")
	} else {
		chunk(m{"tool_calls": []m{{"index": 0, "id": id, "type": "function", "function": m{"name": st.Tool, "arguments": ""}}}}, nil)
		for _, half := range []string{args[:len(args)/2], args[len(args)/2:]} {
			chunk(m{"tool_calls": []m{{"index": 0, "function": m{"arguments": half}}}}, nil)
		}
		chunk(m{}, "tool_calls")
	}
	send(m{"object": "chat.completion.chunk", "choices": []m{}, "usage": m{"prompt_tokens": 1, "completion_tokens": 1}})
}

func messagesAnswer(send func(any), st step, id, args string) {
	send(m{"type": "message_start", "message": m{"role": "assistant"}})
	send(m{"type": "content_block_start", "index": 0, "content_block": m{"type": "text", "text": ""}})
	for _, word := range strings.SplitAfter(st.Text, " ") {
		send(m{"type": "content_block_delta", "index": 0, "delta": m{"type": "text_delta", "text": word}})
	}
	if st.Hang {
		return
	}
	send(m{"type": "content_block_stop", "index": 0})
	stop := "end_turn"
	if st.Tool != "" {
		stop = "tool_use"
		send(m{"type": "content_block_start", "index": 1, "content_block": m{"type": "tool_use", "id": id, "name": st.Tool, "input": m{}}})
		for _, half := range []string{args[:len(args)/2], args[len(args)/2:]} {
			send(m{"type": "content_block_delta", "index": 1, "delta": m{"type": "input_json_delta", "partial_json": half}})
		}
		send(m{"type": "content_block_stop", "index": 1})
	}
	send(m{"type": "message_delta", "delta": m{"stop_reason": stop}})
	send(m{"type": "message_stop"})
}

func responsesAnswer(send func(any), st step, id, args string) {
	send(m{"type": "response.created", "response": m{"error": nil, "incomplete_details": nil}})
	for _, word := range strings.SplitAfter(st.Text, " ") {
		send(m{"type": "response.output_text.delta", "delta": word})
	}
	if st.Hang {
		return
	}
	if st.Tool != "" {
		send(m{"type": "response.output_item.done", "item": m{"type": "function_call", "call_id": id, "name": st.Tool, "arguments": args}})
	}
	send(m{"type": "response.completed", "response": m{"status": "completed", "error": nil, "incomplete_details": nil}})
}

func list(v any) []any { l, _ := v.([]any); return l }

func chatResults(q map[string]any) (out []string) {
	for _, e := range list(q["messages"]) {
		switch e := e.(map[string]any); e["role"] {
		case "user":
			out = nil
		case "tool":
			out = append(out, fmt.Sprint(e["content"]))
		}
	}
	return out
}

func messagesResults(q map[string]any) (out []string) {
	for _, e := range list(q["messages"]) {
		for _, b := range list(e.(map[string]any)["content"]) {
			switch b := b.(map[string]any); {
			case b["type"] == "tool_result":
				out = append(out, fmt.Sprint(b["content"]))
			case b["type"] == "text" && e.(map[string]any)["role"] == "user":
				out = nil
			}
		}
	}
	return out
}

func responsesResults(q map[string]any) (out []string) {
	for _, e := range list(q["input"]) {
		switch e := e.(map[string]any); {
		case e["type"] == "function_call_output":
			out = append(out, fmt.Sprint(e["output"]))
		case e["role"] == "user":
			out = nil
		}
	}
	return out
}
