package cli

import (
	"strings"
	"testing"

	"yardmaster/internal/cli/exit"
)

// What only call reached has commands, which print what the answers mean and how a change is undone.
func TestSettings(t *testing.T) {
	t.Parallel()
	const floors = `{"isolation": "strict", "merge_mode": null, "task_usd": 5, "run_usd": null, "egress": [], "protected_paths": ["go.mod"]}`
	f := newFake(t, map[string]string{
		"GET /v1/account/floors": floors, "PUT /v1/account/floors": floors,
		"GET /v1/account/zone": `{"zone": "UTC"}`, "PUT /v1/account/zone": `{"zone": "Europe/Berlin"}`,
		"GET /v1/me/system-prompt":                     `{"prompt": "Be brief."}`,
		"PUT /v1/me/system-prompt":                     `{"prompt": "Be kind."}`,
		"DELETE /v1/me/system-prompt":                  `{"cleared": true}`,
		"PUT /v1/system-prompts/account":               `{"prompt": null}`,
		"GET /v1/system-prompts/account":               `{"prompt": null}`,
		"GET /v1/me/notification-preferences":          `{"data": [{"kind": "task_done", "doc": "a task is done", "channels": {"email": false}}], "quiet": null}`,
		"PUT /v1/me/notification-preferences":          `{"data": [{"kind": "task_done", "doc": "a task is done", "channels": {"email": true}}], "quiet": null}`,
		"POST /v1/repos/acme/web/policy/validate":      `{"ok": false, "errors": ["line 1: no such key"], "clamped": []}`,
		"GET /v1/repos/acme/web/policy":                `{"policy": {"version": 1}}`,
		"GET /v1/ci/runs/" + someID + "/log-url":       `{"url": "SERVER/log", "size": 3}`,
		"GET /v1/me":                                   `{"account": {"login": "acme"}}`,
		"GET /log":                                     "ok\x1b[31m\nFAIL\n",
		"GET /v1/sessions/" + someID + "/events.jsonl": `{"kind": "started"}`,
		"GET /v1/runners/" + someID:                    `{"id": "` + someID + `", "owner": {"target": "org"}}`,
		"PUT /v1/runners/" + someID + "/owner":         `{"id": "` + someID + `", "owner": {"target": "user", "id": "` + otherID + `"}}`,
		"GET /v1/org/members":                          `{"data": [{"user_id": "` + otherID + `", "login": "ada"}]}`,
		"GET /v1/plans/fanouts/" + someID:              `{"ask": "Retry.", "repos": [{"repo": "acme/web", "status": "done", "summary": "Easy."}]}`,
		"POST /v1/integrations/" + someID + "/rotate":  `{"id": "` + someID + `", "secret": "fresh"}`,
		"GET /v1/notifications":                        `{"data": [{"id": "` + someID + `", "title": "Asked", "url": "SERVER/ui/prs/9"}]}`,
	})
	p := f.person(t)
	p.holds("account settings", 0, "isolation", "strict", "zone", "UTC")
	p.holds("account settings --task-usd 7 --zone Europe/Berlin", 0, "Undo: yardmaster account settings --task-usd 5 --zone UTC")
	if !f.was("PUT /v1/account/floors", `"task_usd":7`, `"isolation":"strict"`, `"protected_paths":["go.mod"]`) {
		t.Errorf("%q", f.calls)
	}
	f.answers["GET /v1/account/floors"] = `{"isolation": null, "outside_boxes": true}`
	f.answers["PUT /v1/account/floors"] = `{"isolation": null, "outside_boxes": false}`
	p.holds("account settings --outside-boxes false", 0, "outside boxes  no", "Undo: yardmaster account settings --outside-boxes true")
	p.holds("prompt view", 0, "Be brief.")
	p.holds("prompt set --clear", 0, "told it no more", "Undo: yardmaster prompt set 'Be brief.'")
	if !f.was("DELETE /v1/me/system-prompt") || f.was("PUT /v1/me/system-prompt") {
		t.Errorf("%q", f.calls)
	}
	p.holds("prompt set --account --clear", 0, "There was none")
	if !f.was("PUT /v1/system-prompts/account", `"prompt":""`) {
		t.Errorf("%q", f.calls)
	}
	p.holds("prompt view --account", 0, "yardmaster prompt set --account")
	p.holds("prompt set Be kind.", 0, "Undo: yardmaster prompt set 'Be brief.'")
	p.holds("notification settings", 0, "KIND", "EMAIL", "off")
	p.holds("notification settings task_done.email=on", 0, "Undo: yardmaster notification settings task_done.email=off")
	if !f.was("PUT /v1/me/notification-preferences", `"task_done":{"email":true}`) {
		t.Errorf("%q", f.calls)
	}
	p.holds("notification view "+someID, 0, "Asked", f.URL+"/ui/prs/9")
	code, out, errs := yardmasterTold(t, "bogus: 1\n", f.URL, "repo", "policy", "acme/web", "--file", "-")
	if code != exit.CodeFailed || !strings.Contains(out, "no such key") || !strings.Contains(errs, "no good policy file") {
		t.Errorf("%d %q %q", code, out, errs)
	}
	p.holds("repo policy acme/web", 0, "version")
	if shown := p.holds("check log "+someID, 0, "FAIL"); strings.Contains(shown, "\x1b[31m") {
		t.Errorf("the output controls the terminal: %q", shown)
	}
	p.holds("check log "+someID+" --url", 0, f.URL+"/log", "!FAIL")
	p.holds("session export "+someID, 0, `{"kind": "started"}`)
	p.holds("member leave", 0, f.URL+"/ui/settings", "Nothing has changed yet.")
	if f.was("/v1/me/leave") { // which takes no token
		t.Errorf("%q", f.calls)
	}
	p.holds("box owner "+someID+" user --member ada", 0, "Undo: yardmaster box owner "+someID+" org")
	if !f.was("PUT /v1/runners/", `"owner_id":"`+otherID+`"`) {
		t.Errorf("%q", f.calls)
	}
	p.holds("plan survey "+someID, 0, "acme/web", "Easy.")
	p.holds("source rotate "+someID, 0, "fresh")
}

// What is longer than the terminal is high goes through the pager, unless nobody wants one.
func TestPager(t *testing.T) {
	t.Parallel()
	rows := strings.TrimSuffix(strings.Repeat(`{"id": "`+someID+`", "title": "Long"},`, 40), ",")
	f := newFake(t, map[string]string{"GET /v1/tasks": `{"data": [` + rows + `]}`, "GET /v1/schedules": `{"data": []}`})
	p := f.person(t, "PAGER=sed s/^/paged:/")
	p.holds("task list -L 40", 0, "paged:", "Long")
	p.holds("task list -L 3", 0, "!paged:", "Long")
	p.holds("task list -L 40 --no-pager", 0, "!paged:")
}

// A switch of a repository is turned by a flag, and back by the command that is printed. One that switches nothing is
// not shown.
func TestRepoSwitches(t *testing.T) {
	t.Parallel()
	const path = "/v1/repos/acme/web"
	f := newFake(t, map[string]string{"PATCH " + path: `{}`, "GET " + path + "/settings": `{"repo": "acme/web", "switches": [
		{"name": "enabled", "on": true, "does": "Runs."}, {"name": "ai_first", "on": false, "does": "Looks after all."},
		{"name": "canary_enabled", "on": false, "does": "Nothing."}, {"name": "public_stats_enabled", "on": true, "does": "Tells."}]}`})
	p := f.person(t)
	p.holds("repo settings acme/web", 0, "Looks after all.", "!canary", "!Undo")
	p.holds("repo settings acme/web --ai-first --public-stats-enabled=false", 0, "!canary",
		"Undo: yardmaster repo settings acme/web --ai-first=false --public-stats-enabled=true\n")
	if !f.was("PATCH "+path, `"ai_first":true`, `"public_stats_enabled":false`) {
		t.Errorf("%q", f.calls)
	}
	p.holds("repo settings acme/web --ai-first=maybe", exit.CodeMisused, "takes true or false")
	p.holds("repo settings acme/web --json '*'", 0, "canary_enabled")
}
