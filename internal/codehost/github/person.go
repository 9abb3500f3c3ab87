package github

import (
	"context"
	"errors"
	"net/http"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
)

// ErrTokenRefused says that GitHub does not take the token of a person.
var ErrTokenRefused = fault.Field("token", "is not accepted by GitHub: it has expired, was revoked, or is not one")

// PersonToken is what is known of the token of a person.
type PersonToken struct {
	User      codehost.User
	ExpiresAt *time.Time // nil: never, or GitHub does not say
	Read      bool       // it may read the repository that was asked about
	Push      bool       // and push to it
}

// CheckToken asks GitHub whose a personal access token is, and what it may do in a
// repository; the zero Repo asks for the person alone. The grants of a fine-grained
// token cannot be read, so Push is what the person may do. CheckToken fails with
// ErrTokenRefused and *codehost.BusyError.
func (h *Host) CheckToken(ctx context.Context, token string, r codehost.Repo) (PersonToken, error) {
	if len(token) < 10 || len(token) > 1000 || !printable(token) {
		return PersonToken{}, ErrTokenRefused
	}
	auth := credential{header: "Bearer " + token}
	var user wireUser
	re, err := h.send(ctx, request{method: http.MethodGet, path: "/user", auth: auth}, &user)
	if errors.Is(err, errUnauthorized) {
		return PersonToken{}, ErrTokenRefused.Because(err)
	}
	if err != nil {
		return PersonToken{}, err
	}
	out := PersonToken{User: h.user(&user), ExpiresAt: expiry(re.header.Get("Github-Authentication-Token-Expiration"))}
	if r == (codehost.Repo{}) {
		return out, nil
	}
	if err := h.ours(r); err != nil {
		return out, err
	}
	var repo wireRepo
	_, err = h.send(ctx, request{method: http.MethodGet, path: byID(r), auth: auth}, &repo)
	var forbidden *codehost.ForbiddenError
	if errors.Is(err, codehost.ErrNotFound) || errors.As(err, &forbidden) {
		return out, nil
	}
	if _, other := refused(err, http.StatusForbidden); other { // such as single sign-on of the organisation
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if r.ID == "" || h.repo(repo).ID == r.ID {
		out.Read, out.Push = true, repo.Permissions.Push && !repo.Archived
	}
	return out, nil
}

// printable tells whether a text may stand in a header.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// expiry reads the header with the end of a token, in either of the forms that GitHub
// writes.
func expiry(s string) *time.Time {
	for _, layout := range []string{"2006-01-02 15:04:05 MST", "2006-01-02 15:04:05 -0700"} {
		if t, err := time.Parse(layout, s); err == nil {
			t = t.UTC()
			return &t
		}
	}
	return nil
}
