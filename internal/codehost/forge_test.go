package codehost

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"yardmaster/internal/fault"
)

// TestFailuresAreFaults holds that a failure of a host that reaches a caller of this
// server says what can be done, and that it is still found as what it is.
func TestFailuresAreFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		kind   fault.Kind
		slug   string
		after  time.Duration
		detail string
	}{
		"busy": {
			&BusyError{After: time.Minute, Cause: ErrNotFound}, fault.Unavailable, "code-host-busy", time.Minute,
			"The code host does not answer now. Try again later.",
		},
		"forbidden": {
			errors.Join(&ForbiddenError{Permission: "workflows: write"}, errors.New("403")), fault.Unavailable, "code-host-permission", 0,
			`The App of this server lacks the permission "workflows: write" at the code host.`,
		},
		"blocked": {
			&BlockedError{Missing: []string{"one", "two"}}, fault.Conflict, "code-host-rule", 0,
			"A rule of the code host is not met: one; two",
		},
	} {
		f := fault.From(fmt.Errorf("merge: %w", c.err))
		if f.Kind != c.kind || f.Slug != c.slug || f.RetryAfter != c.after || f.Detail != c.detail {
			t.Errorf("%s: %+v", name, f)
		}
	}
	busy, is := errors.AsType[*BusyError](fmt.Errorf("x: %w", &BusyError{After: time.Second}))
	if !is || busy.After != time.Second {
		t.Errorf("found %+v", busy)
	}
}
