package app

import (
	"fmt"
	"strings"
	"testing"

	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/github"
	"yardmaster/internal/proof/patience"
)

// thread is what the tests read of one.
type thread struct {
	ID, State string
	RequestID *string `json:"request_id"`
	Path      *string
	Line      *int
	Comments  []struct{ Author, Body string }
}

// threads reads the conversation of a pull request.
func (f *atGitHub) threads(prID string) []thread {
	f.t.Helper()
	var page struct{ Data []thread }
	decode(f.t, f.send("GET", "/v1/prs/"+prID+"/comments", f.owner, "").want(200), &page)
	return page.Data
}

// What is said here about a pull request at GitHub is said there, in the name of the person;
// what is said there is shown here. A request is posted as a review. The pull request is of a person whom agents
// do not help, so that it waits for nobody until somebody orders the merge.
func TestTalkAtGitHub(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			f := connect(t, e)
			bob := f.gh.Person("bob")
			f.shop.Allow(bob, "write")
			f.shop.Commit(bob, "mine", "Say more", map[string]string{"README.md": "# Shop\nMore.\n"})
			there := f.shop.OpenPull(bob, github.NewPull{Title: "Say more", Head: "mine", Base: "main"})
			var p shownPull
			patience.Until(f.t, "the change is known", func() (ok bool) {
				p, ok = f.pull()
				return ok && p.Mergeable == "clean"
			})
			f.send("POST", "/v1/prs/"+p.ID+"/request-changes", f.owner, fmt.Sprintf(
				`{"head_sha": %q, "body": "Say less. <!-- x -->", "comments": [{"path": "README.md", "line": 2, "body": "This."}]}`, p.HeadSHA)).want(201)
			patience.Until(f.t, "the review is posted", func() bool { return len(there.Threads()) == 1 && len(there.Reviews()) == 1 })
			if at := there.Threads()[0][0]; at.Path != "README.md" || at.Line != 2 || !strings.HasPrefix(at.Body, "This.") ||
				at.By != f.app.Slug+"[bot]" {
				t.Errorf("posted: %+v", at)
			}
			f.shop.Issue(there.Number).Comment(bob, "I like it.")
			there.Answer(bob, there.Threads()[0][0].ID, "Why?")
			var all []thread
			patience.Until(f.t, "the server knows that both are there", func() bool { all = f.threads(p.ID); return len(all) == 3 })
			me, request := "user:"+f.user, 0
			for _, at := range all {
				first := at.Comments[0]
				switch {
				case at.Path != nil:
					request++
					if at.RequestID == nil || *at.Line != 2 || first.Author != me || first.Body != "This." || len(at.Comments) != 2 ||
						at.Comments[1].Author != "code-host:bob" {
						t.Errorf("on the line: %+v", at)
					}
				case first.Author == "code-host:bob":
					if first.Body != "I like it." || at.RequestID != nil {
						t.Errorf("bob's: %+v", at)
					}
				default:
					request++
					if at.RequestID == nil || first.Author != me || first.Body != "Say less. <!-- x -->" {
						t.Errorf("on the whole: %+v", at)
					}
				}
			}
			if request != 2 {
				t.Errorf("%d threads of the request", request)
			}
			var line, whole string
			for _, at := range all {
				if at.Path != nil {
					line = at.ID
				} else {
					whole = at.ID
				}
			}
			f.send("POST", "/v1/prs/"+p.ID+"/resolve-thread", f.owner, fmt.Sprintf(`{"thread_id": %q}`, whole)).
				problem(409, "not_resolvable")
			f.send("POST", "/v1/prs/"+p.ID+"/comments", f.owner, fmt.Sprintf(`{"thread_id": %q, "body": "It is long."}`, line)).want(201)
			patience.Until(f.t, "the answer is in the thread", func() bool { return len(there.Threads()[0]) == 3 })
			if last := there.Threads()[0][2]; !strings.Contains(last.Body, "It is long.") || !strings.HasPrefix(last.Body, "**") {
				t.Errorf("said: %q", last.Body)
			}
			f.send("POST", "/v1/prs/"+p.ID+"/resolve-thread", f.owner, fmt.Sprintf(`{"thread_id": %q}`, line)).want(200)
			patience.Until(f.t, "it is resolved", func() bool {
				for _, at := range f.threads(p.ID) {
					if at.ID == line {
						return at.State == "resolved" && len(at.Comments) == 3 && at.Comments[2].Author == me
					}
				}
				return false
			})
			f.send("POST", "/v1/prs/"+p.ID+"/withdraw-request", f.owner, `{}`).want(200)
			if p, _ = f.pull(); p.Needs != nil {
				t.Errorf("taken back: %+v", p.Needs)
			}
		})
	}
}
