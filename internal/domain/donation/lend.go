package donation

import (
	"cmp"
	"time"

	"yardmaster/internal/db"
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
