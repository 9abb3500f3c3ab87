package app

import (
	"strings"
	"testing"

	"yardmaster/internal/policy"
)

// A scope says whether it opens anything: its words tell that nothing needs it exactly while
// no capability asks for it.
func TestScopesThatOpenNothingSaySo(t *testing.T) {
	t.Parallel()
	needed := map[string]bool{}
	for _, o := range Ops() {
		for _, scope := range o.Rule.Names() {
			needed[scope] = true
		}
	}
	// What a scope opens besides capabilities: git, by the scopes of repositories.
	for _, scope := range []policy.Scope{policy.ReadRepos, policy.WriteRepos} {
		needed[string(scope)] = true
	}
	for _, scope := range policy.Vocabulary() {
		if says := strings.HasSuffix(scope.Words(), "(nothing needs it yet)"); says == needed[string(scope)] {
			t.Errorf("%s is needed: %v, and its words are %q", scope, needed[string(scope)], scope.Words())
		}
	}
}
