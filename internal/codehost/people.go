package codehost

import (
	"context"
	"net/url"
	"time"

	"yardmaster/internal/fault"
)

// ErrTokenRefused says that a host does not take the token of a person.
var ErrTokenRefused = tokenRefused()

func tokenRefused() *fault.Error {
	e := fault.Field("token", "is not accepted by the code host: it has expired, was revoked, or is not one")
	e.Slug = "token-refused"
	return e
}

// PersonToken is what is known of the token of a person.
type PersonToken struct {
	User      User
	ExpiresAt *time.Time // nil: never, or the host does not say
	Read      bool       // it may read the repository that was asked about
	Push      bool       // and push to it
}

// People is how a host is asked about tokens of people, and how its git is reached with
// one. It is safe for concurrent use.
type People interface {
	// CheckToken asks whose a token is, and what it may do in a repository; the zero
	// Repo asks for the person alone. It fails with ErrTokenRefused and *BusyError.
	CheckToken(ctx context.Context, token string, r Repo) (PersonToken, error)
	// UpstreamAs is GitAccess.Upstream for the token of a person. The host is not
	// asked whether the token is good.
	UpstreamAs(ctx context.Context, r Repo, token string) (address *url.URL, authorization string, err error)
}

// Refuser is a GitAccess whose credential cannot be renewed, so that a refusal of the
// host ends the request.
type Refuser interface {
	// Refused is told that the host refused the credential altogether, or the repository
	// to it, and returns the error for the client.
	Refused(ctx context.Context, r Repo, credential bool) error
}
