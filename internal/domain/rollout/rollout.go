// Package rollout brings the programs of an account's boxes to a release, with care: one box
// first, the canary; then a soak, while that one works; then waves of up to five, a quarter, and
// the rest. It halts itself when a box does not come up with the new program, falls silent, or
// when runs fail more often than they did before. A box is up to date once it has claimed,
// prepared and given back a test run of its own with the new program.
//
//   - rollout.go: the Service, and what it asks of others
//   - plan.go: which boxes take part, and in which wave
//   - judge.go: the table of states, and what halts a rollout
//   - work.go: the due work, which carries a rollout on
//   - trial.go: the test runs of boxes
//   - pin.go: channels, and boxes that take no updates
//   - ops.go, events.go, store.go: capabilities, events and statements
package rollout

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/release"
	"yardmaster/internal/needs"
	"yardmaster/internal/protocol"
)

// State is the state of a rollout.
type State string

// States of a rollout.
const (
	Preparing = "preparing" // the bytes of the release are brought to where boxes get them
	Canary    = "canary"    // the first box is updated
	Soaking   = "soaking"   // it works, and is watched
	Rolling   = "rolling"   // the waves behind it
	Done      = "done"
	Halted    = "halted"    // by itself
	Cancelled = "cancelled" // by a person
)

// Values lists all states.
func (State) Values() []string {
	return []string{Preparing, Canary, Soaking, Rolling, Done, Halted, Cancelled}
}

// BoxState is the state of a box in a rollout.
type BoxState string

// The states of a box in a rollout. The last ones say why it takes no part.
const (
	Waits  = "waits"  // for its wave
	Told   = "told"   // to take the release, or a step on the way to it
	Good   = "good"   // it has done its test run with the release
	Failed = "failed" // it goes on with the program of before
	Lost   = "lost"   // it fell silent, or did not get there in time

	Current      = "current"       // it has the release already, or a later one
	Pinned       = "pinned"        // somebody said that it takes no updates
	OtherChannel = "other_channel" // it follows another channel
	Away         = "away"          // it is offline, or was revoked
	Unbuilt      = "unbuilt"       // the release is not built for its machine
	Unreachable  = "unreachable"   // no steps lead from its version to the release
	Unable       = "unable"        // its program cannot update itself, or knows no key
)

// Values lists all states.
func (BoxState) Values() []string {
	return []string{Waits, Told, Good, Failed, Lost, Current, Pinned, OtherChannel, Away, Unbuilt, Unreachable, Unable}
}

// What a box is given.
const (
	idle  = 15 * time.Minute // for its runs to end
	trial = 5 * time.Minute  // for the test run
	// silence is how long a box that was told may say nothing.
	silence = trial + 2*time.Minute
	// overdue is how long a box may take, with a night in it.
	overdue = 48 * time.Hour
)

// look is how often a rollout that is under way is looked at.
const look = 2 * time.Second

// Boxes are the boxes of accounts.
type Boxes interface {
	// Standings answers the boxes of tx.Account.
	Standings(tx *db.Tx) ([]box.Standing, error)
	// Enqueue gives a box a command.
	Enqueue(tx *db.Tx, boxID string, c protocol.Command) error
}

// Releases are the programs that boxes may run.
type Releases interface {
	// Builds answers the programs of a channel.
	Builds(tx *db.Tx, channel string) ([]release.Build, error)
	// PublishOwn puts the server's own program among those of the channel builtin, unless it is there.
	PublishOwn(ctx context.Context) error
	// Stock brings the bytes of a release to where boxes get them. It is called outside of
	// transactions.
	Stock(ctx context.Context, channel, version string) error
}

// Outcome is how a run of a box ended.
type Outcome struct {
	BoxID  string
	Began  time.Time
	Failed bool
}

// Runs are the runs of boxes.
type Runs interface {
	// Outcomes answers the runs of tx.Account that ended at a time or later.
	Outcomes(tx *db.Tx, since time.Time) ([]Outcome, error)
}

// Bus is the part of the message bus that this package calls.
type Bus interface {
	// Handle makes fn answer the calls of boxes to a method.
	Handle(method string, fn func(ctx context.Context, boxID string, data []byte) (any, error)) error
}

// Signers are the keys of the server.
type Signers interface {
	// Signers returns the private keys for a purpose, the present one first.
	Signers(purpose string) []ed25519.PrivateKey
}

// Needs are the dependencies of Service.
type Needs struct {
	DB       *db.DB
	Due      *due.Kernel
	Logger   *slog.Logger
	Ring     Signers
	Bus      Bus `optional:"without one no box calls"`
	Boxes    Boxes
	Releases Releases
	Runs     Runs
}

// Service carries rollouts on.
type Service struct {
	Needs
	queue due.Entries
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n}
	s.queue = due.Register(n.Due, due.Queue[row]{
		Name: "rollouts", Retry: due.Ladder{First: look, Longest: time.Minute}, Work: s.carry, Open: open,
		Load: func(tx *db.Tx, key string) (row, bool, error) {
			r, ok, err := byID.Maybe(tx, tx.Account, key)
			return r, ok && r.EndedAt == nil, err
		},
	})
	return s
}
