package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// committed is a repository with a commit.
func committed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q", "-b", "main"},
		{"-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "begin"}} {
		if _, err := Git(t.Context(), dir, "", "", args...); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A push ends, says what the server said, and leaves nothing behind, whatever the server does.
func TestPushOfAServerThatFails(t *testing.T) {
	dir, left := committed(t), t.TempDir()
	t.Setenv("TMPDIR", left)
	empty := "001f# service=git-receive-pack\n0000" +
		fmt.Sprintf("%04x", 4+40+len(" capabilities^{}\x00report-status atomic\n")) + strings.Repeat("0", 40) +
		" capabilities^{}\x00report-status atomic\n0000"
	for name, c := range map[string]struct {
		refs, want string
		take       http.HandlerFunc
	}{
		"no git":       {"hello", "is not where pushes go", nil},
		"no refs":      {empty[:35], "is not where pushes go", nil},
		"half of them": {empty[:len(empty)-4], "is not where pushes go", nil},
		"a sentence": {empty, "The disk is full.", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "The disk is full.", http.StatusInsufficientStorage)
		}},
		"cut off": {empty, "no answer from", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			panic(http.ErrAbortHandler)
		}},
		"an answer without a report": {empty, "git push failed", func(_ http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			if branch := r.Header.Get("Yardmaster-Default-Branch"); user != "token" || password != "secret" || branch != "main" {
				t.Errorf("it comes with %v", r.Header)
			}
			_, _ = io.Copy(io.Discard, r.Body)
		}},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				_, _ = io.WriteString(w, c.refs)
				return
			}
			c.take(w, r)
		}))
		err := (&Client{URL: server.URL, Token: "secret"}).AddRepo(t.Context(), dir, "acme", "web")
		server.Close()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, not %q", name, err, c.want)
		}
	}
	if files, err := os.ReadDir(left); err != nil || len(files) > 0 {
		t.Errorf("it leaves %v, %v", files, err)
	}
}

// Who gives up ends git, and is not kept waiting by a server that says nothing.
func TestPushThatIsGivenUp(t *testing.T) {
	t.Parallel()
	dir := committed(t)
	ctx, give := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, "001f# service=git-receive-pack\n0000")
			w.(http.Flusher).Flush()
			give()
		}
		<-r.Context().Done()
	}))
	defer server.Close()
	if err := (&Client{URL: server.URL}).AddRepo(ctx, dir, "acme", "web"); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}
