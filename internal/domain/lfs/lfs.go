// Package lfs is Git LFS of the built-in host: the batch call with the transfer basic,
// the bytes of objects in and out, and a refusal of locks. The bytes are in the store of
// objects; which there are is in the database.
//
// An object belongs to one repository. Who knows its name has nothing by that: "it is
// there" is said of the repository alone that a token may write. An address of an object is
// the whole credential for it: signed, good for an hour, and bound to a method, a
// repository, an object and its size.
//
//   - lfs.go: Service, and uploads that were given up
//   - http.go: the batch call
//   - tidy.go: repositories to be, and objects that nothing names any more
//   - transfer.go: addresses, and the bytes
//   - store.go: the statements
package lfs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/blob"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/needs"
	"yardmaster/internal/observe"
	"yardmaster/internal/seal"
)

// MaxObject is the size of the largest object, in bytes.
const MaxObject = 5 << 30

const (
	addressLife = time.Hour
	// abandoned is how long after its beginning an upload has failed: an address lives for
	// an hour, and the slowest transfer for some hours more.
	abandoned = 24 * time.Hour
	passEvery = time.Hour
	atOnce    = 100
)

// Repo is a repository of the built-in host.
type Repo struct{ ID, Account string }

// Repos finds repositories.
type Repos interface {
	// At finds a repository of whatever account by its place.
	At(tx *db.Tx, r codehost.Repo) (Repo, bool, error)
}

// Room is what accounts may store.
type Room interface {
	// ObjectsLeft is how many bytes of objects an account may still store, and the sentence
	// for one that does not fit; a negative number: as many as it likes.
	ObjectsLeft(ctx context.Context, account string) (left int64, full string, err error)
	// ObjectMade fails with fault.StorageFull if tx.Account has more bytes of objects than
	// it may have. The transaction has added some.
	ObjectMade(tx *db.Tx) error
}

// Needs are the dependencies of Service.
type Needs struct {
	DB      *db.DB
	Ring    *seal.Keyring
	Objects blob.Store
	Repos   Repos
	Room    Room
	Logger  *slog.Logger
	BaseURL string // of this server, without a slash at the end
	// Clock is the time by which addresses expire.
	Clock func() time.Time
}

// Service serves the objects.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// Ops lists the capabilities of this package: none. Programs that speak Git LFS call it.
func (*Service) Ops() []op.Op { return nil }

// Loop removes what is left of uploads that were given up, and of repositories that were never made,
// until ctx ends.
func (s *Service) Loop(ctx context.Context) error {
	observe.Every(ctx, "lfs.tidy", passEvery, func(ctx context.Context) {
		if err := s.Pass(ctx); err != nil {
			observe.Complain(ctx, s.Logger, "tidy up objects of Git LFS", err)
		}
	})
	return nil
}

// Pass is one pass of Loop.
func (s *Service) Pass(ctx context.Context) error {
	if err := s.forget(ctx); errors.Is(err, blob.ErrHeld) {
		return nil // the next pass does it
	} else if err != nil {
		return err
	}
	var old []row
	if err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		old, err = unfinished.All(tx, db.Micros(tx.Now.Add(-abandoned)), atOnce)
		return err
	}); err != nil {
		return err
	}
	for _, r := range old {
		if err := s.drop(ctx, r); errors.Is(err, blob.ErrHeld) {
			return nil // the next pass does it
		} else if err != nil {
			return err
		}
	}
	return nil
}

// drop removes an upload that has not ended, and what there is of its bytes.
func (s *Service) drop(ctx context.Context, r row) error {
	if err := s.Objects.Delete(ctx, r.key()); err != nil {
		return err
	}
	return s.DB.Write(db.WithAccount(ctx, r.AccountID), func(tx *db.Tx) error {
		_, err := deleteUpload.Exec(tx, r.ID)
		return err
	})
}
