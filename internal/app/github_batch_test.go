package app

import (
	"fmt"
	process "os/exec"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/github"
	"yardmaster/internal/proof/patience"
)

// batched is a policy with the server's own merge queue, whose check fails for two.md if
// one.md is there as well.
const batched = `version: 1
review: {mode: off}
merge: {mode: ask, queue: batch}
checks: {command: "if test -e one.md && test -e two.md; then echo two.md does not go with one.md; exit 3; fi"}
`

// happened are the events of a kind, oldest first.
func (f *atGitHub) happened(kind string) (all []map[string]any) {
	f.t.Helper()
	var page struct {
		Data []struct {
			Kind string
			Data map[string]any
		}
	}
	decode(f.t, f.send("GET", "/v1/audit/events?per_page=200", f.owner, "").want(200), &page)
	for _, e := range page.Data {
		if e.Kind == kind {
			all = append(all, e.Data)
		}
	}
	slices.Reverse(all)
	return all
}

// With merge.queue: batch heads are checked together on a branch at GitHub before they are
// merged there. Of three that were approved while another was checked the second does not
// go with the first: it is thrown out with the log, and an agent repairs it; the first and
// the third are merged.
func TestOwnQueueAtGitHub(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			f := place{yard: boot(t, e), files: shopWith(batched)}.connect(t)
			defer f.tell()
			names := []string{"zero", "one", "two", "three"}
			for _, name := range names {
				f.send("PUT", "/v1/templates/"+name, f.owner, fmt.Sprintf(`{"agent": "command", "command": ["sh", "-c",
					"date >> %s.md && git add -A && git commit -qm 'Add %s' && echo Done."]}`, name, name)).want(200)
				f.send("POST", "/v1/tasks", f.owner, fmt.Sprintf(
					`{"repo": "acme/shop", "title": "Add %s", "problem": "There is no %s.", "template": "%s"}`, name, name, name)).want(202)
			}
			var token struct{ Token string }
			decode(t, f.send("POST", "/v1/runners/enrollments", f.owner, `{}`).want(201), &token)
			f.box(token.Token)
			built := map[string]bool{}
			build := func(sha string) { // as workflows of the repository do
				if sha != "" && !built[sha] {
					built[sha] = true
					f.shop.Check(f.gh.ActionsApp(), sha, "build", "success")
				}
			}
			candidates := func() []string {
				out, err := process.CommandContext(t.Context(), "git", "-C", f.shop.Dir(), "for-each-ref", "--format=%(objectname)",
					"refs/heads/svc/queue/").Output()
				if err != nil {
					t.Fatal(err)
				}
				return strings.Fields(string(out))
			}
			pulls := map[string]shownPull{}
			read := func() bool {
				var page struct {
					Data []struct {
						shownPull
						Title   string
						HeadRef string `json:"head_ref"`
					}
				}
				decode(t, f.send("GET", "/v1/repos/acme/shop/prs", f.owner, "").want(200), &page)
				for _, p := range page.Data {
					pulls[strings.TrimPrefix(p.Title, "Add ")] = p.shownPull
					build(f.shop.Head(p.HeadRef))
				}
				for _, sha := range candidates() {
					build(sha)
				}
				return len(page.Data) == len(names)
			}
			patience.Until(f.t, "all are asked about", func() bool {
				return read() && !slices.ContainsFunc(names, func(n string) bool { return pulls[n].Pending == nil })
			})
			// The base moves, so that what comes first is checked with it, and the others wait.
			f.shop.Commit(f.ann, "main", "By hand", map[string]string{"hand.md": "Mine.\n"})
			patience.Until(f.t, "the server knows the new base", func() bool {
				return strings.Contains(fmt.Sprint(f.happened("repo.pushed")), f.shop.Head("main"))
			})
			// No check runs until all are approved: the first is in a batch by then, and the others wait together.
			drain := func(body string) {
				var boxes struct{ Data []struct{ ID string } }
				decode(t, f.send("GET", "/v1/runners", f.owner, "").want(200), &boxes)
				f.send("POST", "/v1/runners/"+boxes.Data[0].ID+"/drain", f.owner, body).want(200)
			}
			drain(`{}`)
			heads := map[string]string{}
			for _, name := range names {
				heads[name] = pulls[name].HeadSHA
				f.send("POST", "/v1/prs/"+pulls[name].ID+"/approve-pending", f.owner,
					fmt.Sprintf(`{"head_sha": %q}`, pulls[name].HeadSHA)).want(200)
				patience.Until(f.t, "the first is in a batch", func() bool { return len(f.happened("merge.batch_begun")) > 0 })
			}
			drain(`{"resume": true}`)
			patience.Until(f.t, "all but one are merged", func() bool {
				return read() && pulls["zero"].State == "merged" && pulls["one"].State == "merged" && pulls["three"].State == "merged"
			})
			there := map[string]*github.Pull{}
			for _, name := range names {
				there[name] = f.shop.Pull(pulls[name].Number)
			}
			if there["two"].Merged() != "" || pulls["two"].State != "open" {
				t.Errorf("the second is %+v", pulls["two"])
			}
			for _, name := range []string{"zero", "one", "three"} {
				if sha := there[name].Merged(); sha == "" || sha != *pulls[name].MergeSHA || !f.has(f.shop.Head("main"), heads[name]) {
					t.Errorf("%s is merged as %q there, %v here", name, sha, pulls[name].MergeSHA)
				}
			}
			together := slices.ContainsFunc(f.happened("merge.batch_begun"), func(e map[string]any) bool {
				return slices.Equal(e["pr_ids"].([]any), []any{pulls["one"].ID, pulls["two"].ID, pulls["three"].ID})
			})
			if !together {
				t.Errorf("the batches were %v", f.happened("merge.batch_begun"))
			}
			patience.Until(f.t, "an agent is to repair it", func() bool {
				var page struct{ Data []struct{ ID, Title string } }
				decode(t, f.send("GET", "/v1/tasks?filter=kind:babysit", f.owner, "").want(200), &page)
				if len(page.Data) == 0 {
					return false
				}
				said := f.send("GET", "/v1/tasks/"+page.Data[0].ID, f.owner, "").want(200)
				return strings.HasSuffix(page.Data[0].Title, fmt.Sprintf("#%d, which fails together with main", there["two"].Number)) &&
					strings.Contains(string(said.body), "two.md does not go with one.md")
			})
			left := f.happened("merge.unqueued")
			if len(left) != 1 || left[0]["pr_id"] != pulls["two"].ID || left[0]["why"] == "" {
				t.Errorf("these left the queue: %v", left)
			}
			patience.Until(f.t, "no branch of the queue is left at GitHub", func() bool {
				return len(candidates()) == 0
			})
		})
	}
}
