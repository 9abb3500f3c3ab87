// Package intent is what the server wants done at a code host. A domain puts an intent
// in the transaction of the change that asks for it. A queue of package db/due carries the
// intent out, on whichever node is free, and hands the outcome to the domain in a transaction
// of its own. So no call to a host is made inside a transaction, and none is lost.
//
// The intents of one object of a repository make a line, which has one entry in the queue: only
// the oldest that has not ended is carried out.
//
//   - intent.go: states, Kind, Put
//   - line.go: the lines in the queue
//   - work.go: how intents are carried out
//   - grant.go: intents that wait for a permission
//   - store.go: the rows
package intent

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/id"
	"yardmaster/internal/needs"
)

// States of an intent that is to be carried out, which is due, and of one that has ended.
const (
	Due     = "due"
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
// its id. It is carried out after the commit.
func (k Kind[A, R]) Put(tx *db.Tx, w Want[A]) (string, error) {
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
	if _, err = insert.Exec(tx, insertArgs{
		ID: newID, AccountID: tx.Account, RepoID: w.Repo.ID, Object: w.Object, Kind: k.name, Args: string(args), Rank: w.Rank,
		Now: tx.Micros(),
	}); err != nil {
		return "", err
	}
	return newID, LineMoved.Send(tx, Line{RepoID: w.Repo.ID, Object: w.Object, Account: tx.Account, Rank: int(w.Rank)})
}

// Waiting answers when the oldest intent of the kind on an object of a repository was put that
// has not ended; false if there is none.
func (k Kind[A, R]) Waiting(tx *db.Tx, repoID, object string) (since time.Time, ok bool, err error) {
	return unended.Maybe(tx, unendedArgs{RepoID: repoID, Object: object, Kind: k.name})
}

// Needs are the dependencies of Service.
type Needs struct {
	DB     *db.DB
	Due    *due.Kernel
	Hosts  *codehost.Hosts
	Logger *slog.Logger
}

// Service carries intents out.
type Service struct {
	Needs
	queue due.Entries
	kinds map[string]carrier
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n, kinds: map[string]carrier{}}
	s.queue = due.Register(n.Due, due.Queue[row]{
		Name: "intents", AtOnce: atOnce, Load: load, Work: s.carry, GiveUp: s.abandon, Open: open,
		Retry: due.Ladder{First: first, Longest: longestLimited},
	})
	return s
}

// carrier carries out the intents of a kind, whatever the types of the kind are.
type carrier struct {
	still func(tx *db.Tx, w row, r repo.Ref) (bool, error)
	do    func(ctx context.Context, forge codehost.Forge, w row, r repo.Ref) (any, error)
	done  func(tx *db.Tx, w row, r repo.Ref, answer any, err error) error
}

// Handle has s carry out the intents of the kind with h, before its kernel begins. It panics
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
