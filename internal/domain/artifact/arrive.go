package artifact

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
)

// patience is how long a call waits for the store of objects.
const patience = 10 * time.Second

// away is the refusal while the store of objects fails, or is slow.
func away(err error) error {
	return fault.New(fault.Unavailable, "object-store-unavailable", "The store of objects does not answer. Nothing was changed; try again.").
		After(30 * time.Second).Because(err)
}

// look asks the store whether it has the object of a row, of the size that it was to have.
func (s *Service) look(ctx context.Context, r row) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	i, err := s.Objects.Stat(ctx, r.key())
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrOff) {
		return false, nil
	}
	return err == nil && i.Size == r.Size, err
}

// present tells whether the bytes of an artifact are there, and notes it if that is news. It
// fails if the store cannot be asked.
func (s *Service) present(ctx context.Context, r row) (bool, error) {
	there, err := s.look(ctx, r)
	if err != nil {
		return false, away(err)
	}
	switch {
	case there && r.StoredAt == nil:
		err = s.DB.Write(db.WithAccount(ctx, r.AccountID), r.arrive)
	case there && r.MissingAt != nil:
		err = s.DB.Write(ctx, func(tx *db.Tx) error { _, err := missing.Exec(tx, r.ID, nil); return err })
	case !there && r.StoredAt != nil && r.MissingAt == nil:
		s.Logger.WarnContext(ctx, "the store of objects has lost an artifact", slog.String("artifact", r.ID))
		err = s.DB.Write(ctx, func(tx *db.Tx) error { _, err := missing.Exec(tx, r.ID, tx.Now); return err })
	}
	return there, err
}

// arrive notes that the bytes of an artifact of tx.Account are there. It may be called twice.
func (r row) arrive(tx *db.Tx) error {
	n, err := arrived.Exec(tx, r.ID, tx.Now)
	if err != nil || n == 0 {
		return err
	}
	return storedEvent.Record(tx, r.subject(), nameData{Name: r.Name, Size: r.Size})
}

func (r row) subject() event.Subject {
	about := event.Subject{ID: r.ID, Account: r.AccountID}
	if r.RepoID != nil {
		about.RepoID = *r.RepoID
	}
	return about
}

// Stored notes the arrival of an object that this server has taken, by its key. Keys that are
// not those of artifacts are passed over. A failure is logged: the queue finds the object, too.
func (s *Service) Stored(ctx context.Context, key string) {
	account, rest, _ := strings.Cut(key, "/")
	artifactID, ours := strings.CutPrefix(rest, "artifacts/")
	if !ours {
		return
	}
	ctx = db.WithAccount(context.WithoutCancel(ctx), account)
	var r row
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, err = find(tx, byID, artifactID)
		return err
	})
	if err == nil {
		_, err = s.present(ctx, r)
	}
	if err != nil && !fault.IsKind(err, fault.NotFound) {
		observe.Complain(ctx, s.Logger, "note that an artifact arrived", err, slog.String("artifact", artifactID))
	}
}
