package signin

import "testing"

// The sign-in page leads nowhere but to this server.
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
