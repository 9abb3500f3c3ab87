package repo

import (
	"fmt"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
)

// The token of an attempt reads the submodules that the default branch names, and theirs, of
// its own account, and nothing else; an attempt about a fork, or one that is late, reads none.
func TestAttemptsReadSubmodules(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		ids := map[string]string{}
		install := func(account, name, modules string) {
			s.write(account, func(tx *db.Tx) error {
				id, err := Install(tx, codehost.Repo{Host: codehost.BuiltIn, Owner: account, Name: name}, "main", false)
				if err != nil {
					return err
				}
				ids[account+"/"+name] = id
				var text *string
				if modules != "" {
					text = &modules
				}
				_, err = activity.Exec(tx, activityArgs{ID: id, LastActivityAt: tx.Now, DefaultBranch: "main", Gitmodules: text})
				return err
			})
		}
		module := func(path, url string) string {
			return fmt.Sprintf("[submodule %q]\n\tpath = %s\n\turl = %s\n", path, path, url)
		}
		install("acme", "app", module("lib", "../lib.git")+module("far", "http://host/git/acme/far")+module("theirs", "../../rival/theirs")+
			module("out", "../../../../x")+module("again", "../app.git"))
		install("acme", "lib", module("deep", "../deep.git"))
		install("acme", "deep", "")
		install("acme", "far", module("app", "../app"))
		install("acme", "other", "")
		install("rival", "theirs", "")
		reads := func() (all string) {
			for _, name := range []string{"app", "lib", "deep", "far", "other", "theirs"} {
				owner := "acme"
				if name == "theirs" {
					owner = "rival"
				}
				a, err := s.Access(t.Context(), "", "live", codehost.Repo{Host: codehost.BuiltIn, Owner: owner, Name: name})
				if err != nil {
					t.Fatal(err)
				}
				if a.Read {
					all += name + " "
				}
				if name != "app" && (len(a.Push) > 0 || a.Create) || a.Read && a.Account != "acme" {
					t.Errorf("%s: %+v", name, a)
				}
			}
			return all
		}
		s.attempt = Attempt{RepoID: ids["acme/app"], Push: []string{"refs/heads/svc/x"}, Who: "run:1"}
		if got := reads(); got != "app lib deep far " {
			t.Errorf("it reads %s", got)
		}
		s.attempt.Late = true
		if got := reads(); got != "app " {
			t.Errorf("late it reads %s", got)
		}
		s.attempt.Late, s.fork = false, true
		if got := reads(); got != "app " {
			t.Errorf("of a fork it reads %s", got)
		}
		s.fork, s.attempt.RepoID = false, ids["acme/deep"]
		app := codehost.Repo{Host: codehost.BuiltIn, Owner: "acme", Name: "app"}
		if a, err := s.Access(t.Context(), "", "live", app); err != nil || a.Read {
			t.Errorf("a submodule reads what has it: %+v %v", a, err)
		}
		s.attempt.RepoID = ids["acme/app"]
		off := "version: 1\ncheckout: {submodules: false}\n"
		modules := module("lib", "../lib.git")
		s.write("acme", func(tx *db.Tx) error {
			_, err := activity.Exec(tx, activityArgs{ID: ids["acme/app"], LastActivityAt: tx.Now, DefaultBranch: "main", PolicyYML: &off,
				Gitmodules: &modules})
			return err
		})
		if got := reads(); got != "app " {
			t.Errorf("by a policy without submodules it reads %s", got)
		}
	})
}

// What .gitmodules says is taken when the default branch is pushed to, and when it goes.
func TestGitmodulesAreRead(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		s.make()
		known := func() (n int) {
			s.write("acme", func(tx *db.Tx) error {
				r, ok, err := byName.Maybe(tx, "acme", "acme", "web")
				if err != nil || !ok {
					return err
				}
				if n = 0; r.Gitmodules != nil {
					n = len(*r.Gitmodules)
				}
				return nil
			})
			return n
		}
		text := "[submodule \"x\"]\n\tpath = x\n\turl = ../x\n"
		s.push(".gitmodules", text)
		if n := known(); n != len(text) {
			t.Errorf("%d bytes are known", n)
		}
		s.push(".gitmodules", "nothing\n")
		if n := known(); n != 0 {
			t.Errorf("%d bytes are known", n)
		}
	})
}
