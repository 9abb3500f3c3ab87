package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"yardmaster/internal/cli/exit"
)

// People write nouns in the plural and ls for list; words of commands stay what they are.
func TestOtherSpellings(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"tasks": "task list", "tasks --mine": "task list --mine", "tasks -h": "task -h", "tasks ls": "task list",
		"task ls -w": "task list -w",
		"boxes":      "box list", "prs view 3": "pr view 3", "inbox": "notification list", "keys list": "keys list", "keys": "keys",
		"keys ls": "keys list", "help boxes": "help box", "__complete tasks l": "__complete task l", "ls": "ls", "": "",
		"task create ls": "task create ls", "--context x tasks": "--context x tasks",
	} {
		if got := strings.Join(commandLine().Spelled(strings.Fields(line)), " "); got != want {
			t.Errorf("%q is %q, want %q", line, got, want)
		}
	}
	for _, c := range commands() { // what there is, is not spelled otherwise
		if got := strings.Join(commandLine().Spelled(strings.Fields(c.Words)), " "); got != c.Words {
			t.Errorf("%q becomes %q", c.Words, got)
		}
	}
}

// The log of a server is named where something has failed there; a refusal says all there is to know, whatever its
// status, and wrong fields need no number of the request.
func TestTheLogIsNamedWhereItHasTheCause(t *testing.T) {
	t.Parallel()
	for slug, want := range map[string]string{"internal": "The server's log has the cause", "unavailable": "The server's log has the cause",
		"linear-busy": "request_id=r1", "no-signing-key": "request_id=r1", "invalid": ""} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			status, errs := http.StatusServiceUnavailable, ""
			if slug == "invalid" {
				status, errs = http.StatusBadRequest, `, "errors": {"kind": ["is none"]}`
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"type": "/problems/` + slug + `", "status": 503, "detail": "No.", "request_id": "r1"` + errs + `}`))
		}))
		code, _, errs := yardmasterAt(t, h.URL, "call", "task.cancel", "id="+someID)
		h.Close()
		if _, after, _ := strings.Cut(errs, "\n"); code == 0 || want != "" && !strings.Contains(after, want) ||
			strings.Contains(after, "log has") != strings.Contains(want, "log has") || want == "" && strings.Contains(after, "r1") {
			t.Errorf("%s: exit code %d\n%s", slug, code, errs)
		}
	}
	code, _, errs := yardmasterAt(t, "http://127.0.0.1:1", "task", "list", "--since", "soon")
	if code != exit.CodeMisused || !strings.Contains(errs, "2d or 10m") {
		t.Errorf("%d: %s", code, errs)
	}
}
