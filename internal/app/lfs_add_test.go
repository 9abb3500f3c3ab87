package app

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/client"
	"yardmaster/internal/db"
	"yardmaster/internal/gitlfs"
)

// adder adds repositories as the command line does, and keeps what it remarks.
func (l *lab) adder() (c *client.Client, said *[]string) {
	said = &[]string{}
	return &client.Client{URL: l.URL(), Token: l.owner, Remark: func(text string) { *said = append(*said, text) }}, said
}

// unhooked is a repository with files of Git LFS that no hook of git-lfs sends, on two
// branches, and a pointer whose contents are lost.
func (l *lab) unhooked() (dir string, main, side []byte) {
	l.t.Helper()
	main, side = random(31, 70_000), random(32, 3000)
	lost := random(33, 500)
	dir = l.work("acme/art", map[string][]byte{"data.bin": main, "lost.bin": lost})
	l.git(dir, "", "switch", "-qc", "side")
	l.write(dir, "data.bin", side)
	l.git(dir, "", "commit", "-qam", "Side")
	l.git(dir, "", "switch", "-q", "main")
	_, at := objectOf(lost)
	for _, path := range []string{".git/hooks/pre-push", at} {
		if err := os.Remove(filepath.Join(dir, path)); err != nil {
			l.t.Fatal(err)
		}
	}
	return dir, main, side
}

// A repository is added with the contents of its files of Git LFS, from a folder and from an
// address; what has none here is said.
func TestAddRepoSendsContents(t *testing.T) {
	t.Parallel()
	l := start(t, db.SQLite).lab()
	dir, main, side := l.unhooked()
	const lost = "The contents of 1 of its files of Git LFS are not there, because they are not in "
	for name, source := range map[string]string{"art": dir, "far": "file://" + dir} {
		c, said := l.adder()
		if err := c.AddRepo(t.Context(), source, "acme", name); err != nil {
			t.Fatal(name, err)
		}
		if !slices.ContainsFunc(*said, func(text string) bool { return strings.HasPrefix(text, lost+source) }) {
			t.Errorf("%s: %q", name, *said)
		}
		there := filepath.Join(t.TempDir(), "clone")
		l.git(dir, l.owner, "clone", "-q", "--no-checkout", l.URL()+"/git/acme/"+name+".git", there)
		for branch, want := range map[string][]byte{"main": main, "side": side} {
			l.git(there, l.owner, "-c", "lfs.skipdownloaderrors=true", "checkout", "-q", branch)
			if got, err := os.ReadFile(filepath.Join(there, "data.bin")); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s of %s: %v, %d bytes of %d", branch, name, err, len(got), len(want))
			}
		}
	}
}

// Where the server has no room for contents, that is said in one line with what to do; to add the
// repository again finishes it.
func TestAddRepoWithoutRoomForContents(t *testing.T) {
	t.Parallel()
	l := start(t, db.SQLite).lab()
	room := func(bytes string) {
		l.send("PUT", "/v1/admin/accounts/"+l.acct+"/quota", l.operator(), `{"confirm": true, "object_bytes": `+bytes+`}`).want(200)
	}
	room("10000")
	dir, main, _ := l.unhooked()
	c, _ := l.adder()
	err := c.AddRepo(t.Context(), dir, "acme", "art")
	if err == nil || !strings.HasPrefix(err.Error(), "acme/art is on the server, and not all contents of its files of Git LFS are: ") ||
		!strings.Contains(err.Error(), "this one does not fit") || strings.Contains(err.Error(), "\n") {
		t.Errorf("it is refused with %v", err)
	}
	room("1000000")
	if err := c.AddRepo(t.Context(), dir, "acme", "art"); err != nil {
		t.Fatal(err)
	}
	p, _ := objectOf(main)
	if _, a, _ := l.batch("acme/art", l.owner, gitlfs.Download, p); len(a.Objects) != 1 || a.Objects[0].Error != nil {
		t.Errorf("the contents: %+v", a)
	}
}

// The branch that somebody is on is the default, also where Git LFS has made the repository
// before the first push.
func TestDefaultBranchAfterContents(t *testing.T) {
	t.Parallel()
	l := start(t, db.SQLite).lab()
	dir, main, _ := l.unhooked()
	p, _ := objectOf(main)
	l.batch("acme/art", l.owner, gitlfs.Upload, p)
	l.git(dir, "", "switch", "-q", "side")
	c, _ := l.adder()
	if err := c.AddRepo(t.Context(), dir, "acme", "art"); err != nil {
		t.Fatal(err)
	}
	var r struct {
		DefaultBranch string `json:"default_branch"`
	}
	if decode(t, l.send("GET", "/v1/repos/acme/art", l.owner, "").want(200), &r); r.DefaultBranch != "side" {
		t.Errorf("the default branch is %s", r.DefaultBranch)
	}
}

// A first push of which git takes nothing leaves no repository, although its contents came before;
// once git takes it, they are there without being sent again.
func TestRefusedFirstPushLeavesNothing(t *testing.T) {
	t.Parallel()
	l := start(t, db.SQLite).lab()
	text := random(34, 9000)
	dir := l.work("acme/art", map[string][]byte{"data.bin": text})
	if out, err := l.try(dir, l.owner, "push", "origin", "main:refs/heads/svc"); err == nil || !strings.Contains(out, "choose another") {
		t.Fatalf("%v\n%s", err, out)
	}
	p, _ := objectOf(text)
	if _, a, _ := l.batch("acme/art", l.owner, gitlfs.Upload, p); len(a.Objects) != 1 || a.Objects[0].Actions != nil {
		t.Errorf("its contents did not come: %+v", a)
	}
	l.send("GET", "/v1/repos/acme/art", l.owner, "").want(404)
	if got := l.send("GET", "/v1/repos", l.owner, "").want(200); strings.Contains(string(got.body), "acme/art") {
		t.Errorf("it is listed: %s", got.body)
	}
	l.git(dir, l.owner, "-c", "lfs.locksverify=false", "push", "--no-verify", "origin", "main")
	there := filepath.Join(t.TempDir(), "clone")
	l.git(dir, l.owner, "clone", "-q", l.URL()+"/git/acme/art.git", there)
	if got, err := os.ReadFile(filepath.Join(there, "data.bin")); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%v, %d bytes", err, len(got))
	}
}
