// Package join makes machines boxes over SSH: the server dials in and runs what a person
// would, the script that joins a machine. What was asked for is a row; the queue "ssh_joins"
// dials, outside of any transaction.
//
// A machine is dialled once. Where the server was killed meanwhile, the row ends as
// interrupted, unless the box has come: another try could make two of it.
//
//   - join.go: Needs, Service
//   - ops.go, events.go: capabilities and events
//   - work.go: the call of a machine
//   - store.go: the statements
package join

import (
	"context"
	"log/slog"
	"net"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/event"
	"yardmaster/internal/needs"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
	"yardmaster/internal/remote"
)

// Limits.
const (
	atOnce   = 8                   // machines that a node calls at the same time
	share    = 3                   // of them of one account
	anHour   = 60                  // machines that an account may ask for
	keep     = 30 * 24 * time.Hour // of rows that have ended
	waitBox  = 75                  // seconds that the script waits for the box to join
	greeting = 10 * time.Second
)

// Guard judges the addresses of machines.
type Guard interface {
	// Host tells what is wrong with a host that a customer names; empty: nothing.
	Host(ctx context.Context, host string) (fault string)
	// Dialer connects to addresses that may be connected to.
	Dialer(limit time.Duration) *net.Dialer
}

// Boxes makes enrollments.
type Boxes interface {
	// Handed are the programs that a machine without one is given.
	Handed(ctx context.Context) ([]box.Program, error)
	// Mint makes an enrollment of tx.Account.
	Mint(tx *db.Tx, w box.Wish) (box.Minted, error)
	// Joined answers the box of tx.Account that has joined with an enrollment.
	Joined(tx *db.Tx, enrollmentID string) (boxID string, ok bool, err error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB     *db.DB
	Hub    *event.Hub
	Due    *due.Kernel
	Boxes  Boxes
	Guard  Guard
	Key    *remote.Key `optional:"without one no machine can be dialled: no-platform-ssh-key"`
	Logger *slog.Logger
}

// Service has the capabilities, and dials.
type Service struct {
	Needs
	queue due.Entries
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n}
	s.queue = due.Register(n.Due, due.Queue[row]{
		Name: "ssh_joins", AtOnce: atOnce, Share: share, Load: load, Work: s.carry, GiveUp: giveUp, Open: open,
	})
	return s
}

// Loop forgets what has ended long ago until ctx ends. Several nodes may run Loop at once.
func (s *Service) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	s.Hub.Sweep(ctx, "ssh-joins.tidy", "ssh-joins.tidy", time.Hour, func(ctx context.Context) {
		err := s.DB.Write(ctx, func(tx *db.Tx) error {
			_, err := forget.Exec(tx, db.Micros(tx.Now.Add(-keep)))
			return err
		})
		if err != nil {
			observe.Complain(ctx, s.Logger, "tidy up", err)
		}
	})
	return nil
}
