package observe

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Traces sends spans to an OpenTelemetry collector.
type Traces struct{ provider *sdktrace.TracerProvider }

// NewTraces sends to a collector that takes OTLP over HTTP: endpoint is its
// address without the path /v1/traces, such as http://127.0.0.1:4318. A collector that cannot be reached costs spans, and
// holds nothing up.
func NewTraces(ctx context.Context, endpoint, version string) (*Traces, error) {
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(strings.TrimSuffix(endpoint, "/")+"/v1/traces"))
	if err != nil {
		return nil, fmt.Errorf("send traces to %s: %w", endpoint, err)
	}
	return &Traces{sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "yardmaster"), attribute.String("service.version", version))),
	)}, nil
}

// Tracer makes spans.
func (t *Traces) Tracer() trace.Tracer { return t.provider.Tracer("yardmaster") }

// Close sends what has not been sent, within five seconds.
func (t *Traces) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return t.provider.Shutdown(ctx)
}
