package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/client"
)

// servedBy serves a handler to the command line.
func servedBy(t *testing.T, h http.HandlerFunc) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	home := t.TempDir()
	for name, value := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": home, "YARDMASTER_URL": srv.URL, "YARDMASTER_TOKEN": "t"} {
		t.Setenv(name, value)
	}
	t.Chdir(home)
}

// endless is a transport whose lists always have another page.
type endless int

func (e *endless) RoundTrip(r *http.Request) (*http.Response, error) {
	*e++
	body := fmt.Sprintf(`{"data": [{"id": "%d"}], "next_cursor": "c%d"}`, *e, *e)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// A list without an end, and a server that limits calls for an hour, are refused in words.
func TestListsOfALiarEnd(t *testing.T) {
	var pages endless
	c := &client.Client{URL: "http://y", HTTP: &http.Client{Transport: &pages}}
	if _, _, err := noun.Called("task").Rows(t.Context(), c, nil, noun.Everything); err == nil || pages != 20_000 ||
		!strings.Contains(err.Error(), "narrow the list") {
		t.Errorf("after %d pages: %v", pages, err)
	}
	servedBy(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"type": "/problems/rate-limited", "detail": "Too many.", "retry_after": 3600}`)
	})
	if code, _, errs := told("task", "list"); code != exit.CodeRefused || !strings.Contains(errs, "1h0m0s; 2m0s are waited at most") {
		t.Errorf("%d, %q", code, errs)
	}
}

// A call that changes something is made again when the server limits calls, and that is said.
func TestLimitedChangesAreMade(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"type": "/problems/rate-limited", "detail": "Too many.", "retry_after": 1}`)
			return
		}
		_, _ = io.WriteString(w, `{"id": "`+someID+`"}`)
	}))
	defer h.Close()
	shown, code := newPerson(t, "YARDMASTER_URL="+h.URL, "YARDMASTER_TOKEN=t").terminal([]string{"notification", "read", someID})
	if code != 0 || calls.Load() != 2 || !strings.Contains(shown, "limits calls: the next one is in 1s; Ctrl-C ends it") {
		t.Errorf("%d after %d calls: %s", code, calls.Load(), shown)
	}
}

// What is offered for completion is a plain word of any shell.
func TestCompletionsArePlainWords(t *testing.T) {
	ids := []string{"$(id)", "`id`", "a;b", "--help", "-x", "[a-z]*", "{a,b}", "=ls", "%1", "a\nb", "~root", "^x", "!!", "abc[1]", "@last",
		"\u202ex", "+x", "a#b", "a b", "ok123456"}
	servedBy(t, func(w http.ResponseWriter, r *http.Request) {
		var rows []map[string]string
		for _, id := range ids {
			rows = append(rows, map[string]string{"id": id})
		}
		b, err := object.Encode(map[string]any{"data": rows, "next_cursor": nil})
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(b)
	})
	var got []string
	for _, of := range noun.NamesOf(noun.Called("task"))(t.Context(), nil, "") {
		name, _, _ := strings.Cut(of, "\t")
		if got = append(got, name); !client.Plain(name) {
			t.Errorf("%q is offered", name)
		}
	}
	if !slices.Equal(got, []string{"ok123456"}) {
		t.Errorf("offered: %q", got)
	}
}
