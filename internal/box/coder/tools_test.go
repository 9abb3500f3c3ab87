package coder

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/box/acp"
)

func newSession(t *testing.T) *session {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return &session{agent: &agent{cfg: config{shellEnv: os.Environ()}}, cwd: dir, root: root}
}

func (s *session) put(t *testing.T, path, content string) {
	t.Helper()
	path = filepath.Join(s.cwd, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (s *session) use(ctx context.Context, name, args string) (string, error) {
	for _, tool := range tools {
		if tool.name == name {
			act, err := tool.parse(s, []byte(args))
			if err != nil {
				return "", err
			}
			out, err := act.do(ctx)
			return out.text, err
		}
	}
	return "", errors.New("no such tool")
}

func TestNoToolLeavesTheWorkingDirectory(t *testing.T) {
	s := newSession(t)
	outside := t.TempDir()
	if err := os.WriteFile(outside+"/secret", []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"dir": outside, "file": outside + "/secret", "up": ".."} {
		if err := os.Symlink(target, filepath.Join(s.cwd, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"../x", "a/../../x", outside + "/secret", "dir/secret", "file", "up/x", "/etc/passwd", ""} {
		for tool, args := range map[string]string{
			"read": `{"path":%q}`, "edit": `{"path":%q,"old_string":"","new_string":"x"}`, "search": `{"pattern":"s","path":%q}`,
		} {
			if tool == "search" && path == "" {
				continue // the whole checkout
			}
			if out, err := s.use(t.Context(), tool, fmt.Sprintf(args, path)); err == nil && out != "no match" {
				t.Errorf("%s of %q answered %q", tool, path, out)
			}
		}
	}
	if _, err := s.use(t.Context(), "edit", `{"path":"dir/secret","old_string":"secret","new_string":"x"}`); err == nil {
		t.Error("an edit went through a link")
	}
	if b, _ := os.ReadFile(outside + "/secret"); string(b) != "secret" {
		t.Errorf("the file outside is now %q", b)
	}
}

func TestTools(t *testing.T) {
	s := newSession(t)
	s.put(t, "a.go", "one\ntwo\nthree\ntwo\n")
	s.put(t, "sub/b.txt", "two\r\n")
	s.put(t, ".git/config", "two\n")
	s.put(t, "bin", "two\x00")
	s.put(t, "huge", strings.Repeat("two\n", 300<<10))
	s.put(t, "empty", "")
	for _, tc := range []struct{ tool, args, want, fails string }{
		{"read", `{"path":"a.go","from":2,"to":3}`, "     2\ttwo\n     3\tthree\n", ""},
		{"read", `{"path":"` + s.cwd + `/a.go","from":4}`, "     4\ttwo\n", ""},
		{"read", `{"path":"a.go","from":9}`, "[no such lines: the file has 4]", ""},
		{"read", `{"path":"sub"}`, "b.txt\n", ""},
		{"read", `{"path":"empty"}`, "[the file is empty]", ""},
		{"read", `{"path":"missing"}`, "", "no such file"},
		{"read", `{"path":7}`, "", "not valid"},
		{"search", `{"pattern":"^t[w]o$"}`, "a.go:2: two\na.go:4: two\nsub/b.txt:1: two\n", ""},
		{"search", `{"pattern":"two","glob":"*.txt"}`, "sub/b.txt:1: two\n", ""},
		{"search", `{"pattern":"two","path":"a.go"}`, "a.go:2: two\na.go:4: two\n", ""},
		{"search", `{"pattern":"zebra"}`, "no match", ""},
		{"search", `{"pattern":"("}`, "", "missing closing"},
		{"edit", `{"path":"a.go","old_string":"two","new_string":"2"}`, "", "occurs 2 times"},
		{"edit", `{"path":"a.go","old_string":"four","new_string":"4"}`, "", "does not occur"},
		{"edit", `{"path":"a.go","old_string":"","new_string":"x"}`, "", "exists"},
		{"edit", `{"path":"a.go","old_string":"two","new_string":"2","replace_all":true}`, "replaced 2 in a.go", ""},
		{"read", `{"path":"a.go"}`, "     1\tone\n     2\t2\n     3\tthree\n     4\t2\n", ""},
		{"shell", `{"command":"pwd -P >&2; echo $0"}`, s.cwd + "\nbash\n", ""},
		{"shell", `{"command":"true"}`, "[exit status 0, no output]", ""},
		{"shell", `{"command":"exit 4"}`, "", "[exit status 4]"},
		{"shell", `{"command":"sleep 1000","timeout_s":1}`, "", "killed after the limit of 1s"},
	} {
		out, err := s.use(t.Context(), tc.tool, tc.args)
		if (err == nil) != (tc.fails == "") || err != nil && !strings.Contains(err.Error(), tc.fails) || err == nil && out != tc.want {
			t.Errorf("%s %s: %q, %v; want %q, %q", tc.tool, tc.args, out, err, tc.want, tc.fails)
		}
	}
}

func TestLongOutputKeepsBothEnds(t *testing.T) {
	out, err := newSession(t).use(t.Context(), "shell", `{"command":"echo first; seq 100000; echo last"}`)
	if err != nil || !strings.HasPrefix(out, "first\n") || !strings.HasSuffix(out, "last\n") || len(out) > headOutput+tailOutput+100 ||
		!strings.Contains(out, "bytes dropped]") {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}

func TestTrimCutsOldResultsOnly(t *testing.T) {
	var history []message
	for i := range 20 {
		id := fmt.Sprint(i)
		history = append(history,
			message{role: assistant, calls: []call{{id: id, name: "read", args: []byte("{}")}}},
			message{role: user, results: []result{{id: id, text: strings.Repeat("x", 10000)}}})
	}
	limit := 100000 / bytesPerToken // 200,000 bytes do not fit
	trim(history, limit)
	if n := size(history); n > limit*bytesPerToken/2+10000 {
		t.Errorf("%d bytes are left", n)
	}
	for i, m := range history {
		if len(m.results) == 1 && i >= len(history)-2*keepResults && len(m.results[0].text) != 10000 {
			t.Errorf("message %d, one of the newest, was cut", i)
		}
	}
	if !strings.Contains(history[1].results[0].text, "10000 bytes") || len(history) != 40 {
		t.Errorf("the oldest result is %q", history[1].results[0].text)
	}
	before := size(history)
	trim(history, limit)
	if size(history) != before {
		t.Error("a conversation that fits was cut")
	}
}

func TestRetries(t *testing.T) {
	for _, tc := range []struct {
		name, header, body string
		status, tries      int
		firstWait          time.Duration // 0: any
		message            string
	}{
		{"a rate limit that says when", "7", `{"error":{"message":"slow down"}}`, 429, maxTries, 7 * time.Second,
			"rate limit holds after 6 tries: 429 Too Many Requests: slow down"},
		{"one that asks for too long", "3600", `{}`, 429, 1, 0, "rate limit holds"},
		{"a spent quota", "", `{"error":{"message":"pay","code":"insufficient_quota"}}`, 429, 1, 0, "pay (insufficient_quota)"},
		{"an overload", "", `oops`, 503, maxTries, 0, "provider is overloaded after 6 tries: 503 Service Unavailable: oops"},
		{"a bad key", "", `{"error":{"type":"authentication_error","message":"no"}}`, 401, 1, 0,
			"refused the credential: 401 Unauthorized: authentication_error: no"},
		{"an unknown model", "", `{}`, 404, 1, 0, `model not found at the provider: "m"`},
		{"a stream that is cut", "", "data: {\"choices\":[{\"delta\":{\"content\":\"par\"}}]}\n\n", 200, maxTries, 0,
			"cut its answer short after 6 tries"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tries := 0
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				tries++
				if tc.header != "" {
					w.Header().Set("Retry-After", tc.header)
				}
				w.WriteHeader(tc.status)
				fmt.Fprint(w, tc.body)
			}))
			defer srv.Close()
			c := newClient(config{url: srv.URL, model: "m", wire: chatWire}, http.DefaultTransport)
			var waits []time.Duration
			c.wait = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
			_, err := c.complete(t.Context(), "", tools, nil, func(string) {})
			var e *acp.Error
			if !errors.As(err, &e) || !strings.Contains(e.Message, tc.message) {
				t.Errorf("%v, want %s", err, tc.message)
			}
			if tries != tc.tries || len(waits) != tc.tries-1 {
				t.Errorf("%d tries, waits %v", tries, waits)
			}
			for i, d := range waits {
				if d > maxBackoff || tc.firstWait > 0 && d != tc.firstWait || tc.firstWait == 0 && d < time.Second<<i/2 {
					t.Errorf("wait %d is %s", i, d)
				}
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	base := []string{"YARDMASTER_MODEL_URL=http://x/", "YARDMASTER_MODEL=m", "YARDMASTER_MODEL_TOKEN=t", "A=b"}
	cfg, err := parse(base)
	if err != nil || cfg.url != "http://x" || cfg.token != "t" || cfg.maxRequests != 200 ||
		strings.Contains(strings.Join(cfg.shellEnv, " "), "TOKEN") {
		t.Errorf("%+v, %v", cfg, err)
	}
	for _, bad := range []string{"YARDMASTER_MODEL=", "YARDMASTER_MODEL_API=telepathy", "YARDMASTER_MAX_REQUESTS=0",
		"YARDMASTER_CONTEXT_TOKENS=many", "YARDMASTER_PERMISSION=never"} {
		if _, err := parse(append(base, bad)); err == nil || !strings.Contains(err.Error(), strings.Split(bad, "=")[0]) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if p := systemPrompt("/task", "/out/r.md"); !strings.Contains(p, "/task") || !strings.Contains(p, "/out/r.md") {
		t.Error("the system prompt names neither the checkout nor the report")
	}
}
