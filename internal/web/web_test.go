package web_test

import (
	"strings"
	"testing"

	"yardmaster/internal/fault"
	"yardmaster/internal/web"
)

// TestFailure holds that a failure is shown in words, with all input escaped.
func TestFailure(t *testing.T) {
	f := fault.Field("name", "<script>is not a name")
	r, err := web.Failure(f, "r-1")
	if err != nil {
		t.Fatal(err)
	}
	body := r.Body.(string)
	if r.Status != 400 || strings.Contains(body, "<script>") {
		t.Errorf("%d %s", r.Status, body)
	}
	for _, want := range []string{"<main>", "Yardmaster", "name &lt;script&gt;is not a name", "/problems/invalid", "r-1", `rel="icon"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q:\n%s", want, body)
		}
	}
	if p := r.Header["Content-Security-Policy"]; strings.Contains(p, "unsafe") || !strings.Contains(p, "default-src 'none'") ||
		!strings.Contains(p, "form-action 'self'") {
		t.Errorf("the policy is %s", p)
	}
}
