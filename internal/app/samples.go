package app

import (
	"yardmaster/internal/api/openapi"
	"yardmaster/internal/domain/signin"
)

// credentials describe the credentials of callers, for the document.
var credentials = []openapi.Credential{
	{Name: "bearer", Doc: "A personal access token (dev_pat_…)."},
	{Name: "cookie", Cookie: signin.Cookie(false),
		Doc: "The browser's session; over https the name begins with __Host-. " +
			"The header " + accountHeader + ", with an account's id or login, says which account the call is about."},
	{Name: "oauth", Authorize: "/oauth/authorize", Token: "/oauth/token",
		Doc: "How a program gets a personal access token with its user's consent: OAuth 2.1 with PKCE (S256)."},
}

const (
	sampleMail   = "ada@example.com"
	sampleID     = "0199d3a4-5b6c-7d8e-9f01-23456789abcd"
	sampleTime   = "2026-03-14T09:26:53Z"
	sampleSHA    = "3f8a1c5e7b9d2046f8a1c5e7b9d2046f8a1c5e7b"
	sampleCursor = "eyJtIjoxfQ"
)

// samples are the values of the document's examples.
var samples = openapi.Samples{
	BaseURL: "https://yard.example.com",
	Any:     "area",
	Formats: map[string]string{
		"date-time": sampleTime, "date": "2026-03-14", "uuid": sampleID, "uri": "https://example.com/acme/web", "email": sampleMail,
	},
	Names: map[string]string{
		"id": sampleID, "request_id": sampleID, "account": "acme", "account_login": "acme", "next_cursor": sampleCursor,
		"cursor": sampleCursor,
		"owner":  "acme", "repo": "acme/web", "name": "nightly", "title": "Fix the date in the footer", "login": "ada", "email": sampleMail,
		"problem": "The footer shows last year.", "base_url": "https://models.example.com", "url": "https://example.com/acme/web",
		"sha": sampleSHA, "branch": "svc/fix-the-date--3f8a1c5e", "model": "model-1", "version": "1.4.0", "reason": "No longer needed.",
		"path": "docs/footer.md", "files": "docs/footer.md", "provider": "anthropic", "usd": "12.50", "cost": "0.0421",
		"scopes": "read:tasks",
		"org":    "acme", "body": "It says 2025.", "yml": "version: 1\n", "prompt": "Run the tests before you push.",
		"detail": "Nothing to add.",
		"type":   "about:blank",
	},
	Patterned: []string{
		"acme", "acme/web", "1", "1.00", "DEPLOY_KEY", sampleID, sampleSHA, "3f8a1c5e",
		"a3f8a1c5e7b9d2046f8a1c5e7b9d2046f8a1c5e7b9d2046f8a1c5e7b9d2046f8a", "2026-03-14", sampleTime, "BCDF-GHJK", "123456", "v1",
		"https://example.com", sampleMail, "a.b",
	},
}
