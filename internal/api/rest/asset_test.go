package rest_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/policy"
)

func TestAsset(t *testing.T) {
	text := strings.Repeat("the same again, ", 500)
	asset := &op.Asset{ContentType: "text/html", Policy: "default-src 'none'", Body: []byte(text)}
	h := rest.Handler(rest.Config{}, []op.Op{
		op.New(op.Row{ID: "asset.get", Method: "GET", Path: "/asset", Rule: policy.Public(), Also: []int{304}},
			func(context.Context, op.None) (*op.Asset, error) { return asset, nil }),
	})
	get := func(method, accepts, match string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(method, "/asset", nil)
		if accepts != "" {
			req.Header.Set("Accept-Encoding", accepts)
		}
		if match != "" {
			req.Header.Set("If-None-Match", match)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return w
	}
	tags := map[string]string{}
	for accepts, coding := range map[string]string{
		"": "", "identity": "", "zstd": "", "gzip": "gzip", "gzip, deflate, br, zstd": "br", "GZIP;q=1.0, br;q=0.5": "gzip",
		"gzip;q=0": "", "*": "br", "br;q=0, *": "gzip", "gzip;q=x": "",
	} {
		w := get("GET", accepts, "")
		if got := w.Header().Get("Content-Encoding"); w.Code != 200 || got != coding {
			t.Errorf("%q is answered %d in %q, not %q", accepts, w.Code, got, coding)
			continue
		}
		var body io.Reader = w.Body
		if len := w.Body.Len(); coding != "" && len > 500 {
			t.Errorf("%s makes %d bytes of it", coding, len)
		}
		switch coding {
		case "gzip":
			z, err := gzip.NewReader(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = z
		case "br":
			body = brotli.NewReader(w.Body)
		}
		if b, err := io.ReadAll(body); err != nil || !bytes.Equal(b, []byte(text)) {
			t.Errorf("%q: another text (%v)", accepts, err)
		}
		tag := w.Header().Get("ETag")
		if tags[coding] == "" {
			tags[coding] = tag
		}
		if tags[coding] != tag || w.Header().Get("Vary") != "Accept-Encoding" || w.Header().Get("X-Request-Id") == "" {
			t.Errorf("%q: headers %v", accepts, w.Header())
		}
	}
	if len(tags) != 3 || tags[""] == tags["gzip"] || tags["gzip"] == tags["br"] {
		t.Errorf("tags %v", tags)
	}
	for match, status := range map[string]int{tags["gzip"]: 304, "W/" + tags["gzip"]: 304, `"x", ` + tags["gzip"]: 304, "*": 304,
		tags[""]: 200, `"x"`: 200} {
		w := get("GET", "gzip", match)
		if w.Code != status || status == 304 && (w.Body.Len() > 0 || w.Header().Get("ETag") != tags["gzip"]) {
			t.Errorf("If-None-Match %s: %d with %d bytes", match, w.Code, w.Body.Len())
		}
	}
	if w := get("HEAD", "gzip", ""); w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") == "" {
		t.Errorf("HEAD: %d with %d bytes", w.Code, w.Body.Len())
	}
}
