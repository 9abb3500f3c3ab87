package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/cli/exit"
)

// An operator token is printed alone, so that a shell can keep it; the session that issued
// it is ended; and no login is overwritten by it.
func TestOperatorToken(t *testing.T) {
	var asked []string
	refuse := false
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		var in struct {
			Login, Password, Name string
			Scopes                []string
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		switch r.URL.Path {
		case "/auth/password":
			if in.Login != "ada" || in.Password != "correct horse" {
				t.Errorf("signed in with %+v", in)
			}
			http.SetCookie(w, &http.Cookie{Name: "svc_session", Value: "s", Path: "/"})
		case "/v1/admin/operator-tokens":
			if _, err := r.Cookie("svc_session"); err != nil || r.Header.Get("Authorization") != "" {
				t.Errorf("issued with %v", r.Header)
			}
			if refuse {
				w.WriteHeader(http.StatusForbidden)
				_, _ = w.Write([]byte(`{"type": "http://x/problems/missing-scope", "status": 403, "detail": "It lacks one.", "missing_scopes": ["admin:read:platform"]}`))
				return
			}
			if !slices.Equal(in.Scopes, []string{"admin:accounts", "admin:goals"}) || in.Name == "" {
				t.Errorf("asked for %+v", in)
			}
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{"token": "dev_pat_x", "scopes": ["admin:accounts", "admin:goals"], "expires_iso": "2026-05-04T10:00:00Z"}`))
		}
	}))
	defer h.Close()
	args := []string{"operator", "token", "--login", "ada", "--scopes", "admin:accounts,admin:goals"}
	code, out, errs := yardmasterTold(t, "correct horse\n", h.URL, args...)
	if code != 0 || out != "dev_pat_x\n" || !strings.Contains(errs, "admin:goals") || strings.Contains(errs, "dev_pat_x") {
		t.Errorf("%d %q\n%s", code, out, errs)
	}
	if want := []string{"/auth/password", "/v1/admin/operator-tokens", "/auth/logout"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q", asked)
	}
	asked, refuse = nil, true
	code, out, errs = yardmasterTold(t, "correct horse\n", h.URL, args...)
	if code != exit.CodeRefused || out != "" || !strings.Contains(errs, "It lacks one.") || !slices.Contains(asked, "/auth/logout") {
		t.Errorf("nobody's operator: %d %q\n%s", code, out, errs)
	}
	for _, args := range [][]string{{"--scopes", "admin:goals"}, {"--login", "ada", "--scopes", ","}} {
		if code, _, errs := yardmasterTold(t, "x\n", h.URL, append([]string{"operator", "token"}, args...)...); code != exit.CodeMisused {
			t.Errorf("%q: %d %s", args, code, errs)
		}
	}
}
