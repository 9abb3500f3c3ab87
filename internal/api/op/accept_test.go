package op_test

import (
	"testing"

	"yardmaster/internal/api/op"
)

func TestPrefersPage(t *testing.T) {
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/html;q=0": false, "text/html;q=x": false,
		"text/html": true, "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true,
		"application/json, text/html;q=0.5": false, "text/html, application/problem+json;q=0.9": true,
	} {
		if op.PrefersPage(accept) != want {
			t.Errorf("%q prefers a page: %v", accept, !want)
		}
	}
}
