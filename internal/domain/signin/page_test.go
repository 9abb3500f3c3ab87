package signin

import "testing"

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
