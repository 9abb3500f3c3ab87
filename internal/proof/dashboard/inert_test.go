//go:build !race

package dashboard_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/seed"
)

// evil is a text of a field that would be more than text if a page let it: an element with
// a mark, a script, an image whose error runs, a sequence of a terminal, letters that turn
// a line around. The name in it tells which field is shown.
func evil(field string) string {
	return "<b data-owned>zz-" + field + "</b><script>owned=1</script><img src=x onerror=owned=1>\x1b[31m\u202ex"
}

// evils answers a body of JSON in which each {name} is the text of that field.
func evils(body string, fields ...string) string {
	for _, f := range fields {
		body = strings.ReplaceAll(body, "{"+f+"}", strings.Trim(text(evil(f)), `"`))
	}
	return body
}

// Hostile text in the fields of every noun is shown as text, on every page: nothing of it
// runs, none of it becomes an element, and letters that turn text around are shown by
// their numbers.
func TestTextIsInertOnEveryPage(t *testing.T) {
	t.Parallel()
	s := open(t, "{version: 1, merge: {mode: ask}, review: {mode: off}, checks: {command: \"true # "+
		"<b data-owned>zz-check</b>\"}}\n", map[string]string{
		"worker": `printf 'zz-line <b data-owned>x</b> \033[31mred\033[2J \342\200\256turned\n'
printf '<b data-owned>zz-code</b>\342\200\256\n' > 'src/<b data-owned>zz-file.txt'
git add -A
git commit -qm '<b data-owned>zz-commit</b>'
echo '# <b data-owned>zz-report</b> [zz-link](javascript:alert(1)) ![x](https://elsewhere.example/x.png)' > "$YARDMASTER_REPORT"
`,
		"asker": `printf '{"kind":"decision","question":"<b data-owned>zz-question</b> [a](javascript:alert(1))"}' >"$YARDMASTER_OUTBOX/blocker-a.json"
`})
	type made = map[string]any
	post := func(status int, method, path, body string, fields ...string) made {
		t.Helper()
		var out made
		if b := s.must(status, method, path, evils(body, fields...)); len(b) > 0 {
			if err := json.Unmarshal(b, &out); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	str := func(m made, key string) string { v, _ := m[key].(string); return v }

	task := str(post(202, "POST", "/v1/tasks", `{"repo": "acme/web", "template": "worker", "title": "{task}", "problem": "{problem}"}`,
		"task", "problem"), "task_id")
	post(202, "POST", "/v1/tasks", `{"repo": "acme/web", "template": "asker", "title": "{asker}", "problem": "p"}`, "asker")
	ask := str(post(202, "POST", "/v1/asks", `{"repo": "acme/web", "title": "{ask}", "body": "{body}"}`, "ask", "body"), "askId")
	post(201, "POST", "/v1/schedules", `{"repo": "acme/web", "title": "{schedule}", "body": "{wanted}", "cron": "0 0 1 1 *"}`,
		"schedule", "wanted")
	post(201, "POST", "/v1/tokens", `{"name": "{token}", "scopes": ["read:tasks"]}`, "token")
	post(200, "PUT", "/v1/templates/evil", `{"agent": "command", "command": ["sh", "{argument}"]}`, "argument")
	post(200, "PUT", "/v1/prompt-vars/account/evil", `{"value": "{variable}"}`, "variable")
	post(200, "PUT", "/v1/me/system-prompt", `{"prompt": "{prompt}"}`, "prompt")
	post(201, "POST", "/v1/billing/keys", `{"provider": "scripted", "label": "{key}"}`, "key")
	post(200, "PUT", "/v1/billing/prices", `{"provider": "openai", "model": "{model}", "input_usd": 1, "output_usd": 1}`, "model")
	post(200, "PUT", "/v1/plans/file-switch", `{"enabled": true}`)
	plan := str(post(202, "POST", "/v1/plans/file", `{"repo": "acme/web", "slug": "evil", "dry_run": true, "documents": {
		"overview.md": "# {plan}\n\nAll of it.\n", "01-one.md": "---\nfiles: [a.txt]\n---\n# {group}\n\nOne line.\n"},
		"scouts": [{"citations": ["README.md:1"]}]}`, "plan", "group"), "plan_id")
	source := str(post(201, "POST", "/v1/integrations", `{"kind": "generic", "name": "alarms", "label": "{label}"}`, "label"), "id")
	if resp, b := s.Send(http.MethodPost, "/v1/access-requests", "the-form",
		evils(`{"email": "eve@example.com", "name": "{applicant}", "org": "{org}"}`, "applicant", "org")); resp.StatusCode >= 300 {
		t.Fatalf("apply: %d %s", resp.StatusCode, b)
	}
	var repos, boxes struct{ Data []struct{ ID string } }
	s.into(&repos, 200, "GET", "/v1/repos", "")
	s.into(&boxes, 200, "GET", "/v1/runners", "")
	box := boxes.Data[0].ID
	post(200, "PUT", "/v1/runners/"+box+"/prompt", `{"prompt": "{briefing}"}`, "briefing")
	escalation, issue, digest, user := id.New(), id.New(), id.New(), id.New()
	s.Write(s.Account, func(tx *db.Tx) error {
		for _, row := range []seed.Row{
			seed.Escalation{ID: escalation, Account: s.Account, Title: evil("escalation"), Ask: ask, Created: 1},
			seed.Issue{ID: issue, Account: s.Account, Repo: repos.Data[0].ID, Title: evil("issue"), Number: 7},
			seed.User{ID: user, Login: "eve", Name: evil("member")},
			seed.Digest{ID: digest, Account: s.Account, Period: "2026-01-02"},
		} {
			if err := seed.Add(tx, row); err != nil {
				return err
			}
		}
		return seed.Add(tx, seed.Member{Account: s.Account, User: user, Role: "member"})
	})
	post(201, "PUT", "/v1/kb/"+repos.Data[0].ID+"/pages/zz/known", `{"title": "{known}", "body": "{knowledge}"}`, "known", "knowledge")
	board := str(post(201, "POST", "/v1/dashboards", `{"name": "<b data-owned>Zed</b>", "widgets": [
		{"kind": "stat", "title": "{heading}", "source": "sessions"}, {"kind": "markdown", "title": "t", "text": "{text}"}]}`,
		"heading", "text"), "id")
	post(200, "PUT", "/v1/runners/pins", `{"scope": "label", "ref": "zone={zone}", "pinned": true, "why": "{why}"}`, "zone", "why")
	pr := s.pull(task)
	var blockers struct{ Data []struct{ ID string } }
	patience.Until(s.T, "the question is there", func() bool {
		s.into(&blockers, 200, "GET", "/v1/blockers?open=true", "")
		return len(blockers.Data) == 1
	})
	var sessions struct {
		Data []struct {
			ID     string
			TaskID *string `json:"task_id"`
		}
	}
	s.into(&sessions, 200, "GET", "/v1/sessions", "")
	session := ""
	for _, x := range sessions.Data {
		if x.TaskID != nil && *x.TaskID == task {
			session = x.ID
		}
	}

	ids := map[string][]string{
		"/ui/tasks/{id}": {task, task + "?tab=report", task + "?tab=task", task + "?tab=attempts", task + "?tab=graph", task + "?tab=raw"},
		"/ui/plans/{id}": {plan}, "/ui/asks/{id}": {ask}, "/ui/escalations/{id}": {escalation}, "/ui/blockers/{id}": {blockers.Data[0].ID},
		"/ui/prs/{id}":   {pr, pr + "?tab=description", pr + "?tab=checks", pr + "?tab=review", pr + "?tab=report", pr + "?tab=raw"},
		"/ui/boxes/{id}": {box}, "/ui/digests/{id}": {digest}, "/ui/repos/{owner}/{repo}/issues/{id}": {issue},
		"/ui/sessions/{id}": {session, session + "?tab=raw"}, "/ui/settings/integrations/{id}": {source},
		"/ui/platform/accounts/{id}": {s.Account}, "/ui/platform/users/{id}": {user},
		"/ui/boards/{id}": {board, board + "?edit=1"}, "/ui/settings/gifts": {"", "?tab=received"},
		"/ui/kb/{owner}/{repo}/{slug...}": {"zz/known", "zz/known?tab=edit", "zz/known?tab=history"},
		"/ui/templates":                   {"", "?tab=prompts", "?tab=variables"},
		"/ui/repos/{owner}/{repo}":        {"", "?tab=ask", "?tab=policy", "?tab=settings", "?tab=sessions", "?tab=secrets"},
	}
	b := s.enter(1440, 900)
	b.Complaints()
	var seen strings.Builder
	for _, path := range addresses(t) {
		for _, of := range append(ids[path], map[bool]string{true: "01a209ae-0000-7000-8000-000000000000"}[len(ids[path]) == 0]) {
			at := strings.NewReplacer("{owner}", "acme", "{repo}", "web", "{id}", of, "{slug...}", of).Replace(path)
			if !strings.Contains(path, "{id}") && !strings.Contains(path, "{slug") {
				at += strings.TrimPrefix(of, "01a209ae-0000-7000-8000-000000000000")
			} else if of == "" {
				continue
			}
			b.Go(at)
			b.Until("the page "+at, `document.querySelector("#app main h1")?.innerText && !document.querySelector("[aria-busy=true]")`)
			if path == "/ui/tasks/{id}" && of == task || path == "/ui/sessions/{id}" && of == session {
				b.See("zz-line")
			}
			if path == "/ui/prs/{id}" && of == pr {
				b.See("zz-code")
			}
			seen.WriteString(inertHere(t, b, at))
			// TestPages judges the lists, and what is said where no object is.
			if strings.Contains(path, "{") {
				for _, theme := range []string{"dark", "light"} {
					b.Theme(theme)
					usable(b, at+" in "+theme)
				}
			}
		}
	}
	for _, field := range regexp.MustCompile(`zz-[a-z]+`).FindAllString(strings.Join([]string{
		evil("task"), evil("problem"), evil("asker"), evil("ask"), evil("body"), evil("schedule"), evil("token"),
		evil("variable"), evil("prompt"), evil("key"), evil("model"), evil("plan"), evil("group"), evil("label"), evil("applicant"),
		evil("org"), evil("briefing"), evil("escalation"), evil("issue"), evil("member"), evil("known"), evil("knowledge"),
		evil("heading"), evil("text"), evil("zone"), evil("why"), "zz-check zz-line zz-code zz-file zz-report zz-question",
	}, " "), -1) {
		if !strings.Contains(seen.String(), field) {
			t.Errorf("no page shows the text %s: the test says nothing about it", field)
		}
	}
}

// inertHere holds that no hostile text of a page is more than text, and returns what the
// page shows, with the values of its fields.
func inertHere(t *testing.T, b *browser.Tab, at string) string {
	t.Helper()
	found := browser.Eval[struct {
		Bad  []string
		Text string
	}](b, `(() => {
		const bad = [...document.querySelectorAll("[data-owned],[onerror],main script,img[src=x],a[href^='javascript:' i],img[src*='elsewhere']")].map(e => e.outerHTML.slice(0, 200));
		if (window.owned) bad.push("a script ran");
		const text = document.body.innerText, hit = /[\u202a-\u202e\u2066-\u2069\x1b\x07]/.exec(text);
		if (hit) bad.push("U+" + hit[0].charCodeAt(0).toString(16) + " in " + JSON.stringify(text.slice(Math.max(0, hit.index - 80), hit.index + 20)));
		if (/^(title$|zz-)/.test(document.title)) bad.push("the title " + document.title);
		return {Bad: bad, Text: text + [...document.querySelectorAll("input,textarea")].map(e => e.value).join("\n")};
	})()`)
	for _, x := range found.Bad {
		t.Errorf("%s: %s", at, x)
	}
	for _, c := range b.Complaints() {
		if !slices.ContainsFunc([]string{"status of 404", "status of 503"}, func(s string) bool { return strings.Contains(c, s) }) {
			t.Errorf("%s: the browser complains: %s", at, c)
		}
	}
	return found.Text
}
