package gateway

import (
	"context"
	"fmt"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
	"yardmaster/internal/observe"
	"yardmaster/internal/seal"
)

const (
	// grantTime is how long a grant is used again. A revoked token or a deleted key
	// works no longer than this.
	grantTime = time.Second
	// maxGrants is the number of grants that are kept in memory.
	maxGrants = 10_000
)

type (
	grantKey struct {
		token string // its hash
		api   llm.API
	}
	grant struct {
		llm.Grant
		until   time.Time
		renewed bool // a newer one is looked up
	}
	// owner is llm.Grant.Session: the rows that a call counts for.
	owner struct{ session, account, run, repo string }
)

// Authorize lists the keys that fit a call of a live attempt, the best first: the person's
// own, then the account's, then those that others have lent to the repository. The model that
// the call names is not looked at: agents ask for other models beside the one they
// were told to use, for instance to find a title, and a template that names a model
// sends all of them there. Authorize fails with fault.Unauthenticated for a token
// without a live attempt, and with fault.Forbidden and the slug no_credential if no
// key fits.
func (s *Service) Authorize(ctx context.Context, token string, api llm.API, _ string) (llm.Grant, error) {
	at, now := grantKey{seal.Hash(token), api}, s.Clock()
	g, ok, old := s.kept(at, now)
	if !ok {
		fresh, err := s.authorize(ctx, token, api)
		if err != nil {
			return llm.Grant{}, err
		}
		g = grant{Grant: fresh, until: now.Add(grantTime)}
		s.keep(at, g)
	}
	if old {
		s.writes.Go(func() { s.renew(at, token, api) })
	}
	return g.Grant, s.let(ctx, g.Grant)
}

// kept is the grant that is used again, and tells whether the caller is to renew it.
func (s *Service) kept(at grantKey, now time.Time) (g grant, ok, old bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g, ok = s.grants[at]; !ok || !now.Before(g.until) {
		return g, false, false
	}
	if old = !g.renewed && g.until.Sub(now) <= grantTime/2; old {
		g.renewed = true
		s.grants[at] = g
	}
	return g, true, old
}

// renew looks a grant up again before it is old, so that of a session that goes on no call waits
// for that. If it fails the grant grows old, and the next call says why.
func (s *Service) renew(at grantKey, token string, api llm.API) {
	ctx, cancel := context.WithTimeout(context.Background(), grantTime)
	defer cancel()
	now := s.Clock()
	fresh, err := s.authorize(ctx, token, api)
	if err == nil {
		s.keep(at, grant{Grant: fresh, until: now.Add(grantTime)})
	}
}

// keep keeps a grant in memory.
func (s *Service) keep(at grantKey, g grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.grants == nil || len(s.grants) >= maxGrants {
		s.grants = map[grantKey]grant{}
	}
	s.grants[at] = g
}

// let puts the account and the session into the record of the request, and counts it.
func (s *Service) let(ctx context.Context, g llm.Grant) error {
	o, ok := g.Session.(owner)
	if !ok {
		return nil
	}
	r := observe.Of(ctx)
	r.Account, r.Actor = o.account, "session:"+o.session
	if s.Counts == nil {
		return nil
	}
	return s.Counts.Hold(ctx, o.session, o.account)
}

// authorize is Authorize without the memory of grants.
func (s *Service) authorize(ctx context.Context, token string, api llm.API) (llm.Grant, error) {
	a, err := s.attempt(ctx, token)
	if err != nil {
		return llm.Grant{}, err
	}
	wish := modelkey.Wish{
		Provider: llm.Provider(a.Provider), BaseURL: a.BaseURL, Model: a.Model, Person: a.Person, Repo: a.RepoID,
		APIs: []llm.API{callAPI(api)},
	}
	var keys []modelkey.Candidate
	var model func(modelkey.Candidate) string
	var prices []*llm.Prices
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		if keys, model, err = keysFor(tx, a, wish); err != nil {
			return err
		}
		prices, err = modelkey.Prices(tx, a.AccountID, keys, s.Prices)
		return err
	})
	if err != nil {
		return llm.Grant{}, err
	}
	if len(keys) == 0 {
		return llm.Grant{}, noCredential(wish)
	}
	s.rota.learn(keys)
	out := llm.Grant{Session: owner{a.SessionID, a.AccountID, a.RunID, a.RepoID}}
	for i, key := range keys {
		route, err := s.Keys.Open(key.Key)
		if err != nil {
			if i > 0 {
				continue // it fails once it is the first
			}
			return llm.Grant{}, fmt.Errorf("open key %s: %w", key.ID, err)
		}
		route.Model, route.Prices = key.ModelOf(model(key)), prices[i]
		out.Routes = append(out.Routes, route)
	}
	return out, nil
}

// attempt finds what a token belongs to; fault.Unauthenticated for nothing.
func (s *Service) attempt(ctx context.Context, token string) (Attempt, error) {
	s.mu.Lock()
	a, ok := s.own[seal.Hash(token)]
	s.mu.Unlock()
	if ok {
		return a, nil
	}
	a, ok, err := s.Attempts.Attempt(ctx, token)
	if err == nil && !ok {
		err = fault.New(fault.Unauthenticated, "", "The token belongs to no live attempt.")
	}
	return a, err
}

// callAPI is the API whose key serves a call: tokens are counted where the calls
// themselves go.
func callAPI(api llm.API) llm.API {
	switch api {
	case llm.CountTokens:
		return llm.Messages
	case llm.GeminiCount:
		return llm.Gemini
	}
	return api
}

// noCredential is the refusal of a call that no key of the account fits.
func noCredential(w modelkey.Wish) *fault.Error {
	var speak []string
	for _, p := range llm.Speakers(w.APIs[0]) {
		speak = append(speak, string(p))
	}
	of := "a provider"
	switch {
	case w.BaseURL != "":
		of = "the provider at the template's base_url"
	case w.Provider != "":
		of = "the provider " + string(w.Provider)
	}
	return fault.Newf(fault.Forbidden, "no_credential",
		"The account has no key of %s that speaks the API %s; these do: %s. `yardmaster key add` adds one.",
		of, w.APIs[0], strings.Join(speak, ", "))
}
