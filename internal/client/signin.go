package client

import (
	"context"
	"net/http"
	"net/http/cookiejar"
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
	return mint(ctx, url, "/setup/"+setupToken, o)
}

// SignIn signs in with a password and answers a client with a new token.
func SignIn(ctx context.Context, url, login, password string) (*Client, error) {
	return mint(ctx, url, "/auth/password", map[string]string{"login": login, "password": password})
}

// mint opens a browser session and exchanges it for a token.
func mint(ctx context.Context, url, path string, body any) (*Client, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	session := &Client{URL: url, HTTP: &http.Client{Jar: jar, Transport: page{}}}
	if err := session.Call(ctx, http.MethodPost, path, body, nil); err != nil {
		return nil, err
	}
	var minted struct {
		Token string `json:"token"`
	}
	if err := session.Call(ctx, http.MethodPost, "/v1/tokens", map[string]string{"name": programName()}, &minted); err != nil {
		return nil, err
	}
	// The session is no longer needed; if it cannot be ended, it expires.
	_ = session.Call(ctx, http.MethodPost, "/auth/logout", nil, nil)
	return &Client{URL: url, Token: minted.Token}, nil
}

// page marks requests as coming from the service's own pages. The server demands
// that of writes with a cookie.
type page struct{}

func (page) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return http.DefaultTransport.RoundTrip(r)
}
