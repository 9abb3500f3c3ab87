package github

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
)

// TestFailures holds what the answers of GitHub from 400 on mean. The texts are those
// that people have seen.
func TestFailures(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	h := &Host{cfg: Config{Now: func() time.Time { return now }}}
	const message = `{"message": "%", "documentation_url": "https://docs.github.com/rest", "status": "403"}`
	for name, c := range map[string]struct {
		status int
		header map[string]string
		says   string
		want   string
	}{
		"a permission": {403, map[string]string{"X-Accepted-GitHub-Permissions": "contents=write; workflows=write, contents=write"},
			"Resource not accessible by integration", `permission "contents: write, workflows: write"`},
		"of a person":     {403, nil, "Resource not accessible by personal access token", `permission "issues: read"`},
		"a workflow":      {403, nil, "refusing to allow a GitHub App to create or update workflow `.github/workflows/a.yml` without `workflows` permission", `permission "workflows: write"`},
		"archived":        {403, nil, "Repository was archived so is read-only.", "gone"},
		"suspended":       {403, nil, "This installation has been suspended", "gone"},
		"blocked by law":  {451, nil, "Repository access blocked", "gone"},
		"secondary":       {403, nil, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.", "limit 1m0s"},
		"secondary, said": {403, map[string]string{"Retry-After": "17"}, "You have exceeded a secondary rate limit", "limit 17s"},
		"too many":        {429, nil, "", "limit 1m0s"},
		"primary": {
			403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1777889400"},
			"API rate limit exceeded for installation ID 7.", "limit 10m0s",
		},
		"primary, ended": {
			429, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1777888000"},
			"API rate limit exceeded", "limit 1s",
		},
		"down":        {502, nil, "Server Error", "busy 0s"},
		"down, said":  {503, map[string]string{"Retry-After": "120"}, "down for maintenance", "busy 2m0s"},
		"credentials": {401, nil, "Bad credentials", "unauthorized"},
		"hidden":      {404, nil, "Not Found", "not found"},
		"no commit":   {422, nil, "No commit found for SHA: 1111", "not found"},
		"another 403": {403, nil, "Must have admin rights to Repository.", "refusal 403"},
		"a rule":      {405, nil, "At least 1 approving review is required", "refusal 405"},
	} {
		header := http.Header{}
		for k, v := range c.header {
			header.Set(k, v)
		}
		err := h.failure(c.status, header, []byte(strings.Replace(message, "%", c.says, 1)), permissions{"issues": "read"})
		if got := kindOf(err); got != c.want {
			t.Errorf("%s: %s, want %s (%v)", name, got, c.want, err)
		}
	}
	err := h.failure(
		422,
		nil,
		[]byte(`{"message": "Validation Failed", "errors": ["plain", {"resource": "Issue", "field": "title", "code": "missing"}, 7]}`),
		nil,
	)
	e, _ := refused(err, 422)
	if e == nil || !slices.Equal(e.Errors, []string{"plain", "title missing"}) || !e.says("TITLE missing") {
		t.Errorf("errors of fields: %+v", err)
	}
	if got := kindOf(h.failure(502, nil, []byte("<html><h1>Unicorn!</h1></html>"), nil)); got != "busy 0s" {
		t.Errorf("a page of HTML: %s", got)
	}
}

// kindOf names what an error is.
func kindOf(err error) string {
	if busy, is := errors.AsType[*codehost.BusyError](err); is {
		return map[bool]string{true: "limit ", false: "busy "}[busy.Limit] + busy.After.String()
	}
	if f, is := errors.AsType[*codehost.ForbiddenError](err); is {
		return `permission "` + f.Permission + `"`
	}
	if b, is := errors.AsType[*codehost.BlockedError](err); is {
		return "blocked by " + strings.Join(b.Missing, "; ")
	}
	for name, one := range map[string]error{
		"unauthorized": errUnauthorized, "moved": errMoved, "head moved": codehost.ErrHeadMoved,
	} {
		if errors.Is(err, one) {
			return name
		}
	}
	switch f, _ := errors.AsType[*fault.Error](err); {
	case errors.Is(err, codehost.ErrGone):
		return "gone"
	case f != nil && f.Kind == fault.NotFound:
		return "not found"
	}
	if e, is := errors.AsType[*Refusal](err); is {
		return "refusal " + number(int64(e.Status))
	}
	return "final"
}

// TestFailuresOfGit holds what git's texts mean.
func TestFailuresOfGit(t *testing.T) {
	t.Parallel()
	h := &Host{}
	const access = "fatal: unable to access 'https://github.com/a/b.git/': "
	for said, want := range map[string]string{
		access + "The requested URL returned error: 401":                                       "unauthorized",
		"fatal: could not read Username for 'https://github.com': terminal prompts disabled":   "unauthorized",
		"remote: Invalid username or token.\nfatal: Authentication failed for 'https://x/'":    "unauthorized",
		"remote: Repository not found.\nfatal: repository 'https://github.com/a/b/' not found": "moved",
		access + "The requested URL returned error: 301":                                       "moved",
		access + "The requested URL returned error: 403":                                       `permission ""`,
		access + "The requested URL returned error: 503":                                       "busy 0s",
		access + "Could not resolve host: github.com":                                          "busy 0s",
		"error: RPC failed; curl 56 OpenSSL SSL_read\nearly EOF":                               "busy 0s",
		"fatal: remote error: upload-pack: not our ref 1111":                                   "not found",
		"remote: This repository was archived so it is read-only.":                             "gone",
		"! refs/heads/a [rejected] (stale info)":                                               "head moved",
		"fatal: fsck error in packed object":                                                   "final",
		"! [remote rejected] a -> a (refusing to allow a GitHub App to create or update workflow `.github/workflows/x.yml` without `workflows` permission)": `permission "workflows: write"`,
	} {
		if got := kindOf(h.gitFailure(errors.New("git fetch: exit 128: "+said), "")); got != want {
			t.Errorf("%q: %s, want %s", said, got, want)
		}
	}
	out := "To https://github.com/a/b.git\n!\trefs/heads/a:refs/heads/a\t[remote rejected] (protected branch hook declined)\nDone\n"
	err := h.gitFailure(errors.New("remote: error: GH006: Protected branch update failed"), out)
	if got := kindOf(err); got != "blocked by [remote rejected] (protected branch hook declined)" {
		t.Errorf("a protected branch: %s", got)
	}
}
