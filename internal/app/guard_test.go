package app

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
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
		path = strings.NewReplacer("{"+name+"}", value, "{"+name+"...}", value).Replace(path)
	}
	return path
}

// noScope are the rows that need a valid credential but no scope of it, and
// why.
var noScope = map[string]string{
	"mcp.rpc":            "each verb asserts its own inside",
	"mcp.stream_refused": "there is nothing behind it",
	"stream.subscribe":   "each topic asserts its own inside",

	"actor.names":        "who may read a row may know who made it",
	"account.me":         "tells every credential what it holds",
	"account.next_steps": "tells every credential what it lacks",
	"auth.logout":        "ends the session it is called with",
	"auth.reauth":        "is about the session it is called with",
}

func TestEveryRowIsGuarded(t *testing.T) {
	t.Parallel()
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
				t.Fatal("the rule demands no scope: say why in noScope of internal/app/guard_test.go")
			}
			// Without each one of the scopes alone, all others there but those that suffice instead.
			for _, name := range need.Names() {
				one, _ := policy.ParseScopes([]string{name})
				p := y.send(o.Method, path, y.mint(y.acct, nil, everything&^one&^o.Rule.Instead(), nil), "").problem(403, "missing-scope")
				if got, _ := json.Marshal(p["missing_scopes"]); string(got) != `["`+name+`"]` {
					t.Errorf("missing_scopes is %s, not %s", got, name)
				}
			}
		})
	}
	stale(t, "noScope", noScope)
}

// What somebody does as themselves is refused to a machine: every row whose rule
// says OfUser.
func TestMachinesHaveNoPersonalSide(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	machine := y.mint(y.acct, nil, policy.Scopes(policy.Vocabulary()...), nil)
	refused := 0
	for _, o := range Ops() {
		if !o.Rule.IsPublic() && ofPeople(o) {
			y.send(o.Method, filled(o, nil), machine, "").problem(403, "user-required")
			refused++
		}
	}
	if refused < 9 {
		t.Errorf("only %d rows are for people", refused)
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

// instead are the bodies of rows whose example in the document is refused
// before anything is looked for.
var instead = map[string]string{
	"template.set": `{}`,                                      // a challenger has to be there
	"plan.regroup": `{"group_ids": ["x"], "task_ids": ["x"]}`, // group_ids need task_ids or an ask_id beside them
}

// sampleBody is what a row is sent: the example of its body that the document
// gives.
func sampleBody(t *testing.T, o op.Op) string {
	t.Helper()
	if body := instead[o.ID]; body != "" {
		return body
	}
	x := newJudge(t).Ops[o.ID]
	if x.RequestBody == nil {
		return ""
	}
	all := x.RequestBody.Content["application/json"].All()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		return string(all[name])
	}
	return ""
}

// textFor are the texts of rows that look for nothing without one.
var textFor = map[string]string{"kb.search": "x"}

// byName are the rows that answer 200 for what is not there, and why.
var byName = map[string]string{
	"template.set":      "makes what is not there",
	"template.delete":   "deleting twice is no error",
	"artifact.delete":   "deleting twice is no error",
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
	"user.password_link":        "operators help every user",
	"account.platform_run_get":  "operators look at runs of every account",
	"account.platform_run_tail": "operators look at runs of every account",
}

// ofHosts are the rows whose ids are a code host's and belong to no account, and what
// they answer to another id.
var ofHosts = map[string]string{
	"account.platform_goal_rename": "422: the board makes ids of one form",
}

// nobodys are the values of a path that have a form, and name nothing.
var nobodys = map[string]string{"name": "nobodys", "key": "nobodys", "scope": "account"}

// apart makes an account that has nothing, with its owner's token, and another
// that has one of everything. A guarded row gets both for itself, so that none
// sees what another did.
func (y *yard) apart() (bearer string, theirs map[string]string) {
	y.t.Helper()
	n := strconv.FormatInt(apart.Add(1), 10)
	account := y.tenant("ours" + n)
	user := y.person("owner"+n, account, policy.Owner)
	return y.mint(account, &user, policy.Owner.Ceiling(), nil), y.seed(y.tenant("rival"+n), "rival"+n)
}

var apart atomic.Int64

// entitled returns the token that may call a row: an owner's, unless the row is for
// operators or for readers of the whole platform.
func entitled(o op.Op, owner, operator, reader string) string {
	switch need, _ := policy.ParseScopes(o.Rule.Names()); {
	case need&policy.OperatorOnly != 0:
		return operator
	case need&policy.PlatformRead != 0:
		return reader
	}
	return owner
}

// What another account has and what does not exist are the same to a caller,
// to the byte.
func TestForeignIsUnknown(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	operator, reader, browser := y.operator(), y.owner, y.browser()
	for _, o := range Ops() {
		if len(pathParams(o.Path)) == 0 || o.Rule.IsPublic() || ofHosts[o.ID] != "" {
			continue
		}
		t.Run(o.ID, func(t *testing.T) {
			y := &yard{App: y.App, t: t}
			bearer, theirs := y.apart()
			bearer = entitled(o, bearer, operator, reader)
			var header []string
			if o.Rule.NeedsSession() {
				bearer, header = "", []string{"Cookie", browser, "Origin", y.URL()}
			}
			body := sampleBody(t, o)
			query := ""
			if q := textFor[o.ID]; q != "" {
				query = "?q=" + q
			}
			unknown := y.send(o.Method, filled(o, nobodys)+query, bearer, body, header...)
			if everywhere[o.ID] != "" {
				unknown.problem(404, "not-found")
				return
			}
			foreign := y.send(o.Method, filled(o, theirs)+query, bearer, body, header...)
			own := []string{"request_id", "instance"} // of the one request
			if byName[o.ID] == "" {
				if unknown.StatusCode != 404 {
					t.Fatalf("%s of what is not there answers %d to the example of its body, %s\n%s\n"+
						"If it should make it, or change nothing, say so in byName of internal/app/guard_test.go. If the example is refused before the object is "+
						"looked for, give its field an example tag, or the row a body in instead.", o.ID, unknown.StatusCode, body,
						unknown.body)
				}
				unknown.problem(404, "not-found")
				foreign.problem(404, "not-found")
			} else {
				unknown.want(200)
				own = []string{"name", "key", "variable", "created_at", "updated_at"}
			}
			if a, b := without(t, unknown.body, own), without(t, foreign.body, own); foreign.StatusCode != unknown.StatusCode ||
				!bytes.Equal(a, b) {
				t.Errorf("foreign and unknown differ:\n%s\n%s", a, b)
			}
		})
	}
	stale(t, "byName", byName)
	stale(t, "everywhere", everywhere)
	stale(t, "ofHosts", ofHosts)
	stale(t, "instead", instead)
}

// stale wants every row of a table to be served.
func stale(t *testing.T, table string, rows map[string]string) {
	t.Helper()
	for _, known := range slices.Sorted(maps.Keys(rows)) {
		if !slices.ContainsFunc(Ops(), func(o op.Op) bool { return o.ID == known }) {
			t.Errorf("there is no %s: remove it from %s in internal/app/guard_test.go", known, table)
		}
	}
}

// The seeds of the other tests do exist: their owner finds them, and nobody
// else's lists show them.
func TestOwnIsFound(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	rival := y.tenant("rival")
	theirs := y.seed(rival, "rival")
	ours := y.seed(y.acct, "acme")
	for _, path := range []string{
		"/v1/repos/acme/seeded", "/v1/prs/" + ours["pr"], "/v1/tasks/" + ours["task"], "/v1/runners/" + ours["box"],
		"/v1/sessions/" + ours["session"],
		"/v1/templates/acmes", "/v1/plans/" + ours["planId"], "/v1/plans/fanouts/" + ours["fanoutId"], "/v1/asks/" + ours["askId"],
		"/v1/schedules/" + ours["schedule"], "/v1/digests/" + ours["digest"],
	} {
		y.send("GET", path, y.owner, "").want(200)
	}
	y.send("PATCH", "/v1/tokens/"+ours["token"], y.owner, `{"name": "x"}`).want(200)
	y.send("POST", "/v1/escalations/"+ours["escalation"]+"/resolve", y.owner, "").want(200)
	y.send("DELETE", "/v1/billing/keys/"+ours["billing"], y.owner, "").want(200)
	for _, list := range []string{"/v1/repos", "/v1/tasks", "/v1/runners", "/v1/sessions", "/v1/tokens", "/v1/billing/keys",
		"/v1/approvals", "/v1/templates", "/v1/plans", "/v1/asks", "/v1/escalations", "/v1/schedules", "/v1/digests"} {
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
