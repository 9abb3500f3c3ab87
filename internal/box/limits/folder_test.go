package limits

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWalkCountsWhatIsThere(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "large"), make([]byte, 1<<20), 0o600))
	text := make([]byte, 100<<10)
	must(t, os.WriteFile(filepath.Join(dir, "a"), text, 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "closed"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "closed", "b"), text, 0o600))
	must(t, errors.Join(os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "again")), os.Symlink(outside, filepath.Join(dir, "link")),
		unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600)))
	must(t, os.Truncate(filepath.Join(dir, "a"), 1<<30)) // long, and not larger
	must(t, os.Chmod(filepath.Join(dir, "closed"), 0))
	u := walk(t.Context(), Limits{}, dir)
	if u.inodes != 5 || u.bytes < 200<<10 || u.bytes > 300<<10 || u.largest != 1<<30 {
		t.Errorf("%+v", u)
	}
}

// TestWalkGoesAsDeepAsItGets walks more nested folders than a process may open or a
// path may name.
func TestWalkGoesAsDeepAsItGets(t *testing.T) {
	dir := t.TempDir()
	const depth = 3000
	at, err := unix.Open(dir, unix.O_DIRECTORY, 0)
	must(t, err)
	for range depth {
		must(t, unix.Mkdirat(at, "nested", 0o700))
		next, err := unix.Openat(at, "nested", unix.O_DIRECTORY, 0)
		must(t, err)
		unix.Close(at)
		at = next
	}
	f, err := unix.Openat(at, "file", unix.O_CREAT|unix.O_WRONLY, 0o600)
	must(t, err)
	_, err = unix.Write(f, make([]byte, 1<<20))
	must(t, err)
	unix.Close(f)
	unix.Close(at)
	var before, limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	limit = before
	limit.Cur = 256
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &before)
	if u := walk(t.Context(), Limits{}, dir); u.inodes != depth+1 || u.largest != 1<<20 {
		t.Errorf("%+v", u)
	}
}

func TestWalkStopsWhenItHasSeenEnough(t *testing.T) {
	dir := t.TempDir()
	for i := range 50 {
		sub := filepath.Join(dir, fmt.Sprint(i))
		must(t, os.Mkdir(sub, 0o700))
		for j := range 20 {
			must(t, os.WriteFile(filepath.Join(sub, fmt.Sprint(j)), []byte(strings.Repeat("x", 4096)), 0o600))
		}
	}
	if u := walk(t.Context(), Limits{Inodes: 100}, dir); u.inodes < 100 || u.inodes > 200 {
		t.Errorf("stopped at %+v", u)
	}
	if u := walk(t.Context(), Limits{Disk: 100 << 10}, dir); u.bytes < 100<<10 || u.bytes > 400<<10 {
		t.Errorf("stopped at %+v", u)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if u := walk(ended, Limits{}, dir); u.inodes > 1000 {
		t.Errorf("went on to %+v", u)
	}
}

// BenchmarkWalk walks through a task of 200,000 files, as a large project has.
func BenchmarkWalk(b *testing.B) {
	dir := b.TempDir()
	for i := range 2000 {
		sub := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(sub, 0o700); err != nil {
			b.Fatal(err)
		}
		for j := range 100 {
			f, err := os.Create(filepath.Join(sub, fmt.Sprint(j)))
			if err != nil {
				b.Fatal(err)
			}
			f.Close()
		}
	}
	b.ResetTimer()
	for b.Loop() {
		c := startClock()
		u := walk(b.Context(), Limits{}, dir)
		worked, _ := c.stop()
		b.ReportMetric(float64(worked.Milliseconds()), "cpu-ms/op")
		if u.inodes != 202_000 {
			b.Fatalf("%+v", u)
		}
	}
}

// BenchmarkMeasure measures a run of a few processes once, without control groups.
func BenchmarkMeasure(b *testing.B) {
	w := New(Config{Limits: Default(2, b.TempDir()), Slots: 2, Work: b.TempDir(), Watch: true})
	r, err := w.Begin("run.1", b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	r.Follow(os.Getpid(), false, func(*Breach) {})
	defer r.Close()
	var read reader
	for b.Loop() {
		w.measureProcesses(&read)
	}
}
