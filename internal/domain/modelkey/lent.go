package modelkey

import (
	"cmp"
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/donation"
	"yardmaster/internal/llm"
)

// gift is by which gift an account may use a key of another one.
type gift struct {
	id, account string // who has given it
	model       string // that calls over the key ask for; empty: theirs
}

// ModelOf is the model that calls over the key ask for where the template names asked, which may
// be empty. That of a key that was lent is settled by its ceiling.
func (k Key) ModelOf(asked string) string {
	if k.gift != nil {
		return k.gift.model
	}
	return asked
}

// lender is whom calls over the key count for, if another account has lent it.
func (k Key) lender() llm.Lender {
	if k.gift == nil {
		return llm.Lender{}
	}
	return llm.Lender{Gift: k.gift.id, Account: k.gift.account}
}

// lent lists the keys of other accounts that fit a wish and that its repository may use now,
// those that are failing last. They come after all of the account's own. A key of a person is
// never among them, nor one with an address of its own.
func lent(tx *db.Tx, account string, w Wish) ([]Candidate, error) {
	gifts, err := donation.KeysFor(tx, account, w.Repo)
	if err != nil || len(gifts) == 0 {
		return nil, err
	}
	ids := make([]string, len(gifts))
	for i, g := range gifts {
		ids[i] = g.KeyID
	}
	rows, err := pooledOf(tx, ids)
	if err != nil {
		return nil, err
	}
	var working, out []Candidate
	for _, g := range gifts {
		i := slices.IndexFunc(rows, func(r row) bool { return r.ID == g.KeyID && r.AccountID == g.AccountID })
		if i < 0 {
			continue
		}
		k := rows[i].pooled()
		model, ok := g.For(w.Model)
		if !ok || k.Provider.Addressed() {
			continue
		}
		k.gift = &gift{g.ID, g.AccountID, model}
		switch c, ok := k.suits(w); {
		case ok && rows[i].Status == Failing:
			out = append(out, c)
		case ok:
			working = append(working, c)
		}
	}
	return append(working, out...), nil
}

// LentTo lists the repositories of an account for which others have lent a key that fits a
// wish, and for which a model is named then, by id, each with the pause of what is lent for it.
func LentTo(tx *db.Tx, account string, w Wish) (map[string]Pause, error) {
	all, err := donation.Takers(tx, account)
	if err != nil {
		return nil, err
	}
	out := map[string]Pause{}
	for _, w.Repo = range all {
		keys, err := lent(tx, account, w)
		if err != nil {
			return nil, err
		}
		if len(keys) > 0 && cmp.Or(keys[0].ModelOf(w.Model), keys[0].Provider.DefaultModel()) != "" {
			out[w.Repo] = PauseOf(keys, tx.Now)
		}
	}
	return out, nil
}

// Pooled implements donation.Keys.
func (s *Service) Pooled(tx *db.Tx, keyID string) (k donation.PooledKey, ok bool, err error) {
	r, ok, err := inPool.Maybe(tx, tx.Account, "", keyID)
	if err != nil || !ok || r.DeletedAt != nil {
		return k, false, err
	}
	return donation.PooledKey{Provider: llm.Provider(r.Provider), Subscription: r.Kind == Subscription}, true, nil
}
