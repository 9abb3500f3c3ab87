package app

import (
	"encoding/json"
	"fmt"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/github"
	"yardmaster/internal/proof/patience"
)

// talking is a server with the repository acme/shop at a host, and what people do there.
type talking struct {
	*yard
	wish    func() (askID string)       // somebody wants something, and the judge hands it to a person
	passes  func(p shownPull)           // the checks of a head pass
	request func(p shownPull)           // a person requests changes, on a line
	agrees  func(p shownPull)           // the same person says yes to the head
	settled func(p shownPull) (ok bool) // whether all is done at the host that the merge ends
}

const sayWhen = `date +%s%N >> README.md && git commit -qam "Say when" && echo Done.`

// wishedHere is the built-in host, with its own checks and requests.
func wishedHere(t *testing.T, e db.Engine) talking {
	y := start(t, e)
	y.push("acme/shop", map[string]string{"README.md": "# Shop\n",
		".svc/policy.yml": "version: 1\nreview: {mode: off}\nchecks: {command: 'test -s README.md'}\n"})
	return talking{yard: y,
		wish: func() string {
			var filed struct {
				ID string `json:"askId"`
			}
			decode(t, y.send("POST", "/v1/asks", y.owner,
				`{"repo": "acme/shop", "title": "Say when", "body": "The README does not say when."}`).want(202), &filed)
			return filed.ID
		},
		passes: func(shownPull) {},
		request: func(p shownPull) {
			y.send("POST", "/v1/prs/"+p.ID+"/request-changes", y.owner, fmt.Sprintf(
				`{"head_sha": %q, "body": "Say it twice.", "comments": [{"path": "README.md", "line": 2, "body": "Here."}]}`, p.HeadSHA)).want(201)
		},
		agrees: func(p shownPull) {
			y.send("POST", "/v1/prs/"+p.ID+"/approve-pending", y.owner, fmt.Sprintf(`{"head_sha": %q}`, p.HeadSHA)).want(200)
		},
		settled: func(shownPull) bool { return true },
	}
}

// wishedAtGitHub is a GitHub, with an issue, its own checks, and its own reviews.
func wishedAtGitHub(t *testing.T, e db.Engine) talking {
	f := connect(t, e)
	bob := f.gh.Person("bob")
	f.shop.Allow(bob, "write")
	return talking{yard: f.yard,
		wish: func() string {
			wish := f.shop.OpenIssue(bob, "Say when", "The README does not say when.")
			wish.Label(f.ann, "yardmaster")
			patience.Until(t, "a person is asked about the issue", func() bool { return f.issues()["Say when"].Triage == "escalated" })
			return *f.issues()["Say when"].AskID
		},
		passes: func(p shownPull) { f.shop.Check(f.gh.ActionsApp(), p.HeadSHA, "build", "queued").Conclude("success") },
		request: func(p shownPull) {
			if _, err := f.shop.Pull(p.Number).Review(bob, github.NewReview{Event: "REQUEST_CHANGES", Body: "Say it twice.",
				Comments: []github.NewComment{{Path: "README.md", Line: 2, Body: "Here."}}}); err != nil {
				t.Fatal(err)
			}
		},
		agrees: func(p shownPull) { f.shop.Pull(p.Number).Approve(bob) },
		settled: func(p shownPull) bool {
			said := f.shop.Pull(p.Number).Threads()
			return f.shop.Pull(p.Number).Merged() != "" && len(said) == 1 && said[0][0].Resolved
		},
	}
}

// From a wish to a merge, with a request for changes on the way, on both hosts: an agent does
// the work and answers the request, the head that answers resolves its threads, and whoever
// has requested it says yes.
func TestRequestOnTheWayToTheMerge(t *testing.T) {
	t.Parallel()
	for name, host := range map[string]func(*testing.T, db.Engine) talking{"built-in": wishedHere, "GitHub": wishedAtGitHub} {
		for _, e := range dbtest.Engines() {
			t.Run(name+"/"+e.String(), func(t *testing.T) {
				t.Parallel()
				f := host(t, e)
				f.begins(f.wish())
				was := f.head("", 0)
				f.passes(was)
				asked := func() bool { p, ok := f.shown(); return ok && p.Checks == "passed" && p.Pending != nil }
				patience.Until(t, "a person is asked", asked)
				f.request(was)
				is := f.head(was.HeadSHA, 1)
				f.passes(is)
				patience.Until(t, "the threads are resolved by the head that answers", func() bool { return f.unresolved(is) == 0 })
				patience.Until(t, "a person is asked again", asked)
				f.agrees(is)
				patience.Until(t, "it is merged", func() bool { p, _ := f.shown(); return p.State == "merged" && f.settled(p) })
			})
		}
	}
}

// begins has an agent do what an ask wants.
func (f talking) begins(askID string) {
	f.t.Helper()
	template, err := json.Marshal(map[string]any{"agent": "command", "isolation": "none", "command": []string{"sh", "-c", sayWhen}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.send("PUT", "/v1/templates/edit", f.owner, string(template)).want(200)
	f.send("POST", "/v1/tasks", f.owner, fmt.Sprintf(
		`{"repo": "acme/shop", "title": "Say when", "problem": "The README does not say when.", "template": "edit", "ask_id": %q}`, askID)).want(202)
	var enrolled struct{ Token string }
	decode(f.t, f.send("POST", "/v1/runners/enrollments", f.owner, `{}`).want(201), &enrolled)
	f.box(enrolled.Token)
}

// shown is the one pull request.
func (f talking) shown() (p shownPull, ok bool) {
	f.t.Helper()
	var page struct{ Data []shownPull }
	decode(f.t, f.send("GET", "/v1/repos/acme/shop/prs", f.owner, "").want(200), &page)
	if len(page.Data) == 0 {
		return p, false
	}
	return page.Data[0], page.Data[0].Number > 0 && page.Data[0].State != "opening"
}

// head waits until the pull request has another head than one, after rounds of answers to requests.
func (f talking) head(than string, rounds int) (p shownPull) {
	f.t.Helper()
	patience.Until(f.t, "an agent has pushed", func() (ok bool) { p, ok = f.shown(); return ok && p.HeadSHA != than })
	var one struct {
		Babysit struct {
			Used int `json:"request_rounds_used"`
		}
	}
	decode(f.t, f.send("GET", "/v1/prs/"+p.ID, f.owner, "").want(200), &one)
	if one.Babysit.Used != rounds {
		f.t.Errorf("%d rounds have answered requests, want %d", one.Babysit.Used, rounds)
	}
	return p
}

// unresolved counts the threads on lines that no head has resolved, and those that were to be.
func (f talking) unresolved(is shownPull) (open int) {
	f.t.Helper()
	var page struct{ Data []thread }
	decode(f.t, f.send("GET", "/v1/prs/"+is.ID+"/comments", f.owner, "").want(200), &page)
	lines := 0
	for _, at := range page.Data {
		if at.Path == nil {
			continue
		}
		if lines++; at.State != "resolved" {
			open++
		}
	}
	if lines != 1 {
		f.t.Errorf("%d threads on lines: %+v", lines, page.Data)
	}
	return open
}
