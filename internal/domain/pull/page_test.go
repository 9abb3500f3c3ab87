package pull

import (
	"regexp"
	"strings"
	"testing"

	"yardmaster/internal/client/inert"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/proof/seed"
)

// The text of an agent can hide nothing on the page, and change nothing else on it. The
// page names the person who decided.
func TestPageHidesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		sha := y.commit("svc/a", "a", "if (admin\u202e\u2066 == true\u2069) {\u200b\nflags \U000e0041 ünï 字\n")
		var pr string
		y.write(func(tx *db.Tx) error {
			r, _, err := repo.ByID(tx, y.repo)
			if err != nil {
				return err
			}
			pr, err = y.Propose(tx, r, Proposal{TaskID: "task-a", Title: "Fix it \u202etxt.exe", Body: "It\ufeff is\r\nfixed.",
				Branch: "svc/a", HeadSHA: sha, BaseSHA: y.git("rev-parse", "main")})
			return err
		})
		y.checked(y.check[0], &zero)
		show := func(want ...string) string {
			status, body := y.answer("acme", "GET", "/ui/prs/"+pr, "")
			for _, w := range want {
				if status != 200 || !strings.Contains(string(body), w) {
					t.Fatalf("%d: %q is not on the page:\n%s", status, w, body)
				}
			}
			return string(body)
		}
		text := show(`if (admin\u202e\u2066 == true\u2069) {\u200b`, `flags \udb40\udc41 ünï 字`,
			`Fix it \u202etxt.exe - Yardmaster</title>`, `Fix it \u202etxt.exe</h1>`,
			"It\\ufeff is\nfixed.", "<h2>1 file, +2 -0</h2>", "<code>task-a</code>")
		if inert.Escape(text) != text {
			t.Error("something is hidden on the page")
		}
		y.approve(pr, sha)
		y.pass(0)
		show("merged by user:ada")
		y.write(func(tx *db.Tx) error {
			err := seed.Add(tx, seed.User{ID: "ada", Login: "countess", Email: "ada@example.com"})
			return err
		})
		if text = show("merged by countess"); regexp.MustCompile(`by user:`).MatchString(text) {
			t.Error("the page calls a person by an id")
		}
	})
}
