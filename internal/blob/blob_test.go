package blob_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
	"yardmaster/internal/seal"
)

// onBoth runs a test on a folder and on a bucket.
func onBoth(t *testing.T, fn func(*testing.T, blob.Store)) {
	t.Run("folder", func(t *testing.T) {
		t.Parallel()
		f, _ := folder(t)
		fn(t, f)
	})
	t.Run("s3", func(t *testing.T) {
		t.Parallel()
		fn(t, bucket(t))
	})
}

// clock is a clock that a test sets.
type clock struct{ at time.Time }

func folder(t *testing.T) (*blob.Folder, *clock) {
	t.Helper()
	c := &clock{at: time.Now()}
	var f *blob.Folder
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	f = blob.NewFolder(filepath.Join(t.TempDir(), "blob"), server.URL, seal.New(), func() time.Time { return c.at })
	t.Cleanup(func() { _ = f.Close() })
	return f, c
}

func put(t *testing.T, s blob.Store, key, text, mediaType string) {
	t.Helper()
	if err := s.Put(t.Context(), key, strings.NewReader(text), int64(len(text)), mediaType); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, s blob.Store, key string) string {
	t.Helper()
	r, i, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil || int64(len(text)) != i.Size {
		t.Fatalf("%d bytes of %d: %v", len(text), i.Size, err)
	}
	return string(text)
}

// call makes a request and answers the status, the headers and the body.
func call(t *testing.T, method, address, body string, header http.Header) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(text)
}

const key = "acme/ci/log.txt"

// An object is stored, described, read, replaced and deleted.
func TestLife(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s blob.Store) {
		gone := func() {
			t.Helper()
			if _, err := s.Stat(t.Context(), key); !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("stat: %v", err)
			}
			if _, _, err := s.Get(t.Context(), key); !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("get: %v", err)
			}
			if err := s.Delete(t.Context(), key); err != nil {
				t.Errorf("delete: %v", err)
			}
		}
		gone()
		put(t, s, key, "one\ntwo", "text/plain")
		put(t, s, "acme/ci/log.txt.1", "beside", "text/plain")
		if i, err := s.Stat(t.Context(), key); err != nil || i.Size != 7 || i.Type != "text/plain" || i.At.IsZero() {
			t.Errorf("%+v %v", i, err)
		}
		if text := read(t, s, key); text != "one\ntwo" {
			t.Errorf("%q", text)
		}
		put(t, s, key, "", "application/json")
		if text := read(t, s, key); text != "" {
			t.Errorf("%q", text)
		}
		if err := s.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		gone()
		if text := read(t, s, "acme/ci/log.txt.1"); text != "beside" {
			t.Errorf("%q", text)
		}
	})
}

// A reader of another size than was said, or that fails, changes nothing.
func TestWrongSize(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	onBoth(t, func(t *testing.T, s blob.Store) {
		put(t, s, key, "before", "text/plain")
		for name, c := range map[string]struct {
			r    io.Reader
			size int64
			want error
		}{
			"short":        {strings.NewReader("abc"), 4, blob.ErrSize},
			"long":         {strings.NewReader("abc"), 2, blob.ErrSize},
			"not empty":    {strings.NewReader("a"), 0, blob.ErrSize},
			"below zero":   {strings.NewReader("a"), -1, blob.ErrSize},
			"fails":        {io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(broken)), 4, broken},
			"fails at end": {io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(broken)), 2, broken},
		} {
			if err := s.Put(t.Context(), key, c.r, c.size, "text/plain"); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
			if text := read(t, s, key); text != "before" {
				t.Errorf("%s: %q is stored", name, text)
			}
		}
		large := bytes.Repeat([]byte("0123456789abcdef"), 3<<20/16)
		if err := s.Put(t.Context(), key, bytes.NewReader(large), int64(len(large)), "text/plain"); err != nil {
			t.Fatal(err)
		}
		if text := read(t, s, key); text != string(large) {
			t.Errorf("%d bytes, and not what was stored", len(text))
		}
	})
}

// No key leads out of the account's own place, and no type has a line of its own.
func TestKeys(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s blob.Store) {
		for _, bad := range []string{
			"", "acme", "/acme/x", "acme/", "acme//x", "acme/../rival/x", "../x/y", "acme/./x", "acme/.x", "acme/x~",
			"acme/a b", "acme/x\n", `acme\x/y`, "acme/%2e%2e/x", "acme/x?y", "acme/" + strings.Repeat("x", blob.MaxKey)} {
			if err := s.Put(t.Context(), bad, strings.NewReader(""), 0, "text/plain"); err == nil {
				t.Errorf("put %q", bad)
			}
			_, _, err := s.Get(t.Context(), bad)
			_, stat := s.Stat(t.Context(), bad)
			_, get := s.PresignGet(t.Context(), bad, "x", time.Minute)
			_, put := s.PresignPut(t.Context(), bad, 1, "text/plain", time.Minute)
			if err == nil || errors.Is(err, blob.ErrNotFound) || stat == nil || get == nil || put == nil ||
				s.Delete(t.Context(), bad) == nil {
				t.Errorf("%q was taken: %v, %v, %v, %v", bad, err, stat, get, put)
			}
		}
		for _, bad := range []string{"", "text/plain\nx", "text/plain\r\nX: y", strings.Repeat("x", 300) + "/y"} {
			if err := s.Put(t.Context(), key, strings.NewReader(""), 0, bad); err == nil {
				t.Errorf("type %q", bad)
			}
		}
		for _, ttl := range []time.Duration{-1, 0, blob.MaxTTL + 1} {
			if _, err := s.PresignGet(t.Context(), key, "x", ttl); err == nil {
				t.Errorf("lives for %s", ttl)
			}
		}
	})
}

// An address answers its object as a file, in parts if asked, and nothing else.
func TestPresignGet(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s blob.Store) {
		put(t, s, key, "0123456789", "text/plain")
		put(t, s, "acme/ci/other", "other", "text/plain")
		address, err := s.PresignGet(t.Context(), key, `check "1"; ü.log`, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		status, h, text := call(t, "GET", address, "", nil)
		if status != 200 || text != "0123456789" || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment; filename") {
			t.Errorf("%d %q %v", status, text, h)
		}
		if status, h, text := call(t, "GET", address, "", http.Header{"Range": {"bytes=2-4"}}); status != 206 || text != "234" ||
			h.Get("Content-Range") != "bytes 2-4/10" {
			t.Errorf("%d %q %v", status, text, h)
		}
		if status, _, _ := call(t, "PUT", address, "x", nil); status != 403 {
			t.Errorf("written: %d", status)
		}
		for name, change := range map[string]func(*url.URL){
			"another object": func(u *url.URL) { u.Path = strings.Replace(u.Path, "log.txt", "other", 1) },
			"another signature": func(u *url.URL) {
				u.RawQuery = strings.NewReplacer("signature=", "signature=0", "Signature=", "Signature=0").Replace(u.RawQuery)
			},
			"without": func(u *url.URL) {
				q := u.Query()
				for k := range q {
					if strings.HasSuffix(strings.ToLower(k), "signature") {
						q.Del(k)
					}
				}
				u.RawQuery = q.Encode()
			},
			"another name": func(u *url.URL) { u.RawQuery = strings.Replace(u.RawQuery, "check", "chuck", 1) },
		} {
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			change(u)
			if status, _, text := call(t, "GET", u.String(), "", nil); status != 403 && status != 400 {
				t.Errorf("%s: %d %q", name, status, text)
			}
		}
		if err := s.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if status, _, _ := call(t, "GET", address, "", nil); status != 404 {
			t.Errorf("deleted: %d", status)
		}
	})
}

// An address takes one upload: of its length and type.
func TestPresignPut(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s blob.Store) {
		address, err := s.PresignPut(t.Context(), key, 4, "text/plain", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		text := http.Header{"Content-Type": {"text/plain"}, "If-None-Match": {"*"}}
		for name, c := range map[string]struct {
			body   string
			header http.Header
		}{
			"long": {"12345", text}, "short": {"123", text}, "no type": {"1234", http.Header{"If-None-Match": {"*"}}},
			"a page": {"1234", http.Header{"Content-Type": {"text/html"}, "If-None-Match": {"*"}}},
		} {
			if status, _, said := call(t, "PUT", address, c.body, c.header); status < 400 || status > 499 {
				t.Errorf("%s: %d %s", name, status, said)
			}
			if _, err := s.Stat(t.Context(), key); !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if status, _, said := call(t, "PUT", address, "1234", text); status != 200 {
			t.Errorf("%d %s", status, said)
		}
		if got := read(t, s, key); got != "1234" {
			t.Errorf("%q", got)
		}
		if status, _, _ := call(t, "GET", address, "", nil); status != 403 {
			t.Errorf("read by the address of an upload: %d", status)
		}
		if i, err := s.Stat(t.Context(), key); err != nil || i.Type != "text/plain" {
			t.Errorf("%+v %v", i, err)
		}
	})
}

// What a folder serves cannot act as a page of the server.
func TestServedIsInert(t *testing.T) {
	t.Parallel()
	f, _ := folder(t)
	for stored, want := range map[string]string{
		"text/html": "application/octet-stream", "image/svg+xml": "application/octet-stream", "text/javascript": "application/octet-stream",
		"text/xml": "application/octet-stream", "text/plain; charset=utf-16": "text/plain; charset=utf-8", "image/png": "image/png",
	} {
		put(t, f, key, "<script>alert(1)</script>", stored)
		address, err := f.PresignGet(t.Context(), key, "x.html", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		_, h, _ := call(t, "GET", address, "", http.Header{"Cookie": {"svc_session=x"}})
		if h.Get("Content-Type") != want || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Set-Cookie") != "" ||
			!strings.Contains(h.Get("Content-Security-Policy"), "sandbox") ||
			!strings.HasPrefix(h.Get("Content-Disposition"), "attachment") {
			t.Errorf("%s: %v", stored, h)
		}
	}
}

// An address of a folder ends with its time, and with the key that signed it.
func TestFolderAddressEnds(t *testing.T) {
	t.Parallel()
	f, c := folder(t)
	put(t, f, key, "text", "text/plain")
	address, err := f.PresignGet(t.Context(), key, "x", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	upload, err := f.PresignPut(t.Context(), key, 1, "text/plain", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c.at = c.at.Add(59 * time.Second)
	if status, _, _ := call(t, "GET", address, "", nil); status != 200 {
		t.Errorf("%d", status)
	}
	c.at = c.at.Add(2 * time.Second)
	for method, address := range map[string]string{"GET": address, "PUT": upload} {
		status, h, said := call(t, method, address, "1", http.Header{"Content-Type": {"text/plain"}})
		if status != 403 || !strings.Contains(said, "address-expired") ||
			h.Get("Content-Type") != "application/problem+json" ||
			strings.Contains(said, "signature=") {
			t.Errorf("%s: %d %s", method, status, said)
		}
	}
	if status, h, _ := call(t, "DELETE", address, "", nil); status != 405 || h.Get("Allow") == "" {
		t.Errorf("deleted: %d", status)
	}
	c.at = c.at.Add(-time.Hour)
	later := strings.Replace(address, "expires=", "expires=9", 1)
	if status, _, _ := call(t, "GET", later, "", nil); status != 403 {
		t.Errorf("prolonged: %d", status)
	}
}

// Who is refused when an address was found good hears why and when to try again, and so does
// the record of the request.
func TestRefusalIsPassedOn(t *testing.T) {
	t.Parallel()
	f, _ := folder(t)
	address, err := f.PresignGet(t.Context(), key, "x", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	f.Signed = func(_ context.Context, of string) error {
		if of != key {
			t.Errorf("asked about %s", of)
		}
		return fault.New(fault.Unavailable, "full", "Full up.").After(6500 * time.Millisecond)
	}
	var record observe.Request
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequestWithContext(observe.With(t.Context(), &record), "GET", address, nil))
	var p struct {
		Type, Detail string
		RetryAfter   int `json:"retry_after"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 503 || w.Header().Get("Retry-After") != "7" ||
		p.RetryAfter != 7 || !strings.HasSuffix(p.Type, "/full") || p.Detail != "Full up." || record.Slug != "full" {
		t.Errorf("%d, %v, %s, recorded as %q", w.Code, w.Header(), w.Body, record.Slug)
	}
}

// A key may be the beginning of another one.
func TestFolderBelow(t *testing.T) {
	t.Parallel()
	f, _ := folder(t)
	put(t, f, key, "one", "text/plain")
	put(t, f, key+"/two", "two", "text/plain")
	if read(t, f, key) != "one" || read(t, f, key+"/two") != "two" {
		t.Error("one took the place of the other")
	}
}

// A folder that was cut off in the middle of a write has the object of before.
func TestFolderCutOff(t *testing.T) {
	t.Parallel()
	f, _ := folder(t)
	put(t, f, key, "before", "text/plain")
	ctx, cancel := context.WithCancel(t.Context())
	err := f.Put(ctx, key, io.MultiReader(strings.NewReader("aft"), readerFunc(func([]byte) (int, error) {
		cancel()
		return 0, nil
	}), strings.NewReader("er!")), 6, "text/plain")
	if !errors.Is(err, context.Canceled) || read(t, f, key) != "before" {
		t.Errorf("%v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Without storage nothing is stored, and a deletion has nothing to do.
func TestOff(t *testing.T) {
	t.Parallel()
	var s blob.Store = blob.Off{}
	_, _, get := s.Get(t.Context(), key)
	_, stat := s.Stat(t.Context(), key)
	_, address := s.PresignGet(t.Context(), key, "x", time.Minute)
	_, upload := s.PresignPut(t.Context(), key, 1, "text/plain", time.Minute)
	_, show := s.PresignShow(t.Context(), key, "x", "text/plain", time.Minute)
	for _, err := range []error{s.Put(t.Context(), key, strings.NewReader(""), 0, "text/plain"), get, stat, address, upload, show} {
		if !errors.Is(err, blob.ErrOff) {
			t.Error(err)
		}
	}
	if err := errors.Join(s.Delete(t.Context(), key), s.Close()); err != nil {
		t.Error(err)
	}
}
