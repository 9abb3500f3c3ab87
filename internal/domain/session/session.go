// Package session is conversations with models: the unit of cost, model and
// outcome. It is also the model gateway's memory: which key a run's token may
// spend, and what each call added to the session.
package session

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/billing"
	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
)

// Session is a row as the API shows it.
type Session struct {
	ID        string        `json:"id"`
	RunID     *string       `json:"run_id"`
	TaskID    *string       `json:"task_id"`
	Repo      *string       `json:"repo"`
	Trigger   string        `json:"trigger"`
	Kind      string        `json:"kind"`
	Provider  *string       `json:"provider"`
	Model     *string       `json:"model"`
	Outcome   *string       `json:"outcome"`
	CostUSD   *string       `json:"cost_usd" doc:"decimal; null when nothing had a price"`
	Tokens    SessionTokens `json:"tokens"`
	StartedAt time.Time     `json:"started_at"`
	EndedAt   *time.Time    `json:"ended_at"`
}

// SessionTokens is what the gateway counted.
type SessionTokens struct {
	Calls  int64 `json:"calls"`
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
	Cache  int64 `json:"cache" doc:"read from or written to the provider's cache"`
}

// Attempt is what a model token stands for: one live attempt.
type Attempt struct {
	RunID, SessionID, AccountID string
	Provider, Model, BaseURL    string // what the run's template asks for; may be empty
}

// Cadences.
const (
	fresh      = 500 * time.Millisecond // how long a resolved token is trusted; revocation holds within it
	flushEvery = 200 * time.Millisecond
)

// Service is the gateway's Authorizer and Recorder, and serves sessions.
type Service struct {
	DB     *db.DB
	Keys   *billing.Service
	Logger *slog.Logger
	Clock  func() time.Time
	// Resolve tells which live attempt a model token belongs to.
	Resolve func(ctx context.Context, token string) (Attempt, bool, error)

	mu      sync.Mutex
	known   map[string]known
	pending map[string]*sum
}

type known struct {
	attempt Attempt
	keys    []billing.Sealed
	until   time.Time
}

// Authorize finds the key that a run's call may spend.
func (s *Service) Authorize(ctx context.Context, token string, api llm.API, model string) (llm.Grant, error) {
	k, err := s.resolve(ctx, token)
	if err != nil {
		return llm.Grant{}, err
	}
	for _, key := range k.keys {
		if k.attempt.Provider != "" && string(key.Provider) != k.attempt.Provider || !key.Provider.Speaks(api) {
			continue
		}
		route, err := s.Keys.Route(key)
		if err != nil {
			return llm.Grant{}, err
		}
		if k.attempt.BaseURL != "" && strings.TrimRight(k.attempt.BaseURL, "/") != key.BaseURL {
			continue // a key is for the address it was added with, and no other
		}
		route.Model = k.attempt.Model
		return llm.Grant{Route: route, Session: handle{k.attempt.SessionID, string(key.Provider)}}, nil
	}
	want := "no model key"
	if p := k.attempt.Provider; p != "" {
		want = "no key of the provider " + p
	}
	return llm.Grant{}, fault.Newf(fault.Forbidden, "no_credential", "The account has %s that speaks the %s API.", want, api)
}

type handle struct{ session, provider string }

func (s *Service) resolve(ctx context.Context, token string) (known, error) {
	now := s.Clock()
	s.mu.Lock()
	k, ok := s.known[token]
	s.mu.Unlock()
	if ok && now.Before(k.until) {
		return k, nil
	}
	a, ok, err := s.Resolve(ctx, token)
	if err != nil {
		return known{}, err
	}
	if !ok {
		return known{}, fault.New(fault.Unauthenticated, "", "The token belongs to no live run.")
	}
	k = known{attempt: a, until: now.Add(fresh)}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		k.keys, err = billing.Pool(tx, a.AccountID)
		return err
	})
	if err != nil {
		return known{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) > 1000 {
		s.known = map[string]known{}
	}
	s.known[token] = k
	return k, nil
}

// sum is what calls added since the last flush.
type sum struct {
	provider, model                       string
	calls, unpriced, input, output, cache int64
	cost                                  int64
	priced                                bool
}

// Record adds a call to its session. It only remembers: the sums are stored
// together, at most flushEvery later and at Close.
func (s *Service) Record(_ context.Context, g llm.Grant, u llm.Usage) {
	h, ok := g.Session.(handle)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		s.pending = map[string]*sum{}
	}
	p := s.pending[h.session]
	if p == nil {
		p = &sum{}
		s.pending[h.session] = p
	}
	p.provider, p.model = h.provider, u.Model
	p.calls++
	p.input += u.InputTokens
	p.output += u.OutputTokens
	p.cache += u.CacheReadTokens + u.CacheWriteTokens
	if u.CostMicros != nil {
		p.cost += *u.CostMicros
		p.priced = true
	} else {
		p.unpriced++
	}
}

// Loop stores what was recorded until ctx ends.
func (s *Service) Loop(ctx context.Context) error {
	t := time.NewTicker(flushEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			if err := s.flush(ctx); err != nil && ctx.Err() == nil {
				s.Logger.Error("model usage could not be stored yet", slog.Any("error", err))
			}
		}
	}
}

// Close stores what is left. Call it after the last call was recorded.
func (s *Service) Close() error { return s.flush(context.Background()) }

func (s *Service) flush(ctx context.Context) error {
	s.mu.Lock()
	batch := s.pending
	s.pending = nil
	s.mu.Unlock()
	if len(batch) == 0 {
		return nil
	}
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		for id, p := range batch {
			var cost *int64
			if p.priced {
				cost = &p.cost
			}
			if _, err := add.Exec(tx, id, p.provider, p.model, p.calls, p.unpriced, p.input, p.output, p.cache, cost); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.restore(batch)
		return fmt.Errorf("store model usage: %w", err)
	}
	return nil
}

// restore puts sums back that could not be stored.
func (s *Service) restore(batch map[string]*sum) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		s.pending = map[string]*sum{}
	}
	for id, p := range batch {
		q := s.pending[id]
		if q == nil {
			s.pending[id] = p
			continue
		}
		q.calls += p.calls
		q.unpriced += p.unpriced
		q.input += p.input
		q.output += p.output
		q.cache += p.cache
		q.cost += p.cost
		q.priced = q.priced || p.priced
	}
}

// usd is micro-dollars as a decimal.
func usd(micros *int64) *string {
	if micros == nil {
		return nil
	}
	s := strconv.FormatFloat(float64(*micros)/1e6, 'f', 6, 64)
	return &s
}
