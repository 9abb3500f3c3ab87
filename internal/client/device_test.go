package client

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// served answers requests in the process, so that the test controls time.
type served struct{ http.Handler }

func (s served) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), nil
}

// deviceServer answers polls with the problems given, and then with a token.
func deviceServer(polls *[]time.Duration, slugs ...string) http.Handler {
	start := time.Now()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /auth/device", func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`{"device_code": "d", "user_code": "BCDF-GHJK", "verification_uri": "http://y/device", "verification_uri_complete": "http://y/device?user_code=BCDF-GHJK", "interval": 3}`))
	})
	mux.HandleFunc("POST /auth/device/token", func(w http.ResponseWriter, _ *http.Request) {
		n := len(*polls)
		*polls = append(*polls, time.Since(start))
		if n < len(slugs) {
			w.WriteHeader(400)
			w.Write([]byte(`{"type": "http://y/problems/` + slugs[n] + `", "status": 400, "detail": "No."}`))
			return
		}
		w.Write([]byte(`{"access_token": "t", "token_type": "Bearer"}`))
	})
	return mux
}

func TestSignInByDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var polls []time.Duration
		var shown Approval
		c := &Client{URL: "http://y", HTTP: &http.Client{Transport: served{deviceServer(&polls, "authorization_pending", "slow_down")}}}
		if err := c.SignInByDevice(t.Context(), func(a Approval) { shown = a }); err != nil || c.Token != "t" {
			t.Fatalf("token %q, %v", c.Token, err)
		}
		if shown.UserCode != "BCDF-GHJK" || shown.Complete != "http://y/device?user_code=BCDF-GHJK" {
			t.Errorf("shown: %+v", shown)
		}
		want := []time.Duration{3 * time.Second, 6 * time.Second, 14 * time.Second}
		if len(polls) != 3 || polls[0] != want[0] || polls[1] != want[1] || polls[2] != want[2] {
			t.Errorf("polls at %v, want %v", polls, want)
		}
	})
}

func TestSignInByDeviceRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var polls []time.Duration
		c := &Client{URL: "http://y", HTTP: &http.Client{Transport: served{deviceServer(&polls, "authorization_pending", "access_denied")}}}
		var p *Problem
		if err := c.SignInByDevice(t.Context(), func(Approval) {}); !errors.As(err, &p) || p.Slug() != "access_denied" || c.Token != "" {
			t.Errorf("token %q, %v", c.Token, err)
		}
	})
}
