package cli

import (
	"testing"

	"yardmaster/internal/cli/exit"
)

// What --dry-run shows would be filed, and what the server refuses is refused by it in the same words; nothing is sent
// that changes something.
func TestDryRunOfATask(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{
		"GET /v1/repos/acme/web":    `{"full_name": "acme/web", "enabled": true}`,
		"GET /v1/repos/acme/off":    `{"full_name": "acme/off", "enabled": false}`,
		"GET /v1/templates/careful": `{"name": "careful"}`,
	})
	p := f.person(t)
	p.holds("task create --repo acme/web --template careful --budget 2 --dry-run 'Mend the parser.'", 0,
		"careful", "Mend the parser.", "Nothing was filed")
	p.holds("task create --repo acme/off --dry-run 'Mend it.'", exit.CodeFailed, "acme/off takes no tasks")
	p.holds("task create --repo acme/web --template other --dry-run 'Mend it.'", exit.CodeNotFound, "There is no such thing.")
	p.holds("task create --repo acme/web --budget=-3 --priority 1000 --dry-run 'Mend it.'", exit.CodeRefused,
		"The request has invalid fields. (400 invalid)", "budget_usd: must be at least 0.01", "priority: must be at most 100",
		"!Nothing was filed")
	if f.was("POST ") {
		t.Errorf("it sends %q", f.calls)
	}
}
