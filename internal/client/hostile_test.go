package client

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zalando/go-keyring"
)

// A server that sends a call on to another one, if only at another port, gets neither the
// token nor the body there.
func TestRedirectsElsewhere(t *testing.T) {
	t.Parallel()
	var heard atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { heard.Add(1) }))
	defer other.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/here":
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
		case "/there":
			fmt.Fprint(w, `{}`)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		default:
			http.Redirect(w, r, other.URL+"/x", http.StatusTemporaryRedirect)
		}
	}))
	defer srv.Close()
	c := &Client{URL: srv.URL, Token: "secret"}
	for _, method := range []string{"GET", "POST"} {
		var silent *Unreachable
		if err := c.Call(t.Context(), method, "/x", map[string]string{"a": "b"}, nil); !errors.As(err, &silent) ||
			!strings.Contains(err.Error(), other.URL) {
			t.Errorf("%s: %v", method, err)
		}
	}
	if _, err := SignIn(t.Context(), srv.URL, "ada", "password", ""); err == nil || !strings.Contains(err.Error(), other.URL) {
		t.Errorf("sign in: %v", err)
	}
	if err := c.Call(t.Context(), "GET", "/here", nil, nil); err != nil {
		t.Errorf("at the same server: %v", err)
	}
	if err := c.Call(t.Context(), "GET", "/round", nil, nil); err == nil || !strings.Contains(err.Error(), "on and on") {
		t.Errorf("round and round: %v", err)
	}
	if n := heard.Load(); n > 0 {
		t.Errorf("the other server was called %d times", n)
	}
}

// git sends the token to no server that the first one names.
func TestGitIsNotSentOn(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal(err)
	}
	var heard atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard.Add(1) }))
	defer other.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.RequestURI(), http.StatusFound)
	}))
	defer srv.Close()
	if _, err := Git(t.Context(), t.TempDir(), srv.URL, "secret", "ls-remote", srv.URL+"/git/acme/web.git"); err == nil {
		t.Error("git is content")
	}
	if n := heard.Load(); n > 0 {
		t.Errorf("git called the other server %d times", n)
	}
}

// nothing is an endless answer of blanks, small on its way.
func nothing(w http.ResponseWriter) {
	w.Header().Set("Content-Encoding", "gzip")
	for {
		if _, err := w.Write(blanks()); err != nil {
			return
		}
	}
}

// blanks are a megabyte of them. What is packed in several pieces is unpacked as one.
var blanks = sync.OnceValue(func() []byte {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write(bytes.Repeat([]byte(" "), 1<<20))
	if err = errors.Join(err, z.Close()); err != nil {
		panic(err)
	}
	return packed.Bytes()
})

// Answers and streams without an end, lists whose pages go round, and waits of ages end.
func TestServerWithoutAnEnd(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			nothing(w)
		case "/line":
			w.Header().Set("Content-Type", "text/event-stream")
			nothing(w)
		case "/round":
			next := map[string]string{"": "a", "a": "b", "b": "a"}[r.URL.Query().Get("cursor")]
			fmt.Fprintf(w, `{"data": [{}], "next_cursor": %q}`, next)
		case "/refused":
			w.WriteHeader(http.StatusInternalServerError)
			nothing(w)
		}
	}))
	defer srv.Close()
	c := &Client{URL: srv.URL, HTTP: srv.Client()}
	if _, err := c.Fetch(t.Context(), "GET", "/long", nil); !errors.Is(err, errTooLarge) {
		t.Errorf("a long answer: %v", err)
	}
	var out any
	// To decode 64 MB byte by byte takes minutes under the race detector. Fetch has shown
	// what the limit is.
	short := &Client{URL: srv.URL, HTTP: srv.Client(), most: 1 << 20}
	if err := short.Call(t.Context(), "GET", "/long", nil, &out); err == nil {
		t.Error("a long answer is decoded")
	}
	if err := c.Call(t.Context(), "GET", "/long", nil, nil); err != nil {
		t.Errorf("a long answer that is not wanted: %v", err)
	}
	if err := c.Call(t.Context(), "GET", "/refused", nil, nil); err == nil {
		t.Error("a long refusal is none")
	}
	if err := c.Stream(t.Context(), "/line", "", func(Frame) error { return nil }); !errors.Is(err, errTooLarge) {
		t.Errorf("a stream of one line: %v", err)
	}
	if err := Each(t.Context(), c, "/round", func(any) error { return nil }); !errors.Is(err, ErrCircle) {
		t.Errorf("pages that go round: %v", err)
	}
	for _, n := range []int{-1, 1 << 62, 1<<63 - 1, 3} {
		if d := wait(n); d < 0 || d > longestWait || n == 3 && d != 3*time.Second {
			t.Errorf("to wait %d s is to wait %s", n, d)
		}
	}
}

// What a problem says of its status does not count, nor what is half a problem.
func TestProblemsThatLie(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"type": "/problems/x", "status": 401, "detail": "no"}`:   "no (403 x)",
		`{"type": "/problems/x", "status": "401", "detail": "no"}`: "GET /x answered 403 Forbidden (403 about:blank)",
		`{"type": 7, "errors": {"a": ["b"]}, "detail": "no"}`:      "GET /x answered 403 Forbidden (403 about:blank)",
		`[]`: "GET /x answered 403 Forbidden (403 about:blank)",
		`{"type": "/problems/y", "status": 1e999, "errors": "not any"}`: "GET /x answered 403 Forbidden (403 about:blank)",
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, body)
		}))
		if err := (&Client{URL: srv.URL}).Call(t.Context(), "GET", "/x", nil, nil); err == nil || err.Error() != want {
			t.Errorf("%s: %v, not %s", body, err, want)
		}
		srv.Close()
	}
}

// Commands that are shown to be copied do in a shell what they say.
func TestWord(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"acme/web#3": "acme/web#3", "": "", "a b": "'a b'", "#x": "'#x'", "x;$(touch owned)": "'x;$(touch owned)'",
		"it's": `'it'\''s'`, "a\nb\x1b[31m": "'a b[31m'", "`id`": "'`id`'", "~root": "'~root'", "größe": "größe", "!1": "'!1'",
		"=ls": "'=ls'", "a=b": "a=b", "^x": "'^x'", "abc[1]": "'abc[1]'", "%1": "'%1'",
	} {
		if got := Word(in); got != want {
			t.Errorf("%q is %s, not %s", in, got, want)
		}
	}
	c := &Clear{Capability: "pr.approve_pending", Args: map[string]string{"id": "x;touch owned"}}
	if got := c.Command(); got != "yardmaster pr approve 'x;touch owned'" {
		t.Error(got)
	}
}

// The token of a context is for its server, whichever file of contexts names it.
func TestKeyringIsByServer(t *testing.T) {
	home(t)
	keyring.MockInit()
	ring := SystemKeyring(func(key string) string {
		return map[string]string{"DBUS_SESSION_BUS_ADDRESS": "unix:path=/x"}[key]
	})
	put(t, ring, Login{Name: "default", URL: "https://yard.example", Token: "secret"})
	env := home(t) // another file with a context of that name
	all := put(t, ring, Login{Name: "default", URL: "https://evil.example", Token: "evil"})
	if l, err := LoadLogin(env, "", ring); err != nil || l.Token != "evil" {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err := ring.Get(entry("default", "https://yard.example")); err != nil || l != "secret" {
		t.Errorf("the first server's token is %q, %v", l, err)
	}
	l := all.Logins["default"]
	l.URL = "https://third.example"
	all.Logins["default"] = l
	if err := all.save(); err != nil {
		t.Fatal(err)
	}
	if l, err := LoadLogin(env, "", ring); err == nil || l.Token != "" {
		t.Errorf("a server that was written into the file gets %q", l.Token)
	}
}
