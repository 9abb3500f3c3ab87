package review

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/fault"
)

// desk is a host that takes reviews.
type desk struct {
	codehost.NoForge
	refuses error
}

// Can implements codehost.Forge.
func (desk) Can(c codehost.Capability) bool { return c == codehost.KeepPulls }

// PostReview implements codehost.Forge.
func (d desk) PostReview(context.Context, codehost.Repo, codehost.Once, int64, codehost.NewReview) (codehost.Review, error) {
	return codehost.Review{}, d.refuses
}

// pages implements Pages.
type pages struct{}

func (pages) OfPull(prID string) string { return "https://yard.example/" + prID }

// A review is being posted until the host has taken or refused it, which is told.
func TestPostingEnds(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		var ended []string
		PostingEnded.On(y.DB, func(tx *db.Tx, prID string) error {
			tx.AfterCommit(func() { ended = append(ended, prID) })
			return nil
		})
		for _, refuses := range []error{nil, codehost.ErrHeadMoved} {
			r := y.ref()
			y.Hosts.Set(codehost.BuiltIn, codehost.Sides{Host: must(y.Hosts.Of(r.HostRepo())), Forge: desk{refuses: refuses}})
			intents := intent.New(intent.Needs{
				DB: y.DB, Due: duetest.New(y.DB, y.hub), Hosts: y.Hosts, Logger: slog.New(slog.DiscardHandler),
			})
			intent.LineMoved.On(y.DB, intents.FollowLine)
			host := NewAtHost(HostNeeds{DB: y.DB, Hosts: y.Hosts, Intents: intents, Page: pages{}})
			posting := func() (ok bool) {
				y.write(func(tx *db.Tx) (err error) { _, ok, err = PostingSince(tx, r.ID, y.pr.ID); return err })
				return ok
			}
			y.write(func(tx *db.Tx) error {
				return host.PostReview(tx, r, y.pr, Posting{RunID: "run", HeadSHA: "abc", Findings: []Finding{{ID: "f", File: "a"}}})
			})
			if !posting() {
				t.Error("it is not being posted before the host was asked")
			}
			duetest.Pass(y.ctx(), t, intents.Due)
			if posting() || !slices.Equal(ended, []string{y.pr.ID}) {
				t.Errorf("refused with %v: it is being posted: %v, told %q", refuses, posting(), ended)
			}
			ended = nil
		}
	})
}

// Findings that the host refuses for good are not counted as posted: the review says why they
// are not there, and so does the record. They hold the merge all the same, and are shown here.
func TestPostingRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refuses error
		note    string
	}{
		"the head moved": {codehost.ErrHeadMoved, "the branch had a newer head before the code host took it; its findings are shown here alone"},
		"its places":     {codehost.ErrAnchorRefused, "the code host did not take it; its findings are shown here alone"},
		"permission": {fault.New(fault.Forbidden, "", "The App may not write there."),
			"the code host did not take it: The App may not write there; its findings are shown here alone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, y *yard) {
				r := y.ref()
				intents := intent.New(intent.Needs{
					DB: y.DB, Due: duetest.New(y.DB, y.hub), Hosts: y.Hosts, Logger: slog.New(slog.DiscardHandler),
				})
				intent.LineMoved.On(y.DB, intents.FollowLine)
				host := NewAtHost(HostNeeds{DB: y.DB, Hosts: y.Hosts, Intents: intents, Page: pages{}})
				y.Hosts.Set(codehost.BuiltIn, codehost.Sides{Host: must(y.Hosts.Of(r.HostRepo())), Forge: desk{refuses: c.refuses}})
				y.commit("a.txt", numbered(20))
				y.reviewed(defect("a.txt", 5, "high", "It is wrong."))
				y.wantRun(Completed, VerdictFailure, 1)
				y.write(func(tx *db.Tx) error { return host.PostReview(tx, r, y.pr, y.posted[0]) })
				duetest.Pass(y.ctx(), t, intents.Due)
				y.wantRun(Completed, VerdictFailure, 0)
				if f := y.only(); y.last().Note != c.note || f.State != Posted || y.told.Findings != 1 {
					t.Errorf("%q, %+v, %+v", y.last().Note, f, y.told)
				}
				y.write(func(tx *db.Tx) error {
					rows, err := said.All(tx)
					if !slices.Contains(rows, "review.refused") {
						t.Errorf("%v", rows)
					}
					return err
				})
			})
		})
	}
}

// A review whose pass is held is told as held, and as under way when the pass goes on.
func TestHeldReview(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.commit("a.txt", numbered(40))
		y.head()
		y.pass(0)
		for _, held := range []bool{true, false} {
			y.held = map[string]bool{"task-1": held}
			y.write(func(tx *db.Tx) error { return y.Moved(tx, TaskMoved{TaskID: "task-1", Held: true}) })
			if !y.told.Running || y.told.Held != held {
				t.Errorf("held %v: told %+v", held, y.told)
			}
		}
	})
}
