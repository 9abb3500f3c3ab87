package modelkey

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/llm"
)

// Key is a key of the pool, still sealed.
type Key struct {
	ID       string
	Provider llm.Provider
	BaseURL  string

	account, sealed string
	price           *llm.Price
}

// Wish is what calls need of a key.
type Wish struct {
	Provider llm.Provider // empty: any
	BaseURL  string       // of the provider compatible
	APIs     []llm.API    // each of them will do; the first is liked best
}

// Candidate is a key that fits a wish, and the wire form that calls over it have: the
// first of the wish that the key's provider speaks.
type Candidate struct {
	Key
	API llm.API
}

// Candidates lists the keys of an account's pool that fit a wish, in the order of their
// use: by priority and then by age, and after all others those that are failing.
// Nothing else in the program reads the pool to choose from it.
func Candidates(tx *db.Tx, account string, w Wish) ([]Candidate, error) {
	all, err := CandidatesOf(tx, account, []Wish{w})
	return all[0], err
}

// CandidatesOf is Candidates of several wishes, in their order; the pool is read once.
func CandidatesOf(tx *db.Tx, account string, wishes []Wish) ([][]Candidate, error) {
	rows, err := pool.All(tx, account)
	out := make([][]Candidate, len(wishes))
	for i, w := range wishes {
		for _, r := range rows {
			if c, ok := r.pooled().suits(w); ok {
				out[i] = append(out[i], c)
			}
		}
	}
	return out, err
}

// LastDeleted returns when the last of an account's deleted keys that fit a wish was
// deleted; zero: none was.
func LastDeleted(tx *db.Tx, account string, w Wish) (at time.Time, err error) {
	rows, err := deleted.All(tx, account)
	for _, r := range rows {
		if _, ok := r.pooled().suits(w); ok {
			return *r.DeletedAt, err
		}
	}
	return at, err
}

// suits tells whether the key can serve calls. A key of the provider compatible suits
// its own address alone: a person who may write templates, and so their addresses,
// must not be able to send keys elsewhere.
func (k Key) suits(w Wish) (Candidate, bool) {
	if w.Provider != "" && k.Provider != w.Provider || w.BaseURL != "" && k.BaseURL != w.BaseURL {
		return Candidate{}, false
	}
	for _, api := range w.APIs {
		if k.Provider.Speaks(api) {
			return Candidate{k, api}, true
		}
	}
	return Candidate{}, false
}
