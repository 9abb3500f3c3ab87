package observe

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are what Prometheus reads of a node. Its methods may be called on
// nil, which measures nothing.
type Metrics struct {
	registry *prometheus.Registry
	open     prometheus.Gauge
	requests *prometheus.HistogramVec
	gateway  *prometheus.HistogramVec
	tokens   *prometheus.CounterVec
	calls    *prometheus.HistogramVec
	database *prometheus.HistogramVec
	passes   *prometheus.HistogramVec
	failures *prometheus.CounterVec
}

// buckets are seconds, from what the database takes to what a long poll does.
var buckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}

// NewMetrics makes the metrics of a node, those of the process included.
func NewMetrics(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		open:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "yardmaster_requests_open", Help: "Requests that are being answered, streams and long polls included."}),
		requests: histogram("yardmaster_request_seconds", "How long requests took.", "capability", "surface", "status"),
		gateway:  histogram("yardmaster_gateway_seconds", "How long calls of the model gateway took.", "provider", "outcome"),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "yardmaster_gateway_tokens_total",
			Help: "Tokens of models that were counted."}, []string{"provider", "kind"}),
		calls:    histogram("yardmaster_bus_seconds", "How long calls of boxes took.", "method", "outcome"),
		database: histogram("yardmaster_database_seconds", "How long transactions took, waiting included.", "kind", "outcome"),
		passes:   histogram("yardmaster_loop_seconds", "How long passes of loops took.", "loop"),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "yardmaster_loop_failures_total",
			Help: "Passes of loops that failed."}, []string{"loop"}),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "yardmaster_info", Help: "The version that runs.",
		ConstLabels: prometheus.Labels{"version": version}})
	info.Set(1)
	m.registry.MustRegister(m.open, m.requests, m.gateway, m.tokens, m.calls, m.database, m.passes, m.failures, info,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

func (m *Metrics) begin() {
	if m != nil {
		m.open.Inc()
	}
}

func (m *Metrics) end(r *Request, _ string, status int, took time.Duration) {
	if m == nil {
		return
	}
	m.open.Dec()
	m.requests.WithLabelValues(r.Capability, r.Surface, strconv.Itoa(status)).Observe(took.Seconds())
}

// Gateway counts a call of the model gateway. Outcome is ok, refused (by us),
// failed (by the provider) or cut (the caller went away).
func (m *Metrics) Gateway(provider, outcome string, took time.Duration, input, output, cache int64) {
	if m == nil {
		return
	}
	m.gateway.WithLabelValues(provider, outcome).Observe(took.Seconds())
	for kind, n := range map[string]int64{"input": input, "output": output, "cache": cache} {
		if n > 0 {
			m.tokens.WithLabelValues(provider, kind).Add(float64(n))
		}
	}
}

// Call counts a call of a box.
func (m *Metrics) Call(method string, took time.Duration, err error) {
	if m != nil {
		m.calls.WithLabelValues(method, outcome(err)).Observe(took.Seconds())
	}
}

// Transaction counts a transaction, see db.Options.Observe.
func (m *Metrics) Transaction(kind, outcome string, took time.Duration) {
	if m != nil {
		m.database.WithLabelValues(kind, outcome).Observe(took.Seconds())
	}
}

// Pass counts a pass of a loop.
func (m *Metrics) Pass(loop string, took time.Duration, err error) {
	if m == nil {
		return
	}
	m.passes.WithLabelValues(loop).Observe(took.Seconds())
	if err != nil && !errors.Is(err, context.Canceled) {
		m.failures.WithLabelValues(loop).Inc()
	}
}

func outcome(err error) string {
	if err != nil {
		return "failed"
	}
	return "ok"
}

// Count is a number that is asked for when Prometheus reads.
type Count struct {
	Labels []string
	Value  float64
}

// Ask adds a gauge whose values are asked for at each reading, in five seconds
// at most. An error leaves the gauge out of that reading, and is counted.
func (m *Metrics) Ask(name, help string, labels []string, ask func(context.Context) ([]Count, error)) {
	if m == nil {
		return
	}
	m.registry.MustRegister(&asked{desc: prometheus.NewDesc(name, help, labels, nil), ask: ask, failures: m.failures.WithLabelValues(name)})
}

type asked struct {
	desc     *prometheus.Desc
	ask      func(context.Context) ([]Count, error)
	failures prometheus.Counter
}

func (a *asked) Describe(c chan<- *prometheus.Desc) { c <- a.desc }

func (a *asked) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	all, err := a.ask(ctx)
	if err != nil {
		a.failures.Inc()
		return
	}
	for _, n := range all {
		c <- prometheus.MustNewConstMetric(a.desc, prometheus.GaugeValue, n.Value, n.Labels...)
	}
}

// Serve answers GET /metrics at an address until ctx ends.
func (m *Metrics) Serve(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
