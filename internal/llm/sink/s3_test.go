package sink

import (
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"yardmaster/internal/dial"
	"yardmaster/internal/proof/cache"
	"yardmaster/internal/proof/loopback"
	"yardmaster/internal/proof/patience"
)

// bucketServer is the S3 server of the tests, in the user's cache. The Makefile gets it.
const bucketServer = "versitygw-v1.8.0"

// TestS3 sends to a real server of S3: a batch is an object, its key tells account, day and time.
func TestS3(t *testing.T) {
	t.Parallel()
	program, err := cache.Dir(bucketServer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("this test needs versitygw; get it with `make deps`: %v", err)
	}
	dir, address := t.TempDir(), loopback.Address()
	for _, name := range []string{"data", "meta"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	//nolint:gosec // a program of ours
	server := exec.CommandContext(ctx, program, "--port", address, "--access", "id", "--secret", "secret-of-it", "--quiet",
		"posix", "--sidecar", filepath.Join(dir, "meta"), filepath.Join(dir, "data"))
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = server.Wait() // it was killed
	})
	patience.Until(t, "the S3 server answers", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	to := Target{Kind: S3, URL: "http://" + address + "/logs/of/calls", Access: "id", Secret: "secret-of-it"}
	if err := to.Check(); err != nil {
		t.Fatal(err)
	}
	s := NewSender(dial.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}), "test")
	if got := s.Probe(t.Context(), to, time.Now()); got != (Outcome{Why: "The answer has the status 404."}) {
		t.Errorf("a bucket that is not there: %+v", got)
	}
	client, err := minio.New(address, &minio.Options{Creds: credentials.NewStaticV4("id", "secret-of-it", "")})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.MakeBucket(t.Context(), "logs", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	wrong := to
	wrong.Secret = "another-secret"
	if got := s.Probe(t.Context(), wrong, time.Now()); got != (Outcome{Why: "The answer has the status 403."}) {
		t.Errorf("another key: %+v", got)
	}
	if got := s.Probe(t.Context(), to, time.Now()); got.Why != "" {
		t.Fatal(got.Why)
	}
	c, want := form(t, made(body("hello"), "Good morning."))
	if got := s.Send(t.Context(), to, []Call{c}); got.Why != "" {
		t.Fatal(got.Why)
	}
	var keys []string
	for o := range client.ListObjects(t.Context(), "logs", minio.ListObjectsOptions{Prefix: "of/calls/", Recursive: true}) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		keys = append(keys, o.Key)
	}
	if len(keys) != 2 || !strings.HasPrefix(keys[0], "of/calls/acme/2027-01-15/080000-") || keys[1] != "of/calls/probe.ndjson" {
		t.Fatalf("objects %q", keys)
	}
	o, err := client.GetObject(t.Context(), "logs", keys[0], minio.GetObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(o); err != nil || string(got) != want {
		t.Errorf("%v: %s, want %s", err, got, want)
	}
	closed := NewSender(dial.NewGuard(nil), "test")
	if got := closed.Probe(t.Context(), to, time.Now()); got.Why != whyNobody {
		t.Errorf("an address that is not allowed: %+v", got)
	}
}
