package oauth

import (
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

// TestEveryScopeIsShown holds that a page names every scope that is asked for, under
// the heading that fits it.
func TestEveryScopeIsShown(t *testing.T) {
	t.Parallel()
	all := ^policy.Set(0)
	n := 0
	for _, g := range inWords(all) {
		for _, r := range g.List {
			n++
			one := policy.Scopes(r.Scope)
			if want := careful.Has(one) || strings.HasPrefix(string(r.Scope), "admin:"); g.Care != want {
				t.Errorf("%s is under %q", r.Scope, g.Title)
			}
		}
	}
	if n != len(policy.Vocabulary()) {
		t.Errorf("%d scopes are shown, of %d", n, len(policy.Vocabulary()))
	}
}

func TestOurNameIsReserved(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Yardmaster",
		"YARDMASTER",
		" yard master ",
		"Yard-Master",
		"yard.master!",
		"The Yardmaster CLI",
		"yardmaster on bench",
		"Y a r d m a s t e r",
		"Yаrdmаster",
		"Yardmаstеr",
		"yardrnaster",
		"y4rdm4st3r",
		"Ｙａｒｄｍａｓｔｅｒ",
		"Yárdmäster",
		"υardmaster",
		"Yardmaste\u0433",
		"Yarclmaster",
	} {
		if !imitatesUs(name) {
			t.Errorf("%q is taken for another's name", name)
		}
		_, err := service(&db.DB{}, seal.New()).register(t.Context(), registerIn{
			Name:      name,
			Redirects: []string{"https://editor.example/cb"},
		})
		if err == nil || !strings.HasPrefix(err.Error(), "invalid_client_metadata: ") {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"Editor", "Yard", "Station master", "yardstick", "Hardmaster", "", "編集者", "Claude Code"} {
		if imitatesUs(name) {
			t.Errorf("%q is taken for ours", name)
		}
	}
}

// TestConsentSaysWhatIsGiven holds that the consent page describes each scope in
// words, and marks those that can do harm.
func TestConsentSaysWhatIsGiven(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		session := "s1 acme read:account read:tasks write:tasks write:secrets write:prs admin:read:orgs"
		page := y.call(answer{200, nil}, "GET", y.request("scope", ""), session, "").Body.String()
		for _, want := range []string{"<h2>It may see</h2>", policy.ReadTasks.Words() + ` <code>read:tasks</code>`,
			"<h2>It may change</h2>", `<h2 class="care">Take care: it may also</h2>`,
			policy.WriteSecrets.Words(), policy.WritePRs.Words()} {
			if !strings.Contains(page, want) {
				t.Errorf("the screen lacks %q:\n%s", want, page)
			}
		}
		y.Used = func() policy.Set { return policy.Scopes(policy.ReadTasks, policy.WriteTasks) }
		for _, asked := range []string{"", "read:tasks write:secrets"} {
			page := y.call(answer{200, nil}, "GET", y.request("scope", asked), session, "").Body.String()
			if strings.Contains(page, "<code>write:secrets") || strings.Contains(page, "<code>read:account") ||
				!strings.Contains(page, "<code>read:tasks") {
				t.Errorf("asked for %q, where nothing here requires some of it:\n%s", asked, page)
			}
		}
		y.call(answer{400, nil}, "GET", y.request("scope", "write:secrets"), session, "")
		y.Used = func() policy.Set { return ^policy.Set(0) }
		if strings.Contains(page, "admin:") {
			t.Errorf("rights over the server are given to who did not ask for them:\n%s", page)
		}
		page = y.call(answer{200, nil}, "GET", y.request("scope", "read:tasks admin:read:orgs"), session, "").Body.String()
		if !strings.Contains(page, `<h2 class="care">Take care: of the whole server it may</h2>`) ||
			!strings.Contains(page, policy.AdminReadOrgs.Words()) {
			t.Errorf("who asks for them is not marked:\n%s", page)
		}
	})
}
