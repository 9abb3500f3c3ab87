package github

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"yardmaster/internal/codehost"
)

// CheckToken implements codehost.People. It asks GitHub whose a personal access token is, and what it may do in a
// repository; the zero Repo asks for the person alone. The grants of a fine-grained
// token cannot be read, so Push is what the person may do. CheckToken fails with
// codehost.ErrTokenRefused and *codehost.BusyError.
func (h *Host) CheckToken(ctx context.Context, token string, r codehost.Repo) (codehost.PersonToken, error) {
	if len(token) < 10 || len(token) > 1000 || !printable(token) {
		return codehost.PersonToken{}, codehost.ErrTokenRefused
	}
	auth := credential{header: "Bearer " + token}
	var user wireUser
	re, err := h.send(ctx, request{method: http.MethodGet, path: "/user", auth: auth}, &user)
	if errors.Is(err, errUnauthorized) {
		return codehost.PersonToken{}, codehost.ErrTokenRefused.Because(err)
	}
	if err != nil {
		return codehost.PersonToken{}, err
	}
	out := codehost.PersonToken{User: h.user(&user), ExpiresAt: expiry(re.header.Get("Github-Authentication-Token-Expiration"))}
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

// UpstreamAs implements codehost.People. The App alone is asked by which name the
// repository is found now.
func (h *Host) UpstreamAs(ctx context.Context, r codehost.Repo, token string) (*url.URL, string, error) {
	if err := h.ours(r); err != nil {
		return nil, "", err
	}
	at, err := h.confirmed(ctx, r)
	if err != nil {
		return nil, "", err
	}
	return h.web.JoinPath(at.Owner, at.Name+".git"), gitAuthorization(token), nil
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
