package codehost

import (
	"os/exec"
	"strings"
	"testing"
)

func parse(s string) Repo {
	owner, name, _ := strings.Cut(s, "/")
	return Repo{Host: BuiltIn, Owner: owner, Name: name}
}

func TestRepoNames(t *testing.T) {
	for _, s := range []string{"acme/shop", "a/.github", "acme_2/a.b-c_d", "A/B", "acme/...x"} {
		if r := parse(s); r.Validate() != nil || r.String() != s {
			t.Errorf("%q is refused: %v", s, r.Validate())
		}
	}
	for _, s := range []string{
		"", "/", "acme", "acme/", "/shop", "acme/..", "acme/.", "../shop", "./shop", "acme/a/b", "acme/-x", "-a/x", "a.b/x",
		"acme/x.git", "acme/x.GIT", "acme/a b", "acme/a\n", "acme/é", "acme/a\x00", "acme/a%2fb", `acme/a\b`,
		"acme/" + strings.Repeat("a", 101),
	} {
		if parse(s).Validate() == nil {
			t.Errorf("%q is taken", s)
		}
	}
}

// Git itself is the reference for the names of refs.
func TestValidRefAgreesWithGit(t *testing.T) {
	for _, s := range []string{
		"refs/heads/main", "refs/heads/svc/add-greeting--0a1b2c3d", "refs/wip/7/1", "refs/x", "refs/heads/ünï", "refs/heads/@",
		"refs/heads/a.b",
		"refs/heads/-a", "refs/heads/a{b}", "refs/heads/a@b",
		"refs/heads/", "refs//a", "refs/heads/a..b", "refs/heads/.a", "refs/heads/a/.b", "refs/heads/a.lock", "refs/heads/a.lock/b",
		"refs/heads/a.",
		"refs/heads/a b", "refs/heads/a~1", "refs/heads/a^", "refs/heads/a:b", "refs/heads/a?", "refs/heads/*", "refs/heads/[a",
		`refs/heads/a\b`,
		"refs/heads/a@{1}", "refs/heads/a\x7f", "refs/heads/a\tb", "refs/heads/a\nb", "/refs/heads/a", "refs/heads/a/",
	} {
		want := exec.Command("git", "check-ref-format", s).Run() == nil
		if got := ValidRef(s); got != want {
			t.Errorf("ValidRef(%q) = %v, git says %v", s, got, want)
		}
	}
	for _, s := range []string{"HEAD", "heads/main", "", "refs/" + strings.Repeat("a", 300)} {
		if ValidRef(s) {
			t.Errorf("ValidRef(%q): want false", s)
		}
	}
}

func TestValidBranch(t *testing.T) {
	for s, want := range map[string]bool{"main": true, "svc/x--1": true, "": false, "-d": false, "HEAD": false,
		"refs/heads/main": false, "a b": false} {
		if got := ValidBranch(s); got != want {
			t.Errorf("ValidBranch(%q) = %v", s, got)
		}
	}
}

func TestOnlyLinks(t *testing.T) {
	for text, want := range map[string]bool{
		"https://github.com/acme/web/issues/12":                                                  true,
		" - https://github.com/acme/web/pull/3\n - <https://github.com/acme/web/issues/12#c-1> ": true,
		"acme/web#12, #13": true,
		"https://gitlab.com/acme/web/-/merge_requests/4": true,
		"Fix https://github.com/acme/web/issues/12":      false,
		"https://example.com/docs/page":                  false,
		"The header is 3px too low.":                     false,
		"...":                                            false,
	} {
		if got := OnlyLinks(text); got != want {
			t.Errorf("OnlyLinks(%q) = %v", text, got)
		}
	}
}
