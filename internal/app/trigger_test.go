package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/proof/patience"
)

const triggering = `
scenarios:
  - name: mint
    match: Somebody should look
    without_tools: true
    steps:
      - text: '{"kind":"mint","reason":"It is small.","tasks":[{"repo":"acme/web","title":"Look around","problem":"Say what is there.","kind":"scout"}]}'
  - name: patient
    match: Wait until somebody
    steps:
      - text: I wait.
        shell: sleep 600
  - name: none
    match: ""
    steps:
      - text: There is nothing to do.
`

type triggered struct {
	ID      string
	Kind    string
	Trigger string
	RunID   *string `json:"run_id"`
	TaskID  *string `json:"task_id"`
}

// workshop is a yard with a repository whose check fails once, templates for an
// agent that gets it right then, for one that can be talked to and for one that
// cannot, and a box.
func workshop(t *testing.T, y *yard) {
	y.push("acme/web", map[string]string{"README": "hello\n",
		".svc/policy.yml": "version: 1\nagent: {template: doer}\nchecks: {command: \"grep -q repaired README\"}\nmerge: {mode: auto}\n"})
	for name, body := range map[string]string{
		"doer":   `{"agent": "command", "command": ["sh", "-c", "if test -e begun; then echo repaired >> README; fi; touch begun; git add -A; git commit -qm 'Do it'; echo Done."]}`,
		"talker": `{"agent": "builtin", "provider": "scripted"}`,
		"mute":   `{"agent": "command", "command": ["sleep", "600"]}`,
	} {
		y.send("PUT", "/v1/templates/"+name, y.owner, body).want(200)
	}
	y.send("POST", "/v1/billing/keys", y.owner, `{"provider": "scripted"}`).want(201)
	var enrolled struct{ Token string }
	decode(t, y.send("POST", "/v1/runners/enrollments", y.owner, "{}").want(201), &enrolled)
	y.box(enrolled.Token)
}

// TestTriggers: a session says what it came of: somebody's task, an ask and what
// triage minted for it, a plan, a check, a repair.
func TestTriggers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		y := start(t, e, append(flags, "--scenario", file(t, "s.yml", triggering))...)
		workshop(t, y)
		y.send("POST", "/v1/tasks", y.owner,
			`{"repo": "acme/web", "title": "Say repaired", "problem": "The README lacks a word."}`).want(202)
		y.send("POST", "/v1/asks", y.owner, `{"repo": "acme/web", "title": "Look", "body": "Somebody should look."}`).want(202)
		survey := `{"repo": "acme/web", "ask": "Who is greeted?", "return_context": true, "template": "talker"}`
		patience.Until(y.t, "the box is there", func() bool { return y.send("POST", "/v1/plans", y.owner, survey).StatusCode == 202 })
		y.send("POST", "/v1/plans/file", y.owner,
			`{"repo": "acme/web", "slug": "hello", "documents": {"overview.md": "# Say hello\n", "01-a-name.md": "# Add a name\n\nOne line.\n"}}`).want(202)

		want := []string{"babysit: babysit", "ci: check", "scout: ask", "scout: plan", "triage: ask", "work: plan", "work: task"}
		var seen struct{ Data []triggered }
		patience.Until(y.t, "there are "+strings.Join(want, ", "), func() bool {
			decode(t, y.send("GET", "/v1/sessions?limit=200", y.owner, "").want(200), &seen)
			return !slices.ContainsFunc(want, func(w string) bool {
				return !slices.ContainsFunc(seen.Data, func(s triggered) bool { return s.Kind+": "+s.Trigger == w })
			})
		})
		for _, s := range seen.Data {
			if !slices.Contains(want, s.Kind+": "+s.Trigger) {
				t.Errorf("a session of %s came of %s", s.Kind, s.Trigger)
			}
			var one triggered
			if decode(t, y.send("GET", "/v1/sessions/"+s.ID, y.owner, "").want(200), &one); one.Trigger != s.Trigger || one.Kind != s.Kind {
				t.Errorf("in the list %+v, by itself %+v", s, one)
			}
		}
	})
}

// TestMessagesAndLiveChannels: a run says that it has a live channel exactly while
// a message to it is taken, and a message has its limits.
func TestMessagesAndLiveChannels(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		y := start(t, e, append(flags, "--scenario", file(t, "s.yml", triggering))...)
		workshop(t, y)
		type try struct {
			ID          string
			State       string
			LiveChannel bool `json:"live_channel"`
		}
		last := func(taskID string) try {
			t.Helper()
			var page struct{ Data []try }
			if decode(t, y.send("GET", "/v1/tasks/"+taskID+"/attempts", y.owner, "").want(200), &page); len(page.Data) == 0 {
				return try{}
			}
			return page.Data[len(page.Data)-1]
		}
		for template, talks := range map[string]bool{"talker": true, "mute": false} {
			var filed struct {
				ID string `json:"task_id"`
			}
			decode(t, y.send("POST", "/v1/tasks", y.owner,
				`{"repo": "acme/web", "title": "Wait", "problem": "Wait until somebody says something.", "kind": "scout", "template": "`+
					template+`"}`).want(202), &filed)
			patience.Until(y.t, "the run is live", func() bool { return last(filed.ID).State == "live" })
			r := last(filed.ID)
			path := "/v1/fleet/runs/" + r.ID + "/message"
			say := func(length int, wait string) answer {
				return y.send("POST", path, y.owner, fmt.Sprintf(`{"message": %q, "wait_ms": %s}`, strings.Repeat("ö", length), wait))
			}
			if r.LiveChannel != talks {
				t.Errorf("%s: live_channel is %t", template, r.LiveChannel)
			}
			if talks {
				var said struct {
					Status string
					Reply  *string
				}
				if decode(t, say(8000, "0").want(200), &said); said.Status == "" || said.Reply != nil {
					t.Errorf("said: %+v", said)
				}
			} else {
				say(1, "0").problem(409, "no_live_channel")
			}
			for name, a := range map[string]answer{"too long": say(8001, "0"), "empty": say(0, "0"), "waits too long": say(1, "25001"),
				"waits for less than nothing": say(1, "-1")} {
				if a.StatusCode != 400 {
					t.Errorf("%s, %s: %d %s", template, name, a.StatusCode, a.body)
				}
			}
			y.send("POST", "/v1/tasks/"+filed.ID+"/cancel", y.owner, "").want(200)
			patience.Until(y.t, "the run is over", func() bool { return last(filed.ID).State == "ended" })
			if last(filed.ID).LiveChannel {
				t.Errorf("%s: an ended run has a live channel", template)
			}
			say(1, "0").problem(409, "no_live_channel")
		}
	})
}
