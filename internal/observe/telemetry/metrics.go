package telemetry

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are the metrics of a node that Prometheus reads. The methods may be called
// on nil, which measures nothing.
type Metrics struct {
	registry *prometheus.Registry
	open     prometheus.Gauge
	requests *prometheus.HistogramVec
	gateway  *prometheus.HistogramVec
	tokens   *prometheus.CounterVec
	calls    *prometheus.HistogramVec
	database *prometheus.HistogramVec
	retries  prometheus.Counter
	passes   *prometheus.HistogramVec
	last     *prometheus.GaugeVec
	failures *prometheus.CounterVec
	unread   *prometheus.CounterVec
}

// buckets are the bounds of the histograms in seconds, from a transaction to a long
// poll.
var buckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}

// NewMetrics makes the metrics of a node, including those of its process.
func NewMetrics(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		open: prometheus.NewGauge(prometheus.GaugeOpts{Name: "yardmaster_requests_open",
			Help: "Requests that are being answered, streams and long polls included."}),
		requests: histogram("yardmaster_request_seconds", "How long requests took.", "capability", "surface", "status"),
		gateway:  histogram("yardmaster_gateway_seconds", "How long calls of the model gateway took.", "provider", "outcome"),
		tokens:   counter("yardmaster_gateway_tokens_total", "Tokens of models that were counted.", "provider", "kind"),
		calls:    histogram("yardmaster_bus_seconds", "How long calls of boxes took.", "method", "outcome"),
		database: histogram("yardmaster_database_seconds", "How long transactions took, waiting included.", "kind", "outcome"),
		retries: prometheus.NewCounter(prometheus.CounterOpts{Name: "yardmaster_database_retries_total",
			Help: "Transactions that were run again because another one was in their way."}),
		passes: histogram("yardmaster_loop_seconds", "How long passes of loops took.", "loop"),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "yardmaster_loop_last_pass_timestamp_seconds",
			Help: "When the last pass of a loop ended, as Unix time."}, []string{"loop"}),
		failures: counter("yardmaster_loop_failures_total", "Passes of loops in which something failed.", "loop"),
		unread:   counter("yardmaster_metric_failures_total", "Readings that lack a metric because it could not be asked for.", "metric"),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "yardmaster_info", Help: "1, with the version that runs.",
		ConstLabels: prometheus.Labels{"version": version}})
	info.Set(1)
	m.registry.MustRegister(m.open, m.requests, m.gateway, m.tokens, m.calls, m.database, m.retries, m.passes, m.last, m.failures,
		m.unread, info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func (m *Metrics) begin() {
	if m != nil {
		m.open.Inc()
	}
}

// classes are the values of the label status of requests, by the first digit.
var classes = [...]string{"0xx", "1xx", "2xx", "3xx", "4xx", "5xx"}

func (m *Metrics) end(f *finished) {
	if m == nil {
		return
	}
	m.open.Dec()
	class := "other"
	if n := f.status / 100; n < len(classes) {
		class = classes[n]
	}
	m.requests.WithLabelValues(f.Capability, f.Surface, class).Observe(f.took.Seconds())
}

// Tokens are the tokens of a call of the model gateway, by kind.
type Tokens struct{ Input, Output, CacheRead, CacheWrite int64 }

// Gateway counts a call of the model gateway. Provider is empty for a call that
// was refused before its provider was known. Outcome is ok, refused (by us),
// failed (by the provider) or cut (the caller did not get the whole answer).
func (m *Metrics) Gateway(provider, outcome string, took time.Duration, t Tokens) {
	if m == nil {
		return
	}
	m.gateway.WithLabelValues(provider, outcome).Observe(took.Seconds())
	for _, k := range [...]struct {
		kind string
		n    int64
	}{{"input", t.Input}, {"output", t.Output}, {"cache_read", t.CacheRead}, {"cache_write", t.CacheWrite}} {
		if k.n > 0 {
			m.tokens.WithLabelValues(provider, k.kind).Add(float64(k.n))
		}
	}
}

// Call counts a call of a box.
func (m *Metrics) Call(method string, took time.Duration, err error) {
	if m == nil {
		return
	}
	outcome := "ok"
	if err != nil {
		outcome = "failed"
	}
	m.calls.WithLabelValues(method, outcome).Observe(took.Seconds())
}

// Transaction counts a transaction of the database that ran tries times, see
// db.Transaction.
func (m *Metrics) Transaction(kind, outcome string, took time.Duration, tries int) {
	if m == nil {
		return
	}
	m.database.WithLabelValues(kind, outcome).Observe(took.Seconds())
	if tries > 1 {
		m.retries.Add(float64(tries - 1))
	}
}

// Pass counts a pass of a loop that ends now.
func (m *Metrics) Pass(loop string, took time.Duration) {
	if m == nil {
		return
	}
	m.passes.WithLabelValues(loop).Observe(took.Seconds())
	m.last.WithLabelValues(loop).SetToCurrentTime()
	m.failures.WithLabelValues(loop).Add(0) // makes the series, so that the first failure is an increase
}

// Failed counts a pass of a loop in which something failed.
func (m *Metrics) Failed(loop string) {
	if m != nil {
		m.failures.WithLabelValues(loop).Inc()
	}
}

// Asked is a metric whose values are computed when Prometheus reads.
type Asked struct {
	Name, Help string
	Labels     []string
	Counter    bool          // the values only grow
	Keep       time.Duration // the time for which values serve further readings
}

// Count is a value of an Asked metric.
type Count struct {
	Labels []string
	Value  float64
}

// askLimit is the time that a reading waits for the values of one metric.
const askLimit = 5 * time.Second

// Ask adds a metric whose values ask returns at a reading. ask has five seconds, and is
// never called concurrently. If it fails, the reading lacks the metric, and the failure
// is counted.
func (m *Metrics) Ask(a Asked, ask func(context.Context) ([]Count, error)) {
	if m == nil {
		return
	}
	kind := prometheus.GaugeValue
	if a.Counter {
		kind = prometheus.CounterValue
	}
	m.registry.MustRegister(&asked{desc: prometheus.NewDesc(a.Name, a.Help, a.Labels, nil), kind: kind, keep: a.Keep, ask: ask,
		failures: m.unread.WithLabelValues(a.Name)})
}

type asked struct {
	desc     *prometheus.Desc
	kind     prometheus.ValueType
	keep     time.Duration
	ask      func(context.Context) ([]Count, error)
	failures prometheus.Counter

	mu     sync.Mutex
	counts []Count
	at     time.Time // the time of counts
}

func (a *asked) Describe(c chan<- *prometheus.Desc) { c <- a.desc }

func (a *asked) Collect(c chan<- prometheus.Metric) {
	all, err := a.now()
	if err != nil {
		a.failures.Inc()
		return
	}
	for _, n := range all {
		c <- prometheus.MustNewConstMetric(a.desc, a.kind, n.Value, n.Labels...)
	}
}

// now returns the values, new ones if the last ones are older than keep.
func (a *asked) now() ([]Count, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.at.IsZero() && time.Since(a.at) < a.keep {
		return a.counts, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	counts, err := a.ask(ctx)
	if err == nil {
		a.counts, a.at = counts, time.Now()
	}
	return counts, err
}

// Handler serves GET /metrics.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	return mux
}

// Serve serves GET /metrics at l until ctx ends. It closes l. It fails if l does.
func (m *Metrics) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: m.Handler(), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
