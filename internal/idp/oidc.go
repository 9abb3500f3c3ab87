package idp

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"yardmaster/internal/fault"
)

// Provider is an OpenID Connect provider, and our client id and secret there.
type Provider struct{ Issuer, ClientID, ClientSecret string }

// providerLife is how long the discovery document of an issuer is cached, and
// maxProviders the number of cached documents.
const (
	providerLife = 10 * time.Minute
	maxProviders = 100
)

// provider is the cached discovery document of an issuer.
type provider struct {
	*oidc.Provider
	more  discovered
	until time.Time
}

// discovered holds the members of a discovery document that the library does not
// read.
type discovered struct {
	SendsIssuer bool     `json:"authorization_response_iss_parameter_supported"`
	Auth        []string `json:"token_endpoint_auth_methods_supported"`
	Endpoint    string   `json:"authorization_endpoint"`
}

// Discover reads the discovery document of an issuer. It fails with
// fault.Unavailable (provider-unreachable) if the document cannot be read, is of
// another issuer, or has an authorization endpoint that is not https, and with
// fault.Invalid of the field issuer for an address that may not be connected to.
func (c *Client) Discover(ctx context.Context, issuer string) error {
	if err := c.Fits(issuer); err != nil {
		return err
	}
	if _, wrong := c.guard.Destination(ctx, issuer); wrong != "" {
		return fault.Field("issuer", wrong)
	}
	_, err := c.discover(ctx, issuer)
	return err
}

// Fits fails with fault.Invalid of the field issuer for an address that is not https. It asks
// nobody.
func (c *Client) Fits(issuer string) error {
	if u, err := url.Parse(issuer); err != nil || !c.fit(u.Scheme, u.Hostname()) {
		return fault.Field("issuer", "must be an https address")
	}
	return nil
}

func (c *Client) discover(ctx context.Context, issuer string) (provider, error) {
	c.mu.Lock()
	p, ok := c.known[issuer]
	c.mu.Unlock()
	if ok && c.Now().Before(p.until) {
		return p, nil
	}
	u, err := url.Parse(issuer)
	if err != nil || !c.fit(u.Scheme, u.Hostname()) {
		return p, unreachable(errors.New("the issuer's address is not https"))
	}
	// The library fetches the issuer's keys later, with this context.
	ctx = oidc.ClientContext(context.WithoutCancel(ctx), c.http)
	if p.Provider, err = oidc.NewProvider(ctx, issuer); err != nil {
		return p, unreachable(err)
	}
	if err := p.Claims(&p.more); err != nil {
		return p, unreachable(err)
	}
	if at, err := url.Parse(p.more.Endpoint); err != nil || !c.fit(at.Scheme, at.Hostname()) {
		return p, unreachable(errors.New("the authorization endpoint is not https"))
	}
	p.until = c.Now().Add(providerLife)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxProviders {
		clear(c.known)
	}
	c.known[issuer] = p
	return p, nil
}

func (o Provider) config(p provider, redirect string) *oauth2.Config {
	endpoint := p.Endpoint()
	// Trying both styles, as the library would, uses up the code at some providers.
	endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if len(p.more.Auth) > 0 && !slices.Contains(p.more.Auth, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{
		ClientID: o.ClientID, ClientSecret: o.ClientSecret, RedirectURL: redirect, Endpoint: endpoint,
		Scopes: []string{oidc.ScopeOpenID, "email", "profile"},
	}
}

// Begin is the address at which the browser signs in. The provider sends the
// browser back to redirect. Begin fails as Discover does.
func (c *Client) Begin(ctx context.Context, o Provider, t Ticket, redirect string) (address string, err error) {
	p, err := c.discover(ctx, o.Issuer)
	if err != nil {
		return "", err
	}
	return o.config(p, redirect).AuthCodeURL(t.State, oidc.Nonce(t.Nonce), oauth2.S256ChallengeOption(t.Verifier)), nil
}

// Finish exchanges the code that the browser brought back for the person. iss is
// the parameter of that name, with which a provider marks the answer as its own
// (RFC 9207). Finish fails with fault.Forbidden (provider-refused) for an invalid
// answer and for an address that the provider does not call verified, and with
// fault.Unavailable (provider-unreachable).
func (c *Client) Finish(ctx context.Context, o Provider, t Ticket, redirect, code, iss string) (out Person, err error) {
	p, err := c.discover(ctx, o.Issuer)
	if err != nil {
		return out, err
	}
	if iss != o.Issuer && (iss != "" || p.more.SendsIssuer) {
		return out, refused("The answer is not the provider's that was asked.", nil)
	}
	tok, err := o.config(p, redirect).Exchange(c.through(ctx), code, oauth2.VerifierOption(t.Verifier))
	var said *oauth2.RetrieveError
	switch {
	case errors.As(err, &said) && said.Response != nil && said.Response.StatusCode < 500:
		return out, refused("The provider does not take the code, or our client id and secret.", err)
	case err != nil:
		return out, unreachable(err)
	}
	raw, _ := tok.Extra("id_token").(string)
	token, err := p.Verifier(&oidc.Config{ClientID: o.ClientID, Now: c.Now}).Verify(oidc.ClientContext(ctx, c.http), raw)
	if err != nil {
		return out, refused("The provider's token does not hold.", err)
	}
	var is claims
	if err := token.Claims(&is); err != nil {
		return out, refused("The provider's token does not hold.", err)
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(t.Nonce)) != 1:
		return out, refused("The provider's token is for another sign-in.", nil)
	case len(token.Audience) > 1 && is.Party != o.ClientID:
		return out, refused("The provider's token is for another client.", nil)
	case token.Subject == "":
		return out, refused("The provider's token names nobody.", nil)
	}
	if token.AccessTokenHash != "" {
		if err := token.VerifyAccessToken(tok.AccessToken); err != nil {
			return out, refused("The provider's token does not hold.", err)
		}
	}
	if is.Email == "" {
		info, err := p.UserInfo(oidc.ClientContext(ctx, c.http), oauth2.StaticTokenSource(tok))
		if err != nil {
			return out, unreachable(err)
		}
		if info.Subject != token.Subject {
			return out, refused("The provider speaks of two people.", nil)
		}
		if err := info.Claims(&is); err != nil {
			return out, refused("The provider's answer cannot be read.", err)
		}
	}
	if is.Email == "" || !bool(is.Verified) {
		return out, refused("The provider does not say that your e-mail address is proved.", nil)
	}
	return Person{
		Issuer: o.Issuer, Subject: token.Subject, Email: strings.ToLower(is.Email),
		Name: short(is.Name), Login: is.Login, AvatarURL: picture(is.Picture),
	}, nil
}

type claims struct {
	Email    string `json:"email"`
	Verified truth  `json:"email_verified"`
	Name     string `json:"name"`
	Login    string `json:"preferred_username"`
	Picture  string `json:"picture"`
	Party    string `json:"azp"`
}

// truth is a boolean that some providers encode as a string.
type truth bool

func (t *truth) UnmarshalJSON(b []byte) error {
	*t = truth(string(b) == "true" || string(b) == `"true"`)
	return nil
}
