package hook

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestHeaders holds that an attempt has the headers of its own that receivers are told
// of, and no other.
func TestHeaders(t *testing.T) {
	t.Parallel()
	var got http.Header
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer receiver.Close()
	s := &Sender{version: "1", clock: time.Now, http: receiver.Client()}
	if out := s.Send(t.Context(), Target{URL: receiver.URL, Secret: "s"}, "{}"); !out.OK() {
		t.Fatal(out)
	}
	for name := range Headers() {
		if got.Get(name) == "" {
			t.Errorf("an attempt lacks %s", name)
		}
	}
	for name := range got {
		if _, said := Headers()[name]; strings.HasPrefix(name, "X-") && !said {
			t.Errorf("nobody is told of %s", name)
		}
	}
}
