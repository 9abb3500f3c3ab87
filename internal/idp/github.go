package idp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/oauth2"
)

// GitHub is an OAuth app at GitHub or at a GitHub Enterprise Server. The operator
// configures the address, so connections to it are not restricted.
type GitHub struct {
	URL, ClientID, ClientSecret string
}

const publicGitHub = "https://github.com"

func (g GitHub) config(redirect string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: g.ClientID, ClientSecret: g.ClientSecret, RedirectURL: redirect, Scopes: []string{"read:user", "user:email"},
		Endpoint: oauth2.Endpoint{
			AuthURL:   g.URL + "/login/oauth/authorize",
			TokenURL:  g.URL + "/login/oauth/access_token",
			AuthStyle: oauth2.AuthStyleInParams,
		},
	}
}

// Begin is the address at which the browser signs in. GitHub sends the browser
// back to redirect.
func (g GitHub) Begin(t Ticket, redirect string) (address string) {
	return g.config(redirect).AuthCodeURL(t.State, oauth2.S256ChallengeOption(t.Verifier))
}

// Finish exchanges the code that the browser brought back for the person. It fails
// with fault.Forbidden (provider-refused) for a refused code and for a person
// without a verified address, and with fault.Unavailable (provider-unreachable).
func (g GitHub) Finish(ctx context.Context, t Ticket, redirect, code string) (out Person, err error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Timeout: patience, Transport: bounded{http.DefaultTransport}})
	config := g.config(redirect)
	tok, err := config.Exchange(ctx, code, oauth2.VerifierOption(t.Verifier))
	var said *oauth2.RetrieveError
	switch {
	case errors.As(err, &said) && said.Response != nil && said.Response.StatusCode < 500:
		return out, refused("GitHub does not take the code, or our client id and secret.", err)
	case err != nil:
		return out, unreachable(err)
	}
	client := config.Client(ctx, tok)
	var who struct {
		ID      int64
		Login   string
		Name    string
		Picture string `json:"avatar_url"`
	}
	if err := g.get(ctx, client, "/user", &who); err != nil {
		return out, unreachable(err)
	}
	var emails []struct {
		Email    string
		Primary  bool
		Verified bool
	}
	if err := g.get(ctx, client, "/user/emails?per_page=100", &emails); err != nil {
		return out, unreachable(err)
	}
	if who.ID == 0 {
		return out, unreachable(errors.New("GitHub names nobody"))
	}
	out = Person{
		Issuer: g.URL, Subject: strconv.FormatInt(who.ID, 10),
		Name: short(who.Name), Login: who.Login, AvatarURL: picture(who.Picture),
	}
	for _, e := range emails {
		address := strings.ToLower(e.Email)
		if !e.Verified || strings.HasSuffix(address, "@users.noreply.github.com") {
			continue
		}
		out.Emails = append(out.Emails, address)
		if e.Primary || out.Email == "" {
			out.Email = address
		}
	}
	if out.Email == "" {
		return out, refused("Your GitHub account has no verified e-mail address.", nil)
	}
	return out, nil
}

func (g GitHub) get(ctx context.Context, client *http.Client, path string, into any) error {
	base := g.URL + "/api/v3"
	if g.URL == publicGitHub {
		base = "https://api.github.com"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/vnd.github+json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GitHub answers %s to %s", resp.Status, path)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}
