package app

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/github"
	"yardmaster/internal/proof/patience"
)

// said answers what the App has said on a pull request at GitHub.
func (f *atGitHub) said(number int) (all []string) {
	for _, c := range f.shop.Issue(number).Comments() {
		if c.By == f.app.Slug+"[bot]" {
			all = append(all, c.Body)
		}
	}
	return all
}

// What people say at GitHub counts: commands in comments, and reviews.
func TestWordsAtGitHub(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			f := connect(t, e)
			defer f.tell()
			bob, eve := f.gh.Person("bob"), f.gh.Person("eve")
			f.shop.Allow(bob, "write")
			f.shop.Allow(eve, "read")
			f.shop.Commit(bob, "mine", "Say more", map[string]string{"README.md": "# Shop\nMore.\n"})
			there := f.shop.OpenPull(bob, github.NewPull{Title: "Say more", Head: "mine", Base: "main"})
			var p shownPull
			patience.Until(f.t, "the pull request is known", func() (ok bool) {
				p, ok = f.pull()
				return ok && p.State == "open"
			})
			name := "@" + f.app.Slug
			talk := f.shop.Issue(there.Number)
			talk.Comment(eve, name+" fix")
			talk.Comment(bob, "> "+name+" fix\n\nNo.")
			talk.Comment(bob, name+" explain")
			patience.Until(f.t, "it is explained", func() bool { return len(f.said(there.Number)) == 1 })
			if said := f.said(there.Number)[0]; !strings.Contains(said, "Agents leave it alone.") || strings.Contains(said, name) {
				t.Errorf("explained: %s", said)
			}
			talk.Comment(bob, name+" fix")
			f.shop.Check(f.gh.ActionsApp(), p.HeadSHA, "build", "queued").Conclude("success")
			patience.Until(f.t, "it is watched, and asked about", func() bool { p, _ = f.pull(); return p.Pending != nil })
			there.Approve(eve) // she may only read
			there.Approve(f.ann)
			patience.Until(f.t, "it is merged", func() bool { p, _ = f.pull(); return p.State == "merged" })
			if there.Merged() == "" {
				t.Error("it is not merged there")
			}
			var trail struct {
				Data []struct {
					Kind string
					Data json.RawMessage
				}
			}
			decode(t, f.send("GET", "/v1/audit/events?per_page=200", f.owner, "").want(200), &trail)
			counted := map[string]string{}
			for _, r := range trail.Data {
				var d struct{ Login, State, Counts, Verb string }
				switch r.Kind {
				case "pr.reviewed_at_host":
					_ = json.Unmarshal(r.Data, &d)
					counted[d.Login] = d.Counts
				case "command.given":
					_ = json.Unmarshal(r.Data, &d)
					counted[d.Login+" "+d.Verb] = d.State
				}
			}
			want := map[string]string{"ann": "yes", "eve fix": "not_permitted", "bob explain": "done", "bob fix": "done"}
			for k, v := range want {
				if counted[k] != v {
					t.Errorf("%s: %q, want %q in %v", k, counted[k], v, counted)
				}
			}
			if got := fmt.Sprint(counted["eve"]); got != "no_permission" && got != "" { // her delivery may come after the merge
				t.Errorf("eve counts: %s", got)
			}
		})
	}
}

// reviewer finds that a year is fixed, and confirms it.
const reviewer = `f='` + "```" + `'; if grep -q "Somebody claims" "$YARDMASTER_PROMPT"; then
j='{"verdicts": [{"claim": 1, "verdict": "confirmed", "evidence": "footer.txt:1 says so."}]}'
else j='{"findings": [{"file": "footer.txt", "line": 1, "severity": "high", "kind": "bug", "claim": "The year is fixed.", ` +
	`"why": "It is wrong next year, @bob.", "how_to_see": "cat footer.txt"}]}'; fi
printf "I looked.\n\n%sjson\n%s\n%s\n" "$f" "$j" "$f" > "$YARDMASTER_REPORT"
`

// A review that somebody asks for is posted at GitHub on the lines that it is about. Who may
// write answers a finding there; strangers and commands in its thread do not.
func TestReviewAtGitHub(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			f := place{yard: boot(t, e), files: map[string]string{
				"README.md": "# Shop\n", "review.sh": reviewer, ".svc/policy.yml": "version: 1\nreview: {mode: on_request, template: reviewer}\n",
			}}.connect(t)
			f.send("PUT", "/v1/templates/reviewer", f.owner, `{"agent": "command", "command": ["sh", "review.sh"]}`).want(200)
			var box struct{ Token string }
			decode(t, f.send("POST", "/v1/runners/enrollments", f.owner, `{}`).want(201), &box)
			f.box(box.Token)
			bob, eve := f.gh.Person("bob"), f.gh.Person("eve")
			f.shop.Allow(bob, "write")
			f.shop.Allow(eve, "read")
			f.shop.Commit(bob, "mine", "Add a footer", map[string]string{"footer.txt": "the year 2025\n"})
			there := f.shop.OpenPull(bob, github.NewPull{Title: "Add a footer", Head: "mine", Base: "main"})
			var p shownPull
			patience.Until(f.t, "the change is known", func() (ok bool) {
				p, ok = f.pull()
				return ok && p.Mergeable == "clean"
			})
			name := "@" + f.app.Slug
			f.shop.Issue(there.Number).Comment(bob, name+" review")
			var thread []github.Said
			patience.Until(f.t, "the finding is posted on its line", func() bool {
				for _, all := range there.Threads() {
					thread = all
				}
				return len(thread) > 0
			})
			if at := thread[0]; at.Path != "footer.txt" || at.Line != 1 || !strings.Contains(at.Body, "The year is fixed.") ||
				strings.Contains(at.Body, "@bob") {
				t.Errorf("posted: %+v", at)
			}
			state := func() string {
				var page struct{ Data []struct{ State string } }
				decode(t, f.send("GET", "/v1/prs/"+p.ID+"/findings", f.owner, "").want(200), &page)
				return page.Data[0].State
			}
			there.Answer(eve, thread[0].ID, "I like it.")
			there.Answer(bob, thread[0].ID, name+" explain")
			patience.Until(f.t, "the command is answered in the thread", func() bool {
				thread = there.Threads()[0]
				last := thread[len(thread)-1]
				return last.By == f.app.Slug+"[bot]" && strings.Contains(last.Body, "Findings that wait for an answer: 1.")
			})
			if got := state(); got != "posted" {
				t.Errorf("after a stranger and a command: %s", got)
			}
			there.Answer(bob, thread[0].ID, "It is meant so.")
			patience.Until(f.t, "the finding is answered", func() bool { return state() == "answered" })
		})
	}
}
