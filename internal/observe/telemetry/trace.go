package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// SlowTransaction is the time from which a transaction gets a span of its own.
const SlowTransaction = 100 * time.Millisecond

// Traces sends spans to an OpenTelemetry collector. Its methods may be called on
// nil, which sends nothing.
type Traces struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// NewTraces makes Traces for a collector that takes OTLP over HTTP. endpoint is the
// address of the collector without the path /v1/traces, such as http://127.0.0.1:4318.
// While the collector cannot be reached, spans are lost and the log says so; no request
// waits.
func NewTraces(ctx context.Context, endpoint, version string, log *slog.Logger) (*Traces, error) {
	to, err := newCollector(strings.TrimSuffix(endpoint, "/")+"/v1/traces", os.Getenv(headersKey))
	if err != nil {
		return nil, fmt.Errorf("send traces to %s: %w", endpoint, err)
	}
	exporter, err := otlptrace.New(ctx, to)
	if err != nil {
		return nil, fmt.Errorf("send traces to %s: %w", endpoint, err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(logged{exporter, log}),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // a caller cannot turn off the trace of its request
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "yardmaster"),
			attribute.String("service.version", version))),
	)
	return &Traces{provider, provider.Tracer("yardmaster")}, nil
}

// logged logs errors that keep spans from being sent.
type logged struct {
	sdktrace.SpanExporter
	log *slog.Logger
}

// ExportSpans never fails: the spans are lost, and the log says so.
func (l logged) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := l.SpanExporter.ExportSpans(ctx, spans); err != nil {
		l.log.WarnContext(ctx, "traces were not sent", slog.Int("spans", len(spans)), slog.Any("error", err))
	}
	return nil
}

// Tracer returns the tracer that makes spans; nil if t is nil.
func (t *Traces) Tracer() trace.Tracer {
	if t == nil {
		return nil
	}
	return t.tracer
}

// Transaction sends a span of a database transaction that took at least
// SlowTransaction, see db.Transaction.
func (t *Traces) Transaction(ctx context.Context, kind, outcome string, begun time.Time, took time.Duration, tries int) {
	if t == nil || took < SlowTransaction {
		return
	}
	_, span := t.tracer.Start(ctx, "database "+kind, trace.WithTimestamp(begun), trace.WithSpanKind(trace.SpanKindClient))
	span.SetAttributes(attribute.String("yardmaster.outcome", outcome), attribute.Int("yardmaster.tries", tries))
	if outcome == "failed" {
		span.SetStatus(codes.Error, outcome)
	}
	span.End(trace.WithTimestamp(begun.Add(took)))
}

// Close sends the remaining spans. It fails if that takes more than five seconds.
func (t *Traces) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return t.provider.Shutdown(ctx)
}
