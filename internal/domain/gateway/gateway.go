// Package gateway decides on calls to models. The HTTP gateway of package llm
// carries a call; this package tells it which key of the account the call goes over
// (Authorize), sets aside the most that the call may cost (Reserve), and stores its
// cost (Record). It also makes the platform's own calls (Open), which go the same
// way.
//
//   - gateway.go: the Service
//   - authorize.go, prefer.go: from a token to a key
//   - rota.go, talks.go: which of the keys a call goes over, and when it waits for one
//   - spend.go: from a quote to the rows of its cost
//   - lent.go: calls that another account pays
//   - conversation.go: the platform's own conversations
//   - tap.go: who keeps copies of calls
//
// The package has no tables: the rows belong to modelkey, budget and session.
package gateway

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/llm"
	"yardmaster/internal/needs"
)

// Attempt is the work that a model token belongs to: a live run with what its
// template says about the model, or a conversation of the platform's own.
type Attempt struct {
	SessionID string
	AccountID string
	RunID     string // empty: a conversation of the platform's own
	RepoID    string // that it is done in; empty: none
	Person    string // who asked for it, and nobody else had a part in it; empty: nobody
	Provider  string // empty: any
	BaseURL   string // of a provider whose keys have addresses
	Model     string // empty: the model that the call names
	// Prefer is what the attempt began by because its person likes it best; the zero value:
	// it began as its template says.
	Prefer modelkey.Pref
}

// Attempts finds the attempts of runs.
type Attempts interface {
	// Attempt finds the live attempt of a model token; ok is false for a token
	// without one.
	Attempt(ctx context.Context, token string) (a Attempt, ok bool, err error)
}

// Counts limits the calls that are made at once.
type Counts interface {
	// Hold counts a call of the HTTP gateway for its session and its account while it lasts,
	// once its token is verified. It fails for one too many.
	Hold(ctx context.Context, session, account string) error
}

// Park is the wait of a run whose keys all rest.
type Park struct {
	RunID     string
	Until     time.Time
	Kind, Why string // a failure kind of tasks, and words
}

// Parking parks runs.
type Parking interface {
	// Park has a run save its work and end, and its task wait.
	Park(ctx context.Context, p Park) error
}

// Needs are the dependencies of Service.
type Needs struct {
	DB       *db.DB
	Logger   *slog.Logger
	Clock    func() time.Time // also measures how long calls take
	Attempts Attempts
	Keys     *modelkey.Service
	Budget   *budget.Service
	Sessions *session.Service
	// Prices are the server's own, for models that an account sets no price for.
	Prices *llm.Prices
	// Counts is told of each call; nil: nothing is counted.
	Counts Counts `optional:""`
	// Parking is told of runs whose keys all rest; nil: their calls are refused.
	Parking Parking `optional:""`
	// Taps keeps copies of calls; nil: nobody does.
	Taps Taps `optional:""`
	// Places are those of the keys that have a capacity, on all nodes; nil: this one is alone.
	Places Places `optional:""`
	// HTTP has Transport, Scripted and Observe; New sets the other fields.
	HTTP llm.Config
}

// Places counts what all nodes hold at once.
type Places interface {
	// Take takes one of the places of a name, of which there are the most; false: none is free.
	Take(ctx context.Context, name string, most int64) (bool, error)
	// Free gives a place back.
	Free(ctx context.Context, name string)
}

// Service implements llm.Authorizer, llm.Gate, llm.Reserver and llm.Recorder.
type Service struct {
	Needs
	caller llm.Caller
	rota   rota

	writes  sync.WaitGroup // of records
	mu      sync.Mutex
	grants  map[grantKey]grant
	records []record           // calls that are over and not stored yet
	own     map[string]Attempt // by the hash of the token of a Conversation
}

// New makes a Service of n, with its HTTP gateway. It panics if a required field of n
// is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n}
	c := n.HTTP
	c.Authorizer, c.Gate, c.Reserver, c.Recorder, c.Logger, c.Now, c.Prices = s, s, s, s, n.Logger, n.Clock, n.Prices
	if n.Taps != nil {
		c.Tap = s
	}
	s.caller = llm.Caller{Gateway: llm.NewGateway(c)}
	return s
}

// Caller holds the handler of the HTTP gateway, and makes calls through it.
func (s *Service) Caller() llm.Caller { return s.caller }

// Close stores the calls that Record has and the database has not yet. The caller
// calls Close after the last Record.
func (s *Service) Close() {
	s.flush()
	s.writes.Wait()
}
