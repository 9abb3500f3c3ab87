package app

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// pathParams lists the parameters in a row's path.
func pathParams(path string) (names []string) {
	for seg := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(seg, "{") {
			names = append(names, strings.TrimSuffix(strings.Trim(seg, "{}"), "..."))
		}
	}
	return names
}

// filled puts values into a row's path; {id} is named by the row's group.
func filled(o op.Op, values map[string]string) string {
	path := o.Path
	for _, name := range pathParams(path) {
		value := values[name]
		if name == "id" {
			value, _, _ = strings.Cut(o.ID, ".")
			value = values[value]
		}
		if value == "" {
			value = id.Random()
		}
		path = strings.Replace(path, "{"+name+"}", value, 1)
	}
	return path
}

// noScope are the rows that need a valid credential but no scope of it, and
// why.
var noScope = map[string]string{
	"mcp.rpc":            "each verb asserts its own inside",
	"mcp.stream_refused": "there is nothing behind it",
	"stream.subscribe":   "each topic asserts its own inside",

	"account.me":         "tells every credential what it holds",
	"account.next_steps": "tells every credential what it lacks",
	"auth.logout":        "ends the session it is called with",
	"auth.reauth":        "is about the session it is called with",
}

func TestEveryRowIsGuarded(t *testing.T) {
	y := start(t, db.SQLite)
	everything := policy.Scopes(policy.Vocabulary()...)
	for _, o := range Ops() {
		if o.Rule.IsPublic() {
			continue
		}
		t.Run(o.ID, func(t *testing.T) {
			y := &yard{App: y.App, t: t, acct: y.acct, user: y.user}
			path := filled(o, nil)
			if o.Method == "HEAD" {
				t.Fatal("HEAD follows from GET")
			}
			y.send(o.Method, path, "", "").problem(401, "unauthenticated")
			y.send(o.Method, path, id.Secret(id.PAT), "").problem(401, "unauthenticated")
			need, unknown := policy.ParseScopes(o.Rule.Names())
			if len(unknown) > 0 {
				t.Fatalf("the rule names scopes that do not exist: %v", unknown)
			}
			if noScope[o.ID] != "" {
				return
			}
			if need == 0 {
				t.Fatal("the rule demands no scope: say why in the table")
			}
			// Without each one of the scopes alone, all others there.
			for _, name := range need.Names() {
				one, _ := policy.ParseScopes([]string{name})
				p := y.send(o.Method, path, y.mint(y.acct, nil, everything&^one, nil), "").problem(403, "missing-scope")
				if got, _ := json.Marshal(p["missing_scopes"]); string(got) != `["`+name+`"]` {
					t.Errorf("missing_scopes is %s, not %s", got, name)
				}
			}
		})
	}
	for _, known := range slices.Sorted(maps.Keys(noScope)) {
		if !slices.ContainsFunc(Ops(), func(o op.Op) bool { return o.ID == known }) {
			t.Errorf("there is no %s: remove it from the table", known)
		}
	}
}

// personal are the rows for a credential that names a user.
var personal = map[string]string{"account.accept_tos": "user-required", "account.active_account_switch": "user-required", "invitation.accept": "user-required", "blocker.answer": "user-required",
	"self.system_prompt_get": "user-required", "self.system_prompt_set": "user-required", "self.system_prompt_clear": "user-required", "auth.logout": "user-required", "member.leave": "user-required"}

func TestMachinesHaveNoPersonalSide(t *testing.T) {
	y := start(t, db.SQLite)
	machine := y.mint(y.acct, nil, policy.Scopes(policy.Vocabulary()...), nil)
	for _, o := range Ops() {
		if slug := personal[o.ID]; slug != "" {
			y.send(o.Method, o.Path, machine, "").problem(403, slug)
		}
	}
	y.send("POST", "/auth/logout", y.owner, "").problem(403, "session-required")
	var me struct {
		User     any
		Approved any
		Scopes   []string
	}
	decode(t, y.send("GET", "/v1/me", machine, "").want(200), &me)
	if me.User != nil || me.Approved != nil || len(me.Scopes) == 0 {
		t.Errorf("a machine is somebody: %+v", me)
	}
}

// bodies are what rows with required fields are sent.
var bodies = map[string]string{
	"member.set_role":           `{"role": "viewer"}`,
	"token.rename":              `{"name": "x"}`,
	"account.oss_verify_decide": `{"decision": "approve", "confirm": true}`,
	"account.set_member_role":   `{"role": "viewer"}`,
	"account.set_tier":          `{"tier": "free", "confirm": true}`,
	"account.backlog_import":    `{"confirm": true}`,
	"account.set_seats":         `{"seats": 1, "confirm": true}`,
	"account.set_spend_cap":     `{"usd": 1, "confirm": true}`,
	"billing.member_cap_set":    `{"usd": 1}`,
	"billing.key_price_set":     `{"price": null}`,
	"plan.budget_set":           `{"usd": 1}`,
	"session.message":           `{"message": "x", "wait_ms": 0}`,
	"session.replay":            `{"yml": ""}`,
	"task.budget_set":           `{"usd": 1}`,
	"project.update":            `{"ai_first": true}`,
	"project.policy_validate":   `{"yml": ""}`,
	"pr.approve_pending":        `{"head_sha": "` + head + `"}`,
	"pr.ask_again":              `{"head_sha": "` + head + `"}`,
	"pr.merge":                  `{"head_sha": "` + head + `"}`,
	"pr.rearm_babysit":          `{"reason": "why"}`,
	"pr.skip_pending":           `{"head_sha": "` + head + `"}`,
	"plan.regroup":              `{"group_ids": ["x"], "task_ids": ["x"]}`,
	"plan.unlink":               `{"group_id": "x", "upstream_group_ids": ["x"], "reason": "x"}`,
	"box.set_owner":             `{"target": "org"}`,
	"box.set_prompt":            `{"prompt": "x"}`,
	"secret.set":                `{"value": "x"}`,
	"blocker.answer":            `{"answer": "x"}`,
	"config.set":                `{"value": "x"}`,
	"system_prompt.set":         `{"prompt": "x"}`,
	"blocker.submit":            `{"fields": {"A": "x"}}`,
	"project_secret.set":        `{"value": "x"}`,
}

// byName are the rows that answer 200 for what is not there, and why.
var byName = map[string]string{
	"template.set":      "makes what is not there",
	"template.delete":   "deleting twice is no error",
	"secret.set":        "makes what is not there",
	"secret.delete":     "deleting twice is no error",
	"config.set":        "makes what is not there",
	"config.delete":     "deleting twice is no error",
	"system_prompt.get": "every account has a place for one",
	"system_prompt.set": "every account has a place for one",
}

// everywhere are the rows that find what another account has, and why.
var everywhere = map[string]string{
	"user.approve_by_id":        "operators decide about every user",
	"user.suspend_by_id":        "operators decide about every user",
	"account.platform_run_get":  "operators look at runs of every account",
	"account.platform_run_tail": "operators look at runs of every account",
}

// nobodys are the values of a path that have a form, and name nothing.
var nobodys = map[string]string{"name": "nobodys", "key": "nobodys", "scope": "account"}

// What another account has and what does not exist are the same to a caller,
// to the byte.
func TestForeignIsUnknown(t *testing.T) {
	y := start(t, db.SQLite)
	rival := y.tenant("rival")
	theirs := y.seed(rival, "rival")
	ours := y.seed(y.acct, "acme")
	operator := y.operator()
	for _, o := range Ops() {
		if len(pathParams(o.Path)) == 0 || o.Rule.IsPublic() {
			continue
		}
		t.Run(o.ID, func(t *testing.T) {
			y := &yard{App: y.App, t: t, owner: y.owner}
			bearer := y.owner
			if need, _ := policy.ParseScopes(o.Rule.Names()); need&policy.OperatorOnly != 0 {
				bearer = operator
			}
			unknown := y.send(o.Method, filled(o, nobodys), bearer, bodies[o.ID])
			if everywhere[o.ID] != "" {
				unknown.problem(404, "not-found")
				return
			}
			foreign := y.send(o.Method, filled(o, theirs), bearer, bodies[o.ID])
			own := []string{"request_id", "instance"} // of the one request
			if byName[o.ID] == "" {
				unknown.problem(404, "not-found")
				foreign.problem(404, "not-found")
			} else {
				unknown.want(200)
				own = []string{"name", "key", "variable", "created_at", "updated_at"}
			}
			if a, b := without(t, unknown.body, own), without(t, foreign.body, own); foreign.StatusCode != unknown.StatusCode || !bytes.Equal(a, b) {
				t.Errorf("foreign and unknown differ:\n%s\n%s", a, b)
			}
		})
	}
	// The seeds do exist: their owner finds them.
	for _, path := range []string{
		"/v1/repos/acme/seeded", "/v1/prs/" + ours["pr"], "/v1/tasks/" + ours["task"], "/v1/runners/" + ours["box"], "/v1/sessions/" + ours["session"],
		"/v1/templates/acmes", "/v1/plans/" + ours["planId"], "/v1/plans/fanouts/" + ours["fanoutId"], "/v1/asks/" + ours["askId"],
	} {
		y.send("GET", path, y.owner, "").want(200)
	}
	y.send("PATCH", "/v1/tokens/"+ours["token"], y.owner, bodies["token.rename"]).want(200)
	y.send("POST", "/v1/escalations/"+ours["escalation"]+"/resolve", y.owner, "").want(200)
	y.send("DELETE", "/v1/billing/keys/"+ours["billing"], y.owner, "").want(200)
	for _, list := range []string{"/v1/repos", "/v1/tasks", "/v1/runners", "/v1/sessions", "/v1/tokens", "/v1/billing/keys", "/v1/approvals", "/v1/templates", "/v1/plans", "/v1/asks", "/v1/escalations"} {
		a := y.send("GET", list, y.owner, "").want(200)
		for _, value := range theirs {
			if len(value) == len(rival) && bytes.Contains(a.body, []byte(value)) {
				t.Errorf("%s shows what is another account's: %s", list, value)
			}
		}
	}
}

// without is an answer less some members.
func without(t *testing.T, body []byte, members []string) []byte {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for _, member := range members {
		delete(m, member)
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
