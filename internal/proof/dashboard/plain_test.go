//go:build !race

package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/rig"
	"yardmaster/internal/proof/seed"
)

// viewer opens a window of bob, who may look at everything and change nothing.
func (s *shop) viewer(width, height int64) *browser.Tab {
	s.t.Helper()
	s.Write(s.Account, func(tx *db.Tx) error {
		hash, _, err := people.Password(tx, s.User)
		if err != nil {
			return err
		}
		bob := id.New()
		return seed.Add(tx, seed.User{ID: bob, Login: "bob", Password: hash},
			seed.Member{Account: s.Account, User: bob, Role: string(policy.Viewer)})
	})
	b := browser.Open(s.t, s.URL, width, height)
	b.SignIn("bob", rig.Password)
	return b
}

// A pull request whose head nobody reviewed is said to be not reviewed wherever it is shown.
// On its page the decision is on the first screen of a phone, above the facts, without a
// link to the page itself, and the list of its files ends where the files do.
func TestPullThatNobodyReviewed(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, map[string]string{"worker": worker})
	pr := s.pull(s.task("worker", "Fix the year"))
	b := s.enter(1440, 900)
	b.Go("/ui/approvals")
	b.Until("what the card says", `document.querySelector("main .item")?.innerText.replace(/\s+/g, " ").includes("checks none · not reviewed · +")`)
	b.Go("/ui/prs")
	b.Until("what the list says", `[...document.querySelectorAll("#prs [role=gridcell]")].some(e => e.innerText.trim() === "not reviewed")`)

	phone := s.enter(390, 844)
	phone.Go("/ui/prs/" + pr)
	phone.Until("what the page says", `[...document.querySelectorAll("main dl > div, main dl")].some(e => /Review\s+not reviewed/.test(e.innerText))`)
	phone.Until("the decision is on the first screen", `(e => e && e.getBoundingClientRect().bottom < innerHeight)`+
		`(document.querySelector("#decision .acts button.main"))`)
	phone.Until("the facts come after it", `document.querySelector("#decision").compareDocumentPosition(document.querySelector("main dl")) & 4`)
	if browser.Eval[bool](phone, `!!document.querySelector("#decision a[href='/ui/prs/`+pr+`']")`) {
		t.Error("the card on the page links to the page")
	}
	phone.See("Merge this pull request")
	phone.Until("the files", `document.querySelectorAll("#tree .leaf").length === 3`)
	phone.Until("all of them are seen, and nothing below", `(rest => rest >= 0 && rest < 16)(document.querySelector("#tree").getBoundingClientRect().bottom
		- Math.max(...[...document.querySelectorAll("#tree .leaf")].map(e => e.getBoundingClientRect().bottom)))`)
	shots(phone, "pr-unreviewed-phone")
	narrow(t, phone)
	clean(t, phone)
}

// A plan that is held says by their titles which groups its approval starts, and which wait;
// a node of the drawing opens its own row; who may not change it is told the scope.
func TestPlanSaysWhatStarts(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, nil)
	filed := s.plan()
	var plan struct{ Groups []struct{ ID, Title string } }
	s.into(&plan, 200, "GET", "/v1/plans/"+filed, "")
	var second, rest string
	for _, g := range plan.Groups {
		switch g.Title {
		case "Use the name":
			second = g.ID
		case "Add a name", "Say so":
		default:
			rest = g.Title
		}
	}
	b := s.enter(1440, 900)
	b.Go("/ui/plans/" + filed)
	b.See("Approving starts: Add a name. Waiting for others to be done: Use the name; Say so; " + rest + ".")
	b.Until("the drawing", `document.querySelectorAll(".dag .node").length === 4`)
	browser.Eval[any](b, `document.querySelector(".dag [data-node='`+second+`']").focus()`)
	b.Press("Enter")
	b.Until("its row has the focus", `document.activeElement.id === "g-`+second+`"`)
	b.Button("Approve")
	b.See("Approved. Started: Add a name. Waiting for others")
	clean(t, b)

	bob := s.viewer(1440, 900)
	bob.Go("/ui/plans/" + filed)
	for _, name := range []string{"Regroup", "Unlink"} {
		bob.Until(name+" says its scope", `(e => e?.ariaDisabled === "true" && e.title === "Needs the scope write:tasks")`+
			`([...document.querySelectorAll("main button")].find(e => e.innerText.trim() === `+text(name)+`))`)
	}
	bob.Button("Regroup")
	bob.See("Needs the scope write:tasks.")
	if browser.Eval[bool](bob, `!!document.querySelector("dialog[open]")`) {
		t.Error("the dialog opens all the same")
	}
}

// Who may not file work is told so, by the button and by the key, before anything is typed;
// and reads the roles of others as text.
func TestViewerFilesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, nil)
	bob := s.viewer(1440, 900)
	for _, path := range []string{"/ui/", "/ui/tasks", "/ui/asks"} {
		bob.Go(path)
		bob.Until("New says its scope", `(e => e?.ariaDisabled === "true" && e.title.startsWith("Needs the scope write:tasks"))`+
			`([...document.querySelectorAll("main button")].find(e => e.innerText.trim() === "New"))`)
	}
	bob.Button("New")
	bob.See("Needs the scope write:tasks.")
	bob.Go("/ui/tasks")
	bob.See("No task")
	bob.Press("c")
	bob.See("Needs the scope write:tasks.")
	if browser.Eval[bool](bob, `!!document.querySelector("dialog[open]")`) {
		t.Error("the dialog opens all the same")
	}
	bob.Go("/ui/settings/members")
	bob.Until("the role of ada", `[...document.querySelectorAll("main span")].some(e => e.innerText === "owner")`)
	if browser.Eval[bool](bob, `!!document.querySelector("main [aria-label^='Role of']")`) {
		t.Error("a viewer may choose a role")
	}
	bob.Press("Ctrl+k")
	bob.Until("the palette", `document.querySelector("dialog.palette[open]")`)
	bob.Type("settings")
	bob.See("You\nGo to, Settings")
	clean(t, bob)
}

// A machine that was there before the command was made has not come, whatever boxes the
// page shows.
func TestAddedBoxIsTheNewOne(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	y.Box(call[made](y, http.MethodPost, "/v1/runners/enrollments", `{"name": "first"}`).Token)
	first := call[struct{ Data []struct{ ID string } }](y, http.MethodGet, "/v1/runners", "").Data[0].ID
	b.Go("/ui/boxes?show=revoked")
	b.Button("Add a box")
	b.Fill("Name", "second")
	b.Button("Make the command")
	b.See("Waiting for the machine")
	browser.Eval[any](b, `(window.came = [], new MutationObserver(() => came.push(document.querySelector("dialog p[role=status]")?.innerText))
		.observe(document.querySelector("dialog"), {subtree: true, childList: true, characterData: true}))`)
	call[any](y, http.MethodPost, "/v1/runners/"+first+"/drain", `{}`)
	line := browser.Eval[string](b, `document.querySelector(".secret code").innerText`)
	_, token, _ := strings.Cut(line, "dev_enr_")
	y.Box("dev_enr_" + strings.FieldsFunc(token, func(r rune) bool { return r == ' ' || r == '\'' || r == '"' })[0])
	b.Until("the new one", `document.querySelector("dialog p[role=status]")?.innerText.includes("second is here")`)
	if got := browser.Eval[[]string](b, `came.filter(s => s?.includes("first is here"))`); len(got) > 0 {
		t.Errorf("%q", got)
	}
	content(b)
}
