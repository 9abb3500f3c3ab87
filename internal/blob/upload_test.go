package blob_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/seal"
)

// upload puts a text to an address as its headers say.
func upload(t *testing.T, address, text string) (int, string) {
	t.Helper()
	h := http.Header{}
	for name, value := range blob.Upload("text/plain") {
		h.Set(name, value)
	}
	status, _, said := call(t, "PUT", address, text, h)
	return status, said
}

// An address takes one object, once: what is there stays as it is, whoever has the address.
func TestUploadedOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s blob.Store) {
		address, err := s.PresignPut(t.Context(), key, 4, "text/plain", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if status, said := upload(t, address, "good"); status != 200 {
			t.Fatalf("%d %s", status, said)
		}
		if status, said := upload(t, address, "evil"); status != 409 && status != 412 {
			t.Errorf("again: %d %s", status, said)
		}
		if got := read(t, s, key); got != "good" {
			t.Errorf("%q", got)
		}
	})
}

// While one upload goes on, another one to the same address is refused, and a folder tells of
// the one that is stored.
func TestOneUploadAtATime(t *testing.T) {
	t.Parallel()
	f, _ := folder(t)
	stored := make(chan string, 2)
	f.Stored = func(_ context.Context, key string) { stored <- key }
	address, err := f.PresignPut(t.Context(), key, 4, "text/plain", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	slow, rest := io.Pipe()
	first := make(chan int, 1)
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, slow)
		if err != nil {
			t.Error(err)
			return
		}
		req.ContentLength = 4
		req.Header.Set("Content-Type", "text/plain")
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			first <- 0
			return
		}
		answer.Body.Close()
		first <- answer.StatusCode
	}()
	if _, err := rest.Write([]byte("go")); err != nil { // the server may not read yet; the other one waits for a file
		t.Fatal(err)
	}
	waitForPartial(t, f)
	if status, said := upload(t, address, "evil"); status != 409 || !strings.Contains(said, "object-exists") {
		t.Errorf("%d %s", status, said)
	}
	if _, err := rest.Write([]byte("od")); err != nil {
		t.Fatal(err)
	}
	rest.Close()
	if status := <-first; status != 200 || read(t, f, key) != "good" || <-stored != key || len(stored) != 0 {
		t.Errorf("%d", status)
	}
}

// What an address shows in a browser is a plain text or a picture, whatever the bytes are. All
// else is a file to save.
func TestShownIsInert(t *testing.T) {
	t.Parallel()
	const polyglot = "GIF89a/*<script>alert(1)</script><svg onload=alert(1)>*/=1;"
	onBoth(t, func(t *testing.T, s blob.Store) {
		for stored, want := range map[string]string{
			"text/plain": "text/plain; charset=utf-8", "text/plain; charset=utf-7": "text/plain; charset=utf-8", "image/gif": "image/gif",
			"image/png": "image/png", "image/jpeg": "image/jpeg", "image/webp": "image/webp",
			"text/html": "", "image/svg+xml": "", "application/xhtml+xml": "", "text/xml": "", "application/pdf": "", "text/javascript": "",
			"text/html; charset=utf-8": "", "image/PNG+xml": "", "application/json": "", "multipart/x-mixed-replace": "",
		} {
			put(t, s, key, polyglot, stored)
			address, err := s.PresignShow(t.Context(), key, "x.html", stored, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			status, h, _ := call(t, "GET", address, "", nil)
			how, kind := h.Get("Content-Disposition"), h.Get("Content-Type")
			if want == "" && !strings.HasPrefix(how, "attachment") || want != "" && (!strings.HasPrefix(how, "inline") || kind != want) ||
				status != 200 {
				t.Errorf("%s: %d %s %s", stored, status, how, kind)
			}
			if _, ours := s.(*blob.Folder); !ours {
				continue // what a bucket serves is no page of ours
			}
			if p := h.Get("Content-Security-Policy"); h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(p, "sandbox") ||
				!strings.Contains(p, "default-src 'none'") || strings.Contains(p, "allow-") {
				t.Errorf("%s: %v", stored, h)
			}
			if want == "" && kind != "application/octet-stream" && kind != "application/pdf" && kind != "application/json" {
				t.Errorf("%s is served as %s", stored, kind)
			}
			for _, other := range []string{
				strings.Replace(address, "show=image", "show=text%2Fhtml&x=", 1), address + "&show=text%2Fhtml",
			} {
				if status, _, _ := call(t, "GET", other, "", nil); other != address && status != 403 {
					t.Errorf("%s was changed: %d", stored, status)
				}
			}
		}
	})
}

// What a killed upload has left goes, and an upload under way stays.
func TestTidy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := blob.NewFolder(dir, "http://yard", seal.New(), time.Now)
	if err := blob.NewFolder(filepath.Join(dir, "none"), "http://yard", seal.New(), time.Now).Tidy(t.Context(), time.Now()); err != nil {
		t.Errorf("nothing was stored yet: %v", err)
	}
	put(t, f, key, "whole", "text/plain")
	old, young := filepath.Join(dir, "acme/ci/.put-1"), filepath.Join(dir, "acme/ci/.put-2")
	for _, path := range []string{old, young} {
		if err := os.WriteFile(path, []byte("cut"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	if err := f.Tidy(t.Context(), time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	_, gone := os.Stat(old)
	_, there := os.Stat(young)
	if !os.IsNotExist(gone) || there != nil || read(t, f, key) != "whole" {
		t.Errorf("%v %v", gone, there)
	}
}

// waitForPartial waits for the file of an upload under way.
func waitForPartial(t *testing.T, f *blob.Folder) {
	t.Helper()
	patience.Until(t, "an upload is under way", func() bool { return len(blob.Partials(f)) > 0 })
}
