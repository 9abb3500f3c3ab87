package app

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/protocol"
)

// TestBoxesOfOtherAccounts holds that an account gets no work of another one by what its own
// admins do, whoever belongs to it; and that a box from outside works once its owner and the
// other account have each said so, is seen there, and stops as soon as one takes it back.
func TestBoxesOfOtherAccounts(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := start(t, e)
			y.push("acme/widgets", map[string]string{"README.md": "Widgets.\n"})
			y.send("POST", "/v1/billing/keys", y.owner, `{"provider": "scripted"}`).want(http.StatusCreated)
			y.send("PUT", "/v1/secrets/DEPLOY_KEY", y.owner, `{"value": "the canary of acme"}`).want(http.StatusOK)
			rival := y.tenant("rival")
			bob := y.person("bob", rival, policy.Owner)
			theirs := y.mint(rival, &bob, policy.Owner.Ceiling(), nil)
			y.in(rival, func(tx *db.Tx) error {
				return seed.Member{Account: rival, User: y.user, Role: string(policy.Admin)}.Add(tx)
			})
			evil := y.station(theirs)
			task := func() (id string) {
				var made struct {
					ID string `json:"task_id"`
				}
				decode(t, y.send("POST", "/v1/tasks", y.owner, `{"repo": "acme/widgets", "title": "Do it", "problem": "Do it."}`).
					want(http.StatusAccepted), &made)
				return made.ID
			}
			first := task()
			n := 0
			claims := func() *protocol.Start {
				t.Helper()
				n++
				var claim protocol.ClaimReply
				if err := evil.ask(protocol.CallClaim, protocol.Claim{ID: "claim-" + strings.Repeat("i", n), Free: 4}, &claim); err != nil {
					t.Fatal(err)
				}
				return claim.Run
			}
			owner := "/v1/runners/" + evil.ID + "/owner"
			answer := "/v1/me/runners/" + evil.ID + "/accounts/"
			outside := func() (ids []string) {
				var list struct {
					Data []struct {
						ID      string
						Outside *struct{ Account, Right string }
					}
				}
				decode(t, y.send("GET", "/v1/runners?filter=outside:true", y.owner, "").want(200), &list)
				for _, b := range list.Data {
					if b.Outside != nil {
						ids = append(ids, b.Outside.Account+" "+b.Outside.Right+" "+b.ID)
					}
				}
				return ids
			}
			nothing := func(why string) {
				t.Helper()
				if run := claims(); run != nil {
					t.Fatalf("%s: the box of rival has a run of acme's", why)
				}
				if seen := outside(); seen != nil {
					t.Errorf("%s: acme sees %v", why, seen)
				}
			}
			nothing("ada belongs to both")
			var asked struct{ Consent *string }
			decode(t, y.send("PUT", owner, theirs, `{"target": "user", "owner_id": "`+y.user+`"}`).want(200), &asked)
			if asked.Consent == nil || *asked.Consent != "pending" {
				t.Errorf("the answer says consent %v", asked.Consent)
			}
			nothing("rival has named ada")
			all := policy.Owner.Ceiling() | policy.Scopes(policy.SelfKeys)
			y.send("PUT", answer+rival, y.mint(rival, &y.user, all, nil), "").problem(403, "session-required")
			y.send("PUT", answer+y.acct, theirs, "").want(403)
			nothing("tokens were tried")
			y.send("PUT", "/v1/account/floors", y.owner, `{"outside_boxes": true}`).want(200)
			nothing("acme lets boxes in")

			cookie := y.browser()
			agree := func(account string) {
				t.Helper()
				y.send("PUT", answer+account, "", "", "Cookie", cookie, "Origin", y.URL()).want(200)
			}
			agree(rival)
			nothing("ada owns it")
			agree(y.acct)
			run := claims()
			if run == nil || run.Task != first {
				t.Fatalf("with all that it takes, it claims %+v", run)
			}
			if got, want := outside(), "rival consent "+evil.ID; !slices.Equal(got, []string{want}) {
				t.Errorf("acme sees %v, want %s", got, want)
			}
			var given protocol.Secrets
			if err := evil.ask(protocol.CallSecrets, protocol.SecretsAsk{Run: run.Run, Attempt: 1}, &given); err != nil {
				t.Fatal(err)
			}
			trail := string(y.send("GET", "/v1/audit/events?filter=kind:run.secrets_given", y.owner, "").want(200).body)
			if !strings.Contains(trail, `"kind":"consent","user_id":"`+y.user) {
				t.Errorf("on record: %s", trail)
			}

			begun := protocol.Envelope{V: protocol.Version, Run: run.Run, Attempt: 1, Events: []protocol.Event{
				{Seq: 1, Kind: protocol.EventAccepted}, {Seq: 2, Kind: protocol.EventStarted, Data: []byte(`{"agent":"builtin"}`)}}}
			if err := evil.ask(protocol.CallAppend, begun, nil); err != nil {
				t.Fatal(err)
			}
			y.send("POST", "/v1/fleet/runs/"+run.Run+"/message", y.owner, `{"message": "Go on.", "wait_ms": 0}`).want(http.StatusOK)
			waits := func() []protocol.Command {
				var next protocol.Commands
				if err := evil.ask(protocol.CallCommands, struct{}{}, &next); err != nil {
					t.Fatal(err)
				}
				return next.Commands
			}
			if got := waits(); len(got) != 1 || got[0].Text != "Go on." {
				t.Errorf("of a message to its run it is given %+v", got)
			}

			y.send("DELETE", answer+y.acct, "", "", "Cookie", cookie, "Origin", y.URL()).want(200)
			if err := evil.ask(protocol.CallSecrets, protocol.SecretsAsk{Run: run.Run, Attempt: 1}, &given); err == nil {
				t.Error("it is given secrets after that was taken back")
			}
			if got := waits(); len(got) != 0 {
				t.Errorf("it is given what was said before that was taken back: %+v", got)
			}
			nothing("ada has taken it back")
			if got := string(y.send("GET", "/v1/tasks/"+first, y.owner, "").want(200).body); !strings.Contains(got, `"status":"pending"`) {
				t.Errorf("the task is %s", got)
			}
		})
	}
}
