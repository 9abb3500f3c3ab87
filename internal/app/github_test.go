package app

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/github"
	peer "yardmaster/internal/proof/github/description"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/rig"
)

// atGitHub is a yard that is connected to a GitHub, where acme has the repository shop.
type atGitHub struct {
	*yard
	gh   *github.Server
	ann  *github.Account
	shop *github.Repo
	app  *github.App
	inst *github.Installation
}

// connect walks the set-up of the App in a browser, and has acme install the App. more
// are fields of its form.
func connect(t *testing.T, e db.Engine, more ...string) *atGitHub {
	t.Helper()
	return connectTo(t, boot(t, e), more...)
}

// unreviewed is the policy of a repository in which agents review nothing.
const unreviewed = "version: 1\nreview: {mode: off}\n"

// connectTo is connect with a control plane that was started.
func connectTo(t *testing.T, y *yard, more ...string) *atGitHub {
	t.Helper()
	return place{yard: y, form: more}.connect(t)
}

// place is what differs between connections.
type place struct {
	yard  *yard
	gh    *github.Server    // nil: a new one
	files map[string]string // of the shop; nil: two, with the policy unreviewed
	form  []string          // further fields of the set-up
}

// shopWith are the files of a shop with a policy.
func shopWith(policy string) map[string]string {
	return map[string]string{"README.md": "# Shop\n", ".svc/policy.yml": policy}
}

// connect walks the set-up, see the function.
func (p place) connect(t *testing.T) *atGitHub {
	t.Helper()
	if p.gh == nil {
		p.gh = peer.Serve(t, github.Options{Enterprise: "3.19.0"})
	}
	if p.files == nil {
		p.files = shopWith(unreviewed)
	}
	f := &atGitHub{yard: p.yard, gh: p.gh}
	entered := f.rig().Enter()
	f.owner, f.acct, f.user = entered.Owner, entered.Account, entered.User
	f.ann = f.gh.Person("ann")
	acme := f.gh.Org("acme")
	f.ann.Join(acme, "admin", false)
	f.shop = f.gh.Repo("acme/shop", github.NewRepo{Private: true, Files: p.files})
	cookie := f.signedIn()
	browse := func(method, path, body string) answer {
		return f.send(method, path, "", body, "Cookie", cookie, "Accept", "text/html", "Sec-Fetch-Site", "same-origin",
			"Content-Type", "application/x-www-form-urlencoded")
	}
	browse("GET", "/gh/setup", "").want(200)
	fields := url.Values{"address": {f.gh.Web}, "organisation": {"acme"}}
	for _, name := range p.form {
		fields.Set(name, "true")
	}
	leave := browse("POST", "/gh/setup", fields.Encode()).want(200)
	action := regexp.MustCompile(`action="([^"]+)"`).FindSubmatch(leave.body)
	manifest := regexp.MustCompile(`name="manifest" value="([^"]+)"`).FindSubmatch(leave.body)
	if action == nil || manifest == nil {
		t.Fatalf("no form leads to GitHub: %s", leave.body)
	}
	to, err := url.Parse(html.UnescapeString(string(action[1])))
	if err != nil {
		t.Fatal(err)
	}
	back, err := f.gh.Confirm(to.Path, to.Query().Get("state"), html.UnescapeString(string(manifest[1])))
	if err != nil {
		t.Fatal(err)
	}
	back = strings.TrimPrefix(back, f.URL())
	browse("GET", back, "").want(200)
	browse("GET", back, "").want(400) // a set-up ends once
	var hosts struct {
		Data []struct {
			AppID string `json:"app_id"`
			Name  string
		}
	}
	decode(t, f.send("GET", "/v1/admin/code-hosts", f.owner, "").want(200), &hosts)
	var appID int64
	if _, err := fmt.Sscan(hosts.Data[0].AppID, &appID); err != nil {
		t.Fatal(err)
	}
	f.app = f.gh.AppByID(appID)
	patience.Until(f.t, "the host is connected", func() bool { return len(f.hosts.Feeds()) == 1 })
	f.inst = f.app.Install(acme, f.shop)
	patience.Until(f.t, "the repository is enabled", func() bool {
		var r struct{ Enabled bool }
		a := f.send("GET", "/v1/repos/acme/shop", f.owner, "")
		return a.StatusCode == 200 && json.Unmarshal(a.body, &r) == nil && r.Enabled
	})
	return f
}

// signedIn signs the owner in, and answers the cookie.
func (f *atGitHub) signedIn() string {
	f.t.Helper()
	a := f.send("POST", "/auth/password", "", fmt.Sprintf(`{"login": "ada", "password": %q}`, rig.Password)).want(200)
	for _, c := range (&http.Response{Header: a.Header}).Cookies() {
		if c.Name == "svc_session" {
			return c.Name + "=" + c.Value
		}
	}
	f.t.Fatal("no cookie")
	return ""
}

type shownPull struct {
	ID, State, Checks, URL string
	Mergeable              string
	HeadSHA                string `json:"head_sha"`
	Number                 int
	MergeSHA               *string               `json:"merge_sha"`
	Pending                *struct{}             `json:"pending_action"`
	Needs                  *struct{ Why string } `json:"needs_person"`
}

// pull is the one pull request of the repository.
func (f *atGitHub) pull() (p shownPull, ok bool) {
	f.t.Helper()
	var page struct{ Data []shownPull }
	decode(f.t, f.send("GET", "/v1/repos/acme/shop/prs", f.owner, "").want(200), &page)
	if len(page.Data) == 0 {
		return p, false
	}
	return page.Data[0], true
}

// works has an agent change the repository.
func (f *atGitHub) works() {
	f.t.Helper()
	f.send("PUT", "/v1/templates/edit", f.owner,
		`{"agent": "command", "command": ["sh", "-c", "date +%s%N >> README.md && git commit -qam 'Say when' && echo Done."]}`).want(200)
	f.send("POST", "/v1/tasks", f.owner,
		`{"repo": "acme/shop", "title": "Say when", "problem": "The README does not say when.", "template": "edit"}`).want(202)
	var e struct{ Token string }
	decode(f.t, f.send("POST", "/v1/runners/enrollments", f.owner, `{}`).want(201), &e)
	f.box(e.Token)
}

// tell logs what has happened, if the test has failed.
func (f *atGitHub) tell() {
	if !f.t.Failed() {
		return
	}
	for _, path := range []string{"/v1/repos/acme/shop/prs", "/v1/audit/events?per_page=200"} {
		f.t.Logf("%s: %s", path, f.send("GET", path, f.owner, "").body)
	}
}

// A task ends as a pull request at GitHub; its checks there steer it; it is merged there
// once a person has approved it here.
func TestPullRequestAtGitHub(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			f := connect(t, e)
			defer f.tell()
			f.works()
			var p shownPull
			patience.Until(f.t, "GitHub has opened the pull request", func() (ok bool) {
				p, ok = f.pull()
				return ok && p.State == "open" && p.Number > 0
			})
			there := f.shop.Pull(p.Number)
			if there.Head() != p.HeadSHA || !strings.HasPrefix(p.URL, f.gh.Web) {
				t.Errorf("%+v, at %s", p, there.Head())
			}
			check := f.shop.Check(f.gh.ActionsApp(), p.HeadSHA, "build", "queued")
			patience.Until(f.t, "the check is awaited", func() bool { p, _ = f.pull(); return p.Checks == "pending" })
			check.Conclude("success")
			patience.Until(f.t, "a person is asked", func() bool { p, _ = f.pull(); return p.Pending != nil && p.Checks == "passed" })
			f.send("POST", "/v1/prs/"+p.ID+"/approve-pending", f.owner, fmt.Sprintf(`{"head_sha": %q}`, p.HeadSHA)).want(200)
			patience.Until(f.t, "it is merged", func() bool { p, _ = f.pull(); return p.State == "merged" })
			if there.Merged() == "" || p.MergeSHA == nil || there.Merged() != *p.MergeSHA {
				t.Errorf("merged as %v here, %q there", p.MergeSHA, there.Merged())
			}
		})
	}
}
