// Package session is the conversations with models: which attempt had which,
// with what model, and what it consumed. It is what the model gateway asks
// whether a token may call (Authorize) and whether there is money for it
// (Reserve), and tells what a call cost (Record); runs begin and end the
// sessions themselves.
package session

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
	"yardmaster/internal/needs"
	"yardmaster/internal/observe"
	"yardmaster/internal/seal"
)

// Session is a conversation as clients see it.
type Session struct {
	_         struct{}   `doc:"One conversation with a model."`
	ID        string     `json:"id" format:"uuid" doc:"id of the session"`
	RunID     *string    `json:"run_id" format:"uuid" doc:"the run it belongs to; null: to none, as of triage"`
	TaskID    *string    `json:"task_id" format:"uuid" doc:"the task of that run; null without one"`
	Repo      *string    `json:"repo" doc:"owner/name; null: it is about no one repository"`
	Trigger   string     `json:"trigger" enum:"task,ask,plan,check,babysit,review" doc:"what it came of: a task that somebody created, an ask and what triage minted for it, a plan, a check or a repair of a pull request; nothing comes of a review yet"`
	Kind      string     `json:"kind" enum:"work,scout,setup,review,babysit,kb,devops,ci,triage" doc:"the kind of the task, or triage"`
	Provider  *string    `json:"provider" doc:"whose model it is; null before the first call"`
	Model     *string    `json:"model" doc:"the model that was called; null before the first call"`
	Outcome   *string    `json:"outcome" enum:"succeeded,failed,interrupted,lost" doc:"how it ended; null until then"`
	Calls     int64      `json:"calls" example:"12" doc:"calls of models so far"`
	CostUSD   *string    `json:"cost_usd" example:"0.42" doc:"decimal US dollars; null when nothing had a price"`
	Tokens    Tokens     `json:"tokens" doc:"what it used"`
	StartedAt time.Time  `json:"started_at" doc:"when it began"`
	EndedAt   *time.Time `json:"ended_at" doc:"when it ended; null while it goes on"`
}

// Tokens is what a session consumed; the counts do not overlap.
type Tokens struct {
	_      struct{} `doc:"Tokens of a session; the counts do not overlap."`
	Input  int64    `json:"input" example:"18211" doc:"sent to models, without what came from a cache"`
	Output int64    `json:"output" example:"5120" doc:"written by models"`
	Cache  int64    `json:"cache" example:"30000" doc:"read from or written to a cache"`
}

// Attempt is the live attempt that a model token belongs to, with what its
// template says about the model.
type Attempt struct {
	RunID     string
	SessionID string
	AccountID string
	Provider  string // empty: any
	BaseURL   string // of the provider compatible
	Model     string // empty: the one that a call asks for
}

// Runs are the runs whose conversations sessions are.
type Runs interface {
	// Attempt finds the live attempt of a model token; ok is false for a token that
	// is worth nothing.
	Attempt(ctx context.Context, token string) (a Attempt, ok bool, err error)
	// Say owes the agent of a live run of tx.Account a message; a run that cannot be
	// reached is refused with no_live_channel.
	Say(tx *db.Tx, runID, text string) (messageID string, err error)
	// Await tells what became of a message by the end of the wait.
	Await(ctx context.Context, runID, messageID string, wait time.Duration) (Outcome, error)
	// Events lists the events of a run behind a number, limit at most.
	Events(tx *db.Tx, runID string, after int64, limit int) ([]Event, error)
	// Record is how a run was carried out.
	Record(tx *db.Tx, runID string) (RunRecord, error)
}

// Policies reads policy files.
type Policies interface {
	// Parse reads a policy file as it would be in force in a repository of
	// tx.Account, nil for none; the messages say what is wrong with it.
	Parse(tx *db.Tx, repoID *string, yml string) (Candidate, []string, error)
}

// Needs are what sessions are made of.
type Needs struct {
	DB       *db.DB
	Hub      *event.Hub
	Keys     *modelkey.Service
	Budget   *budget.Service
	Logger   *slog.Logger
	Clock    func() time.Time // also measures how long calls take
	Runs     Runs
	Policies Policies
	// Prices are those of the server, for what an account sets none.
	Prices *llm.Prices
	// Gateway says where providers are: Transport and Scripted. New fills in the
	// rest.
	Gateway llm.Config
}

// Service is the llm.Authorizer, llm.Reserver and llm.Recorder of the gateway,
// and answers for sessions.
type Service struct {
	Needs
	calls llm.Caller // carries the platform's own calls through the gateway

	reads  singleflight.Group // of the streams
	writes sync.WaitGroup
	mu     sync.Mutex
	known  map[call]grant
	owed   []owed
	own    map[string]Attempt // hash of a token -> conversation of the platform's own
}

// New makes the service and its gateway. It panics if something is lacking.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n}
	c := n.Gateway
	c.Authorizer, c.Reserver, c.Recorder, c.Logger, c.Now, c.Prices = s, s, s, n.Logger, n.Clock, n.Prices
	s.calls = llm.Caller{Gateway: llm.NewGateway(c)}
	return s
}

// Caller carries calls through the gateway, whose handler it holds.
func (s *Service) Caller() llm.Caller { return s.calls }

// remembered is how long a decision is used again. A revoked token or a
// deleted key works no longer than this.
const remembered = time.Second

// maxKnown bounds the memory of decisions.
const maxKnown = 10_000

type (
	call struct {
		token string // hash
		api   llm.API
	}
	grant struct {
		llm.Grant
		until time.Time
	}
	// handle comes back from the gateway with what a call consumed.
	handle struct{ session, account, key string }
)

// Authorize picks the account's key for a call of a live attempt. Agents ask
// for other models beside the one they were told to use, say to find a title;
// a template that names a model has them all go there.
func (s *Service) Authorize(ctx context.Context, token string, api llm.API, _ string) (llm.Grant, error) {
	at, now := call{seal.Hash(token), api}, s.Clock()
	s.mu.Lock()
	g, ok := s.known[at]
	s.mu.Unlock()
	if ok && now.Before(g.until) {
		noteCaller(ctx, g.Grant)
		return g.Grant, nil
	}
	fresh, err := s.authorize(ctx, token, api)
	if err != nil {
		return llm.Grant{}, err
	}
	noteCaller(ctx, fresh)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxKnown {
		s.known = map[call]grant{}
	}
	s.known[at] = grant{fresh, now.Add(remembered)}
	return fresh, nil
}

// noteCaller tells the record of the request whose call it is.
func noteCaller(ctx context.Context, g llm.Grant) {
	if h, ok := g.Session.(handle); ok {
		r := observe.Of(ctx)
		r.Account, r.Actor = h.account, "session:"+h.session
	}
}

func (s *Service) authorize(ctx context.Context, token string, api llm.API) (llm.Grant, error) {
	s.mu.Lock()
	a, ok := s.own[seal.Hash(token)]
	s.mu.Unlock()
	var err error
	if !ok {
		a, ok, err = s.Runs.Attempt(ctx, token)
	}
	if err != nil {
		return llm.Grant{}, err
	}
	if !ok {
		return llm.Grant{}, fault.New(fault.Unauthenticated, "", "The token belongs to no live attempt.")
	}
	wish := modelkey.Wish{Provider: llm.Provider(a.Provider), BaseURL: a.BaseURL, API: keyed(api)}
	var key modelkey.Key
	var prices *llm.Prices
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		if key, ok, err = modelkey.Pick(tx, a.AccountID, wish); err != nil || !ok {
			return err
		}
		prices, err = modelkey.Prices(tx, key, s.Prices)
		return err
	})
	if err != nil {
		return llm.Grant{}, err
	}
	if !ok {
		return llm.Grant{}, noCredential(wish)
	}
	route, err := s.Keys.Open(key)
	if err != nil {
		return llm.Grant{}, fmt.Errorf("open key %s: %w", key.ID, err)
	}
	route.Model = a.Model
	return llm.Grant{Route: route, Session: handle{a.SessionID, a.AccountID, key.ID}, Prices: prices}, nil
}

// keyed is the API that decides which key serves a call: what comes beside an
// API goes where its calls go.
func keyed(api llm.API) llm.API {
	switch api {
	case llm.CountTokens:
		return llm.Messages
	case llm.GeminiCount:
		return llm.Gemini
	}
	return api
}

func noCredential(w modelkey.Wish) *fault.Error {
	var speak []string
	for _, p := range llm.Speakers(w.API) {
		speak = append(speak, string(p))
	}
	who := "a provider"
	switch {
	case w.BaseURL != "":
		who = "the provider at the template's base_url"
	case w.Provider != "":
		who = "the provider " + string(w.Provider)
	}
	return fault.Newf(fault.Forbidden, "no_credential", "The account has no key of %s that speaks the API %s; these do: %s. `yardmaster key add` adds one.", who, w.API, strings.Join(speak, ", "))
}

const (
	// together is how long the account of a call waits for others, to share a
	// commit with them.
	together = 20 * time.Millisecond
	// recordTime bounds how long accounts may wait for the database.
	recordTime = 10 * time.Second
)

// owed is a call that has yet to be added to its session.
type owed struct {
	handle
	provider llm.Provider
	usage    llm.Usage
}

// Reserve sets aside what a call may cost. A refusal stops the session's run.
func (s *Service) Reserve(ctx context.Context, g llm.Grant, q llm.Quote) (int64, error) {
	h, ok := g.Session.(handle)
	if !ok {
		return 0, fmt.Errorf("reserve for a call of session %v, which is none", g.Session)
	}
	if !q.Priced {
		return 0, s.Budget.ReserveUnpriced(ctx, h.session, budget.Model{Provider: string(g.Route.Provider), Name: q.Model, Key: h.key})
	}
	return s.Budget.Reserve(ctx, h.session, q.Most, q.Least)
}

// Record adds a call to its session. The answer does not wait until that is
// stored, which would double what the gateway adds to a call: a process that
// is killed can lose the accounts of its last moment (together), one that is
// stopped stores them in Close.
func (s *Service) Record(_ context.Context, g llm.Grant, u llm.Usage) {
	h, ok := g.Session.(handle)
	if !ok {
		return // not one of ours
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owed = append(s.owed, owed{h, g.Route.Provider, u})
	if len(s.owed) == 1 {
		s.writes.Go(func() {
			time.Sleep(together)
			s.flush()
		})
	}
}

// Close stores what is owed. Call it after the last Record.
func (s *Service) Close() {
	s.flush()
	s.writes.Wait()
}

func (s *Service) flush() {
	s.mu.Lock()
	all := s.owed
	s.owed = nil
	s.mu.Unlock()
	if len(all) == 0 {
		return
	}
	calls := make([]budget.Call, len(all))
	for i, o := range all {
		calls[i] = budget.Call{Session: o.session, Account: o.account, Reserved: o.usage.Reserved, Cost: o.usage.CostMicros}
	}
	ctx, cancel := context.WithTimeout(context.Background(), recordTime)
	defer cancel()
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		if err := s.Budget.Settle(tx, calls); err != nil {
			return err
		}
		for _, o := range all {
			if err := add(tx, o.session, o.provider, o.usage); err != nil {
				return err
			}
			if o.usage.Fault == "" && o.usage.Status/100 != 2 {
				continue // it went wrong before the key was tried
			}
			if err := modelkey.Note(tx, o.account, o.key, o.usage.Fault); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		return
	}
	s.Budget.Abandon(calls)
	for _, o := range all {
		s.Logger.Error("model call is not accounted for", "session", o.session, "provider", o.provider, "model", o.usage.Model,
			"input_tokens", o.usage.InputTokens, "output_tokens", o.usage.OutputTokens, "cost_micros", o.usage.CostMicros, "error", err)
	}
}
