package hosttoken

import (
	"errors"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
)

func TestAsked(t *testing.T) {
	t.Parallel()
	other := errors.New("other")
	for slug, err := range map[string]error{
		"code-host-unavailable": &codehost.BusyError{After: time.Minute, Cause: other},
		"token-refused":         &codehost.ForbiddenError{},
		"internal":              other,
	} {
		if got := fault.From(asked(err)); got.Slug != slug {
			t.Errorf("%v is told as %q, want %q", err, got.Slug, slug)
		}
	}
	if err := asked(nil); err != nil {
		t.Error(err)
	}
}

// A binding shows the first cause that keeps it from working, the token's before its own.
func TestWhy(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	was, later := now.Add(-time.Second), now.Add(time.Second)
	for name, c := range map[string]struct {
		b     binding
		t     row
		state string
	}{
		"fine":                {binding{CheckedAt: &was}, row{ExpiresAt: &later}, StateOK},
		"another token":       {binding{}, row{}, StateUnchecked},
		"ends at this moment": {binding{CheckedAt: &was}, row{ExpiresAt: &now}, StateExpired},
		"refused and expired": {binding{CheckedAt: &was}, row{ExpiresAt: &was, RefusedAt: &was}, StateRefused},
		"the repository":      {binding{CheckedAt: &was, RefusedAt: &was}, row{}, StateRefused},
		"expired, and that":   {binding{CheckedAt: &was, RefusedAt: &was}, row{ExpiresAt: &was}, StateExpired},
	} {
		state, why := c.b.why(c.t, now)
		broken := state == StateExpired || state == StateRefused
		if string(state) != c.state || (why != "") != broken {
			t.Errorf("%s: %s, %q", name, state, why)
		}
	}
}

func TestMask(t *testing.T) {
	t.Parallel()
	if got := mask("0123456789"); got != "…6789" {
		t.Errorf("masked as %q", got)
	}
}
