package github

import (
	"testing"

	"yardmaster/internal/codehost"
)

// A conclusion that is not known here is a failure, as one is that GitHub invents tomorrow.
func TestConclusions(t *testing.T) {
	t.Parallel()
	for conclusion, want := range map[string][2]string{
		"success": {codehost.CheckPassed, ""}, "neutral": {codehost.CheckPassed, string(codehost.EndLeftOut)},
		"skipped": {codehost.CheckPassed, string(codehost.EndLeftOut)}, "failure": {codehost.CheckFailed, ""},
		"timed_out":       {codehost.CheckFailed, string(codehost.EndTimedOut)},
		"cancelled":       {codehost.CheckFailed, string(codehost.EndCancelled)},
		"action_required": {codehost.CheckFailed, string(codehost.EndHeld)}, "stale": {codehost.CheckFailed, ""},
	} {
		if state, end := ended(conclusion); state != want[0] || string(end) != want[1] {
			t.Errorf("%s: %s %q, want %q", conclusion, state, end, want)
		}
	}
}
