package selftest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestStepsFailByWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer proxy.Close()
	nobody := "http://127.0.0.1:1" // tcpmux, which nobody has
	for _, x := range []struct {
		name string
		err  error
		want string // in the error; empty: there is none
	}{
		{"a folder", write(dir), ""},
		{"no folder", write(filepath.Join(dir, "missing")), "no such file"},
		{"a file for a folder", write(file), "not a directory"},
		{"a file", read([]string{file}), ""},
		{"no file", read([]string{file, filepath.Join(dir, "missing")}), "no such file"},
		{"git", commit(t.TempDir()), ""},
		{"git nowhere", commit(filepath.Join(dir, "missing")), "no such file"},
		{"proxies that refuse", reach([]string{proxy.URL, proxy.URL}), ""},
		{"a proxy that is not there", reach([]string{proxy.URL, nobody}), "connection refused"},
		{"a clock", clock(time.Now()), ""},
		{"a clock at its beginning", clock(time.Unix(0, 0)), "1970-01-01"},
	} {
		if (x.err == nil) != (x.want == "") || x.err != nil && !strings.Contains(x.err.Error(), x.want) {
			t.Errorf("%s: %v", x.name, x.err)
		}
	}
	t.Setenv("PATH", dir)
	if err := commit(t.TempDir()); err == nil || !strings.Contains(err.Error(), "git init") || strings.Contains(err.Error(), "\n") {
		t.Errorf("without git: %v", err)
	}
}

func TestNothingIsTriedWithoutARequest(t *testing.T) {
	t.Setenv(Variable, "")
	if step, err := try(); step != Task || err == nil || !strings.Contains(err.Error(), "not for the command line") {
		t.Error(step, err)
	}
}
