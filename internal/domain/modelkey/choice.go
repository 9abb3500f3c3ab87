package modelkey

import (
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/llm"
)

// Key is a key of the pool, still sealed.
type Key struct {
	ID       string
	Provider llm.Provider
	BaseURL  string
	Capacity *int64 // calls at once; nil: as many as there are
	Health          // of which the order of candidates knows nothing: a rest is short

	owner, sealed string
	personal      bool
	version       int64
	price         *llm.Price
	capped        bool  // it has a budget of its own
	gift          *gift // by which the account may use it; nil: it is the account's own
}

// Wish is what calls need of a key.
type Wish struct {
	Provider llm.Provider // empty: any
	BaseURL  string       // of a provider whose keys have addresses
	APIs     []llm.API    // each of them will do; the first is liked best
	Model    string       // that is asked for whichever key it is; empty: none
	// Person is the id of the user who asked for what is done, and for whom alone it is
	// done; empty: nobody.
	Person string
	// Repo is the id of the repository that it is done in, for which others may have lent
	// keys; empty: none, or one that is not known yet.
	Repo string
}

// Candidate is a key that fits a wish, and the wire form that calls over it have: the
// first of the wish that the key's provider speaks.
type Candidate struct {
	Key
	API llm.API
}

// Candidates lists the keys that fit a wish, in the order of their use: those of the
// person, then those of the account, each by priority, a subscription before a metered one,
// and then by age, and after all others those that are failing; at last those that others
// have lent to the repository. A key of
// anybody else is never among them, nor one that the account has lent away, and one of
// the person only if it can stand in for the account's: a model that is named goes to the
// provider that the account would ask, and so does what is sent to an address of a key,
// unless the wish names both. Nothing else in the program reads the pool to choose from it.
func Candidates(tx *db.Tx, account string, w Wish) ([]Candidate, error) {
	all, err := CandidatesOf(tx, account, []Wish{w})
	return all[0], err
}

// CandidatesOf is Candidates of several wishes, in their order; the pool is read once for
// each person.
func CandidatesOf(tx *db.Tx, account string, wishes []Wish) ([][]Candidate, error) {
	out, read := make([][]Candidate, len(wishes)), map[string][]row{}
	for i, w := range wishes {
		rows, ok := read[w.Person]
		if !ok {
			var err error
			if rows, err = pool.All(tx, account, w.Person); err != nil {
				return out, err
			}
			read[w.Person] = rows
		}
		for _, r := range rows {
			if c, ok := r.pooled().suits(w); ok {
				out[i] = append(out[i], c)
			}
		}
		out[i] = w.standIns(out[i])
		others, err := lent(tx, account, w)
		if err != nil {
			return out, err
		}
		out[i] = append(out[i], others...)
	}
	return out, nil
}

// standIns leaves out the keys of the person that cannot stand in for the account's.
func (w Wish) standIns(all []Candidate) []Candidate {
	var first Candidate // of the account
	if i := slices.IndexFunc(all, func(c Candidate) bool { return !c.personal }); i >= 0 {
		first = all[i]
	}
	same := func(c Candidate) bool { return c.Provider == first.Provider && c.BaseURL == first.BaseURL }
	for i := range all {
		if all[i].personal && same(all[i]) {
			all[i].price = first.price // its model has the price that it has for the account
		}
	}
	return slices.DeleteFunc(all, func(c Candidate) bool {
		switch {
		case !c.personal:
			return false
		case c.Provider.Addressed():
			return w.BaseURL == "" && !same(c)
		}
		return w.Provider == "" && w.Model != "" && !same(c)
	})
}

// LastDeleted returns when the last of an account's deleted keys that fit a wish was
// deleted; zero: none was.
func LastDeleted(tx *db.Tx, account string, w Wish) (at time.Time, err error) {
	rows, err := deleted.All(tx, account, w.Person)
	for _, r := range rows {
		if _, ok := r.pooled().suits(w); ok {
			return *r.DeletedAt, err
		}
	}
	return at, err
}

// suits tells whether the key can serve calls. A key with an address suits
// that alone: a person who may write templates, and so their addresses,
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
