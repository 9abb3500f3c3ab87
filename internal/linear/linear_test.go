package linear

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Each answer of Linear leads to the error that says what to do about it; the key goes
// nowhere but to its address.
func TestFailures(t *testing.T) {
	t.Parallel()
	const limited = `{"errors": [{"message": "Rate limit exceeded", "extensions": {"code": "RATELIMITED"}}]}`
	for name, c := range map[string]struct {
		status int
		header [2]string
		body   string
		want   func(error) bool
	}{
		"no such key":       {401, [2]string{}, `{"errors": [{"message": "no", "extensions": {"code": "AUTHENTICATION_ERROR"}}]}`, isKey},
		"no such key, 400":  {400, [2]string{}, `{"errors": [{"message": "no", "extensions": {"code": "AUTHENTICATION_ERROR"}}]}`, isKey},
		"not allowed":       {200, [2]string{}, `{"data": null, "errors": [{"message": "no", "extensions": {"code": "FORBIDDEN"}}]}`, isKey},
		"limited":           {400, [2]string{}, limited, isBusy(time.Minute)},
		"limited for long":  {400, [2]string{"Retry-After", "120"}, limited, isBusy(2 * time.Minute)},
		"limited for ever":  {429, [2]string{"Retry-After", "999999999"}, ``, isBusy(time.Hour)},
		"broken":            {502, [2]string{}, `<html>`, isBusy(0)},
		"no JSON":           {200, [2]string{}, `<html>`, isBusy(0)},
		"elsewhere":         {302, [2]string{"Location", "/other"}, ``, isBusy(0)},
		"a wrong input":     {400, [2]string{}, `{"errors": [{"message": "Argument", "extensions": {"code": "INVALID_INPUT"}}]}`, isRefused("Argument")},
		"said to people":    {200, [2]string{}, `{"errors": [{"message": "x", "extensions": {"userPresentableMessage": "No team."}}]}`, isRefused("No team.")},
		"nothing was made":  {200, [2]string{}, `{"data": {"issueCreate": {"success": false}}}`, isRefused("no issue")},
		"a status, no word": {404, [2]string{}, `{}`, isRefused("")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if calls++; calls > 1 {
					t.Errorf("a second call, to %s", r.URL)
				}
				if c.header[0] != "" {
					w.Header().Set(c.header[0], c.header[1])
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer srv.Close()
			_, err := New(srv.URL, nil).Create(t.Context(), "lin_api_the-key", Draft{ID: "1"})
			if !c.want(err) {
				t.Errorf("%v", err)
			}
			if err != nil && strings.Contains(err.Error(), "the-key") {
				t.Errorf("the key is told: %v", err)
			}
		})
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New("http://127.0.0.1:1", nil).Viewer(gone, "k"); !isBusy(0)(err) {
		t.Errorf("nobody is there: %v", err)
	}
}

func isKey(err error) bool { return errors.Is(err, ErrKey) }

func isBusy(after time.Duration) func(error) bool {
	return func(err error) bool {
		b, ok := errors.AsType[*BusyError](err)
		return ok && b.After == after
	}
}

func isRefused(why string) func(error) bool {
	return func(err error) bool {
		r, ok := errors.AsType[*RefusedError](err)
		return ok && strings.Contains(r.Why, why)
	}
}

// What Linear answers is stored and shown, so it is text, and its address a link to a page.
func TestClean(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"data": {"issueCreate": {"success": true, "issue": {"id": "1", "identifier": "E\u0000NG-7", "url": "javascript:1"}}}}`))
	}))
	defer srv.Close()
	got, err := New(srv.URL, nil).Create(t.Context(), "k", Draft{})
	if err != nil || got != (Issue{ID: "1", Identifier: "ENG-7"}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// The key of a person is sent as it is, an access token as a bearer.
func TestAuthorization(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{"lin_api_x": "lin_api_x", "lin_oauth_x": "Bearer lin_oauth_x"} {
		if got := authorization(key); got != want {
			t.Errorf("%s is sent as %s", key, got)
		}
	}
}
