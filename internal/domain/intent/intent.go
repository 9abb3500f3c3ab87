// Package intent is what the server wants done at a code host. A domain puts an intent
// in the transaction of the change that asks for it. A loop carries the intent out, on
// whichever node is free, and hands the outcome to the domain in a transaction of its
// own. So no call to a host is made inside a transaction, and none is lost.
//
//   - intent.go: states, Kind, Put
//   - loop.go: how intents are carried out
//   - store.go: the rows
package intent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/needs"
)

// States of an intent. The intents of one object of a repository make a line: only the
// oldest that has not ended is carried out.
const (
	Due     = "due"
	Doing   = "doing"   // a node has it, until due_at
	Done    = "done"    // the host has done it
	Failed  = "failed"  // the host has refused it, or has not answered for too long
	Dropped = "dropped" // what it was for is over
)

// Ranks order the intents that are due. People come first, because they wait.
const (
	ForPeople  = 0
	ForRuns    = 1
	ForReviews = 2
	ForRecord  = 3
)

// Want is an intent to put.
type Want[A any] struct {
	Repo   repo.Ref
	Object string // what it changes, such as a pull request; see Kind.Put
	Rank   int64
	Args   A
}

// Call is an intent that is carried out.
type Call[A any] struct {
	ID     codehost.Once
	Repo   repo.Ref
	Object string
	Args   A
}

// Handler carries out the intents of one kind.
type Handler[A, R any] interface {
	// Still tells whether the intent is wanted yet.
	Still(tx *db.Tx, c Call[A]) (bool, error)
	// Do calls the host. It runs outside of a transaction, and again with the same ID
	// if its answer was lost.
	Do(ctx context.Context, forge codehost.Forge, c Call[A]) (R, error)
	// Done takes the outcome: failure is nil, or the reason why it is final.
	Done(tx *db.Tx, c Call[A], answer R, failure error) error
}

// Kind is a kind of intent with arguments of type A and answers of type R.
type Kind[A, R any] struct {
	name   string
	newest bool
}

// Declare makes a kind. Name is unique, such as "pull.open". newest says that an intent
// replaces the one of its kind and object that has not begun.
func Declare[A, R any](name string, newest bool) Kind[A, R] { return Kind[A, R]{name, newest} }

// Put stores an intent in the transaction of the change that asks for it, and answers
// its id. The loop begins after the commit.
func (k Kind[A, R]) Put(tx *db.Tx, hub *event.Hub, w Want[A]) (string, error) {
	args, err := json.Marshal(w.Args)
	if err != nil {
		return "", fmt.Errorf("encode the arguments of %s: %w", k.name, err)
	}
	if k.newest {
		if _, err := replace.Exec(tx, replaceArgs{RepoID: w.Repo.ID, Object: w.Object, Kind: k.name, Now: tx.Micros()}); err != nil {
			return "", err
		}
	}
	newID := id.New()
	hub.Notify(tx, event.IntentTopic)
	_, err = insert.Exec(tx, insertArgs{
		ID: newID, AccountID: tx.Account, RepoID: w.Repo.ID, Object: w.Object, Kind: k.name, Args: string(args), Rank: w.Rank,
		Now: tx.Micros(),
	})
	return newID, err
}

// Waiting answers when the oldest intent of the kind on an object of a repository was put that
// has not ended; false if there is none.
func (k Kind[A, R]) Waiting(tx *db.Tx, repoID, object string) (since time.Time, ok bool, err error) {
	return unended.Maybe(tx, unendedArgs{RepoID: repoID, Object: object, Kind: k.name})
}

// Needs are the dependencies of Service.
type Needs struct {
	DB     *db.DB
	Hub    *event.Hub
	Hosts  *codehost.Hosts
	Logger *slog.Logger
}

// Service carries intents out.
type Service struct {
	Needs
	kinds map[string]carrier
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n, kinds: map[string]carrier{}}
}

// carrier carries out the intents of a kind, whatever the types of the kind are.
type carrier struct {
	still func(tx *db.Tx, w row, r repo.Ref) (bool, error)
	do    func(ctx context.Context, forge codehost.Forge, w row, r repo.Ref) (any, error)
	done  func(tx *db.Tx, w row, r repo.Ref, answer any, err error) error
}

// Handle has s carry out the intents of the kind with h, before Loop begins. It panics
// if the kind has a handler already.
func (k Kind[A, R]) Handle(s *Service, h Handler[A, R]) {
	if _, twice := s.kinds[k.name]; twice {
		panic("intent: two handlers of " + k.name)
	}
	call := func(w row, r repo.Ref) (c Call[A], err error) {
		c = Call[A]{ID: codehost.Once(w.ID), Repo: r, Object: w.Object}
		err = json.Unmarshal([]byte(w.Args), &c.Args)
		return c, err
	}
	s.kinds[k.name] = carrier{
		still: func(tx *db.Tx, w row, r repo.Ref) (bool, error) {
			c, err := call(w, r)
			if err != nil {
				return false, err
			}
			return h.Still(tx, c)
		},
		do: func(ctx context.Context, forge codehost.Forge, w row, r repo.Ref) (any, error) {
			c, err := call(w, r)
			if err != nil {
				return nil, err
			}
			return h.Do(ctx, forge, c)
		},
		done: func(tx *db.Tx, w row, r repo.Ref, answer any, failure error) error {
			c, err := call(w, r)
			if err != nil {
				return err
			}
			got, _ := answer.(R)
			return h.Done(tx, c, got, failure)
		},
	}
}

// Limits of an intent. A call to a host has callTime; after hold another node takes an
// intent whose node has died. An intent that the host has not answered for giveUp has
// failed.
const (
	callTime = 60 * time.Second
	hold     = 90 * time.Second
	giveUp   = 24 * time.Hour
	longest  = 15 * time.Minute
	// longestLimited is what may be added to the time that a limit takes.
	longestLimited = time.Minute
)

// Trouble is an intent that has failed for a reason which only a person can mend.
type Trouble struct {
	RepoID, Kind, Object string
	Permission           string // that the host demands; "" for other reasons
	Asked                bool   // the App asks for the permission, and its owner has not granted it yet
	Why                  string
}

// GivenUp is sent when an intent has failed because the server may not do it, or
// because the host did not answer.
var GivenUp = event.DeclareSignal[Trouble]("intent.given_up", "A code host did not let the server do what it wanted.")

// next is the time to the next try of an intent; final tells that there is none.
func next(w row, now time.Time, err error) (after time.Duration, limited, final bool) {
	after = min(time.Second<<min(w.Tries, 10), longest)
	busy, again := errors.AsType[*codehost.BusyError](err)
	switch {
	case again && busy.Limit: // the host says when it ends, so tries are not spread far
		after, limited = max(min(after, longestLimited), busy.After), true
	case again:
		after = max(after, busy.After)
	case errors.Is(err, codehost.ErrGone), errors.Is(err, codehost.ErrUnknownHost):
		after = longest // the host may let the server in again
	case ungranted(err):
		after = longest // or until it is granted, see RetryNow
	default:
		return 0, false, true
	}
	return after, limited, now.Add(after).Sub(w.CreatedAt) > giveUp
}
