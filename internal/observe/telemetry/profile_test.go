package telemetry_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"yardmaster/internal/observe/telemetry"
	"yardmaster/internal/proof/patience"
)

// TestProfiles asks for what `go tool pprof` asks for.
func TestProfiles(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- telemetry.ServeProfiles(ctx, l) }()
	get := func(path string) (int, []byte) {
		t.Helper()
		resp, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, b
	}
	for _, path := range []string{"heap", "allocs", "mutex", "block", "threadcreate", "goroutine", "profile?seconds=1"} {
		if status, b := get("/debug/pprof/" + path); status != 200 || !bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
			t.Errorf("%s: %d, %q", path, status, b[:min(len(b), 40)])
		}
	}
	if status, b := get("/debug/pprof/goroutine?debug=1"); status != 200 || !bytes.Contains(b, []byte("ServeProfiles")) {
		t.Errorf("goroutines: %d, %.80s", status, b)
	}
	for _, path := range []string{"/debug/pprof/cmdline", "/", "/debug/vars"} {
		if status, _ := get(path); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
	stop()
	if err := patience.Receive(t, "the end", ended); err != nil {
		t.Error(err)
	}
}
