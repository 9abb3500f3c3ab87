// Package oauth is how a program gets a token without seeing a password. A
// person, signed in to a browser session, is shown what the program asks for
// and allows it; the program fetches an ordinary personal access token. Two
// ways lead there: the authorization code with PKCE for MCP clients (OAuth
// 2.1, RFC 7591, 7636, 8414, 9207, 9728), and a code typed in for the command
// line (RFC 8628). Clients are public and nothing of their registration is
// stored: it is sealed into the client_id.
package oauth

import (
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/token"
	"yardmaster/internal/fault"
	"yardmaster/internal/needs"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

// Paths that others point at.
const (
	// ResourcePath is what the tokens are for: the MCP endpoint.
	ResourcePath = "/v1/mcp"
	// ProtectedPath is the document that a 401 challenge of ResourcePath names
	// as its resource_metadata, behind the base address.
	ProtectedPath = "/.well-known/oauth-protected-resource" + ResourcePath

	authorizePath = "/oauth/authorize"
	tokenPath     = "/oauth/token"
	registerPath  = "/oauth/register"
	devicePath    = "/device"
	loginPath     = "/login"
)

// Lifetimes.
const (
	codeLife   = time.Minute
	ticketLife = 10 * time.Minute // how long a consent screen may stay open
	deviceLife = 10 * time.Minute
	tokenLife  = 30 * 24 * time.Hour
	pollEvery  = 3 * time.Second // of a device
)

// Needs is what programs' access stands on.
type Needs struct {
	DB   *db.DB
	Ring *seal.Keyring
	// Clients seals client_ids, which have no end. Those that Ring has sealed
	// are good while it opens them.
	Clients *seal.Keyring
	Tokens  *token.Service
	// Sessions answers who a person is in another account of theirs.
	Sessions Sessions
	// Used are the scopes that something here requires. Others are given to no
	// program: a person cannot know what they will open one day.
	Used func() policy.Set
}

// Sessions knows what browser sessions are good for.
type Sessions interface {
	// Within is who a person's session would be in another account of theirs:
	// with the rights they have there, which are none if it is not theirs.
	Within(tx *db.Tx, a policy.Actor, account string) (policy.Actor, error)
}

// Service answers the OAuth and device routes.
type Service struct{ Needs }

// New makes the service of n, which is to be whole.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// ProtectedResource describes the MCP endpoint (RFC 9728).
type ProtectedResource struct {
	Resource string   `json:"resource"`
	Name     string   `json:"resource_name"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
	Methods  []string `json:"bearer_methods_supported"`
	Docs     string   `json:"resource_documentation"`
}

// AuthorizationServer describes the authorization server (RFC 8414).
type AuthorizationServer struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Registration  string   `json:"registration_endpoint"`
	Scopes        []string `json:"scopes_supported"`
	ResponseTypes []string `json:"response_types_supported"`
	ResponseModes []string `json:"response_modes_supported"`
	GrantTypes    []string `json:"grant_types_supported"`
	AuthMethods   []string `json:"token_endpoint_auth_methods_supported"`
	Challenges    []string `json:"code_challenge_methods_supported"`
	SendsIssuer   bool     `json:"authorization_response_iss_parameter_supported"`
}

// Grant is the answer to a code that is good (RFC 6749, section 5.1).
type Grant struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int    `json:"expires_in" doc:"seconds"`
	Scope       string `json:"scope"`
}

func granted(m token.MintedToken) Grant {
	return Grant{m.Token, "Bearer", int(tokenLife.Seconds()), strings.Join(m.Scopes, " ")}
}

// grantable is what a session may pass on: what it holds and is good for
// something, less what only an operator token carries.
func (s *Service) grantable(a policy.Actor) policy.Set {
	return a.Scopes & s.Used() &^ policy.OperatorOnly
}

// narrow is what of the asked scopes (space separated, none: everything but
// rights over the whole server) the actor can pass on.
func (s *Service) narrow(asked string, a policy.Actor) (policy.Set, error) {
	ceiling := s.grantable(a)
	if strings.TrimSpace(asked) == "" {
		return ceiling &^ platform, nil
	}
	want, unknown := policy.ParseScopes(strings.Fields(asked))
	if len(unknown) > 0 {
		return 0, refuse("invalid_scope", "A scope that is asked for does not exist.")
	}
	if want &= ceiling; want == 0 {
		return 0, refuse("invalid_scope", "None of the scopes asked for can be given by this user in this account.")
	}
	return want, nil
}

// signedIn tells whether a person's browser session calls.
func signedIn(a policy.Actor) bool { return a.Credential == policy.Session && a.UserID != "" }

// refuse is a failure with an error code of RFC 6749 and its relatives, which
// is the slug of its problem type as well.
func refuse(code, description string) *fault.Error {
	return fault.New(fault.Invalid, code, description)
}

// recast puts the members of RFC 6749, section 5.2, on every problem.
func recast(f *fault.Error) *fault.Error {
	code := f.Slug
	switch {
	case rfcErrors[code]:
	case f.Kind == fault.RateLimited || f.Kind == fault.Unavailable:
		code = "temporarily_unavailable"
	case f.Kind == fault.Internal:
		code = "server_error"
	default:
		code = "invalid_request"
	}
	return f.With("error", code).With("error_description", f.Detail)
}

var rfcErrors = map[string]bool{
	"invalid_request": true, "invalid_grant": true, "invalid_client": true, "invalid_scope": true, "invalid_target": true,
	"unsupported_grant_type": true, "unsupported_response_type": true, "access_denied": true,
	"invalid_redirect_uri": true, "invalid_client_metadata": true,
	"authorization_pending": true, "slow_down": true, "expired_token": true,
}
