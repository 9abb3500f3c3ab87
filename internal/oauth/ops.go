package oauth

import (
	"context"

	"yardmaster/internal/op"
	"yardmaster/internal/policy"
)

const (
	group = "Service and discovery"
	login = "Sign-in"
)

// Ops are the capabilities of this package. They are public: the session
// cookie, the sealed ticket or the code is what authenticates.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "service.oauth_protected_resource", AnyOrigin: true, Method: "GET", Path: "/.well-known/oauth-protected-resource", Group: group, Rule: policy.Public(), Lenient: true,
			Summary: "The MCP endpoint as a protected resource (RFC 9728)"}, s.protectedResource),
		op.New(op.Row{ID: "service.oauth_protected_resource_mcp", AnyOrigin: true, Method: "GET", Path: ProtectedPath, Group: group, Rule: policy.Public(), Lenient: true,
			Summary: "The same document where a challenge of the MCP endpoint points"}, s.protectedResource),
		op.New(op.Row{ID: "service.oauth_authorization_server", AnyOrigin: true, Method: "GET", Path: "/.well-known/oauth-authorization-server", Group: group, Rule: policy.Public(), Lenient: true,
			Summary: "The authorization server's metadata (RFC 8414)"}, s.authorizationServer),
		op.New(op.Row{ID: "service.oauth_authorize", Method: "GET", Path: authorizePath, Group: group, Rule: policy.Public(), Lenient: true, NoStore: true, Recast: recast,
			Also: []int{303}, Refuses: refusals("invalid_client", "invalid_request"),
			Summary: "The consent screen"}, s.authorize),
		op.New(op.Row{ID: "service.oauth_consent", Method: "POST", Path: authorizePath, Group: group, Rule: policy.Public(), Form: true, NoStore: true, Recast: recast,
			Status: 303, Refuses: refusals("bad-ticket", "invalid_request"),
			Summary: "Authorize or cancel, as the consent screen was answered"}, s.decide),
		op.New(op.Row{ID: "service.oauth_token", AnyOrigin: true, Method: "POST", Path: tokenPath, Group: group, Rule: policy.Public(), Form: true, Lenient: true, NoStore: true, Recast: recast,
			Refuses: refusals("invalid_request", "invalid_client", "invalid_grant", "unsupported_grant_type", "invalid_target"),
			Summary: "Exchange an authorization code for a token"}, s.exchange),
		op.New(op.Row{ID: "service.oauth_register", AnyOrigin: true, Method: "POST", Path: registerPath, Group: group, Rule: policy.Public(), Lenient: true, NoStore: true, Recast: recast,
			Status: 201, MaxBody: 64 << 10, PerAddress: 30, Refuses: refusals("invalid_redirect_uri", "invalid_client_metadata"),
			Summary: "Register a public client; nothing is stored (RFC 7591)"}, s.register),

		op.New(op.Row{ID: "auth.device", From: op.OwnPages, Method: "POST", Path: "/auth/device", Group: login, Rule: policy.Public(), Form: true, Lenient: true, NoStore: true, Recast: recast,
			PerAddress: 30, Refuses: refusals("invalid_request", "invalid_scope"),
			Summary: "Begin to sign in a command line (RFC 8628)"}, s.device),
		op.New(op.Row{ID: "auth.device_token", From: op.OwnPages, Method: "POST", Path: "/auth/device/token", Group: login, Rule: policy.Public(), Form: true, Lenient: true, NoStore: true, Recast: recast,
			Refuses: refusals("authorization_pending", "slow_down", "access_denied", "expired_token", "invalid_grant"),
			Summary: "Ask whether the command line has been approved, and take its token"}, s.poll),
		op.New(op.Row{ID: "auth.device_page", Method: "GET", Path: devicePath, Group: login, Rule: policy.Public(), NoStore: true, Also: []int{303},
			Summary: "Where a person enters the code of a command line"}, s.showDevice),
		op.New(op.Row{ID: "auth.device_decide", Method: "POST", Path: devicePath, Group: login, Rule: policy.Public(), Form: true, NoStore: true, Recast: recast,
			Refuses: refusals("bad-ticket", "invalid_request"),
			Summary: "Approve or refuse a command line"}, s.decideDevice),
	}
}

func refusals(slugs ...string) (out []op.Refusal) {
	for _, slug := range slugs {
		out = append(out, op.Refusal{Status: 400, Slug: slug})
	}
	return out
}

// cached lets clients keep what changes with the configuration only.
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
