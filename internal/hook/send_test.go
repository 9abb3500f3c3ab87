package hook_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"yardmaster/internal/dial"
	"yardmaster/internal/hook"
)

// An answer that breaks off before the length that it promised is a failure, whatever its status.
func TestAnAnswerThatBreaksOffIsAFailure(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cut" {
			w.Header().Set("Content-Length", "1000")
		}
		_, _ = w.Write([]byte("yes"))
	}))
	t.Cleanup(srv.Close)
	s := hook.NewSender(dial.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}), "test", time.Now)
	for path, want := range map[string]bool{"/whole": true, "/cut": false} {
		out := s.Send(t.Context(), hook.Target{URL: srv.URL + path, Secret: "s"}, "{}")
		if out.OK() != want || out.Status != 200 || out.Excerpt != "yes" || want == (out.Why != "") {
			t.Errorf("%s: %+v", path, out)
		}
	}
}
