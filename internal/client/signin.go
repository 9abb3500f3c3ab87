package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"time"
)

// Owner is the first user of a server, and the name of the first account.
type Owner struct {
	Login    string `json:"login"`
	Name     string `json:"name,omitempty"`
	Email    string `json:"email"`
	Password string `json:"password"`
	Account  string `json:"account"`
}

// Setup makes the first user and account with the one-time setup token, and answers
// a client with a token of that user.
func Setup(ctx context.Context, url, setupToken string, o Owner) (*Client, error) {
	return mint(ctx, url, "/setup/"+setupToken, o, "")
}

// SetupOpen fails if a server takes no such setup token, or does not answer. It uses nothing
// up.
func SetupOpen(ctx context.Context, url, setupToken string) error {
	return (&Client{URL: url}).Call(ctx, http.MethodGet, "/setup/"+setupToken, nil, nil)
}

// SignIn signs in with a password and answers a client with a new token, which is bound to
// an account of the person: that of the login given, else the active one.
func SignIn(ctx context.Context, url, login, password, account string) (*Client, error) {
	return mint(ctx, url, "/auth/password", map[string]string{"login": login, "password": password}, account)
}

// Operator is an operator token. Answer is all that the server says of it.
type Operator struct {
	Token   string    `json:"token"`
	Scopes  []string  `json:"scopes"`
	Expires time.Time `json:"expires_iso"`

	Answer json.RawMessage `json:"-"`
}

// OperatorToken signs in with the password of an operator and answers an operator token
// with some scopes. name says what it is for.
func OperatorToken(ctx context.Context, url, login, password, name string, scopes []string) (out Operator, err error) {
	err = exchange(ctx, url, "", "/auth/password", map[string]string{"login": login, "password": password},
		"/v1/admin/operator-tokens", map[string]any{"name": name, "scopes": scopes}, &out.Answer)
	if err == nil {
		err = json.Unmarshal(out.Answer, &out)
	}
	return out, err
}

// mint opens a browser session and exchanges it for a token.
func mint(ctx context.Context, url, path string, body any, account string) (*Client, error) {
	var minted struct {
		Token string `json:"token"`
	}
	err := exchange(ctx, url, account, path, body, "/v1/tokens", map[string]string{"name": programName()}, &minted)
	if err != nil {
		return nil, err
	}
	return &Client{URL: url, Token: minted.Token}, nil
}

// exchange opens a browser session by a call, makes another call in it about an account,
// and ends it.
func exchange(ctx context.Context, url, account, path string, body any, then string, with, out any) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	session := &Client{URL: url, HTTP: &http.Client{Jar: jar, Transport: page{}, CheckRedirect: sameServer}}
	inAccount := &Client{URL: url, HTTP: &http.Client{Jar: jar, Transport: page{account}, CheckRedirect: sameServer}}
	if err := session.Call(ctx, http.MethodPost, path, body, nil); err != nil {
		return err
	}
	err = inAccount.Call(ctx, http.MethodPost, then, with, out)
	// The session is no longer needed; if it cannot be ended, it expires.
	_ = session.Call(ctx, http.MethodPost, "/auth/logout", nil, nil)
	return err
}

// page marks requests as coming from the service's own pages. The server demands
// that of writes with a cookie. The account, if there is one, is what they are about.
type page struct{ account string }

func (p page) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if p.account != "" {
		r.Header.Set("X-Svc-Account", p.account)
	}
	return http.DefaultTransport.RoundTrip(r)
}
