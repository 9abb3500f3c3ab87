package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A head that nobody has reviewed is said to be not reviewed, in the list and by itself, and one
// whose review is held is said to wait.
func TestUnreviewedPull(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{"off": "not reviewed", "held": "review held"} {
		saysOfReview(t, state, want)
	}
}

func saysOfReview(t *testing.T, state, want string) {
	t.Helper()
	const id = "3e327a16-1a1e-4636-a707-98e1e51d64e4"
	pr := `{"id": "` + id + `", "repo": "acme/web", "number": 7, "title": "Fix it", "state": "open", "checks": "passed",
		"head_sha": "0123456789abcdef", "review": {"state": "` + state + `", "verdict": null, "holding": 0}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		text := `{"data": [` + pr + `], "next_cursor": null}`
		switch {
		case strings.HasSuffix(r.URL.Path, "/diff"):
			text = `{"files": []}`
		case strings.HasSuffix(r.URL.Path, id):
			text = pr
		}
		_, _ = io.WriteString(w, text)
	}))
	defer server.Close()
	for _, args := range [][]string{{"pr", "list", "--repo", "acme/web"}, {"pr", "view", id}} {
		_, out, errs := yardmasterAt(t, server.URL, args...)
		if !strings.Contains(out, want) {
			t.Errorf("%v shows\n%s%s", args, out, errs)
		}
	}
}
