//go:build !race

package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/template"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/rig"
	"yardmaster/internal/proof/seed"
)

// split ends some tasks of the template bold, which has the challenger careful.
func split(y *rig.Yard, most int, status func(lane string, i int) string) {
	repo := call[struct{ ID string }](y, http.MethodGet, "/v1/repos/acme/web", "").ID
	y.Write(y.Account, func(tx *db.Tx) error {
		had := map[string]int{}
		for had["bold"] < most || had["careful"] < most {
			task, ended := id.New(), tx.Now.UnixMicro()
			lane, err := template.Split(tx, "bold", task)
			if err != nil {
				return err
			}
			row := seed.Task{ID: task, Account: y.Account, Repo: repo, Template: lane, Status: status(lane, had[lane]), Finished: &ended}
			if had[lane]++; had[lane] > most {
				row.Status = "cancelled" // which counts for nothing
			}
			if err := seed.Add(tx, row); err != nil {
				return err
			}
		}
		return nil
	})
}

// A template is set against a challenger, and what came of both stands beside each other: no
// winner is named while few tasks have ended.
func TestLanesBesideEachOther(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	if err := y.Push("acme/web", map[string]string{"README.md": "Web\n"}); err != nil {
		t.Fatal(err)
	}
	call[any](y, http.MethodPut, "/v1/templates/careful", `{}`)
	call[any](y, http.MethodPut, "/v1/templates/bold", `{"options": {"effort": "low"}}`)
	visit(b, "/ui/templates", "Templates")
	edit := `[...document.querySelectorAll("main li.item")].find(e => e.innerText.startsWith("bold")).querySelector(".acts button:last-child").click()`
	b.See("bold")
	browser.Eval[any](b, edit)
	b.Fill("Challenger", "nobody")
	b.Fill("Share", "50")
	b.Button("Save")
	b.See("is no template of the account")
	b.Fill("Challenger", "careful")
	b.Button("Save")
	b.See("50 of 100 of its tasks go to careful")
	b.Button("Compare")
	b.See("No task was split between bold and a challenger yet.")
	split(y, 10, func(string, int) string { return "merged" })
	b.Go("/ui/templates?lanes=bold")
	b.See("No winner is named before 30 tasks of each have ended: bold has 10, careful has 10.")
	split(y, 40, func(lane string, i int) string {
		if lane == "careful" || i < 4 {
			return "merged"
		}
		return "failed"
	})
	b.Go("/ui/templates?lanes=bold")
	b.See("More of careful is merged: the ranges do not touch.")
	b.Until("n, d and the range", `[...document.querySelectorAll("main tr")].some(e => /^bold/.test(e.innerText) && /14 of 50/.test(e.innerText) &&
		/17 % to 42 %/.test(e.innerText) && e.querySelector("svg.iv"))`)
	both(b, "lanes of a template")
	shoot(b, "lanes")
	// Who changes something else in the form keeps the challenger.
	browser.Eval[any](b, edit)
	b.Fill("Options", "effort=high")
	b.Button("Save")
	b.Gone("Template bold")
	got := call[struct {
		Challenger string
		Share      int
		Options    map[string]string
	}](y, http.MethodGet, "/v1/templates/bold", "")
	if got.Challenger != "careful" || got.Share != 50 || got.Options["effort"] != "high" {
		t.Errorf("the template is %+v", got)
	}
	content(b)
}

// proven looks at the statement of a merged pull request, and verifies it in the page.
func proven(t *testing.T, b *browser.Tab, key string) {
	t.Helper()
	b.Button("provenance")
	b.See("What the merge came of")
	b.See("yardmaster provenance verify")
	b.Fill("Key that you noted", "abc")
	b.Button("Verify")
	b.See("A key has 43 characters of base64url.")
	b.Fill("Key that you noted", strings.Repeat("A", 43))
	b.Button("Verify")
	b.See("No signature is by this key")
	b.Fill("Key that you noted", key)
	b.Button("Verify")
	b.See("This key has signed the statement, and nobody changed it since.")
	b.Until("the artifact", `document.querySelector("main dd a[href^='/ui/artifacts/']")`)
	both(b, "provenance")
	shoot(b, "provenance")
}
