// Package version orders the names of versions, as v1.4.0 and v1.5.0-rc.1, by the rules of
// semantic versioning. A name may lack the v. One that is no such name, as dev, comes before and
// after none.
package version

import (
	"strings"

	"golang.org/x/mod/semver"
)

// Own is the version of this program, which says it before it does anything else.
var Own = "dev"

func canonical(v string) string {
	if !strings.HasPrefix(v, "v") {
		v = "v" + v
	}
	return v
}

// Valid tells whether v is the name of a version that has an order.
func Valid(v string) bool { return v != "" && semver.IsValid(canonical(v)) }

// After tells whether a comes after b.
func After(a, b string) bool {
	return Valid(a) && Valid(b) && semver.Compare(canonical(a), canonical(b)) > 0
}

// Same tells whether both name one version.
func Same(a, b string) bool {
	return Valid(a) && Valid(b) && semver.Compare(canonical(a), canonical(b)) == 0
}
