package app

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/protocol"
)

// TestWhichKeyOpensWhichDoor tries each kind of credential at each kind of door, in each
// form that a door takes: testdata/keys.txt says what opens what, and all else stays shut. A
// door is open to a key if the answer is about what was asked, and not about who asks.
func TestWhichKeyOpensWhichDoor(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--rate-limits", "off")
	y.push("acme/widgets", map[string]string{"README.md": "Widgets.\n"})
	y.send("POST", "/v1/billing/keys", y.owner, `{"provider": "scripted"}`).want(http.StatusCreated)
	box := y.station(y.owner)
	y.send("POST", "/v1/tasks", y.owner, `{"repo": "acme/widgets", "title": "Do it", "problem": "Do it."}`).want(http.StatusAccepted)
	var claim protocol.ClaimReply
	if err := box.ask(protocol.CallClaim, protocol.Claim{ID: "claim", Free: 1}, &claim); err != nil || claim.Run == nil {
		t.Fatal(claim, err)
	}
	text, err := box.secret.Open(protocol.TokensPurpose(claim.Run.Run), claim.Sealed)
	if err != nil {
		t.Fatal(err)
	}
	var tokens protocol.Tokens
	if err := json.Unmarshal(text, &tokens); err != nil {
		t.Fatal(err)
	}
	rival := y.tenant("rival")
	bob := y.person("bob", rival, policy.Owner)

	cookie := y.browser()
	keys := []struct{ name, token string }{
		{"nobody", ""}, {"browser", ""}, {"person", y.mint(y.acct, &y.user, policy.Owner.Ceiling(), nil)},
		{"machine", y.mint(y.acct, nil, policy.Owner.Ceiling(), nil)}, {"operator", y.operator()}, {"box", *box.RunToken},
		{"run-git", tokens.Git}, {"run-model", tokens.Model}, {"stranger", y.mint(rival, &bob, policy.Owner.Ceiling(), nil)},
	}
	doors := []struct{ name, method, path, body string }{
		{"read", "GET", "/v1/repos/acme/widgets", ""},
		{"write", "POST", "/v1/tasks", `{"repo": "acme/widgets"}`},
		{"secrets", "GET", "/v1/secrets", ""},
		{"members", "POST", "/v1/org/members", `{}`},
		{"self", "GET", "/v1/me/github-token", ""},
		{"consent", "PUT", "/v1/me/runners/" + id.New() + "/accounts/" + id.New(), ""},
		{"operator-mint", "POST", "/v1/admin/operator-tokens", `{"name": "x", "scopes": ["admin:users"]}`},
		{"operator-read", "GET", "/v1/admin/users", ""},
		{"operator-write", "POST", "/v1/admin/users/" + id.New() + "/approve", ""},
		{"box", "POST", "/v1/runners/hardening", `{}`},
		{"events", "GET", "/v1/tasks/" + claim.Run.Task + "/events", ""},
		{"mcp", "POST", "/v1/mcp", `{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`},
		{"git-read", "GET", "/git/acme/widgets.git/info/refs?service=git-upload-pack", ""},
		{"git-write", "GET", "/git/acme/widgets.git/info/refs?service=git-receive-pack", ""},
		{"model", "POST", "/gateway/v1/messages", `{}`},
	}
	var got strings.Builder
	for _, d := range doors {
		got.WriteString(d.name + ":")
		for _, k := range keys {
			ways := [][]string{{"Authorization", "Bearer " + k.token}, {"X-Api-Key", k.token},
				{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("x:"+k.token))}}
			if k.token == "" {
				ways = [][]string{nil}
			}
			if k.name == "browser" {
				ways = [][]string{{"Cookie", cookie, "Origin", y.URL()}}
			}
			open := false
			for _, way := range ways {
				a := y.send(d.method, d.path, "", d.body, way...)
				unknown := a.StatusCode == 404 && slices.Contains([]string{"read", "events", "git-read", "git-write"}, d.name)
				open = open || a.StatusCode != 401 && a.StatusCode != 403 && !unknown
			}
			if open {
				got.WriteString(" " + k.name)
			}
		}
		got.WriteString("\n")
	}
	want, err := os.ReadFile("testdata/keys.txt")
	if err != nil || got.String() != string(want) {
		t.Errorf("%v; what opens what is now\n%s\nand was\n%s", err, &got, want)
	}
}
