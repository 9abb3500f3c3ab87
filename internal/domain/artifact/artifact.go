// Package artifact keeps what agents and people store besides code: reports, pictures, builds.
// The row of an artifact is in the database, its bytes are in the store of objects. Bytes come
// and go by addresses that are signed, expire, and are bound to one object.
//
// An artifact shows while its bytes are there. Its row is made before them, and goes after
// them, so that what a crash leaves is found: an upload that never arrived, or a deletion that
// did not reach the store, is ended by the queue "artifacts", which has an entry of each row. A
// row outlives the address of its upload, since whoever has that could store the bytes once more.
//
//   - artifact.go: the types, and Service
//   - ops.go: the capabilities; link.go the addresses of shared ones
//   - arrive.go: what is there, and what is not
//   - box.go: what runs leave
//   - end.go: uploads that arrive or are given up, and retention
//   - store.go, events.go: the statements, the events
package artifact

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/needs"
	"yardmaster/internal/seal"
)

// Visibility is who may see an artifact.
type Visibility string

// Who may see an artifact.
const (
	OfRun   = "run"     // the account, beside the run; kept as long as what runs leave
	Account = "account" // the account
	Public  = "public"  // whoever has a link, too
)

// Values lists all of them.
func (Visibility) Values() []string { return []string{OfRun, Account, Public} }

const (
	// MaxSize is the size of the largest artifact, in bytes: what S3 takes in one upload.
	MaxSize = 5 << 30
	// MaxOfRun is the most artifacts that the box of a run stores.
	MaxOfRun = 100

	keptRun = 30 * 24 * time.Hour
	kept    = 180 * 24 * time.Hour

	// uploadLife is how long the address of an upload is good, readLife that of a download.
	uploadLife = time.Hour
	readLife   = 5 * time.Minute
	// abandoned is how long after its beginning an upload has failed: the slowest transfer
	// ends some hours after its address has.
	abandoned = 24 * time.Hour

	linkDays    = 7
	maxLinkDays = 90
	day         = 24 * time.Hour
)

// Places finds what an artifact belongs to, in tx.Account.
type Places interface {
	// Run finds the task and the repository of a run.
	Run(tx *db.Tx, runID string) (taskID, repoID string, ok bool, err error)
	// Held is the account of a live attempt that a box holds. It returns fault.NotFound if
	// there is none.
	Held(tx *db.Tx, boxID, runID string, attempt int) (account string, err error)
	// Task finds the repository of a task.
	Task(tx *db.Tx, taskID string) (repoID string, ok bool, err error)
	// Repo tells whether there is a repository.
	Repo(tx *db.Tx, repoID string) (bool, error)
}

// Room is what accounts may store.
type Room interface {
	// ObjectMade fails with fault.StorageFull if tx.Account has more bytes of objects than
	// it may have. The transaction has added some.
	ObjectMade(tx *db.Tx) error
}

// Bus is the part of the message bus that this package calls.
type Bus interface {
	Handle(method string, fn func(ctx context.Context, boxID string, data []byte) (any, error)) error
}

// Needs are the dependencies of Service.
type Needs struct {
	DB      *db.DB
	Due     *due.Kernel
	Ring    *seal.Keyring
	Objects blob.Store
	Bus     Bus `optional:"without one boxes store nothing"`
	Places  Places
	Room    Room
	Logger  *slog.Logger
	BaseURL string // of this server, without a slash at the end
	// KeepRun and Keep are how long artifacts of runs and others are kept; 0: 30 and 180 days.
	KeepRun, Keep time.Duration
}

// Service has the capabilities of artifacts.
type Service struct {
	Needs
	queue due.Entries
	tidy  db.Hourly
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	n.KeepRun, n.Keep = cmp.Or(n.KeepRun, keptRun), cmp.Or(n.Keep, kept)
	s := &Service{Needs: n}
	s.queue = due.Register(n.Due, due.Queue[attended]{
		Name: "artifacts", Retry: retry, Load: load, Work: s.attend,
		Open: func(tx *db.Tx, most int) ([]due.Open, error) { return all.All(tx, most) },
	})
	return s
}

// life is how long an artifact is kept from its beginning.
func (s *Service) life(visibility string) time.Duration {
	if visibility == OfRun {
		return s.KeepRun
	}
	return s.Keep
}
