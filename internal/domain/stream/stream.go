// Package stream lets a client follow the changes in its account: rows of several
// topics over one connection. The account's audit chain is the change feed. While
// there are listeners, one feed per account and node reads the chain, loads each
// changed row once, encodes it once, and sends the same bytes to every listener of
// the topic. So the load of the database does not grow with the number of listeners.
//
// A listener gets a snapshot first, and then the rows that change. What it shows
// converges to the state of the database: a row may come twice, but never ends in an
// older state.
package stream

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/needs"
)

// Topic is a topic of events with the rows that its followers get.
type Topic struct {
	*event.Topic
	// Rows returns the rows of tx.Account with the ids or, if ids is nil, the newest
	// ones, newest first, and then at most limit rows.
	Rows func(tx *db.Tx, ids []string, limit int) ([]Row, error)
	// Follows are other topics whose events change rows of this one; nil: the Key of the
	// topic alone names them.
	Follows []Following
	// Marks tells of changes that no event does; nil: there are none.
	Marks Marks
	// In lists the rows about a repository, by ids as Rows takes them, so that a stream can be
	// narrowed to them. Nil: the rows are about no repositories.
	In Newest
}

// Newest lists rows about a repository.
type Newest interface {
	// NewestIn lists the ids of the newest rows about a repository of tx.Account, newest first
	// and at most limit.
	NewestIn(tx *db.Tx, repoID string, limit int) ([]string, error)
}

// Repos finds repositories.
type Repos interface {
	// RepoID finds the id of a repository of tx.Account.
	RepoID(tx *db.Tx, owner, name string) (id string, ok bool, err error)
}

// Marks are texts of rows that change without an event.
type Marks interface {
	// Marks returns the texts by id. A row is sent again when its text has changed, and
	// not when it has none any more: an event tells of that.
	Marks(tx *db.Tx) (map[string]string, error)
}

// Following is a topic whose events change rows of another one: the row with the ID or, if
// it is empty, those that Topic.Rows has for the id of the event's object.
type Following struct {
	Topic *event.Topic
	ID    string
}

// Rows makes a Topic.Rows of a domain's function that lists rows.
func Rows[T any](list func(tx *db.Tx, ids []string, limit int) ([]T, error), id func(T) string) func(*db.Tx, []string, int) ([]Row, error) {
	return RepoRows(list, id, func(T) []string { return nil })
}

// RepoRows is Rows for a topic whose rows are about the repositories that repos names, as
// owner/name.
func RepoRows[T any](
	list func(tx *db.Tx, ids []string, limit int) ([]T, error), id func(T) string, repos func(T) []string,
) func(*db.Tx, []string, int) ([]Row, error) {
	return func(tx *db.Tx, ids []string, limit int) ([]Row, error) {
		all, err := list(tx, ids, limit)
		out := make([]Row, len(all))
		for i, v := range all {
			out[i] = Row{ID: id(v), Value: v, Repos: repos(v)}
		}
		return out, err
	}
}

// Row is a row as the topic's list shows it.
type Row struct {
	ID    string
	Value any
	Repos []string // owner/name of those that it is about
}

// frame is an encoded Patch.
type frame struct {
	bytes   []byte
	repos   []string
	removal bool
}

// frames are the frames of one topic, in order.
type frames []frame

// of returns the bytes of the frames for a stream that is narrowed to a repository, or of
// all for "", and how many they are. A removal is for all: it does not say which
// repository the row was about.
func (f frames) of(t *Topic, repo string) (out []byte, n int) {
	for _, x := range f {
		if repo == "" || t == nil || t.In == nil || x.removal || slices.Contains(x.repos, repo) {
			out, n = append(out, x.bytes...), n+1
		}
	}
	return out, n
}

const (
	// snapshotRows is the number of rows per topic in a snapshot.
	snapshotRows = 50
	// tick is how often a feed reads the chain without a notice. It then sees changes
	// of other nodes.
	tick = 100 * time.Millisecond
	// markTick is how often the marks of topics are compared.
	markTick = 2 * time.Second
	// batch is how many changes a feed reads at a time.
	batch = 500
	// backlog is how many frames a listener may lag behind.
	backlog = 64
)

// Needs are the dependencies of Service.
type Needs struct {
	DB    *db.DB
	Hub   *event.Hub
	Repos Repos
	// Topics are the topics that clients can follow.
	Topics []Topic
	// Own are the topics of which each person follows their own rows.
	Own []Own
}

// Service runs the feeds.
type Service struct {
	Needs

	mu    sync.Mutex
	feeds map[string]*feed // by account
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

func (s *Service) topic(name string) *Topic {
	i := slices.IndexFunc(s.Topics, func(t Topic) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Topics[i]
}

// Ready is the first frame. It lists the topics that are followed.
type Ready struct {
	_            struct{} `doc:"Which of the topics that were asked for are followed: the first frame."`
	Subscribed   []string `json:"subscribed" example:"[\"tasks\", \"prs\"]" doc:"topics that are followed"`
	Ignored      []string `json:"ignored" example:"[]" doc:"no such topic"`
	Unauthorised []string `json:"unauthorised" example:"[]" doc:"the credential lacks the topic's scope"`

	Snapshot map[string]int `json:"snapshot" example:"{\"tasks\": 50, \"prs\": 12}" doc:"how many patches of each topic follow at once: its newest rows, at most 50, of those of repo. What comes after them has changed"`
}

// Patch is one row that replaces the row with its id, or is removed.
type Patch struct {
	_     struct{} `doc:"One row that takes the place of the one with its id, or is taken out."`
	Topic string   `json:"topic" example:"tasks" doc:"the topic that the row is of"`
	Op    string   `json:"op" enum:"upsert,remove" doc:"upsert puts the row in the place of the one with its id, remove takes that out"`
	ID    string   `json:"id" doc:"id of the row"`
	Row   any      `json:"row" example:"{\"id\": \"0199d3a4-5b6c-7d8e-9f01-23456789abcd\", \"title\": \"Fix the date in the footer\", \"status\": \"running\"}" doc:"as the topic's list has it; null when removed"`
}

// change is an audit row as the feed reads it.
type change struct {
	Seq    int64
	Kind   string
	Object string
	Data   string
}

// touched adds to ids the rows of a topic that a change concerns.
func (t *Topic) touched(c change, ids map[string]bool) {
	of := event.TopicOf(c.Kind)
	if of == t.Topic {
		ids[c.Object] = true
	}
	for _, f := range t.Follows {
		if f.Topic == of {
			ids[cmp.Or(f.ID, c.Object)] = true
		}
	}
	if t.Key == "" || !strings.Contains(c.Data, t.Key) {
		return
	}
	var data map[string]json.RawMessage
	var id string
	if json.Unmarshal([]byte(c.Data), &data) == nil && json.Unmarshal(data[t.Key], &id) == nil && id != "" {
		ids[id] = true
	}
}
