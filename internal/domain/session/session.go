// Package session keeps the conversations with models: which run or which work of
// the platform had one, with which model, what happened in it and what it consumed.
//
//   - session.go, ops.go: the types, the Service and its capabilities
//   - of_run.go: what runs do: begin and end their sessions, and read their usage
//   - own.go: the sessions of the platform's own conversations
//   - call.go: what the model gateway adds after each call
//   - timeline.go: the events within a session, as a stream and as a file
//   - message.go: messages to the agent of a live run
//   - replay.go: a finished session under another policy file
//   - store.go, store_spent.go: the statements
package session

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/event"
	"yardmaster/internal/llm"
	"yardmaster/internal/needs"
)

// Session is a conversation as clients see it.
type Session struct {
	_         struct{}         `doc:"One conversation with a model."`
	ID        string           `json:"id" format:"uuid" doc:"id of the session"`
	RunID     *string          `json:"run_id" format:"uuid" doc:"the run it belongs to; null: to none, as of triage"`
	TaskID    *string          `json:"task_id" format:"uuid" doc:"the task of that run; null without one"`
	Title     *string          `json:"title" example:"Make the tests pass" doc:"title of the task; null without one"`
	Repo      *string          `json:"repo" doc:"owner/name; null: it is about no one repository"`
	Trigger   string           `json:"trigger" enum:"task,ask,plan,check,babysit,review,question,knowledge" doc:"what it came of: a task that somebody created, an ask and what triage minted for it, a plan, a check, a repair or a review of a pull request, a question about a repository, a proposal for the knowledge base"`
	Kind      string           `json:"kind" enum:"work,scout,setup,review,babysit,kb,devops,ci,triage,ask" doc:"the kind of the task, triage, or ask for a question about a repository"`
	Provider  *llm.Provider    `json:"provider" doc:"whose model it is; null before the first call"`
	Model     *string          `json:"model" doc:"the model that was called; null before the first call"`
	Outcome   *measure.Outcome `json:"outcome" doc:"how it ended; null until then"`
	Calls     int64            `json:"calls" example:"12" doc:"calls of models so far"`
	Unpriced  int64            `json:"unpriced_calls" example:"0" doc:"calls of models without a known price, which are not in cost_usd"`
	CostUSD   *string          `json:"cost_usd" format:"decimal" example:"0.42" doc:"decimal US dollars; null when nothing had a price"`
	Tokens    Tokens           `json:"tokens" doc:"what it used"`
	StartedAt time.Time        `json:"started_at" doc:"when it began"`
	EndedAt   *time.Time       `json:"ended_at" doc:"when it ended; null while it goes on"`
}

// Tokens is the tokens that a session has used; the counts do not overlap.
type Tokens struct {
	_      struct{} `doc:"Tokens of a session; the counts do not overlap."`
	Input  int64    `json:"input" example:"18211" doc:"sent to models, without what came from a cache"`
	Output int64    `json:"output" example:"5120" doc:"written by models"`
	Cache  int64    `json:"cache" example:"30000" doc:"read from or written to a cache"`
}

// Runs reaches the runs that sessions belong to.
type Runs interface {
	// Say queues a message for the agent of a live run of tx.Account. It fails with
	// fault.Conflict and the slug no_live_channel if the agent cannot be reached.
	Say(tx *db.Tx, runID, text string) (messageID string, err error)
	// Await returns the state of a message as soon as it is final, or at the end of the
	// wait.
	Await(ctx context.Context, runID, messageID string, wait time.Duration) (Outcome, error)
	// Events lists at most limit events of a run, those after the number.
	Events(tx *db.Tx, runID string, after int64, limit int) ([]Event, error)
	// Record reads how a run was carried out; zero for an unknown run.
	Record(tx *db.Tx, runID string) (RunRecord, error)
}

// Policies reads policy files.
type Policies interface {
	// Parse reads a policy file as it would apply in a repository of tx.Account, nil
	// for none. The messages are its mistakes.
	Parse(tx *db.Tx, repoID *string, yml string) (Candidate, []string, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB       *db.DB
	Hub      *event.Hub
	Runs     Runs
	Policies Policies
}

// Service keeps the sessions and answers for them.
type Service struct {
	Needs

	reads singleflight.Group // joins the equal reads of several streams
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}
