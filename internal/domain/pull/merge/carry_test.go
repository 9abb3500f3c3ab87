package merge

import (
	"testing"

	"yardmaster/internal/domain/pull/record"
)

// Files that decide what runs, or who is asked, are approved for one commit only.
func TestGuardedFilesAreNotCarried(t *testing.T) {
	t.Parallel()
	for _, path := range []string{".github/workflows/ci.yml", "docs/CODEOWNERS", ".svc/policy.yml", ".GitHub/Workflows/x"} {
		if Carries(Decided{"main", 1, "c", ""}, Moved{Decided: Decided{"main", 1, "c", ""}, Paths: []string{"a", path}}) {
			t.Errorf("%s is carried", path)
		}
	}
}

// What else forbids that a decision is carried, one at a time.
func TestCarries(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Decided, *Moved){
		"":                            func(*Decided, *Moved) {},
		"another base":                func(_ *Decided, m *Moved) { m.BaseRef = "next" },
		"another change":              func(_ *Decided, m *Moved) { m.Change = "d" },
		"an unknown change":           func(d *Decided, m *Moved) { d.Change, m.Change = "", "" },
		"two merge bases then":        func(d *Decided, _ *Moved) { d.MergeBases = 2 },
		"two merge bases now":         func(_ *Decided, m *Moved) { m.MergeBases = 2 },
		"no common history":           func(_ *Decided, m *Moved) { m.MergeBases = 0 },
		"an order of the policy":      func(d *Decided, _ *Moved) { d.By = record.ByPolicy },
		"the approver pushed":         func(_ *Decided, m *Moved) { m.LastPush, m.By = true, "user:ada" },
		"nobody knows who pushed":     func(_ *Decided, m *Moved) { m.LastPush, m.By = true, "" },
		"the approver may be it":      func(_ *Decided, m *Moved) { m.LastPush, m.Same = true, true },
		"never":                       func(_ *Decided, m *Moved) { m.Carry = "never" },
		"a path the account protects": func(_ *Decided, m *Moved) { m.Floors.Protected = []string{"a"} },
	} {
		d := Decided{BaseRef: "main", MergeBases: 1, Change: "c", By: "user:ada"}
		m := Moved{Decided: Decided{BaseRef: "main", MergeBases: 1, Change: "c", By: "user:ann"}, Paths: []string{"a"}, Carry: "rebase"}
		change(&d, &m)
		if Carries(d, m) != (name == "") {
			t.Errorf("%q: carried %t", name, Carries(d, m))
		}
	}
}
