package donation

import (
	"cmp"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
)

// Lent is a key that an account has given and that a repository may use now. Its id stands
// for whoever pays: it is what calls over the key count for.
type Lent struct {
	ID        string
	AccountID string // who has given it, and pays
	KeyID     string
	Models    *db.JSON[[]string]
	Picked    *string
}

// For is the model that calls over the key ask for, if the template names asked, which may be
// empty. ok is false if the ceiling does not allow it. An empty model is the caller's own, and
// is answered only where there is no ceiling.
func (l Lent) For(asked string) (model string, ok bool) {
	r := row{Models: l.Models}
	switch {
	case l.Picked != nil:
		return *l.Picked, r.allows(*l.Picked)
	case asked == "" && l.Models != nil:
		return l.Models.V[0], true
	}
	return asked, r.allows(asked)
}

// KeysFor lists the keys that others have given and that a repository of an account may use now:
// those that are pinned to it first. None is in the pool of the account.
func KeysFor(tx *db.Tx, account, repoID string) ([]Lent, error) {
	if repoID == "" {
		return nil, nil
	}
	return lentKeys.All(tx, account, repoID)
}

// Takers lists repositories of an account that may use keys of others now.
func Takers(tx *db.Tx, account string) ([]string, error) { return takers.All(tx, account) }

// Use is a call over a key that was given.
type Use struct {
	Gift              string
	AccountID, RepoID string // whose work it was
	Unpriced, Micros  int64
	At                time.Time
}

// NoteUse counts a call over a key that was given.
func NoteUse(tx *db.Tx, u Use) error {
	u.At = tx.Now
	_, err := addUse.Exec(tx, u)
	return err
}

// KeyGone parks the gifts of a key of tx.Account that is deleted in the transaction.
func KeyGone(tx *db.Tx, keyID string) error {
	ids, err := ofKey.All(tx, tx.Account, keyID)
	return cmp.Or(err, parkGone(tx, ids))
}

// BoxGone parks the gift of a box of tx.Account that is revoked in the transaction.
func BoxGone(tx *db.Tx, boxID string) error {
	ids, err := ofBox.All(tx, tx.Account, boxID)
	return cmp.Or(err, parkGone(tx, ids))
}

func parkGone(tx *db.Tx, ids []string) error {
	for _, one := range ids {
		r, err := find(tx, given, one)
		if err != nil {
			return err
		}
		if _, err := end(tx, &r, Gone); err != nil {
			return err
		}
	}
	return nil
}

// Bereft ends what an account that is deleted in tx has to do with gifts: those that it has given, of
// which the recipients are told, and those of others that are pinned to its repositories. The latter
// stay in the ledger of who has given them, without a repository.
func Bereft(tx *db.Tx, account string) error {
	rows, err := touching.All(tx, account)
	for _, r := range rows {
		if err == nil {
			err = r.bereft(tx, account)
		}
	}
	return err
}

func (r *row) bereft(tx *db.Tx, account string) error {
	if _, _, err := lockGift.Maybe(tx, r.ID); err != nil {
		return err
	}
	ended, err := park.Exec(tx, r.ID, tx.Now, Gone)
	if err != nil {
		return err
	}
	if ended > 0 {
		if err := Ended.Send(tx, r.ID); err != nil {
			return err
		}
		subject := event.Subject{ID: r.ID, Account: r.AccountID}
		switch {
		case r.AccountID != account:
			err = parkedEvent.Record(tx, subject, parkedData{about(r), Gone})
		case r.TargetAccount != "" && r.TargetAccount != account:
			subject.Account, subject.RepoID = r.TargetAccount, *r.RepoID
			err = toldEvent.Record(tx, subject, toldData{about(r), Gone})
		}
	}
	if err == nil && r.AccountID != account {
		_, err = unpin.Exec(tx, r.ID)
	}
	return err
}
