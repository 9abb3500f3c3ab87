package github

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"yardmaster/internal/codehost"
)

const (
	jwtLife   = 9 * time.Minute  // GitHub takes 10 at most
	clockSkew = time.Minute      // a JWT of a clock that is ahead is refused
	renewal   = 10 * time.Minute // a token with less time left is renewed

	mostTokens = 5000 // from which on those that have ended are dropped
)

// appAuth is the credential of the App itself, a JWT. See the page "Generating a JSON
// Web Token (JWT) for a GitHub App".
func (h *Host) appAuth() (credential, error) {
	now := h.cfg.Now()
	text := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	claims := text(`{"alg":"RS256","typ":"JWT"}`) + "." + text(fmt.Sprintf(`{"iat":%d,"exp":%d,"iss":"%d"}`,
		now.Add(-clockSkew).Unix(), now.Add(jwtLife).Unix(), h.cfg.AppID))
	sum := sha256.Sum256([]byte(claims))
	sig, err := rsa.SignPKCS1v15(nil, h.key, crypto.SHA256, sum[:])
	if err != nil {
		return credential{}, fmt.Errorf("sign as the App: %w", err)
	}
	return credential{"Bearer " + claims + "." + base64.RawURLEncoding.EncodeToString(sig), "app"}, nil
}

// asApp carries out a call as the App itself.
func (h *Host) asApp(ctx context.Context, method, path string, body, out any) (reply, error) {
	auth, err := h.appAuth()
	if err != nil {
		return reply{}, err
	}
	re, err := h.send(ctx, request{method: method, path: path, body: body, auth: auth}, out)
	if errors.Is(err, errUnauthorized) {
		err = &codehost.BusyError{Cause: err} // the operator has to correct the key or the clock
	}
	return re, err
}

// tokens are the tokens of installations, each for one repository or a whole
// installation, and for some permissions.
type tokens struct {
	mu  sync.Mutex
	all map[tokenKey]*token
}

type tokenKey struct {
	installation int64
	repo         codehost.Key // of the zero Repo: all repositories of the installation
	permissions  string
}

// token is one token. Its mutex is held while it is made, so that callers share it.
type token struct {
	mu    sync.Mutex
	value string
	until time.Time
}

// forget drops the tokens of a repository.
func (t *tokens) forget(r codehost.Repo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.all, func(k tokenKey, _ *token) bool { return k.repo == r.Key() })
}

// at is the token of a key, to be made unless it is good.
func (t *tokens) at(k tokenKey, now time.Time) *token {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[tokenKey]*token{}
	}
	if len(t.all) > mostTokens {
		maps.DeleteFunc(t.all, func(_ tokenKey, one *token) bool {
			if !one.mu.TryLock() {
				return false
			}
			defer one.mu.Unlock()
			return one.until.Before(now)
		})
	}
	if t.all[k] == nil {
		t.all[k] = &token{}
	}
	return t.all[k]
}

// tokenFor is the credential for calls about a repository.
func (h *Host) tokenFor(ctx context.Context, r codehost.Repo, need permissions) (credential, error) {
	tok, _, inst, err := h.repoToken(ctx, r, need)
	return credential{"Bearer " + tok, payer(inst)}, err
}

func payer(installation int64) string { return "installation " + number(installation) }

// repoToken is a token for one repository, and when it ends. An installation that is
// not the one of the repository any more is looked for once.
func (h *Host) repoToken(ctx context.Context, r codehost.Repo, need permissions) (tok string, end time.Time, inst int64, err error) {
	for range 2 {
		inst, known, err := h.installationOf(ctx, r)
		if err != nil {
			return "", end, 0, err
		}
		tok, end, err = h.mint(ctx, inst, r, need)
		if err != nil && errors.Is(err, codehost.ErrGone) && known {
			h.installations.Delete(r.Key())
			continue
		}
		return tok, end, inst, err
	}
	return "", end, 0, codehost.ErrGone
}

// installed is the installation that had a repository at a time.
type installed struct {
	id int64
	at time.Time
}

// reinstalled tells whether a repository that was not found has another installation
// than was known: it was transferred. It fails with codehost.ErrGone if it has none. What
// was found out less than a minute ago is not asked again.
func (h *Host) reinstalled(ctx context.Context, r codehost.Repo) (bool, error) {
	found, ok := h.installations.Load(r.Key())
	if !ok || h.cfg.Now().Sub(found.(installed).at) < nameGood {
		return false, nil
	}
	h.installations.Delete(r.Key())
	now, _, err := h.installationOf(ctx, r)
	if err == nil && now != found.(installed).id {
		h.tokens.forget(r)
		return true, nil
	}
	return false, err
}

// installationOf is the installation that has a repository, and whether it was known
// without asking.
func (h *Host) installationOf(ctx context.Context, r codehost.Repo) (int64, bool, error) {
	if found, ok := h.installations.Load(r.Key()); ok {
		return found.(installed).id, true, nil
	}
	var inst wireInstallation
	_, err := h.asApp(ctx, http.MethodGet, byID(r)+"/installation", nil, &inst)
	if errors.Is(err, codehost.ErrNotFound) || err == nil && inst.SuspendedAt != nil {
		return 0, false, codehost.ErrGone.Because(err)
	}
	if err != nil {
		return 0, false, fmt.Errorf("find the installation of %s: %w", r, err)
	}
	h.installations.Store(r.Key(), installed{inst.ID, h.cfg.Now()})
	return inst.ID, false, nil
}

// mint answers a token of an installation for a repository; the zero Repo is all of
// them. See the page "Generating an installation access token for a GitHub App".
func (h *Host) mint(ctx context.Context, inst int64, r codehost.Repo, need permissions) (string, time.Time, error) {
	t := h.tokens.at(tokenKey{inst, r.Key(), need.String()}, h.cfg.Now())
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.until.Sub(h.cfg.Now()) >= renewal {
		return t.value, t.until, nil
	}
	ask := struct {
		IDs         []int64     `json:"repository_ids,omitzero"`
		Names       []string    `json:"repositories,omitzero"`
		Permissions permissions `json:"permissions,omitzero"`
	}{Permissions: need}
	if id, err := strconv.ParseInt(r.ID, 10, 64); err == nil {
		ask.IDs = []int64{id}
	} else if r.Name != "" {
		ask.Names = []string{r.Name}
	}
	var got struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	auth, err := h.appAuth()
	if err != nil {
		return "", t.until, err
	}
	_, err = h.send(ctx, request{
		method: http.MethodPost, path: "/app/installations/" + number(inst) + "/access_tokens", body: ask, auth: auth, reads: true,
	}, &got)
	if errors.Is(err, errUnauthorized) {
		err = &codehost.BusyError{Cause: err} // the operator has to correct the key or the clock
	}
	if e, ok := refused(err, http.StatusUnprocessableEntity); ok {
		if e.says("permissions requested") {
			return "", t.until, errors.Join(&codehost.ForbiddenError{Permission: accepted(need.String()), Asked: true}, err)
		}
		return "", t.until, codehost.ErrGone.Because(err) // the repository is not of the installation
	}
	if errors.Is(err, codehost.ErrNotFound) {
		return "", t.until, codehost.ErrGone.Because(err)
	}
	if err != nil {
		return "", t.until, fmt.Errorf("make a token for %s: %w", r, err)
	}
	t.value, t.until = got.Token, got.ExpiresAt
	return t.value, t.until, nil
}

// contentsWrite are the permissions of a push, and of what GitHub treats as one.
func (h *Host) contentsWrite() permissions {
	need := permissions{"contents": "write"}
	if h.cfg.Workflows {
		need["workflows"] = "write"
	}
	return need
}

// Upstream implements codehost.GitAccess.
func (h *Host) Upstream(ctx context.Context, r codehost.Repo, write bool) (*url.URL, string, time.Time, error) {
	if err := h.ours(r); err != nil {
		return nil, "", time.Time{}, err
	}
	need := permissions{"contents": "read"}
	if write {
		need = h.contentsWrite()
	}
	at, err := h.confirmed(ctx, r)
	if err != nil {
		return nil, "", time.Time{}, err
	}
	tok, end, _, err := h.repoToken(ctx, at, need)
	if err != nil {
		return nil, "", time.Time{}, err
	}
	return h.web.JoinPath(at.Owner, at.Name+".git"), gitAuthorization(tok), end, nil
}

// gitAuthorization is the header Authorization of a token for git. See the page
// "Authenticating as a GitHub App installation".
func gitAuthorization(tok string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+tok))
}

// Renew implements codehost.GitAccess.
func (h *Host) Renew(r codehost.Repo) {
	h.tokens.forget(r)
	h.names.Delete(r.Key())
}
