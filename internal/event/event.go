// Package event records what happened. Every change writes one audit row in
// its own transaction with Record; whoever waits for news of an object (a
// stream, a long poll, the dispatcher) waits on the Hub, which is told after
// the commit. The Hub carries no data: who wakes reads the database again, so
// a lost or doubled wake-up is harmless.
package event

import (
	"encoding/json"
	"fmt"
	"sync"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// Change is one thing that happened to one object.
type Change struct {
	Kind    string // <noun>.<past participle>, say task.created
	Object  string // id of the object
	Account string // owner of the object; the transaction's account when empty
	RepoID  string // set when the object belongs to a repository
	Data    any    // what changed; never a secret
}

var insert = db.S(`INSERT INTO audit (id, account_id, at, actor, kind, object, repo_id, request_id, data)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`)

// Record writes the audit row of a change into the change's own transaction.
// The actor and the request id come from the context the transaction began
// with; without an actor it was the system.
func Record(tx *db.Tx, c Change) error {
	actor := policy.From(tx.Context())
	label := actor.Label()
	if actor.Anonymous() {
		label = "system"
	}
	account := c.Account
	if account == "" {
		account = tx.Account
	}
	data := []byte("{}")
	if c.Data != nil {
		var err error
		if data, err = json.Marshal(c.Data); err != nil {
			return fmt.Errorf("encode audit data of %s: %w", c.Kind, err)
		}
	}
	_, err := insert.Exec(tx, id.New(), optional(account), tx.Micros(), label, c.Kind, c.Object, optional(c.RepoID), actor.RequestID, string(data))
	return err
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Hub wakes those who wait for a topic. Topics are free text; the constructors
// below name the ones in use.
type Hub struct {
	mu      sync.Mutex
	waiting map[string]chan struct{}
	relay   func(topics []string)
}

// NewHub makes a hub. relay, if not nil, carries local notices to other nodes,
// whose own hubs are told with Hear.
func NewHub(relay func(topics []string)) *Hub {
	return &Hub{waiting: map[string]chan struct{}{}, relay: relay}
}

// RunTopic has news when a run has new events or ends.
func RunTopic(run string) string { return "run:" + run }

// TaskTopic has news when a task changes state.
func TaskTopic(task string) string { return "task:" + task }

// QueueTopic has news when work may have become claimable in an account.
func QueueTopic(account string) string { return "queue:" + account }

// PullTopic has news when a pull request or an action on it needs work.
const PullTopic = "pulls"

// CommandTopic has news when a command is owed to a box.
const CommandTopic = "commands"

// Watch answers a channel that is closed at the next notice of the topic. Take
// it before reading the database, so that nothing falls in between.
func (h *Hub) Watch(topic string) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.waiting[topic]
	if c == nil {
		c = make(chan struct{})
		h.waiting[topic] = c
	}
	return c
}

// Hear wakes the local waiters of the topics.
func (h *Hub) Hear(topics ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range topics {
		if c := h.waiting[t]; c != nil {
			close(c)
			delete(h.waiting, t)
		}
	}
}

// Notify wakes the waiters of the topics once tx has committed.
func (h *Hub) Notify(tx *db.Tx, topics ...string) {
	tx.AfterCommit(func() {
		h.Hear(topics...)
		if h.relay != nil {
			h.relay(topics)
		}
	})
}
