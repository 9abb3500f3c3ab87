// Package logsink sends copies of the model calls of an account to where the account wants
// them: an HTTPS collector, a receiver of OTLP, or a bucket of S3. It is off unless the account
// sets it. Secrets that the server knows or recognises are taken out before anything leaves.
//
// No call waits for a sink. Copies are held in memory, within limits for an account and for
// the node; a call for which there is no room is counted as dropped.
//
//   - logsink.go: the types and the limits
//   - ops.go, events.go: capabilities and events
//   - keep.go: the copies that wait
//   - loop.go: batches, tries and counts
//   - store.go: the statements
package logsink

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/dial"
	"yardmaster/internal/event"
	"yardmaster/internal/llm/sink"
	"yardmaster/internal/needs"
	"yardmaster/internal/seal"
)

// Limits of what is kept.
const (
	maxBody   = 1 << 20  // bytes of a request, and of an answer
	maxNode   = 64 << 20 // bytes that wait on a node
	maxSink   = 16 << 20 // bytes of them that are of one account
	weight    = 1 << 10  // bytes that a copy counts besides its bodies
	batchSize = 100      // copies
	batchRoom = 1 << 20  // bytes of a batch, unless it is of one copy
	gather    = time.Second
	tries     = 3
	farewell  = 3 * time.Second // for what waits when the node stops
	scan      = 15 * time.Second
	counting  = 3 * time.Second // between two writes of counts
)

// LogSink is whether copies of an account's model calls are sent, and where.
type LogSink struct {
	_             struct{}       `doc:"Where copies of the account's model calls go." schema:"LogSink"`
	Configuration *LogSinkConfig `json:"configuration" doc:"null: nowhere"`
}

// LogSinkConfig is the sink of an account, without its secrets.
type LogSinkConfig struct {
	_          struct{}   `doc:"A sink, without its secrets." schema:"LogSinkConfig"`
	Kind       sink.Kind  `json:"kind" doc:"how copies are sent"`
	URL        string     `json:"url" example:"https://collector.example.com/…" doc:"its address, masked"`
	Headers    []string   `json:"headers" example:"[\"Authorization\"]" doc:"names of the headers that are sent"`
	Sent       int64      `json:"sent" doc:"calls that it has taken since it was set; counts are some seconds late"`
	Dropped    int64      `json:"dropped" doc:"calls for which there was no room"`
	Failed     int64      `json:"failed" doc:"calls that were given up after three tries"`
	LastError  *string    `json:"last_error" example:"null" doc:"why the last batch was not taken; null: it was"`
	LastSentAt *time.Time `json:"last_sent_at" doc:"when it last took calls; null: never"`
	ProbedAt   time.Time  `json:"probed_at" doc:"when it took the probe"`
	CreatedAt  time.Time  `json:"created_at" doc:"when a sink was first set"`
	UpdatedAt  time.Time  `json:"updated_at" doc:"when it was last set"`
}

// LogSinkCleared is the answer of billing.log_sink_clear.
type LogSinkCleared struct {
	_       struct{} `doc:"What billing.log_sink_clear did." schema:"LogSinkCleared"`
	Deleted bool     `json:"deleted" doc:"false: there was none"`
}

// Secrets finds what must not leave.
type Secrets interface {
	// Secrets opens all secrets of tx.Account that runs and models get. It fails if one of them
	// cannot be opened.
	Secrets(tx *db.Tx) ([]string, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB      *db.DB
	Hub     *event.Hub
	Ring    *seal.Keyring
	Guard   *dial.Guard
	Secrets Secrets
	Logger  *slog.Logger
	Clock   func() time.Time
	// Version is the server's, for receivers.
	Version string `optional:""`
	// PlainHTTP lets addresses be without TLS elsewhere than on this machine, for operators
	// with a network of their own.
	PlainHTTP bool
}

// Service keeps the sinks and sends to them.
type Service struct {
	Needs
	sender  sink.Sender
	room    int64                          // bytes that may wait on this node
	share   int64                          // bytes of them of one account
	held    atomic.Int64                   // bytes that wait on this node
	pause   func(try int) <-chan time.Time // before the next try
	forming sync.Mutex                     // batches are written down one by one, so that the node has time for calls
	mu      sync.RWMutex
	sinks   map[string]*queue // by account
	all     sync.WaitGroup
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{
		Needs: n, sender: sink.NewSender(n.Guard, n.Version), room: maxNode, share: maxSink, sinks: map[string]*queue{},
		pause: func(try int) <-chan time.Time { return time.After(time.Duration(try*try) * time.Second) },
	}
}

// purpose is the place that the target of an account is sealed for.
func purpose(account string) string { return "log-sink/" + account }
