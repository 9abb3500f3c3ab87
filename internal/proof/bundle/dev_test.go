package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestSourcesAreServedBeforeAServer holds that a page names files that were just built,
// and that the server answers all else as if the page were its own.
func TestSourcesAreServedBeforeAServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, assets):
			fmt.Fprint(w, "the server's file")
		case strings.HasPrefix(r.URL.Path, "/ui/"):
			if r.Header.Get("If-None-Match") != "" {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("ETag", `"old"`)
			fmt.Fprint(w, `<link href="/ui/a/app-OLD1.css"><script src="/ui/a/app-OLD2.js"></script><link href="/ui/a/vendor-OLD3.js">`)
		default:
			fmt.Fprintf(w, "%s %s from %q", r.Method, r.URL.Path, r.Header.Get("Origin"))
		}
	}))
	defer server.Close()
	to, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	builds, broken := 0, false
	var handler http.Handler
	dev := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	defer dev.Close()
	handler = addressed(dev.Listener.Addr(), before(to, func() (map[string][]byte, error) {
		if broken {
			return nil, errors.New("src/app.tsx:1: no such word")
		}
		builds++
		name := fmt.Sprintf("app-NEW%d.js", builds)
		return map[string][]byte{
			name: fmt.Appendf(nil, "build %d", builds),
			"manifest.json": fmt.Appendf(nil, `{"js": %q, "css": "app-NEW.css", "vendor": "vendor-NEW.js"}`,
				name),
		}, nil
	}))
	ask := func(method, at string, header ...string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, dev.URL+at, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		if host := req.Header.Get("Host"); host != "" {
			req.Host = host
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil || res.Header.Get("ETag") != "" {
			t.Fatal(err, res.Header)
		}
		return res.StatusCode, string(text)
	}
	for _, x := range []struct {
		method, at, want string
		header           []string
	}{
		{"GET", "/ui/tasks", `<link href="/ui/a/app-NEW.css"><script src="/ui/a/app-NEW1.js"></script><link href="/ui/a/vendor-NEW.js">`, nil},
		{"GET", "/ui/a/app-NEW1.js", "build 1", nil},
		{"GET", "/ui/a/app-OLD2.js", "the server's file", nil},
		{"GET", "/ui/", `<link href="/ui/a/app-NEW.css"><script src="/ui/a/app-NEW2.js"></script><link href="/ui/a/vendor-NEW.js">`,
			[]string{"If-None-Match", `"old"`}},
		{"POST", "/v1/tasks", `POST /v1/tasks from "` + server.URL + `"`, []string{"Origin", dev.URL}},
		{"POST", "/v1/tasks", `POST /v1/tasks from "http://elsewhere.example"`, []string{"Origin", "http://elsewhere.example"}},
	} {
		if status, got := ask(x.method, x.at, x.header...); status != http.StatusOK || got != x.want {
			t.Errorf("%s %s: %d %s, want %s", x.method, x.at, status, got, x.want)
		}
	}
	status, got := ask("POST", "/v1/tasks", "Host", "elsewhere.example", "Origin", "http://elsewhere.example")
	if status != http.StatusForbidden {
		t.Errorf("a name that leads here: %d %s", status, got)
	}
	broken = true
	if status, got := ask("GET", "/ui/"); status != http.StatusBadGateway || !strings.Contains(got, "src/app.tsx:1: no such word") {
		t.Errorf("a build that fails: %d %s", status, got)
	}
}
