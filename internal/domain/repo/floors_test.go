package repo

import (
	"reflect"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/proof/seed"
)

func text(s string) *string { return &s }

func TestClamp(t *testing.T) {
	t.Parallel()
	hosts := []string{"t.example.com", "*.trusted.example"}
	floors := Floors{Isolation: text("landlock"), MergeMode: text("ask"), TaskUSD: usd(5), RunUSD: usd(1), Egress: &hosts}
	for name, c := range map[string]struct {
		change func(*Policy)
		names  string // the fields that are clamped
	}{
		"within all":          {func(*Policy) {}, ""},
		"stricter than all":   {func(p *Policy) { p.Agent.Isolation, p.Merge.Mode, p.Budget.TaskUSD = "bubblewrap", "never", usd(0) }, ""},
		"less isolation":      {func(p *Policy) { p.Agent.Isolation = "none" }, "agent.isolation"},
		"unnamed isolation":   {func(p *Policy) { p.Agent.Isolation = "" }, "agent.isolation"},
		"a more lenient mode": {func(p *Policy) { p.Merge.Mode = "auto" }, "merge.mode"},
		"no budgets":          {func(p *Policy) { p.Budget = BudgetPolicy{} }, "budget.task_usd budget.run_usd"},
		"a greater budget":    {func(p *Policy) { p.Budget.RunUSD = usd(1.5) }, "budget.run_usd"},
		"hosts": {func(p *Policy) {
			p.MCPServers = map[string]MCPServer{"a": {URL: "https://T.example.com:443/x"}, "b": {URL: "https://x.trusted.example"},
				"c": {URL: "https://trusted.example"},
				"d": {URL: "https://t.example.com:8443"}, "e": {URL: "https://evil.example/t.example.com"}}
		}, "mcp_servers.c mcp_servers.d mcp_servers.e"},
		"hosts of the script": {func(p *Policy) {
			p.Prepare.Network = []string{"t.example.com", "*.example.com", "*.trusted.example", "x.trusted.example:80", "y.trusted.example"}
		}, "prepare.network"},
		"one of a port": {func(p *Policy) { p.Prepare.Network = []string{"t.example.com:80"} }, "prepare.network"},
	} {
		p := base()
		p.Budget.RunUSD = usd(1)
		c.change(&p)
		asked := p
		got, clamps := floors.Clamp(p)
		var names []string
		for _, cl := range clamps {
			names = append(names, cl.Field)
			if cl.Asked == cl.Given || cl.Given == "" || cl.Floor == "" {
				t.Errorf("%s: %+v does not say what becomes of it", name, cl)
			}
		}
		if strings.Join(names, " ") != c.names {
			t.Errorf("%s: clamped are %q, want %q", name, names, c.names)
		}
		if again, more := floors.Clamp(got); len(more) > 0 || !reflect.DeepEqual(again, got) {
			t.Errorf("%s: what was clamped is clamped again: %+v", name, more)
		}
		if !reflect.DeepEqual(asked, p) {
			t.Errorf("%s: clamping changed what the file says, which others share", name)
		}
		if c.names == "" && !reflect.DeepEqual(got, p) {
			t.Errorf("%s: %+v became %+v", name, p, got)
		}
	}
	if got, clamps := (Floors{}).Clamp(base()); !reflect.DeepEqual(got, base()) || len(clamps) > 0 {
		t.Errorf("without floors: %+v", clamps)
	}
	none := []string{}
	if got, clamps := (Floors{Egress: &none}).Clamp(base()); len(got.MCPServers) > 0 || len(got.Prepare.Network) > 0 || len(clamps) != 2 {
		t.Errorf("no host is allowed: %+v, %+v", got.MCPServers, clamps)
	}
}

func TestProtects(t *testing.T) {
	t.Parallel()
	f := Floors{Protected: []string{"deploy/", "**/Dockerfile", "ci/*.yml", "a/**/z", "Straße"}}
	for path, want := range map[string]bool{
		".svc/policy.yml": true, ".svc": true, ".svc/a/b": true, ".SVC/policy.yml": true, ".Svc": true,
		".\u017fvc/x": true, ".s\u200cvc/x": true, ".svc./x": true, ".svc /x": true, ".svc::$INDEX_ALLOCATION/policy.yml": true,
		"SVC~1/policy.yml":  true,
		"a/.svc/policy.yml": false, ".svcx": false, "svc/policy.yml": false, ".sv/c": false, "svc~x/p": false,
		"deploy/x": true, "Deploy/x/y": true, "deploy": true, "deployment/x": false, "x/deploy/y": false,
		"Dockerfile": true, "x/y/dockerfile": true, "x/Dockerfile.old": false, "Dockerfile/x": true,
		"ci/a.yml": true, "ci/a/b.yml": false, "ci/a.yaml": false, "a/z": true, "a/b/c/z": true, "a/b": false,
		"STRAßE": true, "README": false, "\xff": false, "": false, "...": false,
	} {
		if got := f.Protects(path, false); got != want {
			t.Errorf("%q is protected: %v, want %v", path, got, want)
		}
	}
	for path, want := range map[string]bool{"deploy": true, "ci": true, "a": true, "x": false, "a/b": false, ".svc": true} {
		if got := f.Protects(path, true); got != want {
			t.Errorf("a link at %q is protected: %v, want %v", path, got, want)
		}
	}
	if (Floors{}).Protects("README", true) || !(Floors{}).Protects(".svc/x", false) {
		t.Error("every account protects the rules, and nothing else by itself")
	}
}

func TestFloorsAreChecked(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"", "/etc", "a//b", "../x", "a/./b", "a[", "**x", "a\x00", strings.Repeat("x", maxPattern+1), "/", "."} {
		if (Floors{Protected: []string{p}}).check()["protected_paths.0"] == nil {
			t.Errorf("the pattern %q was taken", p)
		}
	}
	for _, h := range []string{"", "*", "*.", "a/b", "A.example", "https://a.example", "a@b", "a b", "*.*.x", "a?b", "a#b"} {
		if (Floors{Egress: &[]string{h}}).check()["egress.0"] == nil {
			t.Errorf("the host %q was taken", h)
		}
	}
	if e := (Floors{Protected: []string{"deploy/", "**/x", "a/*/b?", "**"},
		Egress: &[]string{"a.example", "*.b.example", "a.example:8443"}}).check(); len(e) > 0 {
		t.Errorf("good ones were refused: %v", e)
	}
}

// TestOutsideBoxesAreKeptOnce holds that what is shown of the floor is what boxes are judged
// by.
func TestOutsideBoxesAreKeptOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		var f Floors
		s.call("acme/write:account", 200, "PUT", "/v1/account/floors", `{"outside_boxes": true, "task_usd": 3}`, &f)
		for _, in := range []bool{true, false} {
			s.write("acme", func(tx *db.Tx) error { _, err := seed.LetIn.Exec(tx, "acme", in); return err })
			f = Floors{}
			s.call("acme/read:account", 200, "GET", "/v1/account/floors", "", &f)
			if f.Outside != in || *f.TaskUSD != 3 {
				t.Errorf("%t is shown as %+v", in, f)
			}
		}
	})
}
