package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"yardmaster/internal/cli/exit"
)

// Whether a server is ready is asked without a login, and told by the exit code.
func TestDoctorAsksForHealth(t *testing.T) {
	t.Parallel()
	status, body := http.StatusOK, ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || r.Header.Get("Authorization") != "" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	for _, c := range []struct {
		status int
		body   string
		code   int
		says   string
	}{
		{200, `{"status": "ready", "checks": {"database": {"status": "ok"}}}`, 0, s.URL + " is ready\n"},
		{200, `{"status": "ready", "checks": {"mail": {"status": "degraded", "detail": "the oldest waits for 20m"}}}`, 0,
			s.URL + " is ready: mail is degraded (the oldest waits for 20m)\n"},
		{503, `{"status": "not-ready", "checks": {"storage": {"status": "failed"}, "database": {"status": "failed"}}}`, exit.CodeFailed,
			s.URL + " is not-ready: database is failed, storage is failed"},
		{503, `{"status": "stopping", "checks": {}}`, exit.CodeFailed, s.URL + " is stopping"},
		{200, `<html>welcome</html>`, exit.CodeFailed, "is no Yardmaster: 200 OK"},
	} {
		status, body = c.status, c.body
		newPerson(t, "NO_COLOR=1").holds("doctor --address "+s.URL, c.code, c.says)
	}
	newPerson(t, "NO_COLOR=1").holds("doctor --address http://127.0.0.1:1", exit.CodeNoAnswer)
	newPerson(t, "NO_COLOR=1").holds("doctor --address 127.0.0.1:8080", exit.CodeMisused, "as http://127.0.0.1:8080")
	newPerson(t, "NO_COLOR=1").holds("doctor --json ok --address "+s.URL, exit.CodeMisused, "by the exit code alone")
}
