package box

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What answers at the address of the server is not taken for the server, and a repository
// that a login may not read does not make the way of git a wrong one.
func TestExamine(t *testing.T) {
	t.Parallel()
	files := httptest.NewServer(http.FileServer(http.Dir(t.TempDir())))
	defer files.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/healthz":
		case strings.HasPrefix(r.URL.Path, "/git/acme/hidden.git/"):
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	const refuses = "the server answers, and refuses "
	for _, c := range []struct {
		at, repo    string
		http, git   bool
		what, still string
	}{
		{files.URL, "", false, true, "does not answer as the server does: ", "404"},
		{"http://127.0.0.1:1", "", false, false, "cannot be reached: ", "git goes another way"},
		{server.URL, "", true, true, server.URL + " answers", "does not exist, as it should"},
		{server.URL, server.URL + "/git/acme/hidden.git", true, false, refuses, "yardmaster repo view shows how"},
		{server.URL, server.URL + "/git/acme/gone.git", true, false, refuses, "yardmaster repo view shows how"},
	} {
		all := Examine(t.Context(), Identity{ServerURL: c.at, NATSURL: "nats://127.0.0.1:1"}, Remote{URL: c.repo, Token: "t"})
		said := ""
		for _, check := range all {
			said += check.What + "\n" + check.Then + "\n"
		}
		if all[0].OK != c.http || all[1].OK || all[2].OK != c.git || !strings.Contains(said, c.what) || !strings.Contains(said, c.still) {
			t.Errorf("%s, %s: %+v", c.at, c.repo, all)
		}
	}
}
