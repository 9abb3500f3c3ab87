package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Why a command has no --json: each of these says no answer of the API.
const (
	ofMachine = "it works on the server's machine, without the API"
	noServer  = "it works without a server"
	goesOn    = "it goes on until it is ended, and logs"
	isJSON    = "it prints JSON, whole, a row on each line or a document"
	isText    = "what it prints is a text for another program, alone"
	signsIn   = "it is about the login that is kept here; auth status and auth list have that as JSON"
	opens     = "it opens a page or a branch, and answers nothing"
)

var withoutJSON = map[string]string{
	"demo": goesOn, "serve": goesOn, "box join": goesOn, "box run": goesOn, "chaos": goesOn, "simulate fleet": goesOn, "task watch": goesOn,
	"config": ofMachine, "backup": ofMachine, "restore": ofMachine, "account export": ofMachine, "account delete": ofMachine,
	"retention": ofMachine, "egress": ofMachine, "admin grant": ofMachine, "admin revoke": ofMachine, "keys list": ofMachine,
	"keys new": ofMachine, "keys rotate": ofMachine, "keys forget": ofMachine, "release import": ofMachine, "audit accept": ofMachine,
	"box agents": ofMachine, "box agents install": ofMachine,
	"mail":          ofMachine + "; the queue of an operator is mail.list and mail.refusals of yardmaster call",
	"account proof": noServer, "bundle": noServer, "bundle check": noServer, "bundle open": noServer, "audit verify": noServer,
	"provenance verify": noServer,
	"audit export":      isJSON, "session watch": isJSON, "session export": isJSON, "openapi": isJSON, "events": isJSON,
	"auth token": isText, "git-credential": isText, "completion": isText, "man": isText,
	"setup": signsIn, "login": signsIn, "auth login": signsIn, "auth use": signsIn, "auth logout": signsIn, "auth git": signsIn,
	"github setup": opens, "pr checkout": opens, "pr open": opens, "open": opens, "member leave": opens,
}

// Every command that says an answer of the API says it to programs too; for the others there is a reason. The
// answer is named, so that --json without fields lists those that there are.
func TestEveryAnswerIsForPrograms(t *testing.T) {
	t.Parallel()
	left := map[string]bool{}
	for _, c := range commands() {
		has, why := slices.Contains(flagsOf(c.Words), "json"), withoutJSON[c.Words]
		left[c.Words] = true
		switch {
		case !has && why == "":
			t.Errorf("%s has no --json, and nothing says why", c.Words)
		case has && why != "":
			t.Errorf("%s has --json, and is said not to have it", c.Words)
		case !has && (c.Answers != "" || c.Does != nil):
			t.Errorf("%s has the answer of the API %q, and no --json", c.Words, c.Answers)
		case has && c.Answers == "" && c.Does == nil && c.Members == nil && c.Words != "call":
			t.Errorf("%s has --json, and does not say of what", c.Words)
		}
	}
	for words := range withoutJSON {
		if !left[words] {
			t.Errorf("%s is no command", words)
		}
	}
}

// With --json standard output is JSON alone; what is said to people stands on standard error.
func TestJSONStandsAlone(t *testing.T) {
	t.Parallel()
	plan := "GET /v1/plans/" + someID
	f := newFake(t, map[string]string{
		"GET /v1/asks/" + someID:              `{"askId": "` + someID + `", "title": "The footer", "state": "judged"}`,
		plan:                                  `{"id": "` + someID + `", "groups": [{"id": "` + otherID + `", "slug": "01-one"}]}`,
		plan + "/groups/" + otherID:           `{"id": "` + otherID + `", "slug": "01-one", "problem": "Do it."}`,
		"GET /v1/prs/" + someID + "/diff":     `{"files": [{"path": "a.go"}], "additions": 1}`,
		"GET /v1/admin/deliveries":            `{"data": [{"guid": "g1", "state": "failed"}], "next_cursor": "n"}`,
		"POST /v1/admin/deliveries/g1/replay": `{"replayed": true}`,
		"POST /auth/password":                 `{}`,
		"POST /auth/logout":                   `{}`,
		"POST /v1/admin/operator-tokens":      `{"token": "t1", "scopes": ["admin:accounts"], "expires_iso": "2026-05-04T10:00:00Z"}`,
		"POST /v1/runners/enrollments/ssh": `{"id": "` + someID + `", "state": "joined", "reason": null, "detail": null, "output": "hello",
			"box_id": "` + otherID + `", "seen": null}`,
		"POST /v1/runners/update": `{"kind": "started", "channel": "stable", "version": "v1", "boxes": {"waits": 1}}`,
		"GET /v1/runners/rollout": `{"rollout": null}`,
	})
	for line, want := range map[string]string{
		"ask get " + someID:                             someID,
		"plan read " + someID:                           "Do it.",
		"plan read " + someID + " 01-one":               "Do it.",
		"pr diff " + someID:                             "a.go",
		"github deliveries":                             "g1",
		"github redeliver g1":                           "replayed",
		"operator token --login ada":                    "t1",
		"box add --ssh yard@build-3 --host-key SHA256:": otherID,
		"box update":                                    "started",
		"box rollout":                                   "rollout",
	} {
		args := append(strings.Fields(line), "--json", "*")
		code, out, errs := yardmasterTold(t, "correct horse\n", f.URL, args...)
		if code != 0 || !json.Valid([]byte(out)) || !strings.Contains(out, want) {
			t.Errorf("%s: %d\n%s\n%s", line, code, out, errs)
		}
	}
	for _, line := range []string{"box update --watch --json *", "box rollout --watch --jq ."} {
		if code, _, errs := yardmasterTold(t, "", f.URL, strings.Fields(line)...); code != 2 || !strings.Contains(errs, "not both") {
			t.Errorf("%s: %d %s", line, code, errs)
		}
	}
}
