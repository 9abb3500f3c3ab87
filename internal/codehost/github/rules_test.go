package github

import (
	"slices"
	"testing"

	"yardmaster/internal/codehost"
	peer "yardmaster/internal/proof/github"
)

func TestBranchRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	rules, tag, err := w.host.BranchRules(ctx, w.shop, "main", "")
	if err != nil || len(rules.Required) != 0 || rules.Queue || len(rules.Methods) != 2 {
		t.Fatalf("without rules: %+v, %v", rules, err)
	}
	_, _, err = w.host.BranchRules(ctx, w.shop, "main", tag)
	wants(t, "with its tag", err, codehost.ErrNotModified)
	w.repo.Rules(w.ann, peer.Ruleset{
		Name: "main", Checks: []peer.Required{{Name: "build", App: w.app}, {Name: "lint"}}, Strict: true,
		Pull: true, Reviews: 2, LastPush: true, Queue: &peer.QueueRule{},
	})
	w.repo.Protect("main", peer.Protection{Checks: []peer.Required{{Name: "classic"}}})
	w.repo.Methods("squash")
	rules, _, err = w.host.BranchRules(ctx, w.shop, "main", tag)
	slices.SortFunc(rules.Required, func(a, b codehost.RequiredCheck) int { return int(a.Name[0]) - int(b.Name[0]) })
	want := []codehost.RequiredCheck{{Name: "build", Source: number(w.app.ID)}, {Name: "classic"}, {Name: "lint"}}
	if err != nil || !slices.Equal(rules.Required, want) || !rules.Strict || rules.Approvals != 2 || !rules.LastPush || !rules.Queue ||
		!slices.Equal(rules.Methods, []codehost.Method{codehost.MethodSquash}) {
		t.Errorf("with rules: %+v, %v", rules, err)
	}
	_, _, err = w.host.BranchRules(ctx, w.shop, "gone", "")
	wants(t, "no branch", err, codehost.ErrNotFound)
}

func TestPermission(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	for login, want := range map[string]codehost.Permission{
		"ann": codehost.PermitAdmin, "bob": codehost.PermitWrite, "eve": codehost.PermitNone, "nobody-at-all": codehost.PermitNone,
		"tom": codehost.PermitTriage, "mia": codehost.PermitMaintain, "rob": codehost.PermitRead,
	} {
		for role, p := range map[string]codehost.Permission{
			"triage": codehost.PermitTriage, "maintain": codehost.PermitMaintain, "read": codehost.PermitRead,
		} {
			if p == want {
				w.repo.Allow(w.peer.Person(login), role)
			}
		}
		if login == "eve" {
			w.peer.Person(login)
		}
		if got, err := w.host.Permission(t.Context(), w.shop, login); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", login, got, err, want)
		}
	}
}

func TestCreateRepo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	w.lose("POST /orgs/{org}/repos")
	once := codehost.Once(newUUID(t, w.peer.Now()))
	n := codehost.NewRepo{Name: "fresh", Description: "New.", Private: true}
	r := twice(t, func() (codehost.Repo, error) { return w.host.CreateRepo(ctx, "acme", once, n) })
	info, err := w.host.Info(ctx, r)
	if err != nil || !info.Empty || r.String() != "acme/fresh" || r.ID == "" || r.Host != hostName {
		t.Errorf("%+v: %+v, %v", r, info, err)
	}
	_, err = w.host.CreateRepo(ctx, "acme", once, codehost.NewRepo{Name: "shop"})
	wants(t, "one that has files", err, codehost.ErrExists)
	wants(t, "the same by Create", w.host.Create(ctx, w.shop, codehost.CreateOptions{}), codehost.ErrExists)
	w.app.Install(w.bob)
	_, err = w.host.CreateRepo(ctx, "bob", once, n)
	wants(t, "of a person", err, codehost.ErrCannot)
	renamed := n
	renamed.Name, renamed.Installation = "taken", "99999999"
	_, err = w.host.CreateRepo(ctx, "acme", once, renamed)
	wants(t, "the name is another owner's by now", err, codehost.ErrGone)
	_, err = w.host.CreateRepo(ctx, "strangers", once, n)
	wants(t, "of an owner without the App", err, codehost.ErrGone)
	without := w.connect(func(c *Config) { c.Administration = false })
	_, err = without.CreateRepo(ctx, "acme", once, n)
	f := as[*codehost.ForbiddenError](t, "without the switch", err)
	if f.Permission != "administration: write" || without.Can(codehost.CreateRepos) {
		t.Errorf("it needs %q", f.Permission)
	}
}
