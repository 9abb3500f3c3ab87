package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestBoxListSaysWhatIsWrong checks that the list distinguishes a box that can carry
// out no run, shows its whole reason, keeps boxes of other accounts apart, and passes
// no control character to the terminal.
func TestBoxListSaysWhatIsWrong(t *testing.T) {
	long := strings.Repeat("It cannot make namespaces. ", 15) + "The end."
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/runners" {
			t.Errorf("asked for %s", r.URL)
		}
		if r.URL.Query().Get("filter") == "outside:true" {
			io.WriteString(w, `{"data": [{"id": "5", "name": "far\u001b[2J", "presence": {"status": "online", "active": 1},
				"outside": {"account": "rival", "right": "consent", "agreed_at": "2026-01-02T03:04:05Z", "given": ["brief", "code"]}},
				{"id": "6", "name": "all", "presence": {"status": "offline", "active": 0},
				"outside": {"account": "host", "right": "shared", "agreed_at": null, "given": ["brief", "code"]}}]}`)
			return
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
		"",
		"Boxes of other accounts that may take work of this one",
		"ID  NAME    ACCOUNT  PRESENCE  OF YOURS  WHY",
		"5   far[2J  rival    online    1         its owner agreed 2026-01-02",
		"6   all     host     offline   0         shared with every account",
		"Each is given, for what it takes: brief, code. A check gets no model token.",
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
