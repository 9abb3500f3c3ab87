package app

import (
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/patience"
)

// A second server on one database is refused, leaves nothing behind, and has
// changed nothing; both serve if both are configured to.
func TestSecondServerIsRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		key := []string{"--master-key", strings.Repeat("ab", 32)}
		one := start(t, e, append(flags, key...)...)
		elsewhere := filepath.Join(t.TempDir(), "new")
		second := append([]string{"--data", elsewhere, "--database", flags[3]}, key...)
		said := turnedAway(t, second...)
		if !strings.HasPrefix(said, "database-in-use: ") || strings.Contains(said, "\n") {
			t.Errorf("a second server: %s", said)
		}
		if left := tree(t, filepath.Dir(elsewhere)); len(left) != 1 {
			t.Errorf("it left %q", left)
		}
		one.send("GET", "/v1/me", one.owner, "").want(http.StatusOK)
		if e == db.SQLite {
			return
		}
		turnedAway(t, append(second, "--cluster", "on", "--blob", "off")...)
		one.stop()
		shared := append(flags, append(key, "--cluster", "on", "--blob", "off")...)
		one = one.again(e, shared)
		one.again(e, append(second, "--cluster", "on", "--blob", "off")).send("GET", "/readyz", "", "").want(http.StatusOK)
		turnedAway(t, "--data", t.TempDir(), "--database", flags[3], key[0], key[1])
	})
}

// Repositories whose folders are gone are named; who asks for them is told, and
// no empty one takes their place.
func TestLostRepositories(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		one := start(t, e, flags...)
		one.push("acme/web", map[string]string{"README": "hello\n"})
		git := filepath.Join(flags[1], "git")
		one.stop()
		if err := os.Rename(git, git+".away"); err != nil {
			t.Fatal(err)
		}
		two := one.again(e, flags)
		var health struct {
			Status string
			Checks map[string]struct{ Status, Detail string }
		}
		decode(t, two.send("GET", "/healthz", "", "").want(http.StatusOK), &health)
		if c := health.Checks["repositories"]; health.Status != "degraded" || c.Status != "degraded" ||
			!strings.Contains(c.Detail, "repository is not there") {
			t.Errorf("health: %+v", health)
		}
		two.send("GET", "/readyz", "", "").want(http.StatusOK)
		if err := two.tryPush("acme/web", map[string]string{"README": "again\n"}); err == nil ||
			!strings.Contains(err.Error(), "put it back from a copy") && !strings.Contains(err.Error(), "503") {
			t.Errorf("a push to a lost repository: %v", err)
		}
		if _, err := os.Stat(filepath.Join(git, "acme", "web.git")); !os.IsNotExist(err) {
			t.Errorf("there is another in its place: %v", err)
		}
		if _, err := two.host.Head(t.Context(), builtIn("acme", "web"), "main"); fault.From(err).Slug != "repository-lost" {
			t.Errorf("what the product asks of it: %v", err)
		}
		if err := os.RemoveAll(git); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(git+".away", git); err != nil {
			t.Fatal(err)
		}
		decode(t, two.send("GET", "/healthz", "", "").want(http.StatusOK), &health)
		if health.Checks["repositories"].Status != "ok" { // the disk of this machine may be full
			t.Errorf("health with the folder back: %+v", health)
		}
		if _, err := two.host.Head(t.Context(), builtIn("acme", "web"), "main"); err != nil {
			t.Error(err)
		}
	})
}

// A server that is told to stop says so for a while, and answers.
func TestStoppingIsNotReady(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--stop-delay", "10s")
	over := make(chan time.Time)
	y.after = func(d time.Duration) <-chan time.Time {
		if d != 10*time.Second {
			t.Errorf("it waits for %s", d)
		}
		return over
	}
	y.send("GET", "/readyz", "", "").want(http.StatusOK)
	ended := make(chan struct{})
	go func() {
		y.stop()
		close(ended)
	}()
	patience.Until(t, "it is stopping", func() bool {
		select {
		case <-ended:
			t.Fatal("it ended at once")
		default:
		}
		return y.stopping.Load()
	})
	var ready struct{ Status string }
	decode(t, y.send("GET", "/readyz", "", "").want(http.StatusServiceUnavailable), &ready)
	if ready.Status != "stopping" {
		t.Errorf("while stopping: %+v", ready)
	}
	y.send("GET", "/v1/me", y.owner, "").want(http.StatusOK)
	over <- time.Now()
	patience.Ended(t, "the end of the server", ended)
}

// What is said of the room in the data folder is said once each time it changes.
func TestRoomIsWatched(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    space
		want string
	}{
		{space{free: 20 << 30, used: 80 << 30}, ""},
		{space{free: 10 << 30, used: 90 << 30}, "90 % full"},
		{space{free: 1<<20 - 1, used: 1}, "no room left"},
		{space{}, "no room left"},
	} {
		err := c.s.trouble()
		if got := fmt.Sprint(err); (err == nil) != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %s", c.s, got)
		}
	}
	var log strings.Builder
	y := start(t, db.SQLite)
	a := &App{cfg: y.cfg, db: y.db, log: slog.New(slog.NewTextHandler(&log, nil))}
	if level := a.lookAtStorage(t.Context(), slog.LevelError); level == slog.LevelError || !strings.Contains(log.String(), "free_bytes=") {
		t.Errorf("%v: %s", level, &log)
	} else if before := log.Len(); a.lookAtStorage(t.Context(), level) != level || log.Len() != before {
		t.Errorf("said again: %s", &log)
	}
}

// Who signs in through a proxy is refused with the addresses that do not fit, and
// let in at those that the server is told are its own.
func TestSignInBehindAProxy(t *testing.T) {
	t.Parallel()
	const origin = "https://y.example:8443"
	body := `{"login": "ada", "password": "` + password + `"}`
	y := start(t, db.SQLite)
	p := y.send("POST", "/auth/password", "", body, "Origin", origin, "X-Forwarded-Host", "y.example:8443").problem(403, "cross-origin")
	if detail, _ := p["detail"].(string); !strings.Contains(detail, origin) || !strings.Contains(detail, y.URL()) ||
		!strings.Contains(detail, "base-url") {
		t.Errorf("the refusal says %q", detail)
	}
	cookie := y.browser()
	p = y.send("POST", "/v1/tokens", "", "{}", "Cookie", cookie, "Origin", origin).problem(403, "cross-origin")
	if detail, _ := p["detail"].(string); !strings.Contains(detail, origin) || !strings.Contains(detail, y.URL()) {
		t.Errorf("the refusal of a cookie says %q", detail)
	}
	y.stop()
	y = start(t, db.SQLite, "--own-origins", origin)
	at := []string{"Origin", origin, "Host", "inner:8080"}
	y.send("POST", "/auth/password", "", body, at...).want(http.StatusOK)
	y.send("POST", "/v1/tokens", "", "{}", append(at, "Cookie", y.browser())...).want(http.StatusCreated)
}

// What keeps the data folder from being used is said with the setting that names
// another.
func TestUnusableDataFolder(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	for _, data := range []string{file, filepath.Join(file, "below")} {
		if said := turnedAway(t, "--data", data); !strings.Contains(said,
			data+" cannot be used as the data folder: name another with --data") {
			t.Errorf("a file for a folder: %s", said)
		}
	}
	cfg := &config.Config{Data: "/srv/data"}
	for want, err := range map[string]error{
		"nothing can be written to":  &fs.PathError{Op: "mkdir", Path: "/srv", Err: syscall.EROFS},
		"this user may not write":    &fs.PathError{Op: "open", Path: "/srv/data/lock", Err: syscall.EACCES},
		"there is no room":           &fs.PathError{Op: "write", Path: "/srv/data/master.key", Err: syscall.ENOSPC},
		"open /etc/keys: permission": &fs.PathError{Op: "open", Path: "/etc/keys", Err: syscall.EACCES}, // another setting names it
	} {
		said := explain(cfg, err).Error()
		if !strings.Contains(said, want) || strings.Contains(said, "--data") == strings.Contains(want, "/etc") {
			t.Errorf("%v: %s", err, said)
		}
	}
}
