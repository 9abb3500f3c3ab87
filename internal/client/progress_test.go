package client

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// steps notes what it is told.
type steps struct {
	mu           sync.Mutex
	steps, parts []string
}

func (s *steps) Step(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, text)
}

func (s *steps) Part(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = append(s.parts, text)
}

// What git says of its progress is a part of the step, and its complaints stay what they are.
func TestGitTellsHowFarItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		if _, err := Git(t.Context(), dir, "", "", args...); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q", "-b", "main")
	for i := range 20 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte(strings.Repeat(fmt.Sprint(i), 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("add", ".")
	git("-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "begin")
	told := &steps{}
	into := filepath.Join(t.TempDir(), "copy.git")
	_, err := gitTelling(t.Context(), told.Part, ".", "", "", "clone", "--progress", "--no-local", "--mirror", "--", dir, into)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(told.parts, func(p string) bool { return strings.HasPrefix(p, "Receiving objects: 100%") }) {
		t.Errorf("it tells %q", told.parts)
	}
	out, err := gitTelling(t.Context(), told.Part, dir, "", "", "push", "--progress", filepath.Join(dir, "none"), "main")
	if err == nil || !strings.Contains(out, "none") || strings.Contains(out, "objects:") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestTranscript(t *testing.T) {
	t.Parallel()
	told := &steps{}
	of := &transcript{part: told.Part}
	for _, part := range []string{"Enumerating obj", "ects: 5, done.\nWriting objects:  20% (1/5)\rWriting objects: 100% (5/5), done.\n",
		"remote: Resolving deltas: 100% (1/1)\r", "To http://x\n ! [rejec", "ted] main -> main\nremote: hello\n\nerror: x"} {
		fmt.Fprint(of, part)
	}
	if got, want := of.text(), "To http://x\n ! [rejected] main -> main\nremote: hello\n\nerror: x\n"; got != want {
		t.Errorf("it keeps %q, not %q", got, want)
	}
	want := []string{"Enumerating objects: 5, done.", "Writing objects:  20% (1/5)", "Writing objects: 100% (5/5), done.",
		"Resolving deltas: 100% (1/1)"}
	if !slices.Equal(told.parts, want) {
		t.Errorf("it tells %q", told.parts)
	}
}

// Of a large body it is told how much is sent, also where the server sends the call on.
func TestLargeBodiesTellHowFarTheyAre(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got int
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		got = len(b)
		mu.Unlock()
		if r.URL.Path == "/from" {
			http.Redirect(w, r, "/to", http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprint(w, "{}")
	}))
	defer srv.Close()
	told := &steps{}
	c := &Client{URL: srv.URL, Steps: told}
	if err := c.Call(t.Context(), http.MethodPost, "/x", map[string]string{"a": "small"}, nil); err != nil || len(told.parts) > 0 {
		t.Fatalf("%v, %q", err, told.parts)
	}
	if err := c.Call(t.Context(), http.MethodPost, "/from", map[string]string{"a": strings.Repeat("a", 2<<20)}, nil); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if got < 2<<20 {
		t.Errorf("%d bytes came", got)
	}
	told.mu.Lock()
	defer told.mu.Unlock()
	if n := len(told.parts); n == 0 || told.parts[n-1] != "100% of 2.0 MiB sent" {
		t.Errorf("it tells %q", told.parts)
	}
}
