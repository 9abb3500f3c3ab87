package cli

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"yardmaster/internal/app"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/client"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/proof/rig"
)

// fresh runs a control plane that nobody has set up.
func fresh(t *testing.T) *rig.Yard {
	t.Helper()
	return rig.Boot(t, db.SQLite, rig.Log(t), func(ctx context.Context, cfg *config.Config, log *slog.Logger, ready func(rig.Plane)) error {
		return app.Run(ctx, cfg, app.Options{Version: "test", Logger: log, Ready: func(a *app.App) {
			in := a.Inside()
			ready(rig.Plane{URL: a.URL(), DB: in.DB, Tasks: in.Tasks, Blockers: in.Blockers})
		}})
	})
}

// A server is set up with the address that it printed, whichever server the last login was
// of; what it does not take is said before a password is asked for.
func TestSetupTakesTheWholeAddress(t *testing.T) {
	t.Parallel()
	gone, y := yard(t), fresh(t)
	p := newPerson(t)
	if out, code := p.terminal([]string{"auth", "login", "--url", gone.URL, "--login", "ada"}, step{"Password: ",
		rig.Password + "\r"}); code != 0 {
		t.Fatal(out)
	}
	gone.Stop()
	owner := []string{"--login", "ada", "--email", "ada@example.com", "--account", "acme"}
	whole := y.URL + "/setup/" + y.Setup
	out, code := p.terminal(append([]string{"setup", "--token", whole + "x"}, owner...))
	if code != exit.CodeFailed || strings.Contains(out, "Password") ||
		!strings.Contains(out, y.URL+", which was asked, takes no such token") {
		t.Errorf("another token: %d %s", code, out)
	}
	out, code = p.terminal(append([]string{"setup", "--token", whole}, owner...), step{"characters: ", rig.Password + "\r"},
		step{"again: ", rig.Password + "\r"})
	if code != 0 || !strings.Contains(out, "Signed in to "+y.URL) {
		t.Errorf("%d %s", code, out)
	}
	if out, code := p.terminal([]string{"open", "--print"}); code != 0 || strings.TrimSpace(out) != y.URL+"/ui/" {
		t.Errorf("the login in use is at %s", out)
	}
	if out, code := p.terminal([]string{"setup", "--token", "::/setup/x"}); code != exit.CodeMisused ||
		!strings.Contains(out, "--token: ") {
		t.Errorf("no address: %d %s", code, out)
	}
}

// A server of this machine that has ended is not where one begins again, and others of the
// person are named where it does not answer.
func TestServersThatHaveEndedAreLeft(t *testing.T) {
	t.Parallel()
	gone, y := yard(t), yard(t)
	p := newPerson(t)
	for context, at := range map[string]string{"work": y.URL, "demo": gone.URL} {
		if out, code := p.terminal([]string{"auth", "login", "--context", context, "--url", at, "--login", "ada"}, step{"Password: ",
			rig.Password + "\r"}); code != 0 {
			t.Fatal(out)
		}
	}
	if out, code := p.terminal([]string{"auth", "use", "demo"}); code != 0 && !strings.Contains(out, "demo") {
		t.Fatal(out)
	}
	gone.Stop()
	out, code := p.terminal([]string{"task", "list"})
	if code != exit.CodeNoAnswer || !strings.Contains(out, "`yardmaster auth use NAME` goes to another of your servers: work ("+y.URL+")") {
		t.Errorf("%d %s", code, out)
	}
	out, _ = p.terminal([]string{"setup", "--token", "dev_setup_x", "--login", "ada", "--email", "a@example.com", "--account", "acme"})
	if want := gone.URL + ", the server of your last login, does not run any more: this is about " + client.DefaultURL; !strings.Contains(out, want) {
		t.Errorf("setup says %s", out)
	}
}

// What is forgotten with a demo is its login alone.
func TestForgetServer(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	all, err := client.ReadLogins()
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]string{"work": "http://127.0.0.1:1", "demo": "http://127.0.0.1:2"} {
		if err := all.Put(client.Login{Name: name, URL: at, Token: "x"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := signin.Forget("http://127.0.0.1:2"); err != nil {
		t.Fatal(err)
	}
	left, err := client.ReadLogins()
	if err != nil || left.Current != "work" || len(left.Names()) != 1 {
		t.Errorf("%+v, %v", left, err)
	}
}

// The agents of a machine are told in any folder; a second box of a name is told of before
// it is made.
func TestBoxesOfThisMachine(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{
		"GET /v1/runners": `{"data": [{"id": "` + someID + `", "name": "vm", "state": "active", "presence": {"status": "online"}}]}`,
	})
	p := f.person(t)
	p.holds("box agents", 0, "opencode", "No box is in ./yardmaster-box")
	out, code := p.terminal([]string{"box", "join", "--name", "vm", "--data", t.TempDir()})
	if code == 0 || !strings.Contains(out, "There is a box vm already, "+someID+", which is online: this will be another of that name.") {
		t.Errorf("%d %s", code, out)
	}
	out, _ = p.terminal([]string{"box", "join", "--name", "other", "--data", t.TempDir()})
	if strings.Contains(out, "There is a box") {
		t.Errorf("%s", out)
	}
}
