package gitmodules

import (
	"fmt"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	got := Parse([]byte(`# a comment
[core]
	path = no
[submodule "vendor/lib"]
	path = vendor/lib ; where
	url = ../lib.git
	branch = main
[submodule "a \"b\""]
	PATH = "deep/a b"
	Url = https://github.com/acme/b#c
[submodule "out"]
	path = ../out
	url = ../out.git
[submodule "rooted"]
	path = /etc
	url = ../etc.git
[submodule "hooks"]
	path = .git/hooks
	url = ../hooks.git
[submodule "files"]
	path = .gitmodules
	url = ../files.git
[submodule "nothing"]
	path = nothing
[Submodule "long"]
	path = lo\
ng
	url = ../long
`))
	want := `[{vendor/lib vendor/lib ../lib.git} {a "b" deep/a b https://github.com/acme/b} {long long ../long}]`
	if fmt.Sprint(got) != want {
		t.Errorf("%v", got)
	}
	if got := Parse([]byte("[submodule \"x\"]\npath = x\nurl = ../x\n" + strings.Repeat("#", MaxBytes))); got != nil {
		t.Errorf("%v", got)
	}
}

// An address means one repository or none, whatever its form: it is never followed.
func TestOf(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"../lib.git": "github.com/acme/lib", "../lib": "github.com/acme/lib", "../../other/lib.git/": "github.com/other/lib",
		"./../lib.git": "github.com/acme/lib", "../x/../lib": "github.com/acme/lib",
		"./lib.git": "", "../../../lib.git": "", "../../../../etc/x": "", "../..": "", "../../lib": "", "..\\lib": "", "../a\\b": "",
		"https://github.com/acme/lib.git": "github.com/acme/lib", "https://GitHub.com/acme/lib": "github.com/acme/lib",
		"https://user:secret@github.com/acme/lib": "github.com/acme/lib", "http://yard:8080/git/acme/lib.git": "yard:8080/git/acme/lib",
		"git@github.com:acme/lib.git": "github.com/acme/lib", "github.com:acme/lib": "github.com/acme/lib",
		"ssh://git@github.com:22/acme/lib.git": "github.com/acme/lib",
		"/srv/git/lib.git":                     "", "file:///srv/git/lib.git": "", "git://github.com/acme/lib": "",
		"ext::sh -c touch% x": "",
		"-u./x":               "", "--upload-pack=x:y": "", "https:///acme/lib": "", "https://github.com/acme/../../lib": "",
		"https://github.com/acme/lib?x=y": "", "": "", "..": "", "[::1]:a/b": "",
	} {
		if got := Of("github.com/acme/app", address); got != want {
			t.Errorf("%q is %q, want %q", address, got, want)
		}
	}
	if got := Of("yard:8080/git/acme/app", "../lib.git"); got != "yard:8080/git/acme/lib" {
		t.Error(got)
	}
	if got := Of("yard:8080/git/acme/app", "../../../lib.git"); got != "" {
		t.Error(got)
	}
}

func FuzzOf(f *testing.F) {
	f.Add("../lib.git")
	f.Add("git@github.com:acme/lib.git")
	f.Fuzz(func(t *testing.T, address string) {
		if got := Of("host/acme/app", address); got != "" && (strings.Contains(got, "..") && strings.Contains("/"+got+"/", "/../") ||
			strings.HasPrefix(got, "-") || strings.Contains(got, "\x00")) {
			t.Errorf("%q is %q", address, got)
		}
		for _, m := range Parse([]byte("[submodule \"x\"]\npath = " + address + "\nurl = x")) {
			if strings.HasPrefix(m.Path, "/") || strings.Contains("/"+m.Path+"/", "/../") || strings.Contains("/"+m.Path+"/", "/.git/") {
				t.Errorf("%q is the path %q", address, m.Path)
			}
		}
	})
}
