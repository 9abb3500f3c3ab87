package app

import (
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/chaos"
	"yardmaster/internal/proof/patience"
)

// TestDatabaseThatSaysNothing holds that a request does not hang with its database: it is refused in time, and
// can be made again; both probes say what is wrong.
func TestDatabaseThatSaysNothing(t *testing.T) {
	t.Parallel()
	c, err := pgx.ParseConfig(dbtest.DSN(t, db.Postgres))
	if err != nil {
		t.Fatal(err)
	}
	to := net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
	if strings.HasPrefix(c.Host, "/") {
		to = filepath.Join(c.Host, ".s.PGSQL."+strconv.Itoa(int(c.Port)))
	}
	line, err := chaos.NewCable()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { line.Close() })
	line.Plug(to)
	dsn := url.URL{Scheme: "postgres", User: url.UserPassword(c.User, c.Password), Host: line.Addr().String(), Path: c.Database,
		RawQuery: "sslmode=disable"}
	y := start(t, db.SQLite, "--database", dsn.String())
	y.send("GET", "/v1/me", y.owner, "").want(http.StatusOK)

	line.Cut()
	a := y.send("GET", "/v1/tasks", y.owner, "").want(http.StatusServiceUnavailable)
	if a.Header.Get("Retry-After") == "" || !strings.Contains(string(a.body), "The database does not answer") {
		t.Errorf("%v %s", a.Header, a.body)
	}
	var health struct {
		Checks map[string]struct{ Status string }
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		decode(t, y.send("GET", path, "", "").want(http.StatusServiceUnavailable), &health)
		if health.Checks["database"].Status != "failed" {
			t.Errorf("%s: %+v", path, health)
		}
	}
	line.Restore()
	patience.Until(t, "requests are answered again", func() bool {
		return y.send("GET", "/v1/tasks", y.owner, "").StatusCode == http.StatusOK
	})
}
