// Package queue is the order in which the pending tasks of an account are claimed by
// boxes, and why a task is not claimed. It stands on package task, which owns the tasks
// and tells the queue of their changes by task.QueueChanged.
//
//	queue.go      the dependencies of Service, and whether it takes one more task
//	ops.go        the capability task.stalls; stalls.go gathers its answer
//	lane.go       the order: lanes, and the turns of repositories
//	place.go      the place of a task in the order
//	claim.go      the task that a box is to get next
//	facts.go      what decides whether tasks can be claimed
//	fleet.go      boxes, what tasks demand of them, and which boxes are free
//	holds.go      why boxes cannot claim a task
//	history.go    the capability task.history
//	play.go       the order of a recorded queue, with other machines
//	conflict.go   tasks that would change the same files as open work; globs.go compares paths
//	obstacle.go   tasks that others wait for and that wait for a person themselves
//	explain.go    places and holds of tasks that are shown
//	people.go     which tasks wait for people, and which are stuck; store_people.go asks it
//	gauge.go      tasks of all accounts, counted by what holds them
//	store.go      boxes, seats and depths; store_lane.go lanes, and the counter that keeps
//	              them; store_task.go and store_obstacle.go what is read of tasks
package queue

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/needs"
)

// Templates tell what they demand of boxes and of an account's keys.
type Templates interface {
	// Need is what the named template of an account demands; false if the account
	// has no such template.
	Need(tx *db.Tx, account, name string) (Need, bool, error)
	// Needs is Need for several at once, by name, without those that there are not.
	Needs(tx *db.Tx, account string, names []string) (map[string]Need, error)
}

// Related is what other domains know of tasks. All ids are of tx.Account, unless a
// method says otherwise, and what there is nothing for is left out of maps.
type Related interface {
	// Seats is how many agents an account may run at once.
	Seats(tx *db.Tx, account string) (int64, error)
	// Stops is what the budgets of held tasks lack.
	Stops(tx *db.Tx, taskIDs []string) ([]task.Stop, error)
	// Wants is what tasks wait for people to give, oldest first.
	Wants(tx *db.Tx, taskIDs []string) ([]task.Want, error)
	// PullNeeds lists what only people can do about pull requests, by pull request.
	PullNeeds(tx *db.Tx, prIDs []string) (map[string]task.PullNeed, error)
	// Parked lists the tasks of tx.Account whose runs wait for what people are to give.
	Parked(tx *db.Tx) ([]string, error)
	// PullHead is the head of a pull request of any account while it is open, and
	// empty otherwise.
	PullHead(tx *db.Tx, prID string) (sha string, err error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB  *db.DB
	Hub *event.Hub

	Most            int64  // pending tasks that an account may have, task.Uncapped for no limit
	DefaultTemplate string // of repositories that name none

	Repos     task.Repos
	Templates Templates
	Related   Related
	Commits   Commits
}

// Service answers for the queues of all accounts. It is the task.Queue of the program.
type Service struct {
	Needs
	foreseen foreseen
}

// New makes a Service of n. It panics if a required field of n is nil. The queues stay
// empty unless Count is subscribed to task.QueueChanged of the same database.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// fullRetry is when a caller whose task was refused may try again.
const fullRetry = 30 * time.Second

// Cap is how many tasks of an account may be pending, or task.Uncapped.
func (s *Service) Cap() int64 { return s.Most }

// Depth is how many tasks of tx.Account are pending, without what tx changes.
func (s *Service) Depth(tx *db.Tx) (int64, error) { return depth(tx, tx.Account) }

// Full tells whether the queue of tx.Account takes no more tasks for now.
func (s *Service) Full(tx *db.Tx) (bool, error) {
	if s.Most == task.Uncapped {
		return false, nil
	}
	n, err := depth(tx, tx.Account)
	return n >= s.Most, err
}

// Admit tells whether one more task of tx.Account may be created. It returns
// fault.Forbidden (no-capacity) if the account has no seat and fault.RateLimited
// (queue-full) if its queue is full. It locks the depth of the queue, see task.Lock.
func (s *Service) Admit(tx *db.Tx) error {
	seats, err := s.Related.Seats(tx, tx.Account)
	if err != nil {
		return err
	}
	if seats == 0 {
		return fault.New(fault.Forbidden, "no-capacity", "The account has no AI developers; add a seat first.")
	}
	if s.Most == task.Uncapped {
		return nil
	}
	if _, ok, err := lockDepth.Maybe(tx, tx.Account); err != nil {
		return err
	} else if !ok {
		if _, err := addDepth.Exec(tx, tx.Account, 0); err != nil {
			return err
		}
	}
	n, err := depth(tx, tx.Account)
	if err != nil {
		return err
	}
	if n += added(tx, tx.Account); n >= s.Most {
		return fault.Newf(fault.RateLimited, "queue-full", "%d tasks wait already, the most this account may have.", n).After(fullRetry)
	}
	return nil
}
