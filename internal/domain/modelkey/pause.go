package modelkey

import (
	"time"

	"yardmaster/internal/db"
)

// Pause is a time in which no call goes over any of several keys. Its zero value is that one
// of them serves.
type Pause struct {
	Since, Until time.Time // until the first of them is tried again
	Why          string    // that one rests
}

// PauseOf is the pause of keys, if all of them rest. None at all have none.
func PauseOf(all []Candidate, now time.Time) (out Pause) {
	for _, c := range all {
		if !c.Resting(now) || c.Provider.Local() {
			return Pause{}
		}
		if out.Until.IsZero() || c.RestUntil.Before(out.Until) {
			out.Until, out.Why = *c.RestUntil, c.RestWhy
		}
		if c.RestSince != nil && c.RestSince.After(out.Since) {
			out.Since = *c.RestSince
		}
	}
	return out
}

// Passes tells whether the pause is short and nobody has to do anything about it.
func (p Pause) Passes() bool { return p.Why != Exhausted && p.Why != Refused }

var restWords = map[string]string{
	RateLimited: "the provider's rate limit holds",
	Overloaded:  "the provider is overloaded",
	Exhausted:   "what the key may use at its provider is used up",
	Refused:     "the provider refuses the key",
	Broken:      "the provider fails",
}

// RestWords says why a key rests.
func RestWords(why string) string { return restWords[why] }

// OwnServe lists the people whose own work finds a key that serves now, while those of the
// account that fit a wish rest: one of their own, or of the provider that they like best.
func OwnServe(tx *db.Tx, account string, w Wish) (out []string, err error) {
	all, err := withOwn.All(tx, account)
	if err != nil {
		return nil, err
	}
	for _, w.Person = range all {
		keys, err := likedOr(tx, account, w)
		if err != nil {
			return nil, err
		}
		if len(keys) > 0 && PauseOf(keys, tx.Now).Until.IsZero() {
			out = append(out, w.Person)
		}
	}
	return out, nil
}

// likedOr lists the keys of what the person of a wish likes best, and without one those that
// fit the wish.
func likedOr(tx *db.Tx, account string, w Wish) ([]Candidate, error) {
	pref, err := PrefOf(tx, account, w.Person)
	if err != nil {
		return nil, err
	}
	if liked, ok := pref.Of(w); ok {
		if keys, err := Candidates(tx, account, liked); err != nil || len(keys) > 0 {
			return keys, err
		}
	}
	return Candidates(tx, account, w)
}
