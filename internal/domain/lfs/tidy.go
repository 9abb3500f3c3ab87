package lfs

import (
	"context"
	"errors"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/id"
)

// grace is how long an object stays that nothing names: since it arrived, and since somebody who
// pushes was last told that it is there. Its commits come after it.
const grace = 12 * time.Hour

// find finds the repository of the request, or the one to be; false if there is neither.
func (q *request) find() (ok bool, err error) {
	err = q.s.DB.Read(q.r.Context(), func(tx *db.Tx) error {
		if q.repo, ok, err = q.s.Repos.At(tx, q.at); err != nil || ok {
			return err
		}
		var b begunRow
		b, ok, err = begunAt.Maybe(tx, q.at.Owner, q.at.Name)
		q.repo = Repo{ID: b.ID, Account: b.AccountID}
		return err
	})
	return ok, err
}

// start notes the place of a repository to be, which nobody sees before its first push.
func (q *request) start() error {
	return q.s.DB.Write(db.WithAccount(q.r.Context(), q.access.Account), func(tx *db.Tx) error {
		_, err := insertBegun.Exec(tx, begunArgs{begunRow{id.New(), tx.Account}, q.at.Owner, q.at.Name, tx.Now})
		return err
	})
}

// Begun answers the id of a repository to be of tx.Account, which is made now; "" if no objects
// came before.
func Begun(tx *db.Tx, at codehost.Repo) (string, error) {
	b, _, err := takeBegun.Maybe(tx, tx.Account, at.Owner, at.Name)
	return b, err
}

// tell notes that somebody who pushes hears which objects are there, and takes out those that
// have gone meanwhile.
func (s *Service) tell(ctx context.Context, account string, there map[string]row) error {
	if len(there) == 0 {
		return nil
	}
	return s.DB.Write(db.WithAccount(ctx, account), func(tx *db.Tx) error {
		for oid, r := range there {
			n, err := toldRow.Exec(tx, r.ID, tx.Now)
			if err != nil {
				return err
			}
			if n == 0 {
				delete(there, oid)
			}
		}
		return nil
	})
}

// Tidy gives back the bytes of the objects that nothing in a repository names. pointed answers
// those of some that something names. While an upload is under way, what came within a day stays.
func (s *Service) Tidy(ctx context.Context, repoID string, pointed func(context.Context, []string) ([]string, error)) error {
	last := ""
	for {
		var old []row
		var before time.Time
		if err := s.DB.Read(ctx, func(tx *db.Tx) error {
			busy, err := underway.One(tx, repoID, tx.Now.Add(-abandoned))
			if err != nil {
				return err
			}
			if before = tx.Now.Add(-grace); busy {
				before = tx.Now.Add(-abandoned)
			}
			old, err = settled.All(tx, repoID, before, last)
			return err
		}); err != nil || len(old) == 0 {
			return err
		}
		last = old[len(old)-1].ID
		oids := make([]string, len(old))
		for i, r := range old {
			oids[i] = r.OID
		}
		stay, err := pointed(ctx, oids)
		if err != nil {
			return err
		}
		named := make(map[string]bool, len(stay))
		for _, oid := range stay {
			named[oid] = true
		}
		for _, r := range old {
			if named[r.OID] {
				continue
			}
			if err := s.giveUp(ctx, r, before); errors.Is(err, blob.ErrHeld) {
				return nil // Loop does it
			} else if err != nil {
				return err
			}
		}
	}
}

// giveUp removes an object of which nobody has heard since before.
func (s *Service) giveUp(ctx context.Context, r row, before time.Time) error {
	var n int64
	if err := s.DB.Write(db.WithAccount(ctx, r.AccountID), func(tx *db.Tx) (err error) {
		n, err = giveUp.Exec(tx, r.ID, before)
		return err
	}); err != nil || n == 0 {
		return err
	}
	return s.drop(ctx, r)
}

// forget removes the objects of repositories that were to be made a day ago and are not, and then
// their places.
func (s *Service) forget(ctx context.Context) error {
	var old []row
	var before time.Time
	if err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		before = tx.Now.Add(-abandoned)
		old, err = homeless.All(tx, before)
		return err
	}); err != nil {
		return err
	}
	for _, r := range old {
		if err := s.giveUp(ctx, r, before); err != nil {
			return err
		}
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		_, err := forget.Exec(tx, before)
		return err
	})
}
