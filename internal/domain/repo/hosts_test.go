package repo

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/proof/seed"
)

// pair is a site with a second host.
type pair struct {
	*site
	second *builtin.Host
	root2  string // folder of the second host
}

func withSecond(s *site) *pair {
	s.t.Helper()
	p := &pair{site: s, root2: s.t.TempDir()}
	var err error
	if p.second, err = builtin.New(builtin.Config{Name: "second", Root: p.root2, BaseURL: "http://second"}); err != nil {
		s.t.Fatal(err)
	}
	s.Hosts = codehost.NewHosts(map[string]codehost.Sides{
		codehost.BuiltIn: {Host: s.host, Forge: builtin.Forge{}}, "second": {Host: p.second, Forge: builtin.Forge{}},
	})
	return p
}

// atSecond names a repository of the second host.
func atSecond(owner, name string) codehost.Repo {
	return codehost.Repo{Host: "second", Owner: owner, Name: name}
}

func (p *pair) install(account string, r codehost.Repo) (repoID string) {
	p.t.Helper()
	p.write(account, func(tx *db.Tx) (err error) {
		repoID, err = Install(tx, r, "main", false)
		return err
	})
	return repoID
}

// shown is the repository that a name addresses.
func (p *pair) shown(account, name string) (r Repository) {
	p.t.Helper()
	p.call(account, 200, "GET", "/v1/repos/"+name, "", &r)
	return r
}

// A name addresses one repository of an account, although two hosts have one of it:
// the one that is enabled, else the oldest. No two of a name are enabled.
func TestOneOfANameIsEnabled(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		p := withSecond(s)
		first := p.install("acme", web)
		other := p.install("acme", atSecond("acme", "web"))
		enable := func(repoID string, to bool) error {
			return p.DB.Write(db.WithAccount(context.Background(), "acme"), func(tx *db.Tx) error {
				_, err := seed.SetEnabled.Exec(tx, repoID, to)
				return err
			})
		}
		want := func(when, id, host, url string, enabled bool) {
			t.Helper()
			if r := p.shown("acme", "acme/web"); r.ID != id || r.Host != host || r.CloneURL != url || r.Enabled != enabled {
				t.Errorf("%s: %+v", when, r)
			}
			p.write("acme", func(tx *db.Tx) error {
				r, ok, err := ByName(tx, "acme", "web")
				if r.ID != id || !ok {
					t.Errorf("%s: ByName answers %+v, %v", when, r, ok)
				}
				return err
			})
		}
		const here, there = "http://host/git/acme/web.git", "http://second/git/acme/web.git"
		want("both installed", first, codehost.BuiltIn, here, true)
		if err := enable(other, true); !db.IsUnique(err) {
			t.Errorf("both are enabled: %v", err)
		}
		refused := func(when, slug string) {
			t.Helper()
			var problem op.Problem
			p.call("acme", 409, "PATCH", "/v1/repos/acme/web", `{"host": "second", "enabled": true}`, &problem)
			if !strings.HasSuffix(problem.Type, "/"+slug) {
				t.Errorf("%s: %+v", when, problem)
			}
		}
		refused("one of that name is enabled", "repo_ambiguous")
		p.call("acme", 200, "PATCH", "/v1/repos/acme/web", `{"enabled": false}`, nil)
		want("none enabled", first, codehost.BuiltIn, here, false)
		if err := enable(other, true); err != nil {
			t.Fatal(err)
		}
		want("the other enabled", other, "second", there, true)
		p.call("acme", 200, "PATCH", "/v1/repos/acme/web", `{"ai_first": true}`, nil)
		var page struct{ Data []Repository }
		p.call("acme", 200, "GET", "/v1/repos", "", &page)
		var all []string
		for _, r := range page.Data {
			if all = append(all, r.Host+" "+r.CloneURL); r.AIFirst != (r.ID == other) {
				t.Errorf("a switch of the other one was turned: %+v", r)
			}
		}
		p.write("acme", func(tx *db.Tx) error {
			r, err := byID.One(tx, tx.Account, other)
			if err != nil {
				return err
			}
			return lose(tx, r, LostRemoved)
		})
		refused("its host has taken it away", "repo_out_of_reach")
		if slices.Sort(all); !slices.Equal(all, []string{"builtin " + here, "second " + there}) {
			t.Errorf("listed: %q", all)
		}
	})
}

// A place has one repository, and so has an id of a host; accounts do not share them.
func TestOneRepositoryAtAPlace(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		p := withSecond(s)
		p.install("acme", web)
		known := codehost.Repo{Host: "third", ID: "7", Owner: "acme", Name: "lib"}
		p.install("acme", known)
		renamed, foreign := known, known
		renamed.Name, foreign.Host = "renamed", "fourth"
		for what, c := range map[string]struct {
			account string
			r       codehost.Repo
			taken   bool
		}{
			"the same place":                  {"acme", web, true},
			"that place in another account":   {"rival", web, true},
			"its name at another host":        {"rival", atSecond("acme", "web"), false},
			"another name without an id":      {"acme", at("acme", "app"), false},
			"an id under another name":        {"acme", renamed, true},
			"that id at another host":         {"rival", foreign, false},
			"the place of an id, without one": {"rival", codehost.Repo{Host: "third", Owner: "acme", Name: "lib"}, true},
		} {
			if err := p.tryInstall(c.account, c.r); db.IsUnique(err) != c.taken || err != nil && !c.taken {
				t.Errorf("%s: %v", what, err)
			}
		}
		p.write("acme", func(tx *db.Tx) error {
			r, ok, err := ByName(tx, "acme", "lib")
			if r.HostRepo() != known || !ok {
				t.Errorf("%+v is %+v", known, r.HostRepo())
			}
			return err
		})
		if r := p.shown("rival", "acme/web"); r.Host != "second" || !r.Enabled {
			t.Errorf("the other account has %+v", r)
		}
		if r := p.shown("acme", "acme/web"); r.Host != codehost.BuiltIn || !r.Enabled {
			t.Errorf("the account has %+v", r)
		}
	})
}

func (p *pair) tryInstall(account string, r codehost.Repo) error {
	return p.DB.Write(db.WithAccount(context.Background(), account), func(tx *db.Tx) error {
		_, err := Install(tx, r, "main", false)
		return err
	})
}

// The door of a host opens its own repositories, not those of its names elsewhere.
func TestAccessIsOfOneHost(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		p := withSecond(s)
		p.install("acme", web)
		p.attempt = Attempt{RepoID: p.install("rival", atSecond("acme", "web")), Push: []string{"refs/heads/a"}, Who: "run:r"}
		there := atSecond("acme", "web")
		for what, c := range map[string]struct {
			password   string
			r          codehost.Repo
			read, push bool
		}{
			"the account here":          {"acme", web, true, false},
			"the account there":         {"acme", there, false, false},
			"the other account there":   {"rival", there, true, false},
			"the other account here":    {"rival", web, false, false},
			"an attempt, there":         {"live", there, true, true},
			"an attempt, here":          {"live", web, false, false},
			"the account, a new one":    {"acme", atSecond("acme", "new"), true, false},
			"the other's, no such host": {"rival", codehost.Repo{Host: "third", Owner: "acme", Name: "web"}, false, false},
		} {
			password := c.password
			if password != "live" {
				password += "/read:repos"
			}
			a, err := p.Access(t.Context(), "x", password, c.r)
			if err != nil || a.Read != c.read || a.MayPush("refs/heads/a") != c.push || a.Create {
				t.Errorf("%s: %+v, %v", what, a, err)
			}
		}
	})
}

// A first push makes the repository known at the host that it came to, also where
// another host has one of the name.
func TestFirstPushAtASecondHost(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		p := withSecond(s)
		p.make() // acme/web, with a commit
		there := atSecond("acme", "web")
		if err := p.Create(t.Context(), there); err != nil {
			t.Fatal(err)
		}
		if err := p.Create(t.Context(), there); err != nil {
			t.Errorf("again: %v", err)
		}
		if err := p.second.Create(t.Context(), there, codehost.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		const text = "merge: {mode: auto}\n"
		p.commit(PolicyPath, text) // pushed to the built-in host, which nobody tells of
		p.git("push", "--quiet", filepath.Join(p.root2, "acme", "web.git"), "main")
		p.pushed = nil
		head := p.git("rev-parse", "HEAD")
		err := p.OnPush(t.Context(), codehost.PushEvent{Repo: there, Who: "ann", Updates: []codehost.RefUpdate{
			{Ref: "refs/heads/main", Old: codehost.ZeroSHA, New: head},
		}})
		if err != nil || !slices.Equal(p.pushed, []string{"main " + head}) {
			t.Errorf("told of %q, %v", p.pushed, err)
		}
		p.write("acme", func(tx *db.Tx) error {
			for host, want := range map[string]string{codehost.BuiltIn: string(DefaultPolicy().Merge.Mode), "second": "auto"} {
				r, ok, err := byPlace.Maybe(tx, host, "acme", "web")
				if err != nil || !ok || string(r.ref().Policy.Merge.Mode) != want || r.Enabled != (host == codehost.BuiltIn) {
					t.Errorf("at %s: %+v, %v, %v", host, r, ok, err)
				}
			}
			return nil
		})
		if err := os.RemoveAll(p.root2); err != nil {
			t.Fatal(err)
		}
		if err := p.Create(t.Context(), there); err == nil {
			t.Error("a repository that its host has lost is made again")
		}
		unknown := codehost.Repo{Host: "third", Owner: "acme", Name: "web"}
		if err := p.OnPush(t.Context(), codehost.PushEvent{Repo: unknown}); err == nil {
			t.Error("a push to a host that the server is not connected to is recorded")
		}
	})
}
