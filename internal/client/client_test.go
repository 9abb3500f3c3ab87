package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"
)

func TestProblems(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/plain" {
			http.Error(w, "proxy says no", http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(409)
		fmt.Fprint(w, `{"type":"http://x/problems/head_moved","status":409,"detail":"Newer head.","errors":{"a":["is odd"]}}`)
	}))
	defer srv.Close()
	c := &Client{URL: srv.URL}
	var p *Problem
	if err := c.Call(t.Context(), "POST", "/x", nil, nil); !errors.As(err, &p) || p.Slug() != "head_moved" ||
		!strings.Contains(err.Error(), "a: is odd") {
		t.Errorf("error %v", err)
	}
	if err := c.Call(t.Context(), "GET", "/plain", nil, nil); !errors.As(err, &p) || p.Status != 502 {
		t.Errorf("error %v", err)
	}
}

// TestStreamResumes breaks a stream in the middle: no event is missing or repeated.
func TestStreamResumes(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := 1
		if last := r.Header.Get("Last-Event-ID"); last != "" {
			fmt.Sscan(last, &from)
			from++
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for i := from; i <= 5; i++ {
			fmt.Fprintf(w, ": alive\n\nid: %d\nevent: row\ndata: {\"n\":%d}\n\n", i, i)
			if i == 3 && from == 1 {
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
		}
		fmt.Fprint(w, "event: end\ndata: {}\n\n")
	}))
	defer srv.Close()
	var got []int
	err := (&Client{URL: srv.URL}).Stream(t.Context(), "/tail", "", func(f Frame) error {
		var d struct{ N int }
		if f.Event == "row" {
			if err := json.Unmarshal(f.Data, &d); err != nil {
				return err
			}
			got = append(got, d.N)
		}
		return nil
	})
	if err != nil || fmt.Sprint(got) != "[1 2 3 4 5]" {
		t.Errorf("%v, %v", got, err)
	}
}

// A client that goes on at the end of a stream is answered 204, and asks no more.
func TestStreamIsOver(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked > 1 {
			t.Error("it asks again after 204")
			fmt.Fprint(w, "event: end\ndata: {}\n\n")
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer srv.Close()
	if err := (&Client{URL: srv.URL}).Stream(t.Context(), "/tail", "6.end", func(Frame) error { return nil }); err != nil || asked != 1 {
		t.Errorf("%d requests, %v", asked, err)
	}
}

func TestStreamStops(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone" {
			w.WriteHeader(404)
			return
		}
		fmt.Fprint(w, "data: 1\n\ndata: 2\n\n")
	}))
	defer srv.Close()
	c := &Client{URL: srv.URL}
	n := 0
	if err := c.Stream(t.Context(), "/", "", func(Frame) error { n++; return ErrStop }); err != nil || n != 1 {
		t.Errorf("%d frames, %v", n, err)
	}
	var p *Problem
	if err := c.Stream(t.Context(), "/gone", "", nil); !errors.As(err, &p) {
		t.Errorf("a refusal is retried: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := c.Stream(ctx, "/", "", func(Frame) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestPrintIsInert(t *testing.T) {
	var b strings.Builder
	w := Print(&b, 0)
	w.Event(Task{}, Event{Kind: "agent.update",
		Data: json.RawMessage(`{"sessionUpdate":"agent_message_chunk","content":{"text":"red \u001b[31malert\u0007\nnext"}}`)})
	w.Event(Task{}, Event{Kind: "git.pushed", Data: json.RawMessage(`{"sha":"0123456789abcdef","ref":"refs/heads/svc/x","wip":true}`)})
	w.Event(Task{}, Event{Kind: "run.halting", Data: json.RawMessage(`{"reason":"too much disk","failure_kind":"resource_limit\u001b"}`)})
	w.Event(Task{}, Event{Kind: "run.halting", Data: json.RawMessage(`{"reason":""}`)})
	if !strings.Contains(b.String(), "stopping the agent: resource_limit\n") || !strings.HasSuffix(b.String(), "stopping the agent\n") {
		t.Errorf("printed %q", b.String())
	}
	if out := b.String(); strings.ContainsAny(out, "\x1b\x07") || !strings.Contains(out, "red [31malert") ||
		!strings.Contains(out, "pushed 0123456789 to svc/x (unfinished work)") {
		t.Errorf("printed %q", out)
	}
	b.Reset()
	const nasty = "a\x1b]0;owned\x07\u202eb\u009b2J\rc\n  task      merged"
	var failed Task
	data, err := json.Marshal(map[string]any{"status": "failed", "failure_kind": nasty, "failure": nasty,
		"holds": []any{map[string]string{"reason": nasty, "clears_when": nasty}}})
	if err == nil {
		err = json.Unmarshal(data, &failed)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.State(failed)
	w.Pull(Pull{ID: nasty, State: nasty, HeadSHA: nasty, Checks: nasty})
	if data, err = json.Marshal(map[string]string{"sha": nasty, "ref": nasty, "state": nasty, "error": nasty, "agent": nasty,
		"model": nasty, "title": nasty, "failure_kind": nasty, "sessionUpdate": "tool_call"}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"started", "agent.update", "git.pushed", "run.finished", nasty} {
		w.Event(Task{}, Event{Kind: kind, Data: data})
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(b.String(), "\n"), "\n") {
		if strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) ||
			strings.HasPrefix(line, "  task      merged") {
			t.Errorf("printed %q", line)
		}
	}
}
