package app

import (
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/policy"
)

type whoami struct {
	User        *struct{}
	Approved    *bool
	Scopes      []string
	Memberships []struct{}
	Account     struct{ ID, Role string }
	Credential  struct {
		Kind, ID   string
		ExpiresISO *string `json:"expires_iso"`
	}
}

// A box's token may ask who it is, is told from a person's where a row is about
// persons, and is worth nothing on the others.
func TestTokenOfABox(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, y *yard) {
		var e struct{ Token string }
		decode(t, y.send("POST", "/v1/runners/enrollments", y.owner, `{}`).want(201), &e)
		var b struct {
			ID       string
			RunToken string `json:"run_token"`
		}
		decode(t, y.send("POST", "/v1/runners/enroll", "", `{"public_key": "UAWHLZIPZAEROV7GHYQWQEUPVIUO72UHCY2C2JBR7IGCFRAGFAN6VKQU"}`,
			"X-Svc-Enroll-Token", e.Token).want(201), &b)
		var me whoami
		decode(t, y.send("GET", "/v1/me", b.RunToken, "").want(200), &me)
		if me.User != nil || me.Approved != nil || me.Scopes == nil || len(me.Scopes)+len(me.Memberships) > 0 ||
			me.Account.ID != y.acct || me.Account.Role != "" || me.Credential.Kind != "box" || me.Credential.ID != b.ID ||
			me.Credential.ExpiresISO == nil {
			t.Errorf("%+v", me)
		}
		ids := y.seed(y.acct, "acme")
		for _, o := range Ops() {
			if o.Rule.IsPublic() || o.ID == "account.me" || o.IsStream() && o.Method != "GET" {
				continue
			}
			a := y.send(o.Method, filled(o, ids), b.RunToken, "")
			if ofPeople(o) {
				a.problem(403, "user-required")
			} else {
				a.problem(401, "unauthenticated")
			}
		}
		y.send("GET", "/v1/me", b.RunToken[:len(b.RunToken)-1]+"!", "").problem(401, "unauthenticated")
		y.send("POST", "/v1/runners/"+b.ID+"/revoke", y.owner, "").want(200)
		y.send("GET", "/v1/me", b.RunToken, "").problem(401, "unauthenticated")
	})
}

// ofPeople tells whether a row is for people.
func ofPeople(o op.Op) bool {
	err := o.Rule.Check(policy.Actor{Credential: policy.PAT, CredentialID: "x", Scopes: ^policy.Set(0)})
	return err != nil && strings.Contains(err.Error(), "names a user")
}

// So may a token that nobody minted, with the scopes that it has.
func TestTokenOfNobody(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	machine := y.mint(y.acct, nil, policy.Scopes(policy.ReadAccount, policy.ReadTasks, policy.SelfPrompt), nil)
	var me whoami
	decode(t, y.send("GET", "/v1/me", machine, "").want(200), &me)
	if me.User != nil || me.Approved != nil || len(me.Scopes) != 3 || me.Credential.Kind != "pat" {
		t.Errorf("%+v", me)
	}
	y.send("GET", "/v1/me/system-prompt", machine, "").problem(403, "user-required")
	y.send("GET", "/v1/tasks", machine, "").want(200)
}
