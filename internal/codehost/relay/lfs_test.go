package relay

import (
	"bytes"
	"encoding/json"
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

// depot is Git LFS of the host: batches at the host itself, bytes at another place, as
// GitHub keeps them, or at the host.
type depot struct {
	*site
	store *httptest.Server

	mu      sync.Mutex
	objects map[string][]byte
	home    bool                      // bytes are at the host itself
	answer  func(*gitlfs.Answer)      // changes the answer to a batch
	status  int                       // of a batch, unless it is 0
	stored  func(http.ResponseWriter) // answers a transfer instead
	heard   []http.Header             // of transfers
}

func newDepot(t *testing.T) *depot {
	t.Helper()
	if out, err := exec.Command("git", "lfs", "version").CombinedOutput(); err != nil {
		t.Fatalf("the tests of Git LFS need git-lfs; get it with `make deps`: %v %s", err, out)
	}
	d := &depot{site: newSite(t), objects: map[string][]byte{}}
	d.store = httptest.NewServer(http.HandlerFunc(d.transfer))
	t.Cleanup(d.store.Close)
	d.set(func() {
		d.before = func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case strings.HasPrefix(r.URL.Path, "/o/"):
				d.transfer(w, r)
			case r.URL.Path == "/acme/shop.git/info/lfs/objects/batch" && r.Header.Get("Authorization") == d.authorization():
				d.batch(w, r)
			default:
				return false
			}
			return true
		}
	})
	return d
}

func (d *depot) batch(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var b gitlfs.Batch
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil || len(b.Transfers) != 1 || b.Transfers[0] != "basic" {
		d.t.Errorf("%v %v", b, err)
	}
	if d.status != 0 {
		gitlfs.Refuse(w, d.status, "a secret of the host")
		return
	}
	at := d.store.URL
	if d.home {
		at = d.srv.URL
	}
	a := gitlfs.Answer{}
	for _, p := range b.Objects {
		_, has := d.objects[p.OID]
		o := gitlfs.Object{Pointer: p}
		act := gitlfs.Action{
			Href: at + "/o/" + p.OID + "?key=of-the-store", Header: map[string]string{"X-Store": "yes", "Transfer-Encoding": "chunked"},
		}
		switch {
		case b.Operation == gitlfs.Download && has:
			o.Actions = map[string]gitlfs.Action{"download": act}
		case b.Operation == gitlfs.Download:
			o.Error = &gitlfs.Error{Code: 404, Message: "There is none."}
		case !has:
			verify := act
			verify.Href = d.srv.URL + "/o/" + p.OID
			o.Actions = map[string]gitlfs.Action{"upload": act, "verify": verify}
		}
		a.Objects = append(a.Objects, o)
	}
	if d.answer != nil {
		d.answer(&a)
	}
	gitlfs.Write(w, 200, a)
}

func (d *depot) transfer(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard = append(d.heard, r.Header.Clone())
	oid := strings.TrimPrefix(r.URL.Path, "/o/")
	atHost := "http://"+r.Host == d.srv.URL
	if own := r.Header.Get("Authorization") == d.authorization(); own != atHost || r.Header.Get("X-Store") != "yes" {
		d.t.Errorf("%s at %s has the headers %v", r.Method, r.Host, r.Header)
	}
	if d.stored != nil {
		d.stored(w)
		return
	}
	switch r.Method {
	case "PUT":
		body, err := io.ReadAll(r.Body)
		if err != nil || r.ContentLength != int64(len(body)) {
			d.t.Errorf("%d bytes of %d, %v", len(body), r.ContentLength, err)
		}
		d.objects[oid] = body
	case "GET":
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(d.objects[oid]))
	}
}

// The real client pushes and clones through the relay, wherever the host keeps the bytes; it
// sees addresses of the relay alone, and the host's credential goes to the host alone.
func TestObjectsThroughTheRelay(t *testing.T) {
	t.Parallel()
	for name, home := range map[string]bool{"at the host": true, "elsewhere": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDepot(t)
			d.home = home
			dir := d.work()
			run(t, dir, "lfs", "install", "--local")
			want := map[string][]byte{"large.bin": bytes.Repeat([]byte("0123456789"), 1<<17), "small.bin": []byte("s"), "empty.bin": {}}
			for name, text := range want {
				if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, ".gitattributes"), []byte("*.bin filter=lfs -text\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			run(t, dir, "add", "-A")
			run(t, dir, "commit", "-q", "-m", "art")
			if out := run(t, dir, "push", "-q", "origin", "HEAD:main"); strings.Contains(out, "lock") {
				t.Errorf("the client complains: %s", out)
			}
			there := filepath.Join(t.TempDir(), "clone")
			run(t, "/", "clone", "-q", d.remote("reader"), there)
			run(t, there, "lfs", "install", "--local")
			run(t, there, "lfs", "pull")
			for name, text := range want {
				if got, err := os.ReadFile(filepath.Join(there, name)); err != nil || !bytes.Equal(got, text) {
					t.Errorf("%s: %v, %d bytes of %d", name, err, len(got), len(text))
				}
			}
		})
	}
}

// ask asks the relay for an object as a client does.
func (d *depot) ask(token, operation string, p gitlfs.Pointer) (int, gitlfs.Answer, string) {
	d.t.Helper()
	body, err := json.Marshal(gitlfs.Batch{
		Operation: operation, Transfers: []string{"lfs-standalone-file", "basic"}, Objects: []gitlfs.Pointer{p},
	})
	if err != nil {
		d.t.Fatal(err)
	}
	req, err := http.NewRequest("POST", d.url+Path(shopID)+"/info/lfs/objects/batch", bytes.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	req.SetBasicAuth("x", token)
	req.Header.Set("Content-Type", gitlfs.MediaType)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	var a gitlfs.Answer
	if json.Unmarshal(text, &a) != nil || resp.Header.Get("Content-Type") != gitlfs.MediaType {
		d.t.Errorf("%d is answered in another form: %s", resp.StatusCode, text)
	}
	return resp.StatusCode, a, string(text)
}

// fetch makes a request for an address.
func (d *depot) fetch(method, address string, body []byte) (int, string) {
	d.t.Helper()
	req, err := http.NewRequest(method, address, bytes.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// Whatever the host answers, the client is told something that it understands, and nothing
// of the host's.
func TestObjectsThatTheHostRefuses(t *testing.T) {
	t.Parallel()
	p := gitlfs.Pointer{OID: strings.Repeat("a", 64), Size: 5}
	for name, c := range map[string]struct {
		change func(*depot)
		status int
		says   string
	}{
		"nothing is amiss": {func(*depot) {}, 200, `"download"`},
		"no LFS":           {func(d *depot) { d.status = 404 }, 404, "no such repository"},
		"its quota":        {func(d *depot) { d.status = 403 }, 403, "quota"},
		"busy":             {func(d *depot) { d.status = 503 }, 429, "does not answer now"},
		"not ours":         {func(d *depot) { d.status = 401 }, 429, "does not answer now"},
		"odd":              {func(d *depot) { d.status = 418 }, 500, "message"},
		"an object less":   {func(d *depot) { d.answer = func(a *gitlfs.Answer) { a.Objects = nil } }, 502, "none to this batch"},
		"another object": {func(d *depot) {
			d.answer = func(a *gitlfs.Answer) { a.Objects[0].OID = strings.Repeat("b", 64) }
		}, 502, "none to"},
		"another transfer": {func(d *depot) { d.answer = func(a *gitlfs.Answer) { a.Transfer = "tus" } }, 502, "none to this batch"},
		"another scheme": {func(d *depot) {
			d.answer = func(a *gitlfs.Answer) { a.Objects[0].Actions["download"] = gitlfs.Action{Href: "ftp://192.0.2.1/x"} }
		}, 200, "an address that is not used"},
		"a file": {func(d *depot) {
			d.answer = func(a *gitlfs.Answer) { a.Objects[0].Actions["download"] = gitlfs.Action{Href: "file:///etc/passwd"} }
		}, 200, "an address that is not used"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDepot(t)
			d.home = true
			d.objects[p.OID] = []byte("bytes")
			c.change(d)
			status, _, said := d.ask("reader", gitlfs.Download, p)
			if status != c.status || !strings.Contains(said, c.says) {
				t.Errorf("%d %s", status, said)
			}
			for _, hidden := range []string{"secret of the host", "of-the-store", d.srv.URL, "token-"} {
				if strings.Contains(said, hidden) {
					t.Errorf("%q is told: %s", hidden, said)
				}
			}
		})
	}
}

// A token that reads uploads nothing; an address is good for its method, its object, its size
// and its time, and no more.
func TestObjectAddressesOfTheRelay(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	d.home = true
	p := gitlfs.Pointer{OID: strings.Repeat("a", 64), Size: 5}
	for token, want := range map[string]int{"reader": 403, "nobody": 404, "stranger": 401} {
		if status, _, said := d.ask(token, gitlfs.Upload, p); status != want {
			t.Errorf("%s: %d %s", token, status, said)
		}
	}
	d.objects[p.OID] = []byte("bytes")
	_, a, _ := d.ask("reader", gitlfs.Download, p)
	get := a.Objects[0].Actions["download"].Href
	for name, c := range map[string]struct {
		method, address string
		status          int
	}{
		"as it is":       {"GET", get, 200},
		"another method": {"PUT", get, 403},
		"another object": {"GET", strings.Replace(get, p.OID, strings.Repeat("b", 64), 1), 403},
		"no object":      {"GET", strings.Replace(get, p.OID, "..", 1), 404},
		"cut":            {"GET", get[:len(get)-4], 403},
		"without":        {"GET", get[:strings.Index(get, "?")], 403},
	} {
		if status, said := d.fetch(c.method, c.address, nil); status != c.status || status == 200 && said != "bytes" {
			t.Errorf("%s: %d %s", name, status, said)
		}
	}
	d.mu.Lock()
	d.objects[p.OID] = []byte("bytes, and more than was said")
	d.mu.Unlock()
	if status, said := d.fetch("GET", get, nil); status != 502 {
		t.Errorf("%d %s", status, said)
	}
	for status, want := range map[int]int{401: 502, 422: 400, 302: 502, 404: 404, 507: 507} {
		d.mu.Lock()
		d.stored = func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://192.0.2.1/")
			w.WriteHeader(status)
		}
		d.mu.Unlock()
		if got, said := d.fetch("GET", get, nil); got != want || !strings.Contains(said, fmt.Sprint("answers ", status)) {
			t.Errorf("%d is answered as %d %s", status, got, said)
		}
	}
	d.site.mu.Lock()
	d.late = 2 * time.Hour
	d.site.mu.Unlock()
	if status, said := d.fetch("GET", get, nil); status != 403 {
		t.Errorf("after two hours: %d %s", status, said)
	}
}
