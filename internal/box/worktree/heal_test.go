package worktree

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"yardmaster/internal/proof/chance"
	"yardmaster/internal/proof/patience"
)

// healed fetches and checks out as a box does, and answers how often it had to repair the
// cache.
func healed(t *testing.T, dir string, h *host) (w *Checkout, times int) {
	t.Helper()
	for ; ; times++ {
		c, err := Open(t.Context(), dir)
		if err == nil {
			err = c.Fetch(t.Context(), h.url, token)
		}
		if err == nil {
			w, err = c.Checkout(t.Context(), filepath.Join(t.TempDir(), "task"), "svc/x--01234567", "main", agentID)
		}
		if err == nil {
			return w, times
		}
		if times == 2 || !Broken(err) {
			t.Fatalf("after %d repairs: %v", times, err)
		}
		if err := c.Heal(t.Context(), err); err != nil {
			t.Fatal(err)
		}
	}
}

// objectFiles lists the loose objects, packs and indexes of a cache.
func objectFiles(t *testing.T, c *Cache, suffix string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(c.Objects(), func(path string, d fs.DirEntry, err error) error {
		loose := fanout.MatchString(filepath.Base(filepath.Dir(path)))
		if err == nil && !d.IsDir() && (suffix == "" || strings.HasSuffix(path, suffix) || suffix == "loose" && loose) {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s: %v", suffix, err)
	}
	return files
}

// TestCacheHeals holds that a cache which a power cut has damaged is whole after a repair,
// that what was kept and is whole is kept still, and that checkouts go on.
func TestCacheHeals(t *testing.T) {
	t.Parallel()
	all := func(suffix string, change func(path string, b []byte) error) func(*testing.T, *Cache) {
		return func(t *testing.T, c *Cache) {
			for _, path := range objectFiles(t, c, suffix) {
				b, err := os.ReadFile(path)
				if err := errors.Join(err, os.Chmod(path, 0o644), change(path, b)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	empty := func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o644) }
	zeros := func(path string, b []byte) error { return os.WriteFile(path, make([]byte, len(b)), 0o644) }
	middle := func(path string, b []byte) error {
		clear(b[len(b)/3 : 2*len(b)/3])
		return os.WriteFile(path, b, 0o644)
	}
	half := func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)/2], 0o644) }
	put := func(name, text string) func(*testing.T, *Cache) {
		return func(t *testing.T, c *Cache) { write(t, c.dir, map[string]string{name: text}) }
	}
	for name, damage := range map[string]func(*testing.T, *Cache){
		"a lock of a branch":             put(heads+"main.lock", ""),
		"a lock of all refs":             put("packed-refs.lock", ""),
		"no objects":                     all("", func(path string, _ []byte) error { return os.Remove(path) }),
		"empty objects and packs":        all("", empty),
		"objects and packs of zeros":     all("", zeros),
		"empty loose objects":            all("loose", empty),
		"loose objects, damaged inside":  all("loose", middle),
		"empty packs":                    all(".pack", empty),
		"packs that are cut off":         all(".pack", half),
		"packs, damaged inside":          all(".pack", middle),
		"empty indexes":                  all(".idx", empty),
		"indexes, damaged inside":        all(".idx", middle),
		"packed refs of zeros":           put("packed-refs", strings.Repeat("\x00", 200)),
		"packed refs that are cut off":   put("packed-refs", "# pack-refs with: peeled fully-peeled sorted \n0123"),
		"a branch without a commit":      put(heads+"main", ""),
		"a branch of zeros":              put(heads+"main", strings.Repeat("\x00", 41)),
		"a branch of a missing commit":   put(heads+"old", strings.Repeat("1", 40)+"\n"),
		"a tag of nothing":               put(tags+"v1", ""),
		"an empty HEAD":                  put("HEAD", ""),
		"an empty configuration":         put("config", ""),
		"a configuration of zeros":       put("config", strings.Repeat("\x00", 66)),
		"what is kept, without a commit": put(keptAt("other", ""), ""),
		"what is kept, of nothing":       put(keptAt("other", ""), strings.Repeat("2", 40)+"\n"),
		"what a run has, without one":    put("refs/box/RUN/base", ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			git(t, h.bare, "tag", "-a", "v1", "-m", "1", "main")
			c := fetched(t, h)
			running := checkout(t, c)
			// A pack, loose objects, and work that is kept.
			git(t, c.dir, "--git-dir="+c.dir, "repack", "-a", "-d", "-q")
			write(t, running.dir, map[string]string{"work": "kept\n"})
			r := collect(t, running)
			if err := c.Keep(t.Context(), "svc/x--01234567", r.Tip, ""); err != nil {
				t.Fatal(err)
			}
			damage(t, c)
			opened.Delete(c.dir) // as in a new process
			h.commitRaw(t, map[string]string{"upstream": "new\n"})
			w, times := healed(t, c.dir, h)
			if at(t, c, w.base, "upstream") != "new" || git(t, w.dir, "status", "--porcelain") != "" ||
				git(t, w.dir, "describe", "--tags") == "" {
				t.Error("the checkout is not what the remote has")
			}
			git(t, w.dir, "fsck", "--full", "--strict")
			git(t, c.dir, "--git-dir="+c.dir, "fsck", "--full", "--strict")
			if again, more := healed(t, c.dir, h); more != 0 || again.base != w.base {
				t.Errorf("it was repaired %d times, and %d times after that", times, more)
			}
			put := map[string]string{"more": "work\n"}
			write(t, w.dir, put)
			if r := collect(t, w); !slices.Equal(r.Paths, []string{"more"}) {
				t.Errorf("%+v", r)
			}
			git(t, running.dir, "log", "-p")
			whole := !strings.Contains(name, "object") && !strings.Contains(name, "loose")
			if sha, err := c.Kept(t.Context(), "svc/x--01234567", ""); (err == nil) != whole || whole && sha != r.Tip {
				t.Errorf("kept: %q, %v", sha, err)
			}
		})
	}
}

// TestLocksOfTheLiving holds that no lock is taken away while a git works on the cache, be
// it one whose box was killed.
func TestLocksOfTheLiving(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	c := fetched(t, h)
	living, stop := context.WithCancel(t.Context())
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := c.git("cat-file", "--batch")
	cmd.stdin = in
	ended := make(chan error)
	go func() { _, err := cmd.run(living); ended <- err }()
	held := func() bool { // somebody has the lock
		done, cancel := context.WithCancel(context.Background())
		cancel()
		release, err := lock(done, c.aliveFile())
		if err == nil {
			release()
		}
		return err != nil
	}
	patience.Until(t, "git works on the cache", held)
	write(t, c.dir, map[string]string{heads + "main.lock": ""})
	opened.Delete(c.dir)
	h.commitRaw(t, map[string]string{"upstream": "new\n"})
	if _, err := Open(t.Context(), c.dir); err != nil {
		t.Fatal(err)
	}
	if err := c.Fetch(t.Context(), h.url, token); !Broken(err) {
		t.Errorf("with the lock of another: %v", err)
	}
	stop()
	<-ended
	feed.Close()
	in.Close()
	if w, times := healed(t, c.dir, h); times > 1 || at(t, c, w.base, "upstream") != "new" {
		t.Errorf("repaired %d times", times)
	}
}

// TestKilledWhileItFetches kills git and all its children at any moment of a fetch. The next
// fetch finds a cache that serves, or repairs it.
func TestKilledWhileItFetches(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	c := fetched(t, h)
	rng := rand.New(rand.NewPCG(chance.Seed(t), 1))
	for i := range 12 {
		h.commitRaw(t, map[string]string{"big": strings.Repeat(string(rune('a'+i)), 1<<16), "n": string(rune('a' + i))})
		cmd := exec.Command("git", "--git-dir="+c.dir, "fetch", "-q", "--no-write-fetch-head", h.bare, "+refs/heads/*:"+heads+"*")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Env = append(userEnv, "GIT_TRACE2_EVENT=2") // tells what it does, a line for each step
		steps, err := cmd.StderrPipe()
		if err := errors.Join(err, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		told := bufio.NewScanner(steps)
		for range rng.IntN(150) {
			told.Scan()
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		opened.Delete(c.dir)
		if w, _ := healed(t, c.dir, h); at(t, c, w.base, "n") != string(rune('a'+i)) {
			t.Errorf("round %d: not what the remote has", i)
		}
	}
	git(t, c.dir, "--git-dir="+c.dir, "fsck", "--full", "--strict")
}

// TestHostsFaultIsNotTheCaches holds that an error of the remote does not have the cache
// repaired.
func TestHostsFaultIsNotTheCaches(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	c := fetched(t, h)
	for _, status := range []int64{401, 403, 404, 429, 500, 502} {
		h.fail.Store(status)
		if err := c.Fetch(t.Context(), h.url, token); err == nil || Broken(err) {
			t.Errorf("%d: %v", status, err)
		}
	}
	h.fail.Store(0)
	for _, object := range objectFiles(t, &Cache{dir: h.bare}, "loose") { // the remote is damaged
		if err := errors.Join(os.Chmod(object, 0o644), os.WriteFile(object, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	fresh, err := Open(t.Context(), filepath.Join(t.TempDir(), "fresh"))
	if err != nil {
		t.Fatal(err)
	}
	if err := fresh.Fetch(t.Context(), h.url, token); err == nil || Broken(err) {
		t.Errorf("a damaged remote: %v", err)
	}
}
