// Package provider is an identity provider for tests. It speaks the wire format of
// OpenID Connect with discovery, PKCE and signed tokens, and of GitHub.
package provider

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/id"
)

// Provider is an identity provider with one client. Every visitor is the person that
// Is has set last. Set changes its fields.
type Provider struct {
	*httptest.Server
	Key *rsa.PrivateKey // the private half of its published key

	mu     sync.Mutex
	Claims map[string]any        // claims about the visitor; nil: access is denied
	Lie    map[string]any        // wrong claims that replace correct ones
	Issuer string                // parameter iss of the answer
	Sign   *rsa.PrivateKey       // signs the tokens
	Emails []map[string]any      // addresses at GitHub
	Asked  int                   // number of token requests
	codes  map[string]url.Values // the requests by their codes
}

// Client and Secret are the id and the secret of the client.
const (
	Client = "the client"
	Secret = "the secret&of it"
)

// New serves a provider until the test ends.
func New(t *testing.T) *Provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{Key: key, Sign: key, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	p.Issuer = p.URL
	answer := func(w http.ResponseWriter, status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(body); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{
			"issuer":                                p.URL,
			"authorization_endpoint":                p.URL + "/authorize",
			"token_endpoint":                        p.URL + "/token",
			"jwks_uri":                              p.URL + "/keys",
			"response_types_supported":              []string{"code"},
			"subject_types_supported":               []string{"public"},
			"id_token_signing_alg_values_supported": []string{"RS256"},
			"authorization_response_iss_parameter_supported": true,
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		e := base64.RawURLEncoding
		answer(w, 200, map[string]any{"keys": []any{map[string]string{
			"kty": "RSA",
			"alg": "RS256",
			"use": "sig",
			"kid": "k",
			"n":   e.EncodeToString(key.N.Bytes()),
			"e":   e.EncodeToString(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	authorize := func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		back := url.Values{"state": {q.Get("state")}}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.Claims == nil {
			back.Set("error", "access_denied")
		} else {
			code := id.Opaque()
			p.codes[code] = q
			back.Set("code", code)
		}
		if p.Issuer != "" {
			back.Set("iss", p.Issuer)
		}
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
	}
	mux.HandleFunc("GET /authorize", authorize)
	mux.HandleFunc("GET /login/oauth/authorize", authorize)
	// spent returns the request of a code, and uses the code up. It returns false
	// unless PKCE, the client and the redirect address are right.
	spent := func(r *http.Request, client, secret string) (url.Values, bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.Asked++
		asked, ok := p.codes[r.FormValue("code")]
		delete(p.codes, r.FormValue("code"))
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		return asked, ok && client == Client && secret == Secret && asked.Get("code_challenge_method") == "S256" &&
			asked.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(sum[:]) &&
			asked.Get("redirect_uri") == r.FormValue("redirect_uri")
	}
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		client, _ := url.QueryUnescape(user)
		secret, _ := url.QueryUnescape(password)
		asked, ok := spent(r, client, secret)
		if !ok {
			answer(w, 400, map[string]string{"error": "invalid_grant"})
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		now := time.Now()
		claims := map[string]any{
			"iss":   p.URL,
			"aud":   Client,
			"nonce": asked.Get("nonce"),
			"iat":   now.Unix(),
			"exp":   now.Add(time.Minute).Unix(),
		}
		for _, over := range []map[string]any{p.Claims, p.Lie} {
			for k, v := range over {
				claims[k] = v
			}
		}
		answer(w, 200, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": p.jwt(t, claims)})
	})
	mux.HandleFunc("POST /login/oauth/access_token", func(w http.ResponseWriter, r *http.Request) {
		if _, ok := spent(r, r.FormValue("client_id"), r.FormValue("client_secret")); !ok {
			answer(w, 200, map[string]string{"error": "bad_verification_code"})
			return
		}
		answer(w, 200, map[string]string{"access_token": "gho", "token_type": "bearer", "scope": "read:user,user:email"})
	})
	mux.HandleFunc("GET /api/v3/user", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		answer(w, 200, p.Claims)
	})
	mux.HandleFunc("GET /api/v3/user/emails", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer gho" {
			answer(w, 401, map[string]string{"message": "Bad credentials"})
			return
		}
		answer(w, 200, p.Emails)
	})
	return p
}

func (p *Provider) jwt(t *testing.T, claims map[string]any) string {
	body, err := json.Marshal(claims)
	if err != nil {
		t.Error(err)
	}
	e := base64.RawURLEncoding
	signed := e.EncodeToString([]byte(`{"alg":"RS256","kid":"k","typ":"JWT"}`)) + "." + e.EncodeToString(body)
	sum := sha256.Sum256([]byte(signed))
	sig, err := rsa.SignPKCS1v15(nil, p.Sign, crypto.SHA256, sum[:])
	if err != nil {
		t.Error(err)
	}
	return signed + "." + e.EncodeToString(sig)
}

// Is sets the person that visitors are from then on.
func (p *Provider) Is(claims map[string]any) {
	p.Set(func() { p.Claims = claims })
}

// Set changes fields of the provider.
func (p *Provider) Set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}
