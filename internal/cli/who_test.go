package cli

import (
	"net/http"
	"strings"
	"testing"

	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/issue"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/rig"
	"yardmaster/internal/proof/seed"
)

// People are named by their logins on a terminal, by no id, in whatever shows who did or wanted
// something.
func TestPeopleAreNamedByTheirLogins(t *testing.T) {
	t.Parallel()
	y := yard(t, "--allow-networks", "127.0.0.0/8")
	if err := y.Push("acme/web", map[string]string{"a": "a\n"}); err != nil {
		t.Fatal(err)
	}
	p := newPerson(t)
	does := func(command string, steps ...step) string {
		t.Helper()
		args := strings.Fields(command)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "~", " ")
		}
		shown, code := p.terminal(args, steps...)
		if code != 0 {
			t.Fatalf("%s: exit code %d\n%s", command, code, shown)
		}
		return shown
	}
	does("auth login --url "+y.URL+" --login ada", step{"Password", rig.Password + "\r"}) // ada herself, no token of hers
	does("task create --repo acme/web Wait.")
	held := object.Text(rowsAt(t, y, noun.Called("task"))[0]["id"])
	does("ask file --repo acme/web Wanted.")
	does("webhook create --name hook --url http://127.0.0.1:1/")
	does("webhook test hook")
	does("schedule create --title Daily --body Look. --cron 0~6~*~*~1")
	var about string
	y.OnTask(held, func(tx *db.Tx, row *task.Row) error {
		r, _, err := repo.ByID(tx, row.RepoID)
		if err == nil {
			about, err = issue.Request(tx, r, "It fails", "Always.", nil)
		}
		return err
	})
	y.Block(held, "question", nil)
	does("issue escalate " + about + " --category unclear Who?")
	digestsOf(t, y)
	does("escalation resolve " + object.Text(rowsAt(t, y, noun.Called("escalation"))[0]["id"]) + " Done.")
	row := func(kind string) string { n := noun.Called(kind); return n.ID(rowsAt(t, y, n)[0]) }
	for command, names := range map[string]bool{
		"task view " + held: true, "ask view " + row("ask"): true, "escalation list": true,
		"escalation view " + row("escalation"): true, "schedule view " + row("schedule"): true, "audit list --all": true,
		"digest view " + row("digest"): true, "webhook deliveries": false, "notification list --state all": false, "status": false,
		"ask get " + row("ask"): false, "task attempts " + held: false, "secret list": false, "template list": false,
	} {
		shown := strings.ReplaceAll(does(command), p.home, "")
		if names && !strings.Contains(shown, "ada") {
			t.Errorf("%s does not say who:\n%s", command, shown)
		}
		if strings.Contains(shown, "user:") || strings.Contains(shown, y.User) {
			t.Errorf("%s names somebody by the id:\n%s", command, shown)
		}
	}
}

// Lists and views on a terminal name who did something, also somebody who has left, and for
// a token that may not list members.
func TestWhoHasLeftIsNamed(t *testing.T) {
	t.Parallel()
	y := yard(t, "--allow-networks", "127.0.0.0/8")
	bob := id.New()
	y.Write(y.Account, func(tx *db.Tx) error {
		return seed.Add(tx, seed.User{ID: bob, Login: "bob"}, seed.Member{Account: y.Account, User: bob, Role: "admin"})
	})
	theirs := y.Mint(policy.PAT, y.Account, bob, policy.Admin.Ceiling(), nil)
	for _, call := range [][4]string{
		{"PUT", "/v1/secrets/DEPLOY_KEY", theirs, `{"value": "x"}`},
		{"POST", "/v1/webhooks", theirs, `{"name": "ours", "url": "http://127.0.0.1:9/x"}`},
		{"DELETE", "/v1/org/members/" + bob, y.Owner, ""},
	} {
		if resp, text := y.Send(call[0], call[1], call[2], call[3]); resp.StatusCode >= http.StatusMultipleChoices {
			t.Fatalf("%s %s: %d %s", call[0], call[1], resp.StatusCode, text)
		}
	}
	narrow := y.Mint(policy.PAT, y.Account, "", policy.Scopes(policy.WriteSecrets, policy.ReadWebhooks, policy.ReadSessions), nil)
	for _, bearer := range []string{y.Owner, narrow} {
		p := newPerson(t, "YARDMASTER_URL="+y.URL, "YARDMASTER_TOKEN="+bearer)
		for _, words := range []string{"secret list", "webhook list", "audit list"} {
			shown, code := p.terminal(strings.Fields(words))
			if code != 0 || !strings.Contains(shown, "bob") || strings.Contains(shown, "user:") {
				t.Errorf("%s, %d:\n%s", words, code, shown)
			}
		}
	}
	p := newPerson(t, "YARDMASTER_URL="+y.URL, "YARDMASTER_TOKEN="+narrow)
	if shown, _ := p.terminal([]string{"secret", "list", "--json", "updated_by"}); !strings.Contains(shown, "user:"+bob) {
		t.Errorf("what programs read has another name:\n%s", shown)
	}
}
