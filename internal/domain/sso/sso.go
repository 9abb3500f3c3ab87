// Package sso lets people sign in at the identity provider of their organisation
// (OpenID Connect) or at GitHub. An account names its provider. The provider's word
// is good in that account only, and only for addresses in the domains that the
// account lists.
package sso

import (
	"slices"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/signin"
	"yardmaster/internal/fault"
	"yardmaster/internal/idp"
	"yardmaster/internal/lazy"
	"yardmaster/internal/needs"
	"yardmaster/internal/seal"
)

// OrgSSO is the sign-in of an account. The addresses in it are for the configuration
// at the provider, and are known before the account has one.
type OrgSSO struct {
	_             struct{}           `doc:"How an account's people sign in." schema:"OrgSSO"`
	Configuration *OIDCConfiguration `json:"configuration" doc:"null: people sign in as everybody does"`
	RedirectURI   string             `json:"redirect_uri" format:"uri" example:"https://yardmaster.example.com/auth/oidc/callback" doc:"to be registered at the provider"`
	StartURL      string             `json:"start_url" format:"uri" example:"https://yardmaster.example.com/auth/oidc/acme/start" doc:"where the account's people begin to sign in"`
}

// OIDCConfiguration is an account's identity provider, without the client secret.
type OIDCConfiguration struct {
	_         struct{}  `doc:"An account's own OpenID Connect provider." schema:"OIDCConfiguration"`
	Protocol  string    `json:"protocol" enum:"oidc" doc:"always oidc"`
	Issuer    string    `json:"issuer" format:"uri" example:"https://login.example.com" doc:"address of the provider, as it writes it"`
	ClientID  string    `json:"client_id" example:"yardmaster" doc:"what the provider calls this server"`
	Domains   []string  `json:"domains" example:"[\"example.com\"]" doc:"of the addresses that the provider may vouch for"`
	Role      Role      `json:"role" example:"member" doc:"role of people who are new here"`
	CreatedAt time.Time `json:"created_at" doc:"when a provider was first set"`
	UpdatedAt time.Time `json:"updated_at" doc:"when it was last changed"`
}

// SSODeleted is the answer to a removal. Deleted is false if there was no
// configuration.
type SSODeleted struct {
	_       struct{} `doc:"What org_sso.delete did."`
	Deleted bool     `json:"deleted" doc:"false: there was none"`
}

// Needs are the dependencies of Service.
type Needs struct {
	DB        *db.DB
	Ring      *seal.Keyring
	Providers *idp.Client
	SignIn    *signin.Service
	// GitHub is the OAuth app with which people may sign in. Without a client id
	// there is none.
	GitHub idp.GitHub
	// BaseURL is the address to which providers send browsers back.
	BaseURL string
}

// Service keeps the configurations and signs people in with them.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

const (
	oidcBack   = "/auth/oidc/callback"
	githubBack = "/auth/github/callback"
)

// The beginnings of the issuers of identities, as sign-ins are told them: of the GitHub with
// its address, and of the provider of an account with the account's id, a space and the
// provider's address. The provider of one account does not identify users of another.
const (
	issuerGitHub = "github "
	issuerOIDC   = "oidc "
)

// GitHubIssuer is the issuer of identities of people who signed in with the GitHub at an
// address.
func GitHubIssuer(address string) string { return issuerGitHub + address }

// Vouches tells whether the issuer of an identity is asked still, and would let a user in
// again: the GitHub at the address github, which is empty where nobody signs in with one, or
// the provider that an account of the user has.
func Vouches(tx *db.Tx, github, userID, issuer string) (bool, error) {
	if of, ok := strings.CutPrefix(issuer, issuerGitHub); ok {
		return github != "" && of == github, nil
	}
	account, address, _ := strings.Cut(strings.TrimPrefix(issuer, issuerOIDC), " ")
	r, ok, err := byAccount.Maybe(tx, account)
	if err != nil || !ok || r.Issuer != address {
		return false, err
	}
	_, member, err := people.Role(tx, account, userID)
	return member, err
}

// purpose returns the purpose for which the client secret of an account is sealed.
func purpose(account string) string { return "org-sso/" + account }

func (r row) wire() *OIDCConfiguration {
	return &OIDCConfiguration{
		Protocol:  "oidc",
		Issuer:    r.Issuer,
		ClientID:  r.ClientID,
		Domains:   r.Domains.V,
		Role:      Role(r.Role),
		CreatedAt: r.CreatedAt,
		UpdatedAt: r.UpdatedAt,
	}
}

// vouches tells whether the account's provider may vouch for an address.
func (r row) vouches(email string) bool {
	_, domain, ok := strings.Cut(email, "@")
	return ok && slices.Contains(r.Domains.V, domain)
}

var domainForm = lazy.New(`^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+$`)

// domains returns the stored form of a list of domains: lower case, each once. It
// returns a fault.Invalid about domains if one is malformed or there is none.
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

// Role is what a provider of an account can have people be.
type Role string

// Values lists all roles but the owner's.
func (Role) Values() []string { return []string{"viewer", "member", "admin"} }
