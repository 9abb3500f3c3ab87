//go:build !race

package dashboard_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/app"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/rig"
)

// TestMain runs the tests, or a server of one of them (serve).
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		os.Exit(serve(os.Args[2:]))
	}
	flag.Parse()
	if !given("test.parallel") {
		// The tests spend half of their time waiting for servers, boxes and pages.
		if err := flag.Set("test.parallel", "4"); err != nil {
			panic(err)
		}
	}
	rig.Main(m, browser.Close)
}

// given tells whether a flag stands in the command line.
func given(name string) (yes bool) {
	flag.Visit(func(f *flag.Flag) { yes = yes || f.Name == name })
	return yes
}

//go:embed scenario.yml
var scenario []byte

// yard is a control plane that ada of acme has set up.
type yard struct {
	*rig.Yard
	app *app.App
}

// start runs a control plane until the test ends.
func start(t *testing.T, flags ...string) *yard {
	t.Helper()
	y := fresh(t, flags...)
	y.Enter()
	return y
}

// fresh runs a control plane that nobody has set up.
func fresh(t *testing.T, flags ...string) *yard {
	t.Helper()
	script := filepath.Join(t.TempDir(), "scenario.yml")
	if err := os.WriteFile(script, scenario, 0o600); err != nil {
		t.Fatal(err)
	}
	y := new(yard)
	run := func(ctx context.Context, cfg *config.Config, log *slog.Logger, ready func(rig.Plane)) error {
		return app.Run(ctx, cfg, app.Options{Version: "test", Logger: log, Ready: func(a *app.App) {
			y.app = a
			in := a.Inside()
			ready(rig.Plane{URL: "http://" + in.Listens, DB: in.DB, Tasks: in.Tasks, Blockers: in.Blockers})
		}})
	}
	y.Yard = rig.Boot(t, db.SQLite, rig.Log(t), run, append([]string{"--scenario", script}, flags...)...)
	return y
}

// call calls the API as the owner, and fails the test unless it succeeds.
func (y *yard) call(method, path, body string) (out map[string]any) {
	y.T.Helper()
	resp, text := y.Send(method, path, y.Owner, body)
	if resp.StatusCode >= http.StatusMultipleChoices {
		y.T.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	if err := json.Unmarshal(text, &out); err != nil && len(text) > 0 {
		y.T.Fatalf("%s %s: %v", method, path, err)
	}
	return out
}

// repo makes the repository acme/web, and what tasks in it need but a box.
func (y *yard) repo() {
	y.T.Helper()
	if err := y.Push("acme/web", map[string]string{"README.md": "# Web\n"}); err != nil {
		y.T.Fatal(err)
	}
	y.call("POST", "/v1/billing/keys", `{"provider": "scripted", "label": "tests"}`)
}

// box enrolls a box.
func (y *yard) box() {
	y.T.Helper()
	token, _ := y.call("POST", "/v1/runners/enrollments", `{}`)["token"].(string)
	y.Box(token)
}

// task files a task and returns its id.
func (y *yard) task(title, problem string) string {
	y.T.Helper()
	body, err := json.Marshal(map[string]string{"repo": "acme/web", "title": title, "problem": problem})
	if err != nil {
		y.T.Fatal(err)
	}
	id, _ := y.call("POST", "/v1/tasks", string(body))["task_id"].(string)
	return id
}

// link returns the path of an address that signs ada in.
func (y *yard) link(to string) string {
	y.T.Helper()
	address, err := y.app.SignInURL(y.T.Context(), y.User, y.Account, to)
	if err != nil {
		y.T.Fatal(err)
	}
	return address[strings.Index(address, "/auth/"):]
}

// status waits until a task has a status.
func (y *yard) status(task, want string) map[string]any {
	y.T.Helper()
	var t map[string]any
	y.T.Cleanup(func() {
		if y.T.Failed() {
			y.T.Logf("the task: %v", t)
		}
	})
	patience.Until(y.T, "task "+want, func() bool {
		t = y.call("GET", "/v1/tasks/"+task, "")
		return t["status"] == want
	})
	return t
}

// open opens a window in which ada is signed in.
func (y *yard) open(width, height int64) *browser.Tab {
	y.T.Helper()
	b := browser.Open(y.T, y.URL, width, height)
	b.SignIn("ada", rig.Password)
	return b
}
