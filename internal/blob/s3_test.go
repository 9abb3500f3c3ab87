package blob_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"yardmaster/internal/blob"
	"yardmaster/internal/proof/cache"
	"yardmaster/internal/proof/loopback"
	"yardmaster/internal/proof/patience"
)

// gateway is the S3 server of the tests, in the user's cache. The Makefile gets it.
const gateway = "versitygw-v1.8.0"

const (
	access = "yardmaster"
	secret = "a key/with+signs"
)

var server struct {
	sync.Once
	endpoint string
	buckets  atomic.Int64
	err      error
	stop     func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	if server.stop != nil {
		server.stop()
	}
	os.Exit(code)
}

// start runs one server for all tests.
func start() {
	program, err := cache.Dir(gateway)
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		server.err = errors.New("the tests of S3 need versitygw; get it with `make deps`: " + err.Error())
		return
	}
	dir, err := os.MkdirTemp("", "blob-s3-")
	if err != nil {
		server.err = err
		return
	}
	server.endpoint = loopback.Address()
	server.err = errors.Join(os.Mkdir(filepath.Join(dir, "data"), 0o700), os.Mkdir(filepath.Join(dir, "meta"), 0o700))
	ctx, cancel := context.WithCancel(context.Background())
	//nolint:gosec // a program of ours
	c := exec.CommandContext(ctx, program, "--port", server.endpoint, "--access", access, "--secret", secret, "--quiet",
		"posix", "--sidecar", filepath.Join(dir, "meta"), filepath.Join(dir, "data"))
	if err := c.Start(); err != nil {
		server.err = err
	}
	server.stop = func() {
		cancel()
		_ = c.Wait() // it was killed
		_ = os.RemoveAll(dir)
	}
}

// bucket makes a bucket of its own on the S3 server, which it starts if none runs.
func bucket(t *testing.T) blob.Store {
	t.Helper()
	s, _ := named(t)
	return s
}

func named(t *testing.T) (*blob.S3, string) {
	t.Helper()
	server.Do(start)
	if server.err != nil {
		t.Fatal(server.err)
	}
	name := fmt.Sprintf("objects-%d", server.buckets.Add(1))
	b, err := blob.ParseBucket("s3+http://" + url.UserPassword(access, secret).String() + "@" + server.endpoint + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	client, err := minio.New(b.Endpoint, &minio.Options{Creds: credentials.NewStaticV4(access, secret, "")})
	if err != nil {
		t.Fatal(err)
	}
	s, err := blob.NewS3(b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	patience.Until(t, "the S3 server answers", func() bool {
		c, err := net.Dial("tcp", server.endpoint)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	if err := s.Reach(t.Context()); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a bucket that is not there: %v", err)
	}
	if err := client.MakeBucket(t.Context(), name, minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Reach(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, name
}

// An address of a bucket is read as it is meant, and no error quotes its secret.
func TestParseBucket(t *testing.T) {
	t.Parallel()
	b, err := blob.ParseBucket("s3://ID:a%2Fb+c@s3.example.com:9000/logs?region=eu-central-1")
	want := blob.Bucket{Endpoint: "s3.example.com:9000", Region: "eu-central-1", Name: "logs", Access: "ID", Secret: "a/b+c"}
	if err != nil || b != want {
		t.Errorf("%+v %v", b, err)
	}
	b, err = blob.ParseBucket("s3+http://ID:x@127.0.0.1:9000/logs/")
	if err != nil || !b.Plain || b.Region != "us-east-1" || b.Name != "logs" {
		t.Errorf("%+v %v", b, err)
	}
	for _, bad := range []string{"", "s3://", "s3://host/logs", "s3://ID@host/logs", "https://ID:hunter2@host/logs", "s3://ID:hunter2@host",
		"s3://ID:hunter2@host/a/b", "s3://ID:hunter2@host/logs?regoin=x", "s3://ID:hunter2%@host/logs", "s3://ID:hunter2@host/logs#x",
		"s3://ID:hunter2@host/L"} {
		if _, err := blob.ParseBucket(bad); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Another key is refused, and nothing is said to be missing.
func TestOtherKey(t *testing.T) {
	t.Parallel()
	s, name := named(t)
	put(t, s, key, "text", "text/plain")
	b, err := blob.ParseBucket("s3+http://" + access + ":other@" + server.endpoint + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := blob.NewS3(b)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if _, _, err := stranger.Get(t.Context(), key); err == nil || errors.Is(err, blob.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if err := stranger.Put(t.Context(), key, strings.NewReader("x"), 1, "text/plain"); err == nil {
		t.Error("stored")
	}
	if text := read(t, s, key); text != "text" {
		t.Errorf("%q", text)
	}
}
