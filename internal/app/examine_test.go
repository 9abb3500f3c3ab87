package app

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/config"
	"yardmaster/internal/db/dbtest"
)

// TestExamine breaks one part of a deployment at a time, and wants that part to be found, and no
// other.
func TestExamine(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := start(t, e)
			other, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			stranger := &http.Server{Handler: http.NotFoundHandler()}
			go stranger.Serve(other)
			t.Cleanup(func() { stranger.Close() })
			find := func(setting func(*config.Config)) (bad []string) {
				t.Helper()
				cfg := *y.cfg
				cfg.BaseURL, cfg.Listen = "", strings.TrimPrefix(y.base, "http://")
				setting(&cfg)
				found := Examine(t.Context(), &cfg)
				if len(found) < 8 {
					t.Errorf("few parts: %v", found)
				}
				for _, f := range found {
					if part, _, _ := strings.Cut(f.What, ":"); !f.OK && part != "open files" && part != "disk" { // as this machine is
						bad = append(bad, part)
					}
					if f.OK != (f.Then == "") || strings.Contains(f.What, "hush") {
						t.Errorf("%+v", f)
					}
				}
				return bad
			}
			closed := "127.0.0.1:1"
			for want, setting := range map[string]func(*config.Config){
				"":                    func(*config.Config) {},
				"data folder":         func(c *config.Config) { c.Data, c.KeyFile = "/nowhere", filepath.Join(c.Data, "master.key") },
				"master key":          func(c *config.Config) { c.KeyFile = "/nowhere/key" },
				"database":            func(c *config.Config) { c.Database = "sqlite:/nowhere/y.db" },
				"server":              func(c *config.Config) { c.Listen = closed },
				"mail server":         func(c *config.Config) { c.SMTPURL = "smtp://u:hush@" + closed },
				"counts of requests":  func(c *config.Config) { c.Redis = "redis://:hush@" + closed + "/0" },
				"collector of traces": func(c *config.Config) { c.OTLPEndpoint = "http://" + closed },
				"store of objects":    func(c *config.Config) { c.Blob = "s3+http://AK:hush@" + closed + "/objects" },
				"name, server":        func(c *config.Config) { c.BaseURL = "http://nobody.invalid" },
				"master key, database": func(c *config.Config) {
					c.Database, c.KeyFile = "postgres://u:hush@"+closed+"/y", "/nowhere/key"
				},
			} {
				if bad := find(setting); strings.Join(bad, ", ") != want {
					t.Errorf("%v, want %s", bad, want)
				}
			}
			if bad := find(func(c *config.Config) { c.Listen = other.Addr().String() }); !slices.Equal(bad, []string{"server"}) {
				t.Errorf("another server: %v", bad)
			}
			if err := os.Chmod(y.cfg.Data, 0o755); err != nil {
				t.Fatal(err)
			}
			if bad := find(func(*config.Config) {}); !slices.Equal(bad, []string{"data folder"}) {
				t.Errorf("a folder that others look into: %v", bad)
			}
		})
	}
}
