package stream

import (
	"context"
	"fmt"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/policy"
)

// Own is a topic of which each person follows rows of their own. Its rows have numbers,
// which grow with each change of a row of the person; it does not stand on the audit chain.
type Own struct {
	Name  string
	Scope policy.Scope
	Rows  OwnRows
}

// OwnRows are the rows of an Own. A row without a Value has left the list.
type OwnRows interface {
	// Notice is the topic of the hub that tells of changes for a person.
	Notice(userID string) string
	// Newest returns at most limit rows of a person in tx.Account, oldest first, and the
	// number of the newest change.
	Newest(tx *db.Tx, userID string, limit int) (rows []Row, upTo int64, err error)
	// Since returns the rows of a person that changed after since, in order of their
	// numbers, and the number of the last of them; since without any. Of more than limit
	// it returns those that changed last: the others are far down the list.
	Since(tx *db.Tx, userID string, since int64, limit int) (rows []Row, upTo int64, err error)
}

// ownFeed follows a person's own topic for one connection.
type ownFeed struct {
	*Own
	s      *Service
	userID string
	notice <-chan struct{}
	at     int64
}

// read returns the frames of rows, and moves at.
func (o *ownFeed) read(ctx context.Context, rows func(tx *db.Tx) ([]Row, int64, error)) (frames, error) {
	var all []Row
	if err := o.s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		all, o.at, err = rows(tx)
		return err
	}); err != nil {
		return nil, fmt.Errorf("rows of %s: %w", o.Name, err)
	}
	return framesOf(o.Name, all, nil)
}

// begin returns the newest rows.
func (s *Service) begin(ctx context.Context, o *Own) (*ownFeed, frames, error) {
	f := &ownFeed{Own: o, s: s, userID: policy.From(ctx).UserID}
	f.notice = s.Hub.Watch(o.Rows.Notice(f.userID))
	first, err := f.read(ctx, func(tx *db.Tx) ([]Row, int64, error) { return o.Rows.Newest(tx, f.userID, snapshotRows) })
	return f, first, err
}

// follow sends the frames of what changes to out, until ctx ends or the database fails.
func (o *ownFeed) follow(ctx context.Context, out chan<- []byte) error {
	late := time.NewTicker(sweepOwn)
	defer late.Stop()
	for {
		changed, err := o.read(ctx, func(tx *db.Tx) ([]Row, int64, error) { return o.Rows.Since(tx, o.userID, o.at, batch) })
		if err != nil {
			return err
		}
		if all, n := changed.of(nil, ""); n > 0 {
			select {
			case out <- all:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		select {
		case <-o.notice:
		case <-late.C: // a notice of another node may be lost
		case <-ctx.Done():
			return ctx.Err()
		}
		o.notice = o.s.Hub.Watch(o.Rows.Notice(o.userID))
	}
}

// sweepOwn is how often a person's own rows are read without a notice.
const sweepOwn = 5 * time.Second
