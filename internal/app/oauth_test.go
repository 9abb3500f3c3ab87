package app

import (
	"context"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/oauth"
	"yardmaster/internal/proof/patience"
)

// visitor is a person with a browser that knows no script: it follows links
// and redirects of the server, and sends the forms it is shown.
type visitor struct {
	*yard
	browser *http.Client
}

func (y *yard) visitor() *visitor {
	y.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		y.t.Fatal(err)
	}
	return &visitor{y, &http.Client{Jar: jar, Timeout: patience.Of(y.t), CheckRedirect: func(to *http.Request, _ []*http.Request) error {
		if !strings.HasPrefix(to.URL.String(), y.URL()+"/") {
			return http.ErrUseLastResponse // to the program that waits there
		}
		return nil
	}}}
}

var (
	formAction = regexp.MustCompile(`<form method="post" action="([^"]*)">`)
	hidden     = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
)

// submit sends the form of a page with what was hidden in it and the fields
// filled in.
func (v *visitor) submit(page string, fields ...string) (*http.Response, string) {
	v.t.Helper()
	action := formAction.FindStringSubmatch(page)
	if action == nil {
		v.t.Fatalf("a page without a form:\n%s", page)
	}
	form := url.Values{}
	body, _, _ := strings.Cut(page, "<footer>") // which has a form of its own, to sign out
	for _, input := range hidden.FindAllStringSubmatch(body, -1) {
		form.Set(input[1], html.UnescapeString(input[2]))
	}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return v.open(http.MethodPost, v.URL()+html.UnescapeString(action[1]), form.Encode())
}

func (v *visitor) open(method, address, form string) (*http.Response, string) {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), method, address, strings.NewReader(form))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", v.URL())
	}
	resp, err := v.browser.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return resp, string(b)
}

// authorize goes from a program's link to the program's own address, and
// answers what the program hears there.
func (v *visitor) authorize(link string) url.Values {
	v.t.Helper()
	_, page := v.open(http.MethodGet, link, "")
	_, page = v.submit(page, "login", "ada", "password", password)
	resp, page := v.submit(page, "decision", "authorize")
	back, err := resp.Location()
	if err != nil {
		v.t.Fatalf("%s: %v\n%s", resp.Status, err, page)
	}
	return back.Query()
}

const callback = "http://127.0.0.1:7777/callback"

// The official MCP client finds everything by itself: it is told only what a
// 401 of the endpoint says.
func TestMCPClientAuthorizes(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "MCP client", RedirectURIs: []string{callback},
		}},
		AuthorizationCodeFetcher: func(_ context.Context, a *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			q := y.visitor().authorize(a.URL)
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, y.URL()+oauth.ResourcePath, nil)
	if err != nil {
		t.Fatal(err)
	}
	challenge := http.Header{"Www-Authenticate": {`Bearer resource_metadata="` + y.URL() + oauth.ProtectedPath + `"`}}
	if err := handler.Authorize(t.Context(), req, &http.Response{StatusCode: 401, Header: challenge, Body: http.NoBody}); err != nil {
		t.Fatal(err)
	}
	source, err := handler.TokenSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tok, err := source.Token()
	if err != nil {
		t.Fatal(err)
	}
	var me struct {
		User   struct{ Login string }
		Scopes []string
	}
	decode(t, y.send("GET", "/v1/me", tok.AccessToken, "").want(200), &me)
	if me.User.Login != "ada" || len(me.Scopes) == 0 {
		t.Errorf("the token is of %+v", me)
	}
	for _, scope := range me.Scopes {
		if strings.HasPrefix(scope, "admin:") && !strings.HasPrefix(scope, "admin:read:") {
			t.Errorf("the token carries %s, which only an operator token may", scope)
		}
		if !slices.ContainsFunc(Ops(), func(o Op) bool { return slices.Contains(o.Rule.Names(), scope) }) {
			t.Errorf("the token carries %s, which is good for nothing", scope)
		}
	}
}

// A general client library, which also tries whether the server takes a client
// secret in a header: that must not cost the code.
func TestOAuthLibrary(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	var client struct {
		ID string `json:"client_id"`
	}
	decode(t, y.send("POST", "/oauth/register", "", `{"client_name": "Library", "redirect_uris": ["http://127.0.0.1/callback"]}`).want(201),
		&client)
	config := oauth2.Config{
		ClientID: client.ID, RedirectURL: callback, Scopes: []string{"read:tasks", "read:account"},
		Endpoint: oauth2.Endpoint{AuthURL: y.URL() + "/oauth/authorize", TokenURL: y.URL() + "/oauth/token"},
	}
	verifier := oauth2.GenerateVerifier()
	heard := y.visitor().authorize(config.AuthCodeURL("the state", oauth2.S256ChallengeOption(verifier)))
	if heard.Get("state") != "the state" || heard.Get("iss") != y.URL() {
		t.Errorf("the program hears %v", heard)
	}
	tok, err := config.Exchange(t.Context(), heard.Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	if !tok.Valid() || tok.Type() != "Bearer" || tok.ExpiresIn != 30*24*60*60 || tok.Extra("scope") != "read:account read:tasks" ||
		tok.RefreshToken != "" {
		t.Errorf("the token is %+v with %v", tok, tok.Extra("scope"))
	}
	resp, err := config.Client(t.Context(), tok).Get(y.URL() + "/v1/tasks")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("the token reads tasks: %s", resp.Status)
	}
	y.send("POST", "/v1/tasks", tok.AccessToken, "{}").problem(403, "missing-scope")

	_, err = config.Exchange(t.Context(), heard.Get("code"), oauth2.VerifierOption(verifier))
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) || refused.ErrorCode != "invalid_grant" || refused.Response.StatusCode != 400 {
		t.Errorf("the code again: %v", err)
	}
	y.send("GET", "/v1/tasks", tok.AccessToken, "").problem(401, "unauthenticated")
}
