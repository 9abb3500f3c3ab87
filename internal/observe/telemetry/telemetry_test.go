package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
	"yardmaster/internal/observe/telemetry"
)

// TestRecord holds that every request leaves one record, which has the facts that its
// handlers note and no secret of a path or a query.
func TestRecord(t *testing.T) {
	var log bytes.Buffer
	o := &telemetry.Observer{
		Logger: slog.New(slog.NewJSONHandler(&log, nil)), Metrics: telemetry.NewMetrics("test"),
		Scrub:   func(path string) string { return strings.ReplaceAll(path, "secret", "…") },
		Address: func(req *http.Request) string { return "of " + req.URL.Path },
	}
	server := httptest.NewServer(o.Handler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r := observe.Of(req.Context())
		switch req.URL.Path {
		case "/known":
			r.Capability, r.Account, r.Actor, r.Surface, r.Address, r.ID = "task.list", "acme", "user:1", "rest", "192.0.2.1", "id1"
			r.Slug, r.Cause, r.Pattern = "internal", errors.New("the secret disk is on fire"), "/{x}"
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, "sorry")
		case "/full":
			r.Cause = fmt.Errorf("authorize: %w", fault.New(fault.Unavailable, "", "Too many.").OnPurpose())
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/late":
			_, _ = io.WriteString(w, "so")
			panic("too late")
		case "/gone":
			panic(http.ErrAbortHandler)
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
	once := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // a request that fails is not sent again
	for _, path := range []string{"/known?token=secret", "/full", "/stream", "/secret/x", "/late", "/gone"} {
		resp, err := once.Get(server.URL + path)
		if err != nil {
			if path != "/gone" && path != "/late" {
				t.Fatal(err)
			}
			continue
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
		if m["path"] == "/late" {
			m["cause"], _, _ = strings.Cut(m["cause"].(string), "\n")
		}
		delete(m, "time")
		delete(m, "took")
		got = append(got, m)
	}
	want := []map[string]any{
		{"level": "ERROR", "msg": "request", "method": "GET", "path": "/known", "status": 500.0, "bytes": 5.0, "route": "/{x}",
			"capability": "task.list", "surface": "rest",
			"address": "192.0.2.1", "account": "acme", "actor": "user:1", "slug": "internal", "request_id": "id1",
			"cause": "the … disk is on fire"},
		{"level": "INFO", "msg": "request", "method": "GET", "path": "/full", "status": 503.0, "bytes": 0.0, "address": "of /full",
			"cause": "authorize: unavailable: Too many."},
		{"level": "INFO", "msg": "request", "method": "GET", "path": "/stream", "status": 200.0, "bytes": 0.0, "address": "of /stream",
			"request_id": "id2"},
		{"level": "INFO", "msg": "request", "method": "GET", "path": "/…/x", "status": 404.0, "bytes": 19.0, "address": "of /secret/x"},
		{"level": "ERROR", "msg": "request", "method": "GET", "path": "/late", "status": 200.0, "bytes": 2.0, "address": "of /late",
			"cut": true, "cause": "panic: too late"},
		{"level": "INFO", "msg": "request", "method": "GET", "path": "/gone", "status": 0.0, "bytes": 0.0, "address": "of /gone",
			"cut": true},
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

// TestMetrics holds that the metrics can be read at an address of their own, and that
// a metric whose values cannot be computed does not keep the others back.
func TestMetrics(t *testing.T) {
	m := telemetry.NewMetrics("v1.2.3")
	m.Gateway("anthropic", "ok", time.Second, telemetry.Tokens{Input: 7, Output: 5})
	m.Call("claim", time.Millisecond, nil)
	m.Transaction("write", "failed", time.Millisecond, 3)
	loops := observe.Counting(t.Context(), m)
	pass := func(loop string, errs ...error) {
		ctx, end := observe.Pass(loops, loop)
		defer end()
		for _, err := range errs {
			observe.Failed(ctx, err)
		}
	}
	pass("run.lease", errors.New("no"), errors.New("no again"))
	pass("run.lease", nil)
	pass("mail.send")
	asked := 0
	m.Ask(telemetry.Asked{Name: "yardmaster_tasks", Help: "Tasks by state.", Labels: []string{"status"}, Keep: time.Hour},
		func(context.Context) ([]telemetry.Count, error) {
			asked++
			return []telemetry.Count{{Labels: []string{"pending"}, Value: float64(asked)}}, nil
		})
	m.Ask(telemetry.Asked{Name: "yardmaster_lost", Help: "Never there.", Counter: true},
		func(context.Context) ([]telemetry.Count, error) { return nil, errors.New("no") })
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
		`yardmaster_database_retries_total 2`,
		`yardmaster_loop_seconds_count{loop="run.lease"} 2`,
		`yardmaster_loop_failures_total{loop="run.lease"} 1`,
		`yardmaster_loop_failures_total{loop="mail.send"} 0`,
		`yardmaster_loop_last_pass_timestamp_seconds{loop="mail.send"} `,
		`yardmaster_metric_failures_total{metric="yardmaster_lost"} `,
		`yardmaster_tasks{status="pending"} 1`,
		`go_goroutines `, `process_open_fds `,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("%s is missing", line)
		}
	}
	cancel()
	serving.Wait()
	var none *telemetry.Metrics // measures nothing
	none.Call("claim", 0, nil)
	none.Pass("run", 0)
	none.Failed("run")
	none.Transaction("read", "done", 0, 1)
	none.Gateway("", "", 0, telemetry.Tokens{})
	none.Ask(telemetry.Asked{}, nil)
}

// TestTraces holds that a request is a span of the trace of its caller, and is sent in
// the form that collectors take (OTLP 1.0 over HTTP).
func TestTraces(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=a%20b")
	sent := make(chan *coltrace.ExportTraceServiceRequest, 1)
	var asked atomic.Bool
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !asked.Swap(true) { // it is sent again
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		body, err := io.ReadAll(req.Body)
		got := &coltrace.ExportTraceServiceRequest{}
		if err == nil {
			err = proto.Unmarshal(body, got)
		}
		if err != nil || req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/x-protobuf" ||
			req.Header.Get("X-Team") != "a b" {
			t.Error(req.URL.Path, req.Header, err)
		}
		sent <- got
	}))
	defer collector.Close()
	traces, err := telemetry.NewTraces(t.Context(), collector.URL, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	o := &telemetry.Observer{Tracer: traces.Tracer()}
	req := httptest.NewRequest("GET", "/v1/tasks", nil)
	req.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	o.Handler(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		observe.Of(req.Context()).Capability = "task.list"
	})).ServeHTTP(httptest.NewRecorder(), req)
	traces.Transaction(t.Context(), "read", "done", time.Now(), telemetry.SlowTransaction-1, 1)
	traces.Transaction(t.Context(), "write", "failed", time.Now(), telemetry.SlowTransaction, 2)
	if err := traces.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := <-sent
	spans := got.ResourceSpans[0].ScopeSpans[0].Spans
	if len(spans) != 2 || spans[1].Name != "database write" {
		t.Fatalf("spans %v", spans)
	}
	span := spans[0]
	if span.Name != "task.list" ||
		encoded(t, span.TraceId) != encoded(t,
			[]byte{0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd, 0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c}) {
		t.Errorf("span %v", span)
	}
}

// BenchmarkHandler measures the cost of the record and the metrics of a request.
func BenchmarkHandler(b *testing.B) {
	note := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r := observe.Of(req.Context())
		r.Surface, r.Pattern, r.Path, r.Capability, r.Address = "rest", "/v1/tasks", "/v1/tasks", "task.list", "192.0.2.1"
		r.Account, r.Actor, r.ID = "01a205f9-ebfb-707e-b591-172eb023632c", "user:01a205f9-ebfb-7079-be9c-a45635fc9145",
			"01a205f9-ebfb-7079-be9c-a45635fc9145"
	})
	m := telemetry.NewMetrics("test")
	for name, o := range map[string]*telemetry.Observer{
		"nothing": {}, "record": {Logger: slog.New(slog.NewJSONHandler(io.Discard, nil))}, "metrics": {Metrics: m},
		"both": {Logger: slog.New(slog.NewJSONHandler(io.Discard, nil)), Metrics: m},
	} {
		b.Run(name, func(b *testing.B) {
			h, w, req := o.Handler(note), httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/tasks", nil)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, req)
			}
		})
	}
}
