//go:build !race

package dashboard_test

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"yardmaster/internal/app"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

func TestWalk(t *testing.T) {
	y := rig.Boot(t, db.SQLite, rig.Log(t), func(ctx context.Context, cfg *config.Config, log *slog.Logger, ready func(rig.Plane)) error {
		return app.Run(ctx, cfg, app.Options{Version: "test", Logger: log, Ready: func(a *app.App) {
			in := a.Inside()
			ready(rig.Plane{URL: a.URL(), DB: in.DB, Tasks: in.Tasks, Blockers: in.Blockers})
		}})
	})
	y.Enter()
	b := browser.Open(t, y.URL, 1440, 900)
	b.Go("/")
	b.See("Sign in")
	b.SignIn("ada@example.com", rig.Password)
	b.See("First steps")
	b.Picture(os.Getenv("SHOTS") + "/home.png")
	b.Press("g", "t")
	b.See("No tasks yet")
	b.Picture(os.Getenv("SHOTS") + "/tasks.png")
	t.Logf("%q", b.Complaints())
}
