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

// follow sends the frames of a person's own topic to out: the newest rows, then what
// changes, until ctx ends or the database fails.
func (s *Service) follow(ctx context.Context, o *Own, out chan<- []byte) error {
	userID := policy.From(ctx).UserID
	var at int64
	read := func(rows func(tx *db.Tx) ([]Row, int64, error)) error {
		var all []Row
		if err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
			all, at, err = rows(tx)
			return err
		}); err != nil {
			return fmt.Errorf("rows of %s: %w", o.Name, err)
		}
		frames, err := framesOf(o.Name, all, nil)
		if err != nil || len(frames) == 0 {
			return err
		}
		select {
		case out <- frames:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	notice := s.Hub.Watch(o.Rows.Notice(userID))
	if err := read(func(tx *db.Tx) ([]Row, int64, error) { return o.Rows.Newest(tx, userID, snapshotRows) }); err != nil {
		return err
	}
	late := time.NewTicker(sweepOwn)
	defer late.Stop()
	for {
		if err := read(func(tx *db.Tx) ([]Row, int64, error) { return o.Rows.Since(tx, userID, at, batch) }); err != nil {
			return err
		}
		select {
		case <-notice:
		case <-late.C: // a notice of another node may be lost
		case <-ctx.Done():
			return ctx.Err()
		}
		notice = s.Hub.Watch(o.Rows.Notice(userID))
	}
}

// sweepOwn is how often a person's own rows are read without a notice.
const sweepOwn = 5 * time.Second
