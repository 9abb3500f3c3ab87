// Package sso lets people sign in where they are known already: at the
// identity provider of their organisation (OpenID Connect), or at GitHub. An
// account says which provider is its own; its word is good in that account
// only, for addresses of the domains the account names.
package sso

import (
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/signin"
	"yardmaster/internal/fault"
	"yardmaster/internal/idp"
	"yardmaster/internal/needs"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

// OrgSSO is an account's sign-in. What it says of addresses is for the
// provider's side, and known before there is a configuration.
type OrgSSO struct {
	_             struct{}           `doc:"How an account's people sign in." schema:"OrgSSO"`
	Configuration *OIDCConfiguration `json:"configuration" doc:"null: people sign in as everybody does"`
	RedirectURI   string             `json:"redirect_uri" format:"uri" example:"https://yardmaster.example.com/auth/oidc/callback" doc:"to be registered at the provider"`
	StartURL      string             `json:"start_url" format:"uri" example:"https://yardmaster.example.com/auth/oidc/acme/start" doc:"where the account's people begin to sign in"`
}

// OIDCConfiguration is an account's identity provider. The client secret is
// never read back.
type OIDCConfiguration struct {
	_         struct{}    `doc:"An account's own OpenID Connect provider." schema:"OIDCConfiguration"`
	Protocol  string      `json:"protocol" enum:"oidc" doc:"always oidc"`
	Issuer    string      `json:"issuer" format:"uri" example:"https://login.example.com" doc:"address of the provider, as it writes it"`
	ClientID  string      `json:"client_id" example:"yardmaster" doc:"what the provider calls this server"`
	Domains   []string    `json:"domains" example:"[\"example.com\"]" doc:"of the addresses that the provider may vouch for"`
	Role      policy.Role `json:"role" enum:"viewer,member,admin" example:"member" doc:"role of people who are new here"`
	CreatedAt time.Time   `json:"created_at" doc:"when a provider was first set"`
	UpdatedAt time.Time   `json:"updated_at" doc:"when it was last changed"`
}

// SSODeleted is the answer to a removal. Deleted is false when there was
// nothing to remove.
type SSODeleted struct {
	_       struct{} `doc:"What org_sso.delete did."`
	Deleted bool     `json:"deleted" doc:"false: there was none"`
}

// Needs is what the providers of accounts stand on.
type Needs struct {
	DB        *db.DB
	Ring      *seal.Keyring
	Providers *idp.Client
	SignIn    *signin.Service
	// GitHub is the OAuth app that people may sign in with; without a client id
	// there is none.
	GitHub idp.GitHub
	// BaseURL is the address that providers send browsers back to.
	BaseURL string
}

// Service keeps the configurations and signs people in by them.
type Service struct{ Needs }

// New makes the service of n, which is to be whole.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

const (
	oidcBack   = "/auth/oidc/callback"
	githubBack = "/auth/github/callback"
)

// purpose is what a client secret is sealed for.
func purpose(account string) string { return "org-sso/" + account }

func (r row) wire() *OIDCConfiguration {
	return &OIDCConfiguration{
		Protocol:  "oidc",
		Issuer:    r.Issuer,
		ClientID:  r.ClientID,
		Domains:   r.Domains.V,
		Role:      r.Role,
		CreatedAt: r.CreatedAt,
		UpdatedAt: r.UpdatedAt,
	}
}

// vouches tells whether the account's provider may speak for an address.
func (r row) vouches(email string) bool {
	_, domain, ok := strings.Cut(email, "@")
	return ok && slices.Contains(r.Domains.V, domain)
}

var domainForm = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+$`)

// domains are a list of domains as it is stored: lower-case, each once.
func domains(list []string) ([]string, error) {
	var out []string
	for _, d := range list {
		d = strings.ToLower(strings.TrimSpace(d))
		if !domainForm.MatchString(d) || len(d) > 253 {
			return nil, fault.Field("domains", "must be domains such as example.com")
		}
		if !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	if len(out) == 0 {
		return nil, fault.Field("domains", "must name at least one domain")
	}
	return out, nil
}

// proper tells whether a provider's word for an address is one.
func proper(email string) bool {
	a, err := mail.ParseAddress(email)
	return err == nil && a.Address == email && len(email) <= 254
}
