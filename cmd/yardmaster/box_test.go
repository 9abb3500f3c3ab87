package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestBoxListSaysWhatIsWrong checks that the list distinguishes a box that can carry
// out no run, shows its whole reason, and passes no control character to the
// terminal.
func TestBoxListSaysWhatIsWrong(t *testing.T) {
	long := strings.Repeat("It cannot make namespaces. ", 15) + "The end."
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/runners" {
			t.Errorf("asked for %s", r.URL)
		}
		io.WriteString(w, `{"data": [
			{"id": "1", "name": "fine", "state": "enrolled", "slots": 2, "presence": {"status": "online", "version": "1.0", "active": 1, "unfit": null}},
			{"id": "2", "name": "desk", "state": "enrolled", "slots": 2, "presence": {"status": "online", "version": "1.0", "active": 0, "unfit": "`+long+`"}},
			{"id": "3", "name": "evil\u001b[2J\nfine", "state": "enrolled", "slots": 2, "presence": {"status": "stale", "version": "1.0", "active": 0, "unfit": "x\u001b]0;y\u0007\nfine takes no work\u202e"}},
			{"id": "4", "name": "gone", "state": "enrolled", "slots": 2, "presence": {"status": "offline", "version": "1.0", "active": 0, "unfit": null}}
		]}`)
	}))
	defer server.Close()
	code, out, errs := yardmasterAt(t, server.URL, "box", "list")
	want := strings.Join([]string{
		"ID  NAME          STATE     PRESENCE  BUSY  VERSION",
		"1   fine          enrolled  online    1/2   1.0",
		"2   desk          enrolled  unfit     0/2   1.0",
		"3   evil[2J fine  enrolled  stale     0/2   1.0",
		"4   gone          enrolled  offline   0/2   1.0",
		"desk takes no work: " + long,
		"evil[2J fine takes no work: x]0;y fine takes no work",
	}, "\n") + "\n"
	if code != 0 || errs != "" || out != want {
		t.Errorf("exit code %d, %s\n%s\nwant\n%s", code, errs, out, want)
	}
}

// What the list says below its table fits the terminal, word by word.
func TestBoxListFits(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{"GET /v1/runners": `{"data": [{"id": "1", "name": "builder", "state": "enrolled", "slots": 2,
		"presence": {"status": "online", "version": "1.0", "active": 0, "unfit": "` + strings.Repeat("It has no room. ", 8) + `"},
		"capabilities": [{"name": "claude", "version": "1.0.0"}, {"name": "codex", "version": "1.0.0"}, {"name": "opencode", "version": "1.0.0"},
			{"name": "gemini", "missing": "its program is not in the folder of programs of the box"}],
		"isolation": ["namespaces"], "isolation_holds": {"namespaces": ["files", "network", "processes", "system calls", "devices", "memory"]}}]}`,
		"GET /v1/approvals": `{"data": []}`})
	for _, width := range []uint16{60, 80} {
		p := f.person(t)
		p.cols = width
		shown := p.holds("box list", 0, "builder can isolate by\n  namespaces holds files, network") +
			p.holds("pr list --waiting", 0, "Nothing waits for a yes or no.")
		for line := range strings.Lines(shown) {
			if len([]rune(strings.TrimRight(line, "\n"))) > int(width) {
				t.Errorf("at %d: %q", width, line)
			}
		}
	}
}
