package signin

import (
	"slices"
	"testing"
)

// TestReturnTo holds that the sign-in page leads to this server only.
func TestReturnTo(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/oauth/authorize?client_id=a&state=%2F": "/oauth/authorize?client_id=a&state=%2F",
		"/device":                                "/device",
		"":                                       "/",
		"device":                                 "/",
		"//evil.example":                         "/",
		"/\\evil.example":                        "/",
		"\\\\evil.example":                       "/",
		"https://evil.example":                   "/",
		"/\t/evil.example":                       "/",
		"/\n":                                    "/",
		" //evil.example":                        "/",
		"javascript:alert(1)":                    "/",
	} {
		if got := Local(path); got != want {
			t.Errorf("%q leads to %q, want %q", path, got, want)
		}
	}
}

// TestFormsAreShownAgain holds that a form of a page answers with the page what was typed in
// and is not what it asks for.
func TestFormsAreShownAgain(t *testing.T) {
	t.Parallel()
	forms := 0
	for _, o := range (&Service{}).Ops() {
		names := []string{}
		for _, f := range o.Shape().Fields {
			names = append(names, f.Name)
		}
		if !o.Form || !slices.Contains(names, "return_to") || len(names) == 1 {
			continue
		}
		if forms++; o.Again == nil {
			t.Errorf("%s answers a form that is filled in wrongly with a problem", o.ID)
		}
	}
	if forms < 6 {
		t.Errorf("only %d forms", forms)
	}
}
