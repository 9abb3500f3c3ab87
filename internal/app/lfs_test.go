package app

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	run "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/gitlfs"
	"yardmaster/internal/policy"
)

// lab runs the real git and git-lfs with a configuration of their own.
type lab struct {
	*yard
	home string
}

func (y *yard) lab() *lab {
	y.t.Helper()
	if out, err := run.Command("git", "lfs", "version").CombinedOutput(); err != nil {
		y.t.Fatalf("the tests of Git LFS need git-lfs; get it with `make deps`: %v %s", err, out)
	}
	l := &lab{y, y.t.TempDir()}
	config := `[user]
	name = Ada
	email = ada@example.com
[credential]
	helper = "!f() { test \"$1\" = get && echo username=x && echo password=$TOKEN; }; f"
[filter "lfs"]
	clean = git-lfs clean -- %f
	smudge = git-lfs smudge -- %f
	process = git-lfs filter-process
	required = true
[init]
	defaultBranch = main
`
	if err := os.WriteFile(filepath.Join(l.home, ".gitconfig"), []byte(config), 0o600); err != nil {
		y.t.Fatal(err)
	}
	return l
}

// try runs git in a folder with a token.
func (l *lab) try(dir, token string, args ...string) (string, error) {
	l.t.Helper()
	c := run.CommandContext(l.t.Context(), "git", args...)
	c.Dir = dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.home, "TOKEN=" + token,
		"GIT_TERMINAL_PROMPT=0", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1"}
	out, err := c.CombinedOutput()
	return string(out), err
}

func (l *lab) git(dir, token string, args ...string) string {
	l.t.Helper()
	out, err := l.try(dir, token, args...)
	if err != nil {
		l.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// work makes a checkout with some files in Git LFS, and a remote.
func (l *lab) work(name string, files map[string][]byte) string {
	l.t.Helper()
	dir := l.t.TempDir()
	l.git(dir, "", "init", "-q")
	l.git(dir, "", "lfs", "install", "--local")
	l.write(dir, ".gitattributes", []byte("*.bin filter=lfs diff=lfs merge=lfs -text\n"))
	for path, text := range files {
		l.write(dir, path, text)
	}
	l.git(dir, "", "add", "-A")
	l.git(dir, "", "commit", "-qm", "Begin")
	l.git(dir, "", "remote", "add", "origin", l.URL()+"/git/"+name+".git")
	return dir
}

func (l *lab) write(dir, path string, text []byte) {
	l.t.Helper()
	if err := os.WriteFile(filepath.Join(dir, path), text, 0o644); err != nil {
		l.t.Fatal(err)
	}
}

// objectOf is the object of some bytes, and where a checkout has it.
func objectOf(text []byte) (p gitlfs.Pointer, path string) {
	sum := sha256.Sum256(text)
	p = gitlfs.Pointer{OID: hex.EncodeToString(sum[:]), Size: int64(len(text))}
	return p, filepath.Join(".git/lfs/objects", p.OID[:2], p.OID[2:4], p.OID)
}

func random(seed uint64, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b)
	return b
}

// batch asks for objects as a client does.
func (l *lab) batch(name, token, operation string, objects ...gitlfs.Pointer) (int, gitlfs.Answer, string) {
	l.t.Helper()
	body, err := json.Marshal(gitlfs.Batch{Operation: operation, Objects: objects, Transfers: []string{"basic"}})
	if err != nil {
		l.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(l.t.Context(), http.MethodPost, l.URL()+"/git/"+name+".git/info/lfs/objects/batch",
		bytes.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	req.Header.Set("Content-Type", gitlfs.MediaType+"; charset=utf-8")
	if token != "" {
		req.SetBasicAuth("x", token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	if got := resp.Header.Get("Content-Type"); got != gitlfs.MediaType {
		l.t.Errorf("a batch is answered as %q", got)
	}
	var a gitlfs.Answer
	if err := json.Unmarshal(text, &a); err != nil {
		l.t.Fatal(err)
	}
	return resp.StatusCode, a, string(text)
}

// transfer makes a request for an object by its address alone.
func (l *lab) transfer(method, address string, body []byte, header ...string) (*http.Response, []byte) {
	l.t.Helper()
	req, err := http.NewRequestWithContext(l.t.Context(), method, address, bytes.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return resp, text
}

// What the real client pushes comes back byte for byte, from a repository that the push has
// made, and is sent once.
func TestLFSByTheRealClient(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			l := start(t, e).lab()
			files := map[string][]byte{"empty.bin": {}, "one.bin": []byte("1"), "large.bin": random(1, 3<<20)}
			for i := range 110 { // more than a batch
				files[fmt.Sprintf("f%d.bin", i)] = random(uint64(100+i), 100+i)
			}
			dir := l.work("acme/art", files)
			if out := l.git(dir, l.owner, "push", "origin", "main"); strings.Contains(out, "lock") {
				t.Errorf("the client complains of locks:\n%s", out)
			}
			there := filepath.Join(t.TempDir(), "clone")
			l.git(dir, l.owner, "clone", "-q", l.URL()+"/git/acme/art.git", there)
			for path, want := range files {
				if got, err := os.ReadFile(filepath.Join(there, path)); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s: %v, %d bytes of %d", path, err, len(got), len(want))
				}
			}
			if out := l.git(there, "", "status", "--short"); out != "" {
				t.Errorf("the clone is not clean: %s", out)
			}
			p, _ := objectOf(files["large.bin"])
			if _, a, _ := l.batch("acme/art", l.owner, gitlfs.Upload, p); len(a.Objects) != 1 ||
				a.Objects[0].Actions != nil || a.Objects[0].Error != nil {
				t.Errorf("an object that is there is asked for: %+v", a)
			}
		})
	}
}

// Bytes that are not those of the name of their object are not kept, and the ref does not
// move: the client hears of it at once.
func TestLFSWrongBytes(t *testing.T) {
	t.Parallel()
	l := start(t, dbtest.Engines()[0]).lab()
	text := random(2, 4000)
	dir := l.work("acme/art", map[string][]byte{"a.bin": text})
	p, at := objectOf(text)
	if err := os.Chmod(filepath.Join(dir, at), 0o644); err != nil {
		t.Fatal(err)
	}
	l.write(dir, at, random(3, 4000))
	out, err := l.try(dir, l.owner, "push", "origin", "main")
	if err == nil || !strings.Contains(out, "The object did not arrive.") {
		t.Errorf("%v\n%s", err, out)
	}
	l.send("GET", "/v1/repos/acme/art", l.owner, "").want(404)
	if _, a, _ := l.batch("acme/art", l.owner, gitlfs.Download, p); len(a.Objects) != 1 || a.Objects[0].Error == nil ||
		a.Objects[0].Error.Code != 404 {
		t.Errorf("it is there: %+v", a)
	}
	l.write(dir, at, text)
	l.git(dir, l.owner, "push", "origin", "main")
}

// An object is its repository's: no name of one gives it to another, and what a token may
// not do is refused in the form of Git LFS.
func TestLFSIsOfItsRepository(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			l := start(t, e).lab()
			text := random(4, 5000)
			p, _ := objectOf(text)
			dir := l.work("acme/art", map[string][]byte{"a.bin": text})
			l.git(dir, l.owner, "push", "origin", "main")
			l.push("acme/other", map[string]string{"README.md": "x"})
			rival := l.tenant("rival")
			bob := l.person("bob", rival, policy.Owner)
			theirs := l.mint(rival, &bob, policy.Owner.Ceiling(), nil)
			reads := l.mint(l.acct, &l.user, policy.Scopes(policy.ReadRepos), nil)

			for name, c := range map[string]struct {
				repo, token, operation string
				status                 int
				says                   string
			}{
				"nobody":             {"acme/art", "", gitlfs.Download, 401, "valid token"},
				"a wrong token":      {"acme/art", "wrong", gitlfs.Download, 401, "valid token"},
				"another account":    {"acme/art", theirs, gitlfs.Download, 404, "no such repository"},
				"no repository":      {"acme/none", theirs, gitlfs.Download, 404, "no such repository"},
				"reads, and uploads": {"acme/art", reads, gitlfs.Upload, 403, "may read the repository, not push"},
				"no operation":       {"acme/art", l.owner, "move", 400, "operation"},
				"another repository": {"acme/other", l.owner, gitlfs.Download, 200, `"code":404`},
			} {
				if status, _, said := l.batch(c.repo, c.token, c.operation, p); status != c.status || !strings.Contains(said, c.says) {
					t.Errorf("%s: %d %s", name, status, said)
				}
			}
			if _, a, _ := l.batch("acme/other", l.owner, gitlfs.Upload, p); len(a.Objects) != 1 ||
				a.Objects[0].Actions["upload"].Href == "" {
				t.Errorf("an object of another repository counts as there: %+v", a)
			}
			out, err := l.try(dir, reads, "lfs", "push", "--all", "origin", "main")
			if err == nil || !strings.Contains(out, "This token may read the repository, not push to it.") {
				t.Errorf("%v\n%s", err, out)
			}

			_, a, _ := l.batch("acme/art", reads, gitlfs.Download, p, gitlfs.Pointer{OID: p.OID[1:], Size: 1},
				gitlfs.Pointer{OID: p.OID, Size: 1})
			if len(a.Objects) != 3 || a.Objects[1].Error == nil || a.Objects[2].Error == nil || a.Objects[1].Error.Code != 422 {
				t.Fatalf("%+v", a)
			}
			get := a.Objects[0].Actions["download"].Href
			if resp, got := l.transfer("GET", get, nil); resp.StatusCode != 200 || !bytes.Equal(got, text) {
				t.Errorf("%d, %d bytes", resp.StatusCode, len(got))
			}
			if resp, got := l.transfer("GET", get, nil, "Range", "bytes=4000-4999"); resp.StatusCode != 206 ||
				!bytes.Equal(got, text[4000:]) {
				t.Errorf("%d, %d bytes", resp.StatusCode, len(got))
			}
			for name, c := range map[string]struct{ method, address string }{
				"another method":     {"PUT", get},
				"another size":       {"GET", strings.Replace(get, "size=5000", "size=5001", 1)},
				"another repository": {"GET", strings.Replace(get, "/acme/art.git", "/acme/other.git", 1)},
				"another time":       {"GET", strings.Replace(get, "until=", "until=9", 1)},
				"another object":     {"GET", strings.Replace(get, p.OID, strings.Repeat("a", 64), 1)},
				"no signature":       {"GET", get[:strings.Index(get, "?")]},
			} {
				if resp, said := l.transfer(c.method, c.address, nil); resp.StatusCode != 403 ||
					!strings.Contains(string(said), `"message"`) {
					t.Errorf("%s: %d %s", name, resp.StatusCode, said)
				}
			}
			for _, path := range []string{"locks/verify", "locks", "locks/1/unlock"} {
				if resp, said := l.transfer("POST", l.URL()+"/git/acme/art.git/info/lfs/"+path, []byte("{}")); resp.StatusCode != 501 {
					t.Errorf("%s: %d %s", path, resp.StatusCode, said)
				}
			}
		})
	}
}

// An account that may have no more objects is told so for each that does not fit; the rest
// of the batch is taken, and a disk is never filled by what was not said.
func TestLFSRoom(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			l := start(t, e).lab()
			l.send("PUT", "/v1/admin/accounts/"+l.acct+"/quota", l.operator(), `{"confirm": true, "object_bytes": 10000}`).want(200)
			dir := l.work("acme/art", map[string][]byte{"a.bin": random(5, 6000), "b.bin": random(6, 6001)})
			out, err := l.try(dir, l.owner, "push", "origin", "main")
			if err == nil || !strings.Contains(out, "may have, and this one does not fit") {
				t.Errorf("%v\n%s", err, out)
			}
			// Objects of which one is refused make no repository, nor does asking about none.
			a, _ := objectOf(random(7, 3000))
			big, _ := objectOf(random(8, 20_000))
			if _, said, _ := l.batch("acme/none", l.owner, gitlfs.Upload, a, big); len(said.Objects) != 2 || said.Objects[1].Error == nil {
				t.Errorf("%+v", said)
			}
			l.batch("acme/none", l.owner, gitlfs.Upload)
			l.send("GET", "/v1/repos/acme/none", l.owner, "").want(404)
			// Addresses that were given before another upload took the room do not make more of it.
			b, _ := objectOf(random(8, 3000))
			_, one, _ := l.batch("acme/art", l.owner, gitlfs.Upload, a)
			_, two, _ := l.batch("acme/art", l.owner, gitlfs.Upload, b)
			if resp, said := l.transfer("PUT", one.Objects[0].Actions["upload"].Href, random(7, 3000)); resp.StatusCode != 200 {
				t.Errorf("%d %s", resp.StatusCode, said)
			}
			if resp, said := l.transfer("PUT", two.Objects[0].Actions["upload"].Href, random(8, 3000)); resp.StatusCode != 507 {
				t.Errorf("%d %s", resp.StatusCode, said)
			}
			if resp, said := l.transfer("PUT", two.Objects[0].Actions["upload"].Href, random(8, 3001)); resp.StatusCode != 400 {
				t.Errorf("%d %s", resp.StatusCode, said)
			}
		})
	}
}

// A server without a store of objects says so in the client's words.
func TestLFSWithoutAStore(t *testing.T) {
	t.Parallel()
	l := start(t, dbtest.Engines()[0], "--blob", "off").lab()
	dir := l.work("acme/art", map[string][]byte{"a.bin": random(5, 6000)})
	out, err := l.try(dir, l.owner, "push", "origin", "main")
	if err == nil || !strings.Contains(out, "batch response: This server keeps no objects") {
		t.Errorf("%v\n%s", err, out)
	}
	l.send("GET", "/v1/repos/acme/art", l.owner, "").want(404)
}
