// Package oauth gives a token to a program that sees no password. A person with a
// browser session is shown the scopes that the program asks for and allows them; the
// program then fetches an ordinary personal access token. There are two ways: the
// authorization code with PKCE for MCP clients (OAuth 2.1, RFC 7591, 7636, 8414,
// 9207, 9728), and a typed code for the command line (RFC 8628). Clients are public.
// Their registration is not stored: it is sealed into the client_id.
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

// Paths that other packages and documents refer to.
const (
	// ResourcePath is the resource of the tokens: the MCP endpoint.
	ResourcePath = "/v1/mcp"
	// ProtectedPath is the path of the document that a 401 answer of ResourcePath
	// names as its resource_metadata.
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
	ticketLife = 10 * time.Minute // for a decision on the consent screen
	deviceLife = 10 * time.Minute
	tokenLife  = 30 * 24 * time.Hour
	pollEvery  = 3 * time.Second // interval of a command line's polls
)

// Needs are the dependencies of Service.
type Needs struct {
	DB   *db.DB
	Ring *seal.Keyring
	// Clients seals client_ids, which never expire. A client_id that Ring has sealed
	// is good while Ring opens it.
	Clients *seal.Keyring
	Tokens  *token.Service
	// Sessions returns the actor of a person in another of their accounts.
	Sessions Sessions
	// Used returns the scopes that some capability requires. Programs get no others,
	// because a person cannot know what these will allow one day.
	Used func() policy.Set
}

// Sessions knows the rights of browser sessions.
type Sessions interface {
	// Within returns the actor of a session in another account of its user, with the
	// rights that the user has there: none if they are no member.
	Within(tx *db.Tx, a policy.Actor, account string) (policy.Actor, error)
}

// Service implements the OAuth and device routes.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
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

// Grant is the answer to a code that was accepted (RFC 6749, section 5.1).
type Grant struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int    `json:"expires_in" doc:"seconds"`
	Scope       string `json:"scope"`
}

func granted(m token.MintedToken) Grant {
	return Grant{m.Token, "Bearer", int(tokenLife.Seconds()), strings.Join(m.Scopes, " ")}
}

// grantable returns the scopes that a session may pass on: those that it holds and
// some capability requires, without those of operator tokens.
func (s *Service) grantable(a policy.Actor) policy.Set {
	return a.Scopes & s.Used() &^ policy.OperatorOnly
}

// narrow returns those of the asked scopes, separated by spaces, that the actor can
// pass on. If none is asked for, it returns all but those over the whole platform. It
// returns the fault invalid_scope for an unknown scope, and if no scope is left.
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

// signedIn tells whether the actor is the browser session of a person.
func signedIn(a policy.Actor) bool { return a.Credential == policy.Session && a.UserID != "" }

// refuse returns a fault.Invalid whose slug is an error code of RFC 6749 or of a
// related RFC.
func refuse(code, description string) *fault.Error {
	return fault.New(fault.Invalid, code, description)
}

// withRFCMembers adds the members error and error_description of RFC 6749, section
// 5.2, to a fault.
func withRFCMembers(f *fault.Error) *fault.Error {
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
