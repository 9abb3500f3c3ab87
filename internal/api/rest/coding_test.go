package rest_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/policy"
)

type wordy struct {
	Text string `json:"text"`
}

type opener struct {
	wordy
	Links []struct {
		URL *string `json:"fix_url"`
	} `json:"links"`
}

func unpack(t *testing.T, coding string, body []byte) string {
	t.Helper()
	var r io.Reader = bytes.NewReader(body)
	switch coding {
	case "gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		r = z
	case "zstd":
		z, err := zstd.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		r = z
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestCompressedAnswers holds that long answers are compressed as the client asks, and
// that short ones, secrets, pages and refusals are not.
func TestCompressedAnswers(t *testing.T) {
	long := strings.Repeat("All work and no play makes a long answer. ", 60)
	get := func(path string, edit func(*op.Row), h func(context.Context, op.None) (any, error)) op.Op {
		r := op.Row{ID: "test." + path, Method: "GET", Path: "/v1/" + path, Group: "Test", Rule: policy.Public(), Summary: path}
		if edit != nil {
			edit(&r)
		}
		return op.New(r, h)
	}
	say := func(text string) func(context.Context, op.None) (any, error) {
		return func(context.Context, op.None) (any, error) { return wordy{text}, nil }
	}
	page := func(kind string) func(context.Context, op.None) (any, error) {
		return func(context.Context, op.None) (any, error) { return op.Reply{ContentType: kind, Body: long}, nil }
	}
	h := rest.Handler(rest.Config{Pipeline: &op.Pipeline{Secrets: []string{"fix_url"}}}, []op.Op{
		get("long", nil, say(long)),
		get("short", nil, say("Hello.")),
		get("once", func(r *op.Row) { r.NoStore = true }, say(long)),
		op.New(op.Row{ID: "test.link", Method: "GET", Path: "/v1/link", Group: "Test", Rule: policy.Public(), Summary: "link"},
			func(context.Context, op.None) (op.Page[opener], error) {
				return op.Page[opener]{Data: []opener{{wordy: wordy{long}}}}, nil
			}),
		get("page", nil, page("text/html; charset=utf-8")),
		get("script", nil, page("text/plain; charset=utf-8")),
	})
	ask := func(method, path, accepts string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(method, "/v1/"+path, nil)
		if accepts != "" {
			req.Header.Set("Accept-Encoding", accepts)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return w
	}
	for _, c := range []struct{ path, accepts, coding, vary string }{
		{"long", "", "", "Accept-Encoding"},
		{"long", "gzip", "gzip", "Accept-Encoding"},
		{"long", "gzip, deflate, br, zstd", "zstd", "Accept-Encoding"},
		{"long", "GZIP;q=1.0, zstd;q=0.5", "gzip", "Accept-Encoding"},
		{"long", "zstd;q=0, gzip;q=0.1", "gzip", "Accept-Encoding"},
		{"long", "*", "zstd", "Accept-Encoding"},
		{"long", "*;q=0, identity", "", "Accept-Encoding"},
		{"long", "gzip;q=nonsense", "", "Accept-Encoding"},
		{"long", "gzip;q=inf", "", "Accept-Encoding"},
		{"long", "gzip;q=0.5, identity", "", "Accept-Encoding"},
		{"long", "gzip, identity", "gzip", "Accept-Encoding"},
		{"long", "gzip, identity;q=0", "gzip", "Accept-Encoding"},
		// A client that accepts no form that we have gets the uncompressed one.
		{"long", "identity;q=0", "", "Accept-Encoding"},
		{"long", "*;q=0", "", "Accept-Encoding"},
		{"long", "br, *;q=0", "", "Accept-Encoding"},
		{"short", "identity;q=0", "", ""},
		{"short", "gzip, identity;q=0", "", ""},
		{"once", "*;q=0", "", ""},
		{"page", "gzip, identity;q=0", "", ""},
		{"short", "gzip, zstd", "", ""},
		{"once", "gzip, zstd", "", ""},
		{"link", "gzip, zstd", "", ""},
		{"page", "gzip, zstd", "", ""},
		{"script", "gzip, zstd", "zstd", "Accept-Encoding"},
		{"nowhere", "gzip, zstd", "", ""},
	} {
		w := ask(http.MethodGet, c.path, c.accepts)
		if want := map[bool]int{true: http.StatusNotFound, false: http.StatusOK}[c.path == "nowhere"]; w.Code != want {
			t.Errorf("%s, %q: %d", c.path, c.accepts, w.Code)
		}
		if coding, vary := w.Header().Get("Content-Encoding"), w.Header().Get("Vary"); coding != c.coding || vary != c.vary {
			t.Errorf("%s, %q: encoding %q, vary %q", c.path, c.accepts, coding, vary)
		}
		if got := unpack(t, c.coding, w.Body.Bytes()); got != unpack(t, "", ask(http.MethodGet, c.path, "").Body.Bytes()) &&
			c.path != "nowhere" {
			t.Errorf("%s, %q: unpacks to %q", c.path, c.accepts, got)
		}
		if n := w.Header().Get("Content-Length"); n != "" && c.coding != "" && w.Body.Len() > 1000 {
			t.Errorf("%s, %q: %s bytes", c.path, c.accepts, n)
		}
		head := ask(http.MethodHead, c.path, c.accepts)
		for _, name := range []string{"Content-Encoding", "Content-Length", "Vary", "Content-Type"} {
			if c.path != "nowhere" && head.Header().Get(name) != w.Header().Get(name) {
				t.Errorf("HEAD %s, %q: %s is %q, of GET %q", c.path, c.accepts, name, head.Header().Get(name), w.Header().Get(name))
			}
		}
		if head.Body.Len() > 0 {
			t.Errorf("HEAD %s has a body", c.path)
		}
	}
}
