package oauth

import (
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/policy"
)

const (
	group = "Service and discovery"
	login = "Sign-in"
)

// Ops returns the capabilities of this package. They are public, because the session
// cookie, the sealed ticket or the code authenticates the caller.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{
			ID:        "service.oauth_protected_resource",
			AnyOrigin: true,
			Method:    "GET",
			Path:      "/.well-known/oauth-protected-resource",
			Group:     group,
			Rule:      policy.Public(),
			Lenient:   true,
			Summary:   "The MCP endpoint as a protected resource (RFC 9728)",
			Doc:       "For clients that look for what guards the MCP endpoint.",
		}, s.protectedResource),
		op.New(op.Row{
			ID:        "service.oauth_protected_resource_mcp",
			AnyOrigin: true,
			Method:    "GET",
			Path:      ProtectedPath,
			Slash:     true,
			Group:     group,
			Rule:      policy.Public(),
			Lenient:   true,
			Summary:   "The same document where a challenge of the MCP endpoint points",
			Doc:       "The address that a 401 of the MCP endpoint names in WWW-Authenticate.",
		}, s.protectedResource),
		op.New(op.Row{
			ID:        "service.oauth_authorization_server",
			AnyOrigin: true,
			Method:    "GET",
			Path:      "/.well-known/oauth-authorization-server",
			Group:     group,
			Rule:      policy.Public(),
			Lenient:   true,
			Summary:   "The authorization server's metadata (RFC 8414)",
			Doc: "For clients that look for the endpoints: authorization code with PKCE (S256), public clients alone, no " +
				"refresh tokens.",
		}, s.authorizationServer),
		op.New(op.Row{
			ID:         "service.oauth_authorize",
			Method:     "GET",
			Path:       authorizePath,
			Group:      group,
			Rule:       policy.Public(),
			Lenient:    true,
			NoStore:    true,
			AdaptFault: withRFCMembers,
			Also:       []int{303},
			Refuses:    refusals("invalid_client", "invalid_request"),
			Summary:    "The consent screen",
			Doc: "Shows the person who is signed in which program asks for which scopes, and sends them to sign in first if " +
				"need be. A client or redirect_uri that is not right is refused here; every other mistake is sent back to the " +
				"client with error and state.",
		}, s.authorize),
		op.New(op.Row{
			ID:         "service.oauth_consent",
			From:       op.OwnForms,
			Method:     "POST",
			Path:       authorizePath,
			Group:      group,
			Rule:       policy.Public(),
			Form:       true,
			NoStore:    true,
			AdaptFault: withRFCMembers,
			Status:     303,
			Refuses:    append(refusals("bad-ticket", "invalid_request"), op.Refusal{Status: 403, Slug: "cross-origin"}),
			Summary:    "Authorize or cancel, as the consent screen was answered",
			Doc: "Sends the browser back to the client, with a code that is good for 60 seconds, or with " +
				"error=access_denied. The sealed ticket of the screen is good for the session that it was shown to.",
		}, s.decide),
		op.New(op.Row{
			ID:         "service.oauth_token",
			AnyOrigin:  true,
			Method:     "POST",
			Path:       tokenPath,
			Group:      group,
			Rule:       policy.Public(),
			Form:       true,
			Lenient:    true,
			NoStore:    true,
			AdaptFault: withRFCMembers,
			Refuses:    refusals("invalid_request", "invalid_client", "invalid_grant", "unsupported_grant_type", "invalid_target"),
			Summary:    "Exchange an authorization code for a token",
			Doc: "The code is good once, with the verifier, client_id and redirect_uri that it was asked for with; " +
				"whoever brings it again ends the token it gave. The answer is a personal access token for 30 days, in the " +
				"account that the person chose; it is shown once.",
		}, s.exchange),
		op.New(op.Row{
			ID:         "service.oauth_register",
			AnyOrigin:  true,
			Method:     "POST",
			Path:       registerPath,
			Group:      group,
			Rule:       policy.Public(),
			Lenient:    true,
			NoStore:    true,
			AdaptFault: withRFCMembers,
			Status:     201,
			MaxBody:    64 << 10,
			PerAddress: 30,
			Refuses:    refusals("invalid_redirect_uri", "invalid_client_metadata"),
			Summary:    "Register a public client; nothing is stored (RFC 7591)",
			Doc: "The client_id holds all there is to know of the client; nothing is stored. Redirect addresses must be " +
				"https, or loopback.",
		}, s.register),

		op.New(op.Row{
			ID:         "auth.device",
			From:       op.OwnPages,
			Method:     "POST",
			Path:       "/auth/device",
			Group:      login,
			Rule:       policy.Public(),
			Form:       true,
			Lenient:    true,
			NoStore:    true,
			AdaptFault: withRFCMembers,
			PerAddress: 30,
			Refuses:    refusals("invalid_request", "invalid_scope"),
			Summary:    "Begin to sign in a command line (RFC 8628)",
			Doc:        "Answers a code for the program and one for its person, who enters it at verification_uri in a browser.",
		}, s.device),
		op.New(op.Row{
			ID:         "auth.device_token",
			From:       op.OwnPages,
			Method:     "POST",
			Path:       "/auth/device/token",
			Group:      login,
			Rule:       policy.Public(),
			Form:       true,
			Lenient:    true,
			NoStore:    true,
			AdaptFault: withRFCMembers,
			Refuses:    refusals("authorization_pending", "slow_down", "access_denied", "expired_token", "invalid_grant"),
			Summary:    "Ask whether the command line has been approved, and take its token",
			Doc: "Until the person has decided the answer is 400 authorization_pending; asking more often than interval " +
				"says is slow_down. The token is answered once.",
		}, s.poll),
		op.New(op.Row{
			ID:      "auth.device_page",
			Method:  "GET",
			Path:    devicePath,
			Group:   login,
			Rule:    policy.Public(),
			NoStore: true,
			Also:    []int{303},
			Summary: "Where a person enters the code of a command line",
			Doc:     "For the person who is signed in; sends others to sign in first.",
		}, s.showDevice),
		op.New(op.Row{
			ID:         "auth.device_decide",
			From:       op.OwnForms,
			Method:     "POST",
			Path:       devicePath,
			Group:      login,
			Rule:       policy.Public(),
			Form:       true,
			NoStore:    true,
			AdaptFault: withRFCMembers,
			Refuses:    append(refusals("bad-ticket", "invalid_request"), op.Refusal{Status: 403, Slug: "cross-origin"}),
			Summary:    "Approve or refuse a command line",
			Doc:        "Approving mints a personal access token, which the program takes with auth.device_token.",
		}, s.decideDevice),
	}
}

func refusals(slugs ...string) (out []op.Refusal) {
	for _, slug := range slugs {
		out = append(out, op.Refusal{Status: 400, Slug: slug})
	}
	return out
}

// cached returns an answer that clients may keep for an hour, because it changes with
// the configuration only.
func cached(body any) op.Reply {
	return op.Reply{ContentType: "application/json", Header: map[string]string{"Cache-Control": "public, max-age=3600"}, Body: body}
}

func (s *Service) protectedResource(ctx context.Context, _ op.None) (op.Reply, error) {
	base := op.RequestOf(ctx).BaseURL
	return cached(ProtectedResource{
		Resource: base + ResourcePath, Name: "Yardmaster", Servers: []string{base}, Scopes: (^policy.Set(0)).Names(),
		Methods: []string{"header"}, Docs: base + "/v1/openapi.json",
	}), nil
}

func (s *Service) authorizationServer(ctx context.Context, _ op.None) (op.Reply, error) {
	base := op.RequestOf(ctx).BaseURL
	return cached(AuthorizationServer{
		Issuer: base, Authorization: base + authorizePath, Token: base + tokenPath, Registration: base + registerPath,
		Scopes: (^policy.OperatorOnly).Names(), ResponseTypes: []string{responseCode}, ResponseModes: []string{"query"},
		GrantTypes: []string{grantCode}, AuthMethods: []string{"none"}, Challenges: []string{"S256"}, SendsIssuer: true,
	}), nil
}
