//go:build !race

package dashboard_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/proof/browser"
)

// store stores an artifact as a program does, and returns its id.
func (y *yard) store(name, mediaType, of string, data []byte) string {
	y.T.Helper()
	made := y.call("POST", "/v1/artifacts",
		fmt.Sprintf(`{"name": %s, "content_type": %s, "size": %d%s}`, text(name), text(mediaType), len(data), of))
	address, _ := made["upload_url"].(string)
	req, err := http.NewRequestWithContext(y.T.Context(), http.MethodPut, address, bytes.NewReader(data))
	if err != nil {
		y.T.Fatal(err)
	}
	headers, _ := made["upload_headers"].(map[string]any)
	for k, v := range headers {
		req.Header.Set(k, fmt.Sprint(v))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		y.T.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		y.T.Fatalf("%s: %s", name, resp.Status)
	}
	id, _ := made["id"].(string)
	return id
}

// dot is a picture.
func dot(t *testing.T) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 240, 80))
	for x := range 240 {
		for y := range 80 {
			m.Set(x, y, color.RGBA{uint8(x), uint8(y * 3), 160, 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Artifacts are listed by where they are from, looked at where that can run nothing, shared
// for a time, stored and deleted.
func TestArtifacts(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	repo, _ := y.call("GET", "/v1/repos/acme/web", "")["id"].(string)
	task := y.task("Draw it", "Draw a picture.")
	picture := y.store("shot.png", "image/png", `, "task_id": "`+task+`"`, dot(t))
	log := y.store("build.log", "text/plain", `, "repo_id": "`+repo+`"`, []byte("one\n\x1b[31mred\x1b[0m "+evil("log")+"\nthe end\n"))
	y.store("alone.txt", "text/plain", "", []byte("alone"))
	b := y.open(1440, 900)
	b.Complaints()
	visit(b, "/ui/artifacts", "Artifacts")
	b.Until("all three", `document.querySelectorAll("#artifacts [role=row]").length === 3`)
	every(b, "artifacts")
	b.Go("/ui/artifacts?repo=acme/web")
	b.Until("those of the repository", `document.querySelectorAll("#artifacts [role=row]").length === 2`)
	b.Go("/ui/tasks/" + task)
	b.Button("what it stored")
	b.Until("that of the task", `document.querySelectorAll("#artifacts [role=row]").length === 1`)
	first(b, "artifacts")
	heads(b, "shot.png")
	b.Until("the picture", `document.querySelector("main .look img")?.naturalWidth === 240`)
	every(b, "artifact-picture")

	b.Go("/ui/artifacts/" + log)
	b.See("zz-log")
	b.See("the end")
	inertHere(t, b, "the log")
	every(b, "artifact-log")
	b.Fill("Days", "3")
	b.Button("Make a link")
	b.Until("the link", `document.querySelector("[aria-label=Share] code")?.innerText.includes("/artifacts/")`)
	b.Until("who sees it", `document.querySelector("main dl").innerText.includes("whoever has a link, too")`)
	usable(b, "a shared artifact")
	link := browser.Eval[string](b, `document.querySelector("[aria-label=Share] code").innerText`)
	resp, body := y.Send("GET", strings.TrimPrefix(link, y.URL), "", "")
	if resp.StatusCode != http.StatusSeeOther && !bytes.Contains(body, []byte("the end")) {
		t.Errorf("the link answers %d %s", resp.StatusCode, body)
	}

	// A file of a person, stored from the page.
	mine := filepath.Join(t.TempDir(), "mine.md")
	if err := os.WriteFile(mine, []byte("# Mine\n\nSome **text**, and "+evil("mine")+" [x](javascript:owned=1)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Go("/ui/artifacts?repo=acme/web")
	b.Button("Store a file")
	usable(b, "the dialog")
	data, err := os.ReadFile(mine)
	if err != nil {
		t.Fatal(err)
	}
	content64, _ := json.Marshal(string(data))
	b.Until("a field", `document.querySelector("dialog input[type=file]")`)
	browser.Eval[any](b, `(e => { const d = new DataTransfer(); d.items.add(new File([`+string(content64)+`], "mine.md", {type: "text/markdown"}));
		e.files = d.files; e.dispatchEvent(new Event("change", {bubbles: true})) })(document.querySelector("dialog input[type=file]"))`)
	b.Button("Store it")
	heads(b, "mine.md")
	b.Until("its text", `document.querySelector("main .md strong")?.innerText === "text"`)
	inertHere(t, b, "the text")
	every(b, "artifact-text")
	b.Button("Delete")
	b.Yes()
	heads(b, "Artifacts")
	b.Until("two of the account are left beside it", `document.querySelectorAll("#artifacts [role=row]").length === 3`)

	b.Go("/ui/artifacts/" + picture)
	heads(b, "shot.png")
	content(b)
}

// What could run something is not opened: markup, drawings with scripts, a file that is two
// things at once, a picture that is none. Each is there to download, and is served as a file.
func TestArtifactsHostile(t *testing.T) {
	t.Parallel()
	y := start(t)
	b := y.open(1440, 900)
	b.Complaints()
	svg := `<svg xmlns="http://www.w3.org/2000/svg" onload="owned=1"><script>owned=1</script></svg>`
	for _, x := range []struct {
		name, mediaType, data, see string
	}{
		{"page.html", "text/html", "<script>owned=1</script>zz-inside", "There is no look at files of this type"},
		{"x.svg", "image/svg+xml", svg, "There is no look at files of this type"},
		{"x.xhtml", "application/xhtml+xml", svg, "There is no look at files of this type"},
		{"x.js", "text/javascript", "owned=1", "There is no look at files of this type"},
		{"x.pdf", "application/pdf", "%PDF-1.7 owned=1", "There is no look at files of this type"},
		{"lies.png", "image/png", svg, "It is not the picture that it says it is"},
		{"both.gif", "image/gif", "GIF89a/*<svg onload=owned=1>*/=1;owned=1//<script>owned=1</script>", "both.gif"},
		{"lies.txt", "text/plain", "<script>owned=1</script>zz-inside", "zz-inside"},
		{evil("name") + ".txt", "text/plain", "hello", "hello"},
		{"x.json", "application/json", `{"a": "` + "<img src=x onerror=owned=1>" + `"}`, "onerror"},
	} {
		if strings.Contains(x.name, "\x1b") {
			x.name = strings.NewReplacer("\x1b[31m", "", "/", "").Replace(x.name)
		}
		id := y.store(x.name, x.mediaType, "", []byte(x.data))
		b.Go("/ui/artifacts/" + id)
		b.See(x.see)
		inertHere(t, b, x.name)
		address, _ := y.call("GET", "/v1/artifacts/"+id+"/url", "")["url"].(string)
		resp, _ := y.Send("GET", strings.TrimPrefix(address, y.URL), "", "")
		if got := resp.Header.Get("Content-Disposition"); !strings.HasPrefix(got, "attachment") {
			t.Errorf("%s is served as %q", x.name, got)
		}
	}
	large := strings.Repeat("a line of a log\n", 3<<20/16)
	b.Go("/ui/artifacts/" + y.store("large.log", "text/plain", "", []byte(large)))
	b.See("The first 1.0 MB of 3.1 MB.")
	b.See("a line of a log")
	content(b)
}
