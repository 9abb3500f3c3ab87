package worktree

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/gitlfs"
)

// shop is a host of objects of Git LFS, and of nothing else.
type shop struct {
	url string

	mu      sync.Mutex
	objects map[string][]byte
	refuse  map[string]gitlfs.Error // by the name of the object
	status  int                     // of all batches, unless it is 0
	away    string                  // where addresses of objects lead instead
	batches int
	seen    http.Header
}

func pointerTo(text []byte) gitlfs.Pointer {
	sum := sha256.Sum256(text)
	return gitlfs.Pointer{OID: hex.EncodeToString(sum[:]), Size: int64(len(text))}
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{objects: map[string][]byte{}, refuse: map[string]gitlfs.Error{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /repo.git/info/lfs/objects/batch", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.batches++
		if _, password, _ := r.BasicAuth(); password != token {
			gitlfs.Challenge(w)
			return
		}
		if s.status != 0 {
			gitlfs.Refuse(w, s.status, "as told")
			return
		}
		var b gitlfs.Batch
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			t.Error(err)
		}
		a := gitlfs.Answer{}
		base := s.url
		if s.away != "" {
			base = s.away
		}
		for _, p := range b.Objects {
			o := gitlfs.Object{Pointer: p}
			_, has := s.objects[p.OID]
			at := gitlfs.Action{Href: base + "/o/" + p.OID, Header: map[string]string{"X-For": p.OID}}
			switch e, bad := s.refuse[p.OID]; {
			case bad:
				o.Error = &e
			case b.Operation == gitlfs.Download && !has:
				o.Error = &gitlfs.Error{Code: 404, Message: "It is not here."}
			case b.Operation == gitlfs.Download:
				o.Actions = map[string]gitlfs.Action{"download": at}
			case !has:
				o.Actions = map[string]gitlfs.Action{"upload": at, "verify": at}
			}
			a.Objects = append(a.Objects, o)
		}
		gitlfs.Write(w, 200, a)
	})
	mux.HandleFunc("/o/{oid}", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen = r.Header.Clone()
		oid := r.PathValue("oid")
		switch text, has := s.objects[oid]; {
		case r.Header.Get("X-For") != oid:
			t.Errorf("the header of the action is not sent: %v", r.Header)
		case r.Method == "PUT":
			body, err := io.ReadAll(r.Body)
			if err != nil || pointerTo(body).OID != oid {
				t.Errorf("other bytes came: %v", err)
			}
			s.objects[oid] = body
		case !has:
			gitlfs.Refuse(w, 404, "It is not here.")
		case r.Method == "GET":
			_, _ = w.Write(text)
		}
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

func (s *shop) remote() Remote { return Remote{URL: s.url + "/repo.git", Token: token} }

// art is a host with two files of Git LFS, one of which is also elsewhere, and a shop that
// has their objects.
func art(t *testing.T) (*Cache, *shop, map[string][]byte) {
	t.Helper()
	h, s := newHost(t), newShop(t)
	files := map[string][]byte{
		"art/a.psd": bytes.Repeat([]byte("art"), 5000), "b.psd": []byte("small"), "c.psd": bytes.Repeat([]byte("art"), 5000),
	}
	seed := t.TempDir()
	git(t, seed, "clone", "-q", h.bare, "w")
	dir := filepath.Join(seed, "w")
	text := map[string]string{".gitattributes": "*.psd filter=lfs diff=lfs merge=lfs -text\n", "plain.txt": pointerTo([]byte("x")).String()}
	for name, content := range files {
		p := pointerTo(content)
		text[name] = p.String()
		s.objects[p.OID] = content
	}
	write(t, dir, text)
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "art")
	git(t, dir, "push", "-q", "origin", "HEAD:main")
	return fetched(t, h), s, files
}

func lfsCheckout(t *testing.T, c *Cache) *Checkout {
	t.Helper()
	w := checkout(t, c)
	w.LFS = true
	return w
}

func has(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, %.80q", name, err, got)
		}
	}
}

// A checkout has the contents, git takes nothing in it for changed, and what is no file of
// Git LFS stays as it is.
func TestFillObjects(t *testing.T) {
	t.Parallel()
	c, s, files := art(t)
	w := lfsCheckout(t, c)
	lacking, err := w.FillObjects(t.Context(), s.remote())
	if err != nil || len(lacking) > 0 {
		t.Fatal(lacking, err)
	}
	has(t, w.Dir(), files)
	has(t, w.Dir(), map[string][]byte{"plain.txt": []byte(pointerTo([]byte("x")).String())})
	if err := os.Chmod(filepath.Join(w.Dir(), "b.psd"), 0o664); err != nil { // as chown, its ctime is another
		t.Fatal(err)
	}
	if out := git(t, w.Dir(), "status", "--short"); out != "" {
		t.Errorf("git takes files for changed: %s", out)
	}
	if s.batches != 1 || s.seen.Get("Authorization") != "" {
		t.Errorf("%d batches; headers %v", s.batches, s.seen)
	}
	// An agent that writes into its file does not write into the cache.
	if err := os.WriteFile(filepath.Join(w.Dir(), "c.psd"), []byte("evil"), 0o644); err != nil {
		t.Fatal(err)
	}
	again := lfsCheckout(t, c)
	if _, err := again.FillObjects(t.Context(), s.remote()); err != nil || s.batches != 1 {
		t.Errorf("%v, %d batches", err, s.batches)
	}
	has(t, again.Dir(), files)
	r, err := again.Collect(t.Context(), "nothing")
	if err != nil || r.Commits != 0 || len(r.Skipped) > 0 {
		t.Errorf("a checkout that was not touched is work: %+v %v", r, err)
	}
}

// An object that was damaged in the cache is fetched anew, and never handed out.
func TestDamagedObject(t *testing.T) {
	t.Parallel()
	c, s, files := art(t)
	if _, err := lfsCheckout(t, c).FillObjects(t.Context(), s.remote()); err != nil {
		t.Fatal(err)
	}
	at := c.object(pointerTo(files["b.psd"]).OID)
	old, young := filepath.Join(c.LFSObjects(), ".put-old"), filepath.Join(c.LFSObjects(), ".put-young")
	past := time.Now().Add(-2 * leftAfter)
	if err := errors.Join(os.WriteFile(old, nil, 0o600), os.WriteFile(young, nil, 0o600), os.Chtimes(old, past, past)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(at, 0o644), os.WriteFile(at, []byte("evil!"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := lfsCheckout(t, c).FillObjects(t.Context(), s.remote()); !errors.Is(err, ErrBusy) {
		t.Errorf("a damaged object was taken: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(c.LFSObjects(), ".put-*")); len(left) != 1 || left[0] != young {
		t.Errorf("unfinished objects: %v", left)
	}
	w := lfsCheckout(t, c)
	if _, err := w.FillObjects(t.Context(), s.remote()); err != nil {
		t.Fatal(err)
	}
	has(t, w.Dir(), files)
}

// What cannot be had stays a pointer, and is named.
func TestObjectsThatAreLacking(t *testing.T) {
	t.Parallel()
	for name, break_ := range map[string]func(s *shop, big, small string){
		"gone":      func(s *shop, _, small string) { delete(s.objects, small) },
		"refused":   func(s *shop, _, small string) { s.refuse[small] = gitlfs.Error{Code: 410, Message: "It is gone."} },
		"no LFS":    func(s *shop, _, _ string) { s.status = 404 },
		"not yet":   func(s *shop, _, _ string) { s.status = 503 },
		"forbidden": func(s *shop, _, _ string) { s.status = 403 },
		"elsewhere": func(s *shop, _, _ string) { s.away = "http://192.0.2.1" },
		"damaged":   func(s *shop, big, _ string) { s.objects[big] = append([]byte("x"), s.objects[big][1:]...) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s, files := art(t)
			break_(s, pointerTo(files["c.psd"]).OID, pointerTo(files["b.psd"]).OID)
			w := lfsCheckout(t, c)
			lacking, err := w.FillObjects(t.Context(), s.remote())
			got := fmt.Sprint(lacking, err)
			want := map[string]string{
				"gone": "[{b.psd It is not here.}] <nil>", "refused": "[{b.psd It is gone.}] <nil>",
				"no LFS":    "[{art/a.psd as told} {b.psd as told} {c.psd as told}] <nil>",
				"not yet":   "[] Git LFS: as told",
				"forbidden": "[{art/a.psd as told} {b.psd as told} {c.psd as told}] <nil>",
				"elsewhere": "[] Git LFS: the host names an address elsewhere for an object",
				"damaged":   fmt.Sprintf("[] Git LFS: object %.12s: its bytes are not those of its name", pointerTo(files["c.psd"]).OID),
			}[name]
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if name == "gone" {
				has(t, w.Dir(), map[string][]byte{"b.psd": []byte(pointerTo(files["b.psd"]).String()), "c.psd": files["c.psd"]})
			}
			if strings.Contains(got, token) {
				t.Error("the token is told")
			}
		})
	}
}

// However an agent without git-lfs commits contents, pointers are handed in, in each of its
// commits; what it did not touch is no change, and the contents are sent before.
func TestContentsBecomePointers(t *testing.T) {
	t.Parallel()
	c, s, files := art(t)
	w := lfsCheckout(t, c)
	if _, err := w.FillObjects(t.Context(), s.remote()); err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 4<<16) // 4 MiB
	write(t, w.Dir(), map[string]string{"b.psd": "first", "README.md": "more\n", "new/d.psd": string(large)})
	git(t, w.Dir(), "add", "-A")
	git(t, w.Dir(), "commit", "-qm", "contents")
	git(t, w.Dir(), "-c", "core.checkStat=minimal", "commit", "-q", "--allow-empty", "-am", "all of it")
	write(t, w.Dir(), map[string]string{"b.psd": "second", "new/e.psd": "loose", "new/empty.psd": ""})
	r, err := w.Collect(t.Context(), "the rest")
	if err != nil || len(r.Skipped) > 0 || r.Damage != "" {
		t.Fatalf("%+v %v", r, err)
	}
	if got := strings.Join(r.Paths, " "); got != "README.md b.psd new/d.psd new/e.psd new/empty.psd" {
		t.Errorf("changed: %s", got)
	}
	for rev, want := range map[string]string{r.Tip + "~2:b.psd": "first", r.Tip + "~1:b.psd": "first", r.Tip + ":b.psd": "second",
		r.Tip + "~2:new/d.psd": string(large), r.Tip + ":new/e.psd": "loose", r.Tip + ":c.psd": string(files["c.psd"])} {
		if got := git(t, c.dir, "cat-file", "blob", rev) + "\n"; got != pointerTo([]byte(want)).String() {
			t.Errorf("%s is %.200q", rev, got)
		}
	}
	if got := git(t, c.dir, "log", "--format=%s %an", r.Base+".."+r.Tip); got != "the rest Agent\nall of it Agent\ncontents Agent" {
		t.Errorf("commits: %s", got)
	}
	nowhere, err := c.PushObjects(t.Context(), s.remote(), r.Tip)
	if err != nil || len(nowhere) > 0 {
		t.Fatal(nowhere, err)
	}
	for _, want := range []string{"first", "second", "loose", string(large)} {
		if got := s.objects[pointerTo([]byte(want)).OID]; string(got) != want {
			t.Errorf("%.20q was not sent", want)
		}
	}
}

// What people have committed as content is theirs, and no change of an agent that did not
// touch it; a file that becomes one of Git LFS is one.
func TestContentsOfOthersStay(t *testing.T) {
	t.Parallel()
	c, s, _ := art(t)
	w := lfsCheckout(t, c)
	if _, err := w.FillObjects(t.Context(), s.remote()); err != nil {
		t.Fatal(err)
	}
	write(t, w.Dir(), map[string]string{"raw.txt": "raw\n", ".gitattributes": "*.psd filter=lfs diff=lfs merge=lfs -text\nREADME.md filter=lfs\nnew.txt filter=lfs\n",
		"new.txt": "new\n"})
	r, err := w.Collect(t.Context(), "rules")
	if err != nil || strings.Join(r.Paths, " ") != ".gitattributes new.txt raw.txt" {
		t.Fatalf("%+v %v", r, err)
	}
	if got := git(t, c.dir, "cat-file", "blob", r.Tip+":new.txt") + "\n"; got != pointerTo([]byte("new\n")).String() {
		t.Errorf("%q", got)
	}
	if got := git(t, c.dir, "cat-file", "blob", r.Tip+":README.md"); got != "hello" {
		t.Errorf("%q", got)
	}
}

// An agent with git-lfs commits a pointer; its object is taken from its checkout, unless its
// bytes are others. What nobody has is named.
func TestObjectsOfTheAgentsGitLFS(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("git", "lfs", "version").CombinedOutput(); err != nil {
		t.Fatalf("the tests of Git LFS need git-lfs; get it with `make deps`: %v %s", err, out)
	}
	c, s, files := art(t)
	w := lfsCheckout(t, c)
	if _, err := w.FillObjects(t.Context(), s.remote()); err != nil {
		t.Fatal(err)
	}
	git(t, w.Dir(), "lfs", "install", "--local")
	if out := git(t, w.Dir(), "status", "--short"); out != "" {
		t.Errorf("git-lfs takes files for changed: %s", out)
	}
	if err := os.Remove(filepath.Join(w.Dir(), "b.psd")); err != nil {
		t.Fatal(err)
	}
	git(t, w.Dir(), "checkout", "--", "b.psd") // without a remote: the cache has its object
	has(t, w.Dir(), files)
	write(t, w.Dir(), map[string]string{"by-lfs.psd": "by git-lfs"})
	git(t, w.Dir(), "add", "-A")
	git(t, w.Dir(), "commit", "-qm", "pointer")
	lost, forged := pointerTo([]byte("lost")), pointerTo([]byte("forged"))
	at := filepath.Join(w.Dir(), ".git/lfs/objects", forged.OID[:2], forged.OID[2:4])
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, at, map[string]string{forged.OID: "f0rged"})
	// git add would have git-lfs look at pointers, which it leaves.
	write(t, w.Dir(), map[string]string{"lost.psd": lost.String(), "forged.psd": forged.String()})
	r, err := w.Collect(t.Context(), "more")
	if err != nil {
		t.Fatal(err)
	}
	nowhere, err := c.PushObjects(t.Context(), s.remote(), r.Tip)
	if err != nil || len(nowhere) != 2 {
		t.Errorf("%v %v", nowhere, err)
	}
	if got := s.objects[pointerTo([]byte("by git-lfs")).OID]; string(got) != "by git-lfs" {
		t.Errorf("the object of the agent was not sent: %q", got)
	}
	if _, sent := s.objects[forged.OID]; sent {
		t.Error("a forged object was sent")
	}
}

// Links and pipes that an agent leaves in the place of files lead nowhere.
func TestPointersFollowNoLink(t *testing.T) {
	t.Parallel()
	c, s, _ := art(t)
	w := lfsCheckout(t, c)
	if _, err := w.FillObjects(t.Context(), s.remote()); err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	write(t, outside, map[string]string{"secret.psd": "secret", "a.psd": "secret"})
	for _, step := range []error{
		os.Remove(filepath.Join(w.Dir(), "b.psd")), os.Symlink(filepath.Join(outside, "secret.psd"), filepath.Join(w.Dir(), "b.psd")),
		os.RemoveAll(filepath.Join(w.Dir(), "art")), os.Symlink(outside, filepath.Join(w.Dir(), "art")),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	if _, err := w.Collect(t.Context(), "links"); err != nil {
		t.Fatal(err)
	}
	has(t, outside, map[string][]byte{"secret.psd": []byte("secret"), "a.psd": []byte("secret")})
	if c.hasObject(pointerTo([]byte("secret"))) {
		t.Error("a file outside was taken")
	}
}
