// Package observe shows an operator what a node does: one record in the log for
// every request that it answers, metrics for Prometheus on an address of their
// own, and traces for an OpenTelemetry collector where one is configured. It
// knows nothing of capabilities: those who serve a request note what they learn
// of it (Of).
package observe

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Request is what becomes known of a request while it is served. One goroutine
// at a time writes it.
type Request struct {
	ID      string
	Address string // of the caller, past trusted proxies
	Surface string // rest, mcp, git, gateway
	// Path is the path to show, without secrets and without the query; empty: the
	// path that was asked for.
	Path       string
	Capability string // id of the row; empty: none matched
	Account    string
	Actor      string
	Slug       string // of the problem that was answered
	Cause      error  // which the answer does not tell
}

type requestKey struct{}

// Of is the request that ctx belongs to. Outside of one it is a value that
// nobody reads.
func Of(ctx context.Context) *Request {
	if r, ok := ctx.Value(requestKey{}).(*Request); ok {
		return r
	}
	return &Request{}
}

// Observer records requests. Its fields may be nil, each of which leaves
// something out.
type Observer struct {
	Logger  *slog.Logger
	Metrics *Metrics
	Tracer  trace.Tracer
	// Scrub takes what may be secret out of a path that nothing matched.
	Scrub func(path string) string
}

// Handler serves with next, and records every request when it has been
// answered.
func (o *Observer) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		begun := time.Now()
		r := &Request{}
		ctx := context.WithValue(req.Context(), requestKey{}, r)
		var span trace.Span
		if o.Tracer != nil {
			ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(req.Header))
			ctx, span = o.Tracer.Start(ctx, req.Method, trace.WithSpanKind(trace.SpanKindServer))
		}
		o.Metrics.begin()
		rec := &recorder{ResponseWriter: w}
		defer func() {
			took := time.Since(begun)
			if r.ID == "" {
				r.ID = w.Header().Get("X-Request-Id")
			}
			if r.Path == "" {
				r.Path = o.scrubbed(req.URL.Path)
			}
			o.Metrics.end(r, req.Method, rec.code(), took)
			if span != nil {
				end(span, r, req.Method, rec.code())
			}
			o.log(ctx, r, req.Method, rec.code(), took)
		}()
		next.ServeHTTP(rec, req.WithContext(ctx))
	})
}

func (o *Observer) scrubbed(path string) string {
	if o.Scrub == nil {
		return path
	}
	return o.Scrub(path)
}

// log writes the record. What failed on our side is an error, everything else
// is information.
func (o *Observer) log(ctx context.Context, r *Request, method string, status int, took time.Duration) {
	if o.Logger == nil {
		return
	}
	level := slog.LevelInfo
	if status >= 500 && r.Cause != nil {
		level = slog.LevelError
	}
	if !o.Logger.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs, slog.String("method", method), slog.String("path", r.Path), slog.Int("status", status), slog.Duration("took", took))
	for _, a := range []struct{ key, value string }{
		{"capability", r.Capability}, {"surface", r.Surface}, {"address", r.Address}, {"account", r.Account},
		{"actor", r.Actor}, {"slug", r.Slug}, {"request_id", r.ID},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.key, a.value))
		}
	}
	if r.Cause != nil {
		attrs = append(attrs, slog.String("cause", r.Cause.Error()))
	}
	o.Logger.LogAttrs(ctx, level, "request", attrs...)
}

func end(span trace.Span, r *Request, method string, status int) {
	name := r.Capability
	if name == "" {
		name = method + " " + r.Surface
	}
	span.SetName(name)
	span.SetAttributes(
		attribute.String("http.request.method", method), attribute.String("url.path", r.Path),
		attribute.Int("http.response.status_code", status), attribute.String("yardmaster.account", r.Account),
		attribute.String("yardmaster.request_id", r.ID), attribute.String("error.type", r.Slug),
	)
	if status >= 500 {
		span.SetStatus(codes.Error, r.Slug)
	}
	span.End()
}

// recorder notes the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
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
	return r.ResponseWriter.Write(b)
}

// Flush is for handlers that ask for it without a ResponseController.
func (r *recorder) Flush() {
	if f, ok := r.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// code is the status, 200 for an answer without a word.
func (r *recorder) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}
