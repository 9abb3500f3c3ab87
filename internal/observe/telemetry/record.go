// Package telemetry shows operators the work of a node: a record in the log for each
// request, metrics for Prometheus at an address of their own, and traces for an
// OpenTelemetry collector if one is configured.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"yardmaster/internal/observe"
)

// Observer records requests. Each field may be nil, and leaves its part out then.
type Observer struct {
	Logger  *slog.Logger
	Metrics *Metrics
	Tracer  trace.Tracer
	// Address returns the address that a request comes from. It is called for a
	// request that was answered before its address was noted.
	Address func(*http.Request) string
	// Scrub removes possible secrets from a path that is not noted, and from the
	// cause of a failure.
	Scrub func(text string) string
}

// finished is a request that has been answered.
type finished struct {
	*observe.Request
	method string
	status int   // 0: the answer broke off before its status was sent
	bytes  int64 // of the body as it was sent, perhaps compressed
	begun  time.Time
	took   time.Duration
	cut    bool // the answer broke off: the caller went away, or the node gave up

	unanswered bool // no status was sent
}

// Handler serves requests with next, and records each one once, after its answer. The
// code in next notes the facts of a request in observe.Of.
func (o *Observer) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		begun := time.Now()
		r := &observe.Request{}
		ctx := observe.With(req.Context(), r)
		var span trace.Span
		if o.Tracer != nil {
			ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(req.Header))
			ctx, span = o.Tracer.Start(ctx, req.Method, trace.WithSpanKind(trace.SpanKindServer))
		}
		o.Metrics.begin()
		rec := &recorder{ResponseWriter: w}
		defer func() {
			p := recover()
			f := &finished{Request: r, method: req.Method, status: rec.code(), bytes: rec.bytes, begun: begun, took: time.Since(begun),
				cut: req.Context().Err() != nil, unanswered: rec.status == 0}
			o.complete(f, req, w.Header(), p)
			o.Metrics.end(f)
			if span != nil {
				f.end(span)
			}
			o.log(ctx, f)
			if p != nil {
				panic(http.ErrAbortHandler) // the server has nothing to add to the record
			}
		}()
		next.ServeHTTP(rec, req.WithContext(ctx))
	})
}

// complete adds the facts that next has not noted, and the panic p that ended the
// request; nil: there was none.
func (o *Observer) complete(f *finished, req *http.Request, h http.Header, p any) {
	if p != nil {
		f.cut = true
	}
	if f.cut && f.unanswered {
		f.status = 0
	}
	if p != nil {
		if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			f.Cause, f.Broken = fmt.Errorf("panic: %v\n%s", p, debug.Stack()), true
		}
	}
	if f.ID == "" {
		f.ID = h.Get("X-Request-Id")
	}
	if f.Path == "" {
		f.Path = o.scrubbed(req.URL.Path)
	}
	if f.Address == "" && o.Address != nil {
		f.Address = o.Address(req)
	}
}

func (o *Observer) scrubbed(text string) string {
	if o.Scrub == nil {
		return text
	}
	return o.Scrub(text)
}

// failed tells whether the failure is on our side. A refusal on purpose is none.
func (f *finished) failed() bool {
	var refusal interface{ Deliberate() bool }
	if f.Cause == nil || errors.As(f.Cause, &refusal) && refusal.Deliberate() {
		return false
	}
	return f.status >= 500 || f.Broken
}

// log writes the record: as an error if the failure is on our side, else as
// information.
func (o *Observer) log(ctx context.Context, f *finished) {
	if o.Logger == nil {
		return
	}
	level := slog.LevelInfo
	if f.failed() {
		level = slog.LevelError
	}
	if !o.Logger.Enabled(ctx, level) {
		return
	}
	var room [16]slog.Attr
	attrs := append(room[:0], slog.String("method", f.method), slog.String("path", f.Path), slog.Int("status", f.status),
		slog.Int64("bytes", f.bytes), slog.Duration("took", f.took))
	for _, a := range [...]struct{ key, value string }{
		{"route", f.Pattern}, {"capability", f.Capability}, {"surface", f.Surface}, {"address", f.Address},
		{"account", f.Account}, {"actor", f.Actor}, {"slug", f.Slug}, {"request_id", f.ID},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.key, a.value))
		}
	}
	if f.cut {
		attrs = append(attrs, slog.Bool("cut", true))
	}
	if f.Cause != nil {
		attrs = append(attrs, slog.String("cause", o.scrubbed(f.Cause.Error())))
	}
	// Logger.LogAttrs would look up the caller's line for each record.
	record := slog.NewRecord(f.begun.Add(f.took), level, "request", 0)
	record.AddAttrs(attrs...)
	_ = o.Logger.Handler().Handle(ctx, record) // a failure of the log cannot be logged
}

// end ends the span of the request.
func (f *finished) end(span trace.Span) {
	name := f.Capability
	if name == "" {
		name = f.method + " " + f.Surface
	}
	span.SetName(name)
	span.SetAttributes(
		attribute.String("http.request.method", f.method), attribute.String("http.route", f.Pattern), attribute.String("url.path", f.Path),
		attribute.Int("http.response.status_code", f.status), attribute.String("yardmaster.account", f.Account),
		attribute.String("yardmaster.request_id", f.ID), attribute.String("error.type", f.Slug),
	)
	if f.status >= 500 || f.Broken {
		span.SetStatus(codes.Error, f.Slug)
	}
	span.End()
}

// recorder notes the status of an answer, and counts its bytes.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= 200 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	return n, err
}

// Flush is for handlers that ask for it without a ResponseController.
func (r *recorder) Flush() {
	if f, ok := r.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// code is the status of the answer; 200 if the handler wrote nothing.
func (r *recorder) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}
