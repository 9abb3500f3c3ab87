//go:build !race

package dashboard_test

import (
	"bytes"
	"flag"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

var update = flag.Bool("update", false, "write the pictures of docs/pictures")

const (
	pictures    = "../../../docs/pictures"
	demo        = "../../demo"
	mostPicture = 200_000 // bytes
)

// shown are the pictures of the README.
var shown = []string{"home", "task", "pull-request"}

// The README shows pictures of the dashboard, each with words for those who do not see it.
// -update takes them anew.
func TestPictures(t *testing.T) {
	t.Parallel()
	if *update {
		takePictures(t)
	}
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range shown {
		text, err := os.ReadFile(filepath.Join(pictures, name+".png"))
		if err != nil {
			t.Fatal(err)
		}
		size, err := png.DecodeConfig(bytes.NewReader(text))
		if err != nil || size.Width != 1440 || len(text) > mostPicture {
			t.Errorf("%s is %d bytes and %d px wide: %v", name, len(text), size.Width, err)
		}
		if !regexp.MustCompile(`!\[[^\]]{30,}\]\(docs/pictures/` + name + `\.png\)`).Match(readme) {
			t.Errorf("the README does not show %s with words for it", name)
		}
	}
}

// takePictures writes the pictures: the demo's repository and job, done by a real box, and
// an agent's question beside it.
func takePictures(t *testing.T) {
	t.Helper()
	y := start(t, "--scenario", filepath.Join(demo, "scenario.yml"))
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(filepath.Join(demo, "sample")), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(demo, "sample", path))
		files[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := y.Push("acme/slug", files); err != nil {
		t.Fatal(err)
	}
	y.repo()
	deploy := y.task("Deploy the page", "Deploy the page of the project.")
	y.OnTask(deploy, func(tx *db.Tx, row *task.Row) error {
		asked := protocol.BlockerDeclared{
			ID: id.New(), Kind: "missing_credential", Question: "The web server takes pages for a key that I do not have. Which is it?",
			Fields: []protocol.BlockerField{{Name: "DEPLOY_KEY", Kind: "env_secret", Description: "of the web server"}},
		}
		if err := y.Blockers.Declare(tx, row.RepoID, row.ID, id.New(), asked); err != nil {
			return err
		}
		return y.Tasks.Hold(tx, row, task.Blocked, asked.Question)
	})
	y.box()
	filed := y.call("POST", "/v1/tasks", `{"repo": "acme/slug", "title": "Make the tests of slug.sh pass", "problem":
		"The tests of slug.sh fail: upper case letters and punctuation get through. Make them pass; do not change the tests."}`)
	fix, _ := filed["task_id"].(string)
	var pr string
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(y.call("GET", "/v1/tasks/"+fix, ""), pr)
			if pr != "" {
				t.Log(y.call("GET", "/v1/prs/"+pr+"/review-runs", ""), y.call("GET", "/v1/prs/"+pr, "")["pending_action"])
			}
		}
	})
	patience.Until(y.T, "the pull request waits for a person, and was reviewed", func() bool {
		if pr, _ = y.call("GET", "/v1/tasks/"+fix, "")["pr_id"].(string); pr == "" {
			return false
		}
		reviews, _ := y.call("GET", "/v1/prs/"+pr+"/review-runs", "")["data"].([]any)
		asked := y.call("GET", "/v1/prs/"+pr, "")["pending_action"] != nil
		return asked && len(reviews) > 0 && reviews[0].(map[string]any)["status"] == "completed"
	})
	b := y.open(1440, 900)
	b.Theme("light")
	for i, p := range []struct{ at, shows string }{
		{"/ui/", "Which is it?"}, {"/ui/tasks/" + fix, "Now the tests again."}, {"/ui/prs/" + pr, "tr 'A-Z' 'a-z'"},
	} {
		b.Go(p.at)
		b.See(p.shows)
		b.Until("all of it", `!document.querySelector("[aria-busy=true]") && document.querySelector(".foot .link.live")`)
		text := browser.Eval[string](b, "document.body.innerText")
		if strings.Contains(text, "127.0.0.1") || strings.Contains(text, "/tmp/") {
			t.Errorf("%s shows something of this machine:\n%s", shown[i], text)
		}
		b.Picture(filepath.Join(pictures, shown[i]+".png"))
	}
}
