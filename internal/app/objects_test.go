package app

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
)

// The server answers the addresses that its folder of objects has signed, as files and
// whatever the cookies, and no other.
func TestObjectsAreServed(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	if err := y.blob.Put(t.Context(), "acme/ci/1.log", strings.NewReader("<b>text</b>"), 11, "text/html"); err != nil {
		t.Fatal(err)
	}
	address, err := y.blob.PresignGet(t.Context(), "acme/ci/1.log", "check.log", time.Minute)
	if err != nil || !strings.HasPrefix(address, y.URL()+blob.Path) {
		t.Fatal(address, err)
	}
	get := func(address string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer, string(text)
	}
	answer, text := get(address)
	h := answer.Header
	if answer.StatusCode != 200 || text != "<b>text</b>" || h.Get("Content-Type") != "application/octet-stream" ||
		h.Get("Content-Disposition") != "attachment; filename=check.log" || h.Get("X-Request-Id") == "" || h.Get("Set-Cookie") != "" {
		t.Errorf("%d %q %v", answer.StatusCode, text, h)
	}
	answer, text = get(strings.Replace(address, "signature=", "signature=0", 1))
	if answer.StatusCode != 403 || !strings.Contains(text, `/problems/bad-signature"`) ||
		!strings.Contains(text, `"request_id":"`+answer.Header.Get("X-Request-Id")+`"`) {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
}

// The configuration says where objects are kept, and a mistake in it is told without its
// secret.
func TestStoreOfObjects(t *testing.T) {
	t.Parallel()
	open := func(setting string) (blob.Store, error) {
		a := &App{cfg: &config.Config{Blob: setting}, log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nothing is asked for
		return a.objects(ctx)
	}
	if s, err := open("off"); err != nil || s != (blob.Off{}) {
		t.Errorf("%v %v", s, err)
	}
	if s, err := open("s3+http://ID:hunter2@127.0.0.1:1/logs"); err != nil {
		t.Errorf("a bucket that cannot be reached: %v", err)
	} else if _, ok := s.(*blob.S3); !ok {
		t.Errorf("%T", s)
	}
	if s, err := open("s3://ID:hunter2@127.0.0.1:1"); err == nil || strings.Contains(err.Error(), "hunter2") || s != nil {
		t.Errorf("%v %v", s, err)
	}
}
