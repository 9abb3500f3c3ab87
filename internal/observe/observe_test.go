package observe_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"yardmaster/internal/observe"
)

// TestRecord holds that every request leaves one record: with what those who
// serve it note, and without what a path or a query may give away.
func TestRecord(t *testing.T) {
	var log bytes.Buffer
	o := &observe.Observer{
		Logger: slog.New(slog.NewJSONHandler(&log, nil)), Metrics: observe.NewMetrics("test"),
		Scrub: func(path string) string { return strings.ReplaceAll(path, "secret", "…") },
	}
	server := httptest.NewServer(o.Handler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r := observe.Of(req.Context())
		switch req.URL.Path {
		case "/known":
			r.Capability, r.Account, r.Actor, r.Surface, r.Address, r.ID = "task.list", "acme", "user:1", "rest", "192.0.2.1", "id1"
			r.Slug, r.Cause = "internal", errors.New("the disk is on fire")
			w.WriteHeader(http.StatusInternalServerError)
		case "/stream":
			w.Header().Set("X-Request-Id", "id2")
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			w.(http.Flusher).Flush()
		default:
			http.NotFound(w, req)
		}
	})))
	defer server.Close()
	for _, path := range []string{"/known?token=secret", "/stream", "/secret/x"} {
		resp, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	server.Close() // every record is written by then
	var got []map[string]any
	for d := json.NewDecoder(&log); ; {
		var m map[string]any
		if err := d.Decode(&m); err != nil {
			break
		}
		delete(m, "time")
		delete(m, "took")
		got = append(got, m)
	}
	want := []map[string]any{
		{"level": "ERROR", "msg": "request", "method": "GET", "path": "/known", "status": 500.0, "capability": "task.list", "surface": "rest",
			"address": "192.0.2.1", "account": "acme", "actor": "user:1", "slug": "internal", "request_id": "id1", "cause": "the disk is on fire"},
		{"level": "INFO", "msg": "request", "method": "GET", "path": "/stream", "status": 200.0, "request_id": "id2"},
		{"level": "INFO", "msg": "request", "method": "GET", "path": "/…/x", "status": 404.0},
	}
	if a, b := encoded(t, got), encoded(t, want); a != b {
		t.Errorf("records\n%s\nwant\n%s", a, b)
	}
	observe.Of(context.Background()).Slug = "nobody reads it"
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestMetrics holds that what was counted can be read, at an address of its own,
// and that one question that cannot be answered does not keep the others back.
func TestMetrics(t *testing.T) {
	m := observe.NewMetrics("v1.2.3")
	m.Gateway("anthropic", "ok", time.Second, 7, 5, 0)
	m.Call("claim", time.Millisecond, nil)
	m.Transaction("write", "failed", time.Millisecond)
	m.Pass("run", time.Millisecond, errors.New("no"))
	m.Pass("run", time.Millisecond, context.Canceled)
	m.Ask("yardmaster_tasks", "Tasks by state.", []string{"status"}, func(context.Context) ([]observe.Count, error) {
		return []observe.Count{{Labels: []string{"pending"}, Value: 3}}, nil
	})
	m.Ask("yardmaster_lost", "Never there.", nil, func(context.Context) ([]observe.Count, error) { return nil, errors.New("no") })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := m.Serve(ctx, l); err != nil {
			t.Error(err)
		}
	})
	read := func() string {
		resp, err := http.Get("http://" + l.Addr().String() + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp.StatusCode, err)
		}
		return string(text)
	}
	read()
	text := read()
	for _, line := range []string{
		`yardmaster_info{version="v1.2.3"} 1`,
		`yardmaster_gateway_tokens_total{kind="input",provider="anthropic"} 7`,
		`yardmaster_gateway_seconds_count{outcome="ok",provider="anthropic"} 1`,
		`yardmaster_bus_seconds_count{method="claim",outcome="ok"} 1`,
		`yardmaster_database_seconds_count{kind="write",outcome="failed"} 1`,
		`yardmaster_loop_seconds_count{loop="run"} 2`,
		`yardmaster_loop_failures_total{loop="run"} 1`,
		`yardmaster_loop_failures_total{loop="yardmaster_lost"} `,
		`yardmaster_tasks{status="pending"} 3`,
		`go_goroutines `, `process_open_fds `,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("%s is missing", line)
		}
	}
	cancel()
	serving.Wait()
	var none *observe.Metrics // measures nothing
	none.Call("claim", 0, nil)
	none.Pass("run", 0, nil)
	none.Transaction("read", "done", 0)
	none.Gateway("", "", 0, 0, 0, 0)
	none.Ask("", "", nil, nil)
}

// TestTraces holds that a request becomes a span of its caller's trace, in the
// form that collectors take (OTLP 1.0 over HTTP).
func TestTraces(t *testing.T) {
	sent := make(chan *coltrace.ExportTraceServiceRequest, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		got := &coltrace.ExportTraceServiceRequest{}
		if err == nil {
			err = proto.Unmarshal(body, got)
		}
		if err != nil || req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Error(req.URL.Path, req.Header, err)
		}
		sent <- got
	}))
	defer collector.Close()
	traces, err := observe.NewTraces(t.Context(), collector.URL, "test")
	if err != nil {
		t.Fatal(err)
	}
	o := &observe.Observer{Tracer: traces.Tracer()}
	req := httptest.NewRequest("GET", "/v1/tasks", nil)
	req.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	o.Handler(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		observe.Of(req.Context()).Capability = "task.list"
	})).ServeHTTP(httptest.NewRecorder(), req)
	if err := traces.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := <-sent
	span := got.ResourceSpans[0].ScopeSpans[0].Spans[0]
	if span.Name != "task.list" || encoded(t, span.TraceId) != encoded(t, []byte{0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd, 0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c}) {
		t.Errorf("span %v", span)
	}
}
