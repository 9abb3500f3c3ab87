package relay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/smarthttp"
)

// bytesOf makes a file of random bytes.
func bytesOf(t *testing.T, path string, n int64) {
	t.Helper()
	f, err := os.Create(path)
	if err == nil {
		_, err = io.CopyN(f, rand.Reader, n)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestCredentialEndsBeforeThePack holds that a push whose credential is refused after the
// refs were shown goes through once with another if it is short. A long one cannot be sent
// again: it changes nothing, and git's next try goes through.
func TestCredentialEndsBeforeThePack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size  int64
		again bool // git has to push once more
	}{"short": {1 << 10, false}, "long": {3 << 20, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			dir := s.work()
			bytesOf(t, filepath.Join(dir, "file"), c.size)
			run(t, dir, "checkout", "-q", "-b", "svc/a")
			run(t, dir, "add", "file")
			run(t, dir, "commit", "-q", "-m", "file")
			s.set(func() {
				s.before = func(w http.ResponseWriter, r *http.Request) bool {
					ends := r.Method == http.MethodPost && r.Header.Get("Authorization") == "Basic token-0"
					if ends {
						s.set(func() { s.token = "token-1" })
						http.Error(w, "no", http.StatusUnauthorized)
					}
					return ends
				}
			})
			s.heard()
			if c.again {
				fails(t, dir, "push", "origin", "svc/a")
				if e := s.pushes(); len(e) > 0 {
					t.Errorf("announced %+v", e)
				}
				fails(t, s.repo(), "rev-parse", "--verify", "-q", "svc/a")
			}
			run(t, dir, "push", "-q", "origin", "svc/a")
			if e := s.pushes(); len(e) != 1 || e[0].Updates[0].New != run(t, s.repo(), "rev-parse", "svc/a") {
				t.Errorf("announced %+v", e)
			}
			if s.minted != 1 {
				t.Errorf("made %d credentials", s.minted)
			}
		})
	}
}

// TestMemoryOfALargePush holds that a push of 100 MB, with both servers in this process,
// takes less than 32 MB, although nothing of it is freed meanwhile.
func TestMemoryOfALargePush(t *testing.T) {
	s := newSite(t)
	dir := s.work()
	bytesOf(t, filepath.Join(dir, "large"), 100<<20)
	run(t, dir, "checkout", "-q", "-b", "svc/a")
	run(t, dir, "add", "large")
	run(t, dir, "commit", "-q", "-m", "large")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	run(t, dir, "push", "-q", "origin", "svc/a")
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
		t.Errorf("allocated %d MB", used>>20)
	} else {
		t.Logf("allocated %d KB", used>>10)
	}
	if e := s.pushes(); len(e) != 1 {
		t.Errorf("announced %+v", e)
	}
}

// TestRequestsThatTrickle holds that requests which do not go on keep nothing but turns
// of their own credential: the host hears nothing of them, and others push.
func TestRequestsThatTrickle(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := s.work()
	s.heard()
	begin := func(service, body string) *io.PipeWriter {
		from, to := io.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+Path(shopID)+"/"+service, from)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("x", "reader")
		if service == smarthttp.ReceivePack {
			r.SetBasicAuth("x", "writer")
		}
		r.Header.Set("Content-Type", "application/x-"+service+"-request")
		go func() {
			if resp, err := http.DefaultClient.Do(r); err == nil {
				resp.Body.Close()
			}
		}()
		if _, err := io.WriteString(to, body); err != nil { // the transport has read it
			t.Fatal(err)
		}
		return to
	}
	command := smarthttp.Pkt(codehost.ZeroSHA + " " + strings.Repeat("1", 40) + " refs/heads/svc/a\x00report-status")
	for n := range smarthttp.AtOnce {
		defer begin(smarthttp.UploadPack, "00").CloseWithError(errors.New("gone"))
		text := command[:len(command)-n-1]
		if n == 0 {
			text = command + smarthttp.Flush + "PACK"
		}
		if n == smarthttp.AtOnce-1 {
			break // a turn of the writer is left
		}
		defer begin(smarthttp.ReceivePack, text).CloseWithError(errors.New("gone"))
	}
	run(t, dir, "commit", "-q", "--allow-empty", "-m", "more")
	run(t, dir, "push", "-q", "origin", "main")
	for _, r := range s.heard() {
		if r.Header.Get("Authorization") != s.authorization() || r.Method == http.MethodPost && r.ContentLength < 0 {
			t.Errorf("the host was asked for %s %s", r.Method, r.URL)
		}
	}
	if e := s.pushes(); len(e) != 1 || fmt.Sprint(e[0].Updates[0].Ref) != "refs/heads/main" {
		t.Errorf("announced %+v", e)
	}
}

// TestOneCredentialHoldsNoOther holds that a credential that has used up its turns waits
// for itself alone.
func TestOneCredentialHoldsNoOther(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.work()
	release := make(chan struct{})
	reached := make(chan struct{}, 2*smarthttp.AtOnce)
	s.set(func() {
		s.before = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost && r.Header.Get("User-Agent") == "slow" {
				reached <- struct{}{}
				<-release
			}
			return false
		}
	})
	ask := func() {
		r := httptest.NewRequestWithContext(t.Context(), "POST", s.url+Path(shopID)+"/git-upload-pack", strings.NewReader("0000"))
		r.RequestURI = ""
		r.SetBasicAuth("x", "reader")
		r.Header.Set("Content-Type", "application/x-git-upload-pack-request")
		r.Header.Set("User-Agent", "slow")
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
		}
	}
	done := make(chan struct{})
	for range smarthttp.AtOnce + 4 {
		go func() { ask(); done <- struct{}{} }()
	}
	for range smarthttp.AtOnce {
		<-reached
	}
	run(t, t.TempDir(), "clone", "-q", s.remote("writer"), "a")
	select {
	case <-reached:
		t.Error("one credential has more turns than it may")
	default:
	}
	close(release)
	for range smarthttp.AtOnce + 4 {
		<-done
	}
}

// refuser is a backend whose credential is a person's.
type refuser struct {
	*backend
	told []bool
}

// Refused implements codehost.Refuser.
func (r *refuser) Refused(_ context.Context, _ codehost.Repo, credential bool) error {
	r.told = append(r.told, credential)
	return &codehost.ForbiddenError{}
}

// TestLimitIsNoRefusal holds that a host which is asked too much is asked later, with the
// time that it names: neither the credential of the App nor that of a person is to blame.
func TestLimitIsNoRefusal(t *testing.T) {
	t.Parallel()
	for _, personal := range []bool{false, true} {
		s := newSite(t)
		person := &refuser{backend: s.backend}
		if personal {
			s.git = person
		}
		s.work()
		for name, c := range map[string]struct {
			status int
			after  string
			want   int
		}{
			"a limit": {403, "60", 503}, "too many": {429, "60", 503}, "too many, without a time": {429, "", 503}, "down": {502, "", 503},
			"no access": {403, "", 403},
		} {
			s.set(func() {
				s.before = func(w http.ResponseWriter, _ *http.Request) bool {
					if c.after != "" {
						w.Header().Set("Retry-After", c.after)
					}
					http.Error(w, "no", c.status)
					return true
				}
			})
			r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+Path(shopID)+"/info/refs?service=git-upload-pack", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.SetBasicAuth("x", "reader")
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if waits := resp.Header.Get("Retry-After") != ""; resp.StatusCode != c.want || waits != (c.after != "") {
				t.Errorf("%s, personal %v: %d %v", name, personal, resp.StatusCode, resp.Header)
			}
		}
		if personal && len(person.told) != 1 {
			t.Errorf("the person was told %v", person.told)
		}
	}
}
