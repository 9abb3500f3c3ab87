package pull

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/pull/merge"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
)

const checked = "version: 1\nchecks: {command: make check}\n"

var (
	zero = 0
	one  = 1
)

func TestApprovedHeadIsMerged(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.wantTold("task-svc/a", "awaits")
		y.refused("no_pending_action", pr, "approve", sha)
		y.checked(y.check[0], &zero)
		y.wantTold("task-svc/a", "awaits review")

		var waiting struct{ Data []Approval }
		y.call(200, "GET", "/v1/approvals", "", &waiting)
		if len(waiting.Data) != 1 || waiting.Data[0].PRID != pr || waiting.Data[0].HeadSHA != sha || waiting.Data[0].Repo != "acme/web" {
			t.Fatalf("what waits for a person: %+v", waiting)
		}
		if c := waiting.Data[0].Cost; c == nil || *c != "1.20" {
			t.Errorf("it has cost %v", c)
		}
		y.write(func(tx *db.Tx) error {
			q, ok, err := y.QuestionByID(tx, waiting.Data[0].ID)
			if err != nil || !ok || q.Cost == nil || *q.Cost != "1.20" {
				t.Errorf("a mail says that it has cost %v: %v, %v", q.Cost, ok, err)
			}
			return nil
		})
		y.approve(pr, sha)
		y.refused("no_pending_action", pr, "approve", sha)
		y.refused("no_pending_action", pr, "skip", sha)
		y.pass(0)

		got := y.pr(pr)
		if got.State != record.Merged || got.MergeSHA == nil || got.MergedBy == nil || *got.MergedBy != "user:ada" ||
			got.PendingAction != nil ||
			got.Number != 1 {
			t.Errorf("after the merge: %+v", got)
		}
		y.wantActions(pr, "applied")
		y.wantTold("task-svc/a", "merged")
		y.wantTold(pr, "event")
		if head, err := y.host.Head(y.ctx(), webRepo, "main"); err != nil || head != *got.MergeSHA {
			t.Errorf("main is at %s (%v), want the merge %s", head, err, *got.MergeSHA)
		}
		duetest.Pass(y.ctx(), t, y.Intents.Due)
		if _, err := y.host.Head(y.ctx(), webRepo, "svc/a"); !errors.Is(err, codehost.ErrNotFound) {
			t.Errorf("the merged branch: %v, want it gone", err)
		}
		y.refused("pr_not_open", pr, "approve", sha)
		y.write(func(tx *db.Tx) error {
			kinds, err := audited.All(tx, "acme")
			for _, want := range []string{"pr.opened", "ci.passed", "approval.asked", "approval.approved", "pr.merged"} {
				if !slices.Contains(kinds, want) {
					t.Errorf("the audit trail lacks %s: %v", want, kinds)
				}
			}
			return err
		})
	})
}

// After a crash between the merge of the host and our own commit a node takes the action
// again; the second merge answers the commit of the first.
func TestMergeIsRepeatedHarmlessly(t *testing.T) {
	t.Parallel()
	for _, method := range []codehost.Method{codehost.MethodMerge, codehost.MethodSquash} {
		t.Run(string(method), func(t *testing.T) {
			onBoth(t, func(t *testing.T, y *yard) {
				y.policy("version: 1\nmerge: {mode: auto, method: " + string(method) + "}\n")
				sha := y.commit("svc/a", "a", "1\n")
				pr := y.propose("svc/a", sha)
				first, err := y.host.Merge(y.ctx(), webRepo,
					codehost.MergeOptions{Base: "main", Head: "svc/a", HeadSHA: sha, Method: method, Title: "before the crash",
						Author: y.Bot, Committer: y.Bot})
				if err != nil {
					t.Fatal(err)
				}
				if err := y.host.DeleteBranch(y.ctx(), webRepo, "svc/a", sha); err != nil {
					t.Fatal(err)
				}
				y.pass(0)
				got := y.pr(pr)
				if got.State != record.Merged || got.MergeSHA == nil || *got.MergeSHA != first || *got.MergedBy != "policy" {
					t.Errorf("merged again: %+v, want %s", got, first)
				}
				y.wantActions(pr, "applied")
			})
		})
	}
}

func TestHeadMoves(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		first := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", first)
		y.checked(y.check[0], &zero)
		second := y.commit("svc/a", "a", "2\n")
		y.moved("svc/a", second)
		y.moved("svc/a", second) // reported twice
		if len(y.check) != 2 {
			t.Fatalf("%d checks, want one a head", len(y.check))
		}
		if p := y.refused("head_moved", pr, "approve", first); p["current_head_sha"] != second {
			t.Errorf("the refusal names the head %v, want %s", p["current_head_sha"], second)
		}
		y.wantActions(pr, "stale")
		y.refused("no_pending_action", pr, "approve", second)
		if got := y.pr(pr); got.Checks != record.ChecksPending || got.HeadSHA != second {
			t.Errorf("after the move: %+v", got)
		}
		y.checked(y.check[0], &one) // the check of another head
		if got := y.pr(pr); got.Checks != record.ChecksPending {
			t.Errorf("the check of an old head counts: %s", got.Checks)
		}

		// The first head comes back and is checked again; the new result counts.
		y.push("+" + first + ":refs/heads/svc/a")
		y.moved("svc/a", first)
		if len(y.check) != 3 {
			t.Fatalf("%d checks, want a third", len(y.check))
		}
		y.checked(y.check[2], &zero)
		if got := y.pr(pr); got.Checks != record.ChecksPassed || got.PendingAction == nil || got.PendingAction.HeadSHA != first {
			t.Errorf("back at the first head: %+v", got)
		}
		y.write(func(tx *db.Tx) error {
			all, err := checksOf.All(tx, pr)
			if got := strings.Join(all, " "); got != "passed queued" {
				t.Errorf("the checks are %q, want one row a head", got)
			}
			return err
		})

		y.reported("svc/a", codehost.ZeroSHA)
		if got := y.pr(pr); got.HeadSHA != first || got.State != record.Open {
			t.Errorf("after the branch was deleted: %+v", got)
		}
		y.moved("svc/other", second) // no pull request of that branch
	})
}

// Only the head that was approved is merged.
func TestPushAfterApproval(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.approve(pr, sha)
		evil := y.commit("svc/a", "a", "evil\n") // not reported yet
		before := y.git("rev-parse", "main")
		y.pass(0)
		y.wantActions(pr, "stale pending") // it was found to have moved
		if head, err := y.host.Head(y.ctx(), webRepo, "main"); err != nil || head != before {
			t.Errorf("main moved to %s: %v", head, err)
		}
		y.moved("svc/a", evil)
		y.refused("head_moved", pr, "approve", sha)
		y.approve(pr, evil)
		y.pass(0)
		if got := y.pr(pr); got.State != record.Merged {
			t.Errorf("the new head was approved: %+v", got)
		}
	})
}

func TestDeletedBranchEndsTheAction(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.approve(pr, sha)
		y.push(":svc/a")
		y.pass(0)
		y.wantActions(pr, "stale")
	})
}

func TestMergeConflict(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		sha := y.commit("svc/a", "README", "theirs\n")
		pr := y.propose("svc/a", sha)
		y.commit("main", "README", "ours\n")
		y.approve(pr, sha)
		y.pass(0)
		y.wantActions(pr, "failed")
		y.wantTold("task-svc/a", "awaits")
		if got := y.pr(pr); got.State != record.Open || got.Mergeable != "conflict" {
			t.Errorf("after the conflict: %+v", got)
		}
	})
}

// A merge that the host fails to make is tried again, later each time, until merge.MaxTries.
func TestHostFailure(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.host.merge = errors.New("disk /secret/path is on fire")
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		other := y.commit("svc/b", "b", "1\n")
		second := y.propose("svc/b", other)
		y.approve(pr, sha)
		last := time.Duration(0)
		for try := range merge.MaxTries - 1 {
			y.pass(0)
			y.write(func(tx *db.Tx) error {
				at, err := dueIn.One(tx, pr)
				wait := db.Time(at).Sub(tx.Now)
				if err == nil && wait <= last {
					t.Errorf("try %d waits %s, after %s", try+1, wait, last)
				}
				last = wait
				return err
			})
			at := db.Time(y.clock.Load()).Add(merge.Retries.After(try + 1)).Truncate(time.Millisecond)
			if a := y.pr(pr).PendingAction; a == nil || a.Error == nil || !strings.Contains(*a.Error, "log") ||
				strings.Contains(*a.Error, "secret") || a.RetryAt == nil || !a.RetryAt.Equal(at) || last < merge.Retries.After(try+1) {
				t.Errorf("try %d, waits %v: %+v", try+1, last, a)
			}
			y.pass(last / 2) // not due yet
			y.clock.Add(last.Microseconds() - (last / 2).Microseconds())
		}
		y.wantActions(pr, "approved")
		y.pass(time.Second)
		y.wantActions(pr, "failed")
		y.wantTold("task-svc/a", "stuck: push_rejected")

		// The branch may stay; the merge counts.
		y.host.merge, y.host.remove = nil, errors.New("no")
		y.approve(second, other)
		y.pass(0)
		if got := y.pr(second); got.State != record.Merged {
			t.Errorf("a branch that cannot be deleted undoes the merge: %+v", got)
		}
	})
}

// A merge of which the last answer was lost counts, without a push or a person.
func TestLastAnswerOfAMergeIsLost(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.host.merge = errors.New("no room on the disk")
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.approve(pr, sha)
		for range merge.MaxTries - 1 {
			y.pass(time.Hour)
		}
		y.wantActions(pr, "approved")
		y.host.merge, y.host.lost = nil, errors.New("the connection was reset")
		y.pass(time.Hour)
		y.pass(0)
		y.wantActions(pr, "failed")
		y.wantState(pr, record.Merged)
	})
}

// While one head is merged, the next is pushed and asked about: a merged pull request has
// no open question.
func TestHeadMovesDuringTheMerge(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.approve(pr, sha)
		d := y.ordered(pr)
		y.moved("svc/a", y.commit("svc/a", "a", "2\n"))
		y.wantActions(pr, "stale pending")
		carriedOut := func(tx *db.Tx) error { return y.Merged(tx, repo.Ref{}, d, record.Made{SHA: strings.Repeat("d", 40)}) }
		y.write(carriedOut)
		y.wantActions(pr, "applied stale")
		if got := y.pr(pr); got.State != record.Merged || got.PendingAction != nil || got.HeadSHA != sha ||
			got.Checks != record.ChecksNone {
			t.Errorf("after the merge: %+v", got)
		}
		y.write(carriedOut)
	})
}

func TestQuestionsExpire(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.clock.Add(record.AskFor.Microseconds())
		y.refused("no_pending_action", pr, "approve", sha) // before and after a pass
		y.pass(0)
		y.wantActions(pr, "expired")
		y.refused("no_pending_action", pr, "approve", sha)
	})
}

func TestSkip(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.call(200, "POST", "/v1/prs/"+pr+"/skip-pending", `{"head_sha": "`+sha+`"}`, nil)
		y.refused("no_pending_action", pr, "approve", sha)
		y.pass(0)
		if got := y.pr(pr); got.State != record.Open {
			t.Errorf("skipped, and yet %s", got.State)
		}
	})
}

func TestPolicyDecides(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy("version: 1\nmerge: {mode: never}\n")
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.wantActions(pr, "")
		y.policy("version: 1\nmerge: {mode: auto, delete_branch: false}\n")
		sha = y.commit("svc/b", "b", "1\n")
		pr = y.propose("svc/b", sha)
		y.pass(0)
		if got := y.pr(pr); got.State != record.Merged {
			t.Errorf("mode auto leaves it %s", got.State)
		}
		if _, err := y.host.Head(y.ctx(), webRepo, "svc/b"); err != nil {
			t.Errorf("delete_branch is false: %v", err)
		}
	})
}

func TestFailedChecks(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.checked(y.check[0], &one)
		if got := y.pr(pr); got.Checks != record.ChecksFailed || got.PendingAction != nil {
			t.Errorf("after a failed check: %+v", got)
		}
		sha = y.commit("svc/b", "b", "1\n")
		pr = y.propose("svc/b", sha)
		y.checked(y.check[1], nil)
		if got := y.pr(pr); got.Checks != record.ChecksFailed {
			t.Errorf("after a lost check: %+v", got)
		}
		y.checked("no-such-task", &zero)
	})
}

// An account sees and changes nothing of another one.
func TestOtherAccounts(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		for _, known := range []string{pr, "no-such-id"} {
			y.callAs("rival", 404, "GET", "/v1/prs/"+known, "", nil)
			y.callAs("rival", 404, "POST", "/v1/prs/"+known+"/approve-pending", `{"head_sha": "`+sha+`"}`, nil)
			y.callAs("rival", 404, "POST", "/v1/prs/"+known+"/skip-pending", `{"head_sha": "`+sha+`"}`, nil)
		}
		y.callAs("rival", 404, "GET", "/v1/repos/acme/web/prs", "", nil)
		var page struct{ Data []any }
		for _, path := range []string{"/v1/approvals", "/v1/prs/pending-approvals"} {
			if y.callAs("rival", 200, "GET", path, "", &page); len(page.Data) != 0 {
				t.Errorf("%s shows a stranger %v", path, page.Data)
			}
		}
		y.wantActions(pr, "pending")
	})
}

func TestPages(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		for i := range 5 {
			y.clock.Add(1)
			branch := fmt.Sprintf("svc/%d", i)
			y.propose(branch, y.commit(branch, branch, "1\n"))
		}
		for _, path := range []string{"/v1/approvals?per_page=2", "/v1/repos/acme/web/prs?per_page=2&filter=state:open"} {
			var numbers []int64
			for next := ""; ; {
				var page struct {
					Data       []struct{ Number int64 }
					NextCursor *string `json:"next_cursor"`
				}
				y.call(200, "GET", path+next, "", &page)
				for _, row := range page.Data {
					numbers = append(numbers, row.Number)
				}
				if page.NextCursor == nil {
					break
				}
				next = "&cursor=" + *page.NextCursor
			}
			if !slices.Equal(numbers, []int64{5, 4, 3, 2, 1}) {
				t.Errorf("%s walks %v", path, numbers)
			}
		}
	})
}

// One of several simultaneous decisions succeeds; each of several simultaneous proposals
// gets its own number.
func TestRaces(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		const callers = 24
		results := make([]int, callers)
		var group sync.WaitGroup
		for i := range callers {
			group.Go(func() {
				verb := []string{"approve", "skip"}[i%2]
				results[i], _ = y.answer("acme", "POST", "/v1/prs/"+pr+"/"+verb+"-pending", `{"head_sha": "`+sha+`"}`)
			})
		}
		group.Wait()
		slices.Sort(results)
		if results[0] != 200 || results[1] != 409 || results[callers-1] != 409 {
			t.Errorf("%d callers are answered %v, want one 200", callers, results)
		}

		event.Detach(y.DB)
		errs := make([]error, callers)
		for i := range callers {
			group.Go(func() {
				errs[i] = y.DB.Write(y.ctx(), func(tx *db.Tx) error {
					r, _, err := repo.ByID(tx, y.repo)
					if err != nil {
						return err
					}
					// Every branch is proposed twice.
					_, err = y.Propose(tx, r, Proposal{TaskID: "t", Title: "x", Branch: fmt.Sprint("svc/x", i/2), HeadSHA: sha,
						BaseSHA: sha})
					return err
				})
			})
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
		var page struct{ Data []Request }
		if y.call(200, "GET", "/v1/repos/acme/web/prs", "", &page); len(page.Data) != 1+callers/2 {
			t.Errorf("%d pull requests, want %d", len(page.Data), 1+callers/2)
		}
	})
}
