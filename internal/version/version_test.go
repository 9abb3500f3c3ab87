package version

import "testing"

// A later version comes after an earlier one and never the other way round; what is no version
// has no place.
func TestOrder(t *testing.T) {
	t.Parallel()
	all := []string{"v0.9.0", "1.0.0-rc.1", "v1.0.0-rc.2", "v1.0.0", "1.0.1", "v1.10.0", "v2.0.0"}
	for i, a := range all {
		for j, b := range all {
			if After(a, b) != (i > j) || Same(a, b) != (i == j) {
				t.Errorf("%s after %s: %v, same: %v", a, b, After(a, b), Same(a, b))
			}
		}
		for _, none := range []string{"", "dev", "v", "1.x", "v1.0.0.0"} {
			if Valid(none) || After(a, none) || After(none, a) || Same(none, none) {
				t.Errorf("%q has a place beside %s", none, a)
			}
		}
	}
	if !Same("1.0.0", "v1.0.0") {
		t.Error("the v makes a difference")
	}
}
