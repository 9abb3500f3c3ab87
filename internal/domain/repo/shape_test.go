package repo

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
)

// ref is acme/web as other domains see it.
func (s *site) ref() (r Ref) {
	s.t.Helper()
	s.write("acme", func(tx *db.Tx) (err error) {
		r, _, err = ByName(tx, "acme", "web")
		return err
	})
	return r
}

// bare runs a push of refs to acme/web, and tells of the branches.
func (s *site) bare(refs ...string) {
	s.t.Helper()
	s.git(append([]string{"push", "--quiet", filepath.Join(s.root, "acme", "web.git")}, refs...)...)
	for _, r := range refs {
		from, to, _ := strings.Cut(r, ":")
		u := codehost.RefUpdate{Ref: to, Old: codehost.ZeroSHA, New: codehost.ZeroSHA}
		if from != "" {
			u.New = s.git("rev-parse", from)
		}
		e := codehost.PushEvent{Repo: web, Who: "ann", Updates: []codehost.RefUpdate{u}}
		if err := s.OnPush(s.t.Context(), e); err != nil {
			s.t.Fatal(err)
		}
	}
}

// A branch beside which git cannot have those of tasks is known from its push, from a
// refresh and from the hourly pass on, until it is gone.
func TestBranchInTheWay(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		s.make()
		s.bare("main:refs/heads/svc")
		if r := s.ref(); r.InTheWay != "svc" {
			t.Errorf("after the push: %q", r.InTheWay)
		}
		s.push("a", "a\n") // which says nothing of it
		if r := s.ref(); r.InTheWay != "svc" {
			t.Errorf("after another push: %q", r.InTheWay)
		}
		s.bare(":refs/heads/svc")
		if r := s.ref(); r.InTheWay != "" {
			t.Errorf("once it is gone: %q", r.InTheWay)
		}
		s.git("push", "--quiet", filepath.Join(s.root, "acme", "web.git"), "main:refs/heads/svc")
		if err := s.Refresh(t.Context(), web); err != nil || s.ref().InTheWay != "svc" {
			t.Errorf("after a refresh: %q, %v", s.ref().InTheWay, err)
		}
		s.git("push", "--quiet", filepath.Join(s.root, "acme", "web.git"), ":refs/heads/svc")
		s.Pass(t.Context(), map[string]time.Time{})
		if r := s.ref(); r.InTheWay != "" {
			t.Errorf("after the pass: %q", r.InTheWay)
		}
	})
}

// A repository with tags alone, or with branches that are not its default one, has no
// commit that work could begin from.
func TestUnborn(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		err := errors.Join(s.Create(t.Context(), web), s.host.Create(t.Context(), web, codehost.CreateOptions{}))
		if err != nil {
			t.Fatal(err)
		}
		s.git("init", "--quiet", "--initial-branch=main")
		s.git("commit", "--quiet", "--allow-empty", "--message", "one")
		s.bare("main:refs/tags/v1")
		if !s.ref().Unborn {
			t.Error("tags alone: it counts as one with a commit")
		}
		s.push("a", "a\n")
		if s.ref().Unborn {
			t.Error("with a commit on its default branch it counts as one without")
		}
	})
}

// A file that looks like the policy file is named where the defaults are explained; once
// there is a policy file it is of no interest.
func TestNearlyThePolicyFile(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".svc/policy.yaml", ".svc/policy.json", ".svc/Policy.yml", ".svc/policy", "svc/policy.yml"} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s *site) {
				s.make()
				s.push(".svc/notes.md", "x\n")
				says := func() string {
					t.Helper()
					var p EffectivePolicy
					s.call("acme", 200, "GET", "/v1/repos/acme/web/policy", "", &p)
					if p.Fallback == nil {
						return ""
					}
					return *p.Fallback
				}
				if got := says(); got != "there is no .svc/policy.yml on main" {
					t.Errorf("without any: %q", got)
				}
				s.push(name, "merge: {mode: never}\n")
				if got, want := says(), "there is no .svc/policy.yml on main; "+name+" counts for nothing: rename it to .svc/policy.yml"; got != want {
					t.Errorf("with it: %q, want %q", got, want)
				}
				s.push(PolicyPath, "version: 1\n")
				if got := says(); got != "" {
					t.Errorf("with both: %q", got)
				}
			})
		})
	}
}

// Another branch can be made the default: HEAD, the policy file and what is told follow,
// and the one before can be deleted then. A bad name changes nothing, nor does a call
// that is refused for another reason.
func TestDefaultBranchIsChosen(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		var renamed []string
		DefaultRenamed.On(s.DB, func(_ *db.Tx, c Renamed) error {
			renamed = append(renamed, c.From+" "+c.Repo.DefaultBranch)
			return nil
		})
		s.make()
		s.git("checkout", "--quiet", "-b", "next")
		s.push(PolicyPath, "merge: {mode: never}\n")
		set := func(status int, body string) (problem struct{ Errors map[string][]string }) {
			t.Helper()
			s.call("acme", status, "PATCH", "/v1/repos/acme/web", body, &problem)
			return problem
		}
		head := func() string {
			t.Helper()
			info, err := s.host.Info(t.Context(), web)
			if err != nil {
				t.Fatal(err)
			}
			return info.DefaultBranch
		}
		for body, says := range map[string]string{
			`{"default_branch": "none"}`:   "push it first",
			`{"default_branch": "a..b"}`:   "not a valid branch name",
			`{"default_branch": "v1.0.0"}`: "push it first",
		} {
			if p := set(400, body); !strings.Contains(strings.Join(p.Errors["default_branch"], ""), says) {
				t.Errorf("%s: %v", body, p.Errors)
			}
		}
		s.write("acme", func(tx *db.Tx) error { return people.SetTier(tx, "acme", people.TierFree) })
		set(402, `{"default_branch": "next", "enabled": true}`)
		s.write("acme", func(tx *db.Tx) error { return people.SetTier(tx, "acme", "self_hosted") })
		if got := s.ref(); head() != "main" || got.DefaultBranch != "main" || got.Policy.Merge.Mode != "ask" {
			t.Errorf("after refusals HEAD is %s and the row %+v", head(), got)
		}
		set(200, `{"default_branch": "next"}`)
		if got := s.ref(); head() != "next" || got.DefaultBranch != "next" || got.Policy.Merge.Mode != "never" {
			t.Errorf("HEAD is %s and the row %+v", head(), got)
		}
		set(200, `{"default_branch": "next"}`) // it is
		if len(renamed) > 0 {
			t.Errorf("a branch of other commits counts as another name: %v", renamed)
		}
		s.bare("next:refs/heads/trunk")
		set(200, `{"default_branch": "trunk"}`)
		if want := "next trunk"; strings.Join(renamed, ";") != want {
			t.Errorf("told of %v, want %s", renamed, want)
		}
	})
}
