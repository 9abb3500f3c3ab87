package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/cli/exit"
)

// A file is stored, listed, shared, read back with its digest compared, and deleted; what came
// back as something else is no file.
func TestArtifactsByHand(t *testing.T) {
	t.Parallel()
	y := yard(t)
	if err := y.Push("acme/web", map[string]string{"README.md": "# Web\n"}); err != nil {
		t.Fatal(err)
	}
	p := newPerson(t, "YARDMASTER_URL="+y.URL, "YARDMASTER_TOKEN="+y.Owner, "NO_COLOR=1")
	if err := os.WriteFile(filepath.Join(p.home, "speed.txt"), []byte("fast\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.holds("artifact put speed.txt --repo acme/web", 0, "speed.txt is stored.", "Anybody can have it with: yardmaster artifact share")
	p.holds("artifact list --repo acme/web", 0, "speed.txt", "text/plain")
	p.holds("artifact list --repo acme/nothing", exit.CodeNotFound)
	p.holds("artifact get @last", exit.CodeMisused, "speed.txt is there already")
	p.holds("artifact get @last --to again.txt", 0, "again.txt has ", "Its digest is what it was")
	if b, err := os.ReadFile(filepath.Join(p.home, "again.txt")); err != nil || string(b) != "fast\n" {
		t.Errorf("it is %q: %v", b, err)
	}
	p.holds("artifact get speed.txt --to -", 0, "fast")
	p.holds("artifact share @last --expires-in-days 3", 0, "Anybody can have it at http", "/artifacts/")

	// One whose digest is another one, and one whose name is no name of a file here.
	for body, want := range map[string]string{
		`{"name": "lies.txt", "content_type": "text/plain", "size": 5, "sha256": "` + strings.Repeat("a", 64) + `"}`: "their digest is another one",
		`{"name": ".profile", "content_type": "text/plain", "size": 5}`:                                              "no name for a file here",
	} {
		var made stored
		resp, b := y.Send(http.MethodPost, "/v1/artifacts", y.Owner, body)
		if err := json.Unmarshal(b, &made); err != nil || resp.StatusCode != http.StatusCreated {
			t.Fatalf("%s %s: %v", resp.Status, b, err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, made.UploadURL, strings.NewReader("fast\n"))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range made.UploadHeaders {
			req.Header.Set(k, v)
		}
		up, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = up.Body.Close()
		if out, code := p.terminal([]string{"artifact", "get", made.ID}); code == 0 || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d:\n%s", body, code, out)
		}
	}
	p.holds("artifact delete speed.txt", 0, "It is deleted.")
	all, err := os.ReadDir(p.home)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Name() == "lies.txt" || e.Name() == ".profile" || strings.HasPrefix(e.Name(), ".yardmaster-") {
			t.Errorf("there is a file %s", e.Name())
		}
	}
}
