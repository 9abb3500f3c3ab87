//go:build !race

package dashboard_test

import (
	"strings"
	"testing"

	"yardmaster/internal/proof/patience"
)

// docile does what it is told.
const docile = `if grep -q "Raise a TypeError" "$YARDMASTER_PROMPT"; then echo TypeError >> code; else echo one > code; fi
git add -A
git commit -qm "Do it"
echo 'Done.' > "$YARDMASTER_REPORT"
`

// A person requests changes beside Approve, sees what was said and that a head answers it,
// and approves that.
func TestRequestChanges(t *testing.T) {
	t.Parallel()
	s := open(t, "{version: 1, merge: {mode: ask}, review: {mode: off}}\n", map[string]string{"docile": docile})
	task := s.task("docile", "Write code")
	var pr struct{ ID, State string }
	patience.Until(s.T, "it is asked about", func() bool {
		var q struct {
			Data []struct {
				PRID string `json:"pr_id"`
			}
		}
		s.into(&q, 200, "GET", "/v1/approvals", "")
		if len(q.Data) > 0 {
			pr.ID = q.Data[0].PRID
		}
		return pr.ID != ""
	})
	b := s.enter(1440, 900)
	b.Go("/ui/prs/" + pr.ID)
	heads(b, "Write code")
	b.Button("Request changes")
	b.Fill("What is to be changed", "Raise a TypeError. "+hostile)
	b.Press("Ctrl+Enter")
	b.See("Requested. It holds the merge until you approve, or take it back.")
	b.Go("/ui/prs/" + pr.ID + "?tab=conversation")
	b.See("requests changes")
	b.See("answered by")
	b.Fill("Comment", "Thank you.")
	b.Press("Ctrl+Enter")
	b.See("Thank you.")
	content(b)
	b.Go("/ui/prs/" + pr.ID)
	b.Until("what was answered is asked about", `[...document.querySelectorAll("#decision button.main")].some(e => e.innerText.startsWith("Approve"))`)
	b.Click("#decision button.main")
	patience.Until(s.T, "it is merged", func() bool {
		s.into(&pr, 200, "GET", "/v1/prs/"+pr.ID, "")
		return pr.State == "merged"
	})
	var rounds struct{ Data []struct{ Title string } }
	s.into(&rounds, 200, "GET", "/v1/tasks?filter=kind:babysit", "")
	if len(rounds.Data) != 1 || !strings.HasPrefix(rounds.Data[0].Title, "Answer the reviewers") {
		t.Errorf("rounds of %s: %+v", task, rounds)
	}
	clean(t, b)
}
