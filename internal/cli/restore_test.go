package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"yardmaster/internal/cli/exit"
)

// What was dismissed for a repository is restored by the command that is printed, as one line.
func TestFindingIsRestored(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{
		"POST /v1/findings/" + someID + "/dismiss":          `{"id": "` + someID + `", "repo": "acme/web", "rule_id": "` + otherID + `"}`,
		"DELETE /v1/repos/acme/web/review-rules/" + otherID: `{"id": "` + otherID + `"}`,
	})
	p := f.person(t)
	const undo = "finding restore " + otherID + " --repo acme/web"
	p.holds("finding dismiss "+someID+" --rule", 0, "Undo: yardmaster "+undo+"\n")
	if !f.was("POST /v1/findings/"+someID+"/dismiss", `"rule":true`) {
		t.Errorf("%q", f.calls)
	}
	p.holds(undo, 0, "Reviews may name it again.", "yardmaster finding rules --repo acme/web")
	if !f.was("DELETE /v1/repos/acme/web/review-rules/" + otherID) {
		t.Errorf("%q", f.calls)
	}
	f.answers["POST /v1/findings/"+someID+"/dismiss"] = `{"id": "` + someID + `", "pr_id": "` + otherID + `", "rule_id": null}`
	p.holds("finding dismiss "+someID, 0, "in this pull request alone", "yardmaster pr findings "+otherID, "!Undo")
}

// A repository goes by its name alone where only one has that.
func TestRepositoryByItsName(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{
		"GET /v1/repos":          `{"data": [{"full_name": "acme/web"}, {"full_name": "acme/api"}, {"full_name": "other/api"}]}`,
		"GET /v1/repos/acme/web": `{"full_name": "acme/web", "default_branch": "trunk"}`,
	})
	p := f.person(t)
	p.holds("repo view web", 0, "trunk")
	p.holds("repo view api", exit.CodeMisused, "OWNER/NAME: say acme/api or other/api")
	p.holds("repo settings foo", exit.CodeMisused, `"foo" has not the form OWNER/NAME`, "!project.")
	p.holds("repo policy foo", exit.CodeMisused, `"foo" has not the form OWNER/NAME`)
}

// On a branch that no pull request has, that is what is said to a script.
func TestBranchWithoutPull(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{"GET /v1/repos/acme/web/prs": `{"data": []}`})
	p := f.person(t)
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"remote", "add", "yardmaster", f.URL + "/git/acme/web.git"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = p.home
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if shown, code := p.program([]string{"/bin/sh", "-c", `"$0" pr view < /dev/null`, executable}); code != exit.CodeMisused {
		t.Errorf("exit code %d: %s", code, shown)
	} else if !strings.Contains(shown, "no pull request has the branch main; name one") {
		t.Error(shown)
	}
}

// What takes a number of seconds takes a length of time as well.
func TestLengthsOfTime(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{"PUT /v1/templates/careful": `{"name": "careful"}`,
		"POST /v1/runners/" + someID + "/decommission": `{}`})
	p := f.person(t)
	p.holds("box decommission "+someID+" --grace-s 5m", 0)
	if !f.was("/decommission", `"grace_s":300`) {
		t.Errorf("%q", f.calls)
	}
	for given, sent := range map[string]string{"30m": `"timeout":1800`, "90": `"timeout":90`, "1d": `"timeout":86400`} {
		p.holds("template set careful --timeout "+given, 0)
		if !f.was("PUT /v1/templates/careful", sent) {
			t.Errorf("%s: %q", given, f.calls)
		}
	}
}
