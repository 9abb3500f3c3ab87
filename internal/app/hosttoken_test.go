package app

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/relay"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/github"
	"yardmaster/internal/proof/patience"
)

// advertised asks the relay for the refs of acme/shop, with a token of this server.
func (f *atGitHub) advertised(token, service string) answer {
	f.t.Helper()
	web, err := url.Parse(f.gh.Web)
	if err != nil {
		f.t.Fatal(err)
	}
	at := relay.Path(relayID(codehost.Repo{Host: githubPrefix + web.Host, ID: strconv.FormatInt(f.shop.ID, 10)}))
	return f.send("GET", at+"/info/refs?service="+service, "", "",
		"Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("x:"+token)))
}

// bindingOf is the state of the one binding of the holder of a token.
func (f *atGitHub) bindingOf(token string) (state string) {
	f.t.Helper()
	var page struct{ Data []struct{ State string } }
	decode(f.t, f.send("GET", "/v1/me/repo-bindings", token, "").want(200), &page)
	if len(page.Data) == 1 {
		return page.Data[0].State
	}
	return ""
}

// A repository that a person has bound is reached with the person's token: by the person
// and by the runs that the person asked for, and by nobody else. What the host refuses to
// the token stays refused.
func TestPersonDrivesRepository(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			f := connect(t, e)
			bob := f.gh.Person("bob")
			f.shop.Allow(bob, "write")
			secret := bob.PersonalToken(github.NewToken{Repos: []*github.Repo{f.shop}, Permissions: map[string]string{"contents": "write"}})
			carol := f.person("carol", f.acct, policy.Member)
			carols := f.mint(f.acct, &carol, policy.Member.Ceiling()|policy.Scopes(policy.ReadRepos), nil)
			machine := f.mint(f.acct, nil, policy.Owner.Ceiling(), nil)
			const read, write = "git-upload-pack", "git-receive-pack"

			for _, path := range []string{"/v1/me/github-token", "/v1/me/repo-bindings"} {
				f.send("GET", path, machine, "").want(403) // it is nobody's
			}
			connected := f.send("POST", "/v1/me/github-token", f.owner, `{"token": "`+secret+`"}`).want(200)
			bound := f.send("POST", "/v1/me/repo-bindings", f.owner, `{"repo": "acme/shop"}`).want(200)
			for _, a := range []answer{connected, bound} {
				if strings.Contains(string(a.body), secret) {
					t.Errorf("the answer shows the token: %s", a.body)
				}
			}
			f.advertised(f.owner, read).want(200)
			f.advertised(f.owner, write).want(200)

			// The App may push; the person no longer.
			f.shop.Allow(bob, "read")
			f.advertised(f.owner, read).want(200)
			a := f.advertised(f.owner, write).want(403)
			if !strings.Contains(string(a.body), "bound to the token") || f.bindingOf(f.owner) != "refused" {
				t.Errorf("%s, and the binding is %s", a.body, f.bindingOf(f.owner))
			}
			f.advertised(carols, read).want(200) // somebody else goes with the App
			f.advertised(machine, write).want(200)

			// A run that the person asked for finds out as the person would.
			f.shop.Allow(bob, "write")
			f.send("POST", "/v1/me/repo-bindings", f.owner, `{"repo": "acme/shop"}`).want(200)
			f.shop.Allow(bob, "")
			f.works()
			patience.Until(f.t, "the run was refused", func() bool { return f.bindingOf(f.owner) == "refused" })
			if _, ok := f.pull(); ok {
				t.Error("the App was used instead")
			}

			// Without the token there is no binding, and the App is used.
			f.send("DELETE", "/v1/me/github-token", f.owner, "").want(200)
			f.advertised(f.owner, write).want(200)

			// Whoever leaves the account takes the token along.
			f.shop.Allow(bob, "write")
			f.send("POST", "/v1/me/github-token", carols, `{"token": "`+secret+`"}`).want(200)
			f.send("POST", "/v1/me/repo-bindings", carols, `{"repo": "acme/shop"}`).want(200)
			f.send("DELETE", "/v1/org/members/"+carol, f.owner, "").want(200)
			trail := f.send("GET", "/v1/audit/events?per_page=100", f.owner, "").want(200)
			if !regexp.MustCompile(`"why": ?"left"`).Match(trail.body) || strings.Contains(string(trail.body), secret) {
				t.Errorf("the record: %s", trail.body)
			}
		})
	}
}

// A token that the host no longer takes is refused from then on, and the host is not
// asked again until its owner stores another one.
func TestRefusedTokenIsKept(t *testing.T) {
	t.Parallel()
	f := connect(t, db.SQLite)
	bob := f.gh.Person("bob")
	f.shop.Allow(bob, "write")
	may := github.NewToken{Repos: []*github.Repo{f.shop}, Permissions: map[string]string{"contents": "write"}, Expires: time.Minute}
	short := bob.PersonalToken(may)
	f.send("POST", "/v1/me/github-token", f.owner, `{"token": "`+short+`"}`).want(200)
	f.send("POST", "/v1/me/repo-bindings", f.owner, `{"repo": "acme/shop"}`).want(200)
	f.gh.Advance(2 * time.Minute)
	for range 2 {
		f.advertised(f.owner, "git-upload-pack").want(403)
	}
	var shown struct{ State string }
	decode(t, f.send("GET", "/v1/me/github-token", f.owner, "").want(200), &shown)
	if shown.State != "refused" {
		t.Errorf("the token is %q", shown.State)
	}
	f.send("POST", "/v1/me/repo-bindings", f.owner, `{"repo": "acme/shop"}`).want(400)
	other := bob.PersonalToken(may)
	f.send("POST", "/v1/me/github-token", f.owner, `{"token": "`+other+`"}`).want(200)
	f.advertised(f.owner, "git-upload-pack").want(200)
}
