package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/proof/rig"
)

// What is added is told of what would be found too late, what cannot be added is refused in
// one line with nothing left, and the default branch can be given another name.
func TestRepositoriesOfAllKinds(t *testing.T) {
	t.Parallel()
	y := yard(t)
	p := newPerson(t, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com")
	run := func(want int, argv ...string) string {
		t.Helper()
		out, code := p.program(argv)
		if code != want {
			t.Fatalf("%q: exit code %d, want %d\n%s", argv, code, want, out)
		}
		return out
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	begin := func(name, branch string, with ...string) {
		t.Helper()
		at := filepath.Join(p.home, name)
		if err := os.MkdirAll(filepath.Join(at, ".svc"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, ".svc", "policy.yaml"), []byte("merge: {mode: never}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		run(0, append([]string{"git", "-C", name, "init", "--quiet", "--initial-branch=" + branch}, with...)...)
		run(0, "git", "-C", name, "add", "--all")
		run(0, "git", "-C", name, "commit", "--quiet", "--message", "begin")
	}
	if out, code := p.terminal([]string{"auth", "login", "--url", y.URL, "--login", "ada"}, step{"Password: ",
		rig.Password + "\r"}); code != 0 {
		t.Fatal(out)
	}
	begin("calc", "master")
	if out := run(0, self, "repo", "add", "calc"); !strings.Contains(out,
		".svc/policy.yaml counts for nothing: rename it to .svc/policy.yml.") || strings.Contains(out, "Its default branch") {
		t.Errorf("add says\n%s", out)
	}
	begin("long", "main", "--object-format=sha256")
	if out := run(exit.CodeFailed, self, "repo", "add", "long"); !strings.Contains(out, "names its objects by sha256") ||
		strings.Contains(out, "fatal") {
		t.Errorf("sha256: %s", out)
	}
	if out := run(0, self, "repo", "list"); strings.Contains(out, "acme/long") {
		t.Errorf("it is known all the same: %s", out)
	}
	run(0, "git", "-C", "calc", "branch", "--move", "main")
	if out := run(0, self, "repo", "add", "calc"); !strings.Contains(out,
		"Its default branch is master, and yours main; another becomes the default with: yardmaster repo settings acme/calc --default-branch main") {
		t.Errorf("add of a renamed branch says\n%s", out)
	}
	if out := run(0, self, "repo", "settings", "acme/calc", "--default-branch", "main"); !strings.Contains(out,
		"Undo: yardmaster repo settings acme/calc --default-branch master") {
		t.Errorf("settings says\n%s", out)
	}
	run(0, self, "auth", "git")
	run(0, "git", "-C", "calc", "push", "--quiet", "yardmaster", ":master")
	if out := run(0, "git", "-C", "calc", "ls-remote", "--symref", "yardmaster", "HEAD"); !strings.Contains(out, "ref: refs/heads/main") {
		t.Errorf("HEAD is\n%s", out)
	} // Without git-lfs the pointers are there, and what to do is said.
	begin("art", "main")
	for name, text := range map[string]string{".gitattributes": "*.bin filter=lfs -text\n",
		"a.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("ab", 32) + "\nsize 12345\n"} {
		if err := os.WriteFile(filepath.Join(p.home, "art", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run(0, "git", "-C", "art", "add", "--all")
	run(0, "git", "-C", "art", "commit", "--quiet", "--message", "art")
	programs := filepath.Join(p.home, "programs")
	run(0, "sh", "-c", `mkdir "$0" && ln -s "$(command -v git)" "$(command -v sh)" "$0"`, programs)
	if out := run(0, "sh", "-c", `PATH="$1" "$0" repo add art`, self, programs); !strings.Contains(out,
		"this machine has no git-lfs: install it and add the repository again.") {
		t.Errorf("add without git-lfs says\n%s", out)
	}
	if out := run(0, self, "repo", "add", "art"); !strings.Contains(out, "The contents of 1 of its files of Git LFS are not there") {
		t.Errorf("add of pointers says\n%s", out)
	}
}
