package issue

import (
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/fault"
)

// filed is an issue that ann stands behind, with its ask.
func (y *yard) filed(number int64) row {
	y.t.Helper()
	y.may["ann"] = codehost.PermitWrite
	y.tells(event1(codehost.ActionLabeled, "ann", y.bug(number, "yardmaster")))
	y.pass()
	r, _ := y.at(number)
	if r.Triage != Filed {
		y.t.Fatalf("%+v", r)
	}
	return r
}

func (y *yard) moved(o Outcome) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error { return y.AskMoved(tx, o) })
	y.pass()
}

// What a person decides about an issue ends its triage: what triage makes of the ask then
// changes nothing, until a person gives the ask back.
func TestPersonsDecide(t *testing.T) {
	t.Parallel()
	onBoth(t, labelled, func(y *yard) {
		y.webhooks = []string{"coder"}
		for i, c := range []struct {
			triage string
			decide func(issueID string) (Issue, error)
		}{
			{HandedOff, func(issueID string) (Issue, error) {
				out, err := y.handoff(y.ctx(), handoffIn{ID: issueID, Reason: "x", WebhookRef: new("coder")})
				return out.Issue, err
			}},
			{Escalated, func(issueID string) (Issue, error) {
				out, err := y.escalate(y.ctx(), escalateIn{ID: issueID, Category: "unclear", Reason: "x"})
				return out.Issue, err
			}},
		} {
			r := y.filed(int64(i + 1))
			now := func() row {
				r, _ := y.at(*r.Number)
				return r
			}
			if i, err := c.decide(r.ID); err != nil || string(i.Triage) != c.triage {
				y.t.Fatalf("%s: %+v, %v", c.triage, i, err)
			}
			if len(y.decided) != i+1 || !strings.HasPrefix(y.decided[i], *r.AskID) {
				y.t.Errorf("%s leaves triage of the ask going: %q", c.triage, y.decided)
			}
			for _, triage := range []string{Triaged, Dropped, Escalated} {
				y.moved(Outcome{AskID: *r.AskID, Triage: triage, EscalationID: "of triage", Tasks: 1})
				if is := now(); is.Triage != c.triage || is.EscalationID != nil && *is.EscalationID == "of triage" {
					y.t.Errorf("%s becomes %s", c.triage, is.Triage)
				}
			}
			y.moved(Outcome{AskID: *r.AskID, Triage: Filed})
			if is := now(); is.Triage != Filed {
				y.t.Errorf("%s, given back to triage: %s", c.triage, is.Triage)
			}
		}
	})
}

// A person who labels an issue anew that was dropped, escalated or handed off has it triaged
// again, once for each label; an old label, one that comes twice, and one of a program do not.
func TestLabelledAnew(t *testing.T) {
	t.Parallel()
	onBoth(t, labelled, func(y *yard) {
		r := y.filed(1)
		first := event1(codehost.ActionLabeled, "ann", y.bug(1, "yardmaster"))
		y.moved(Outcome{AskID: *r.AskID, Triage: Escalated, EscalationID: "question"})
		y.tells(first)
		y.pass()
		if now, _ := y.at(1); now.Triage != Escalated || len(y.asks) != 1 {
			y.t.Fatalf("a label that came twice: %+v", now)
		}
		y.now = y.now.Add(time.Hour)
		byBot := event1(codehost.ActionLabeled, "bot", y.bug(1, "yardmaster"))
		byBot.By.Bot = true
		y.tells(byBot)
		edit := y.bug(1, "yardmaster", "x")
		y.tells(event1(codehost.ActionEdited, "ann", edit))
		y.pass()
		if now, _ := y.at(1); now.Triage != Escalated {
			y.t.Fatalf("begun by a program, or an edit: %+v", now)
		}
		y.now = y.now.Add(time.Hour)
		anew := event1(codehost.ActionLabeled, "ann", y.bug(1, "yardmaster", "yardmaster-escalated"))
		y.tells(anew)
		y.tells(anew)
		y.pass()
		now, _ := y.at(1)
		if now.Triage != Filed || len(y.asks) != 2 || *now.AskID != "ask2" || !slices.Equal(y.ended, []string{"question"}) ||
			y.asks["ask2"].Key != y.asks["ask1"].Key+"/2" {
			y.t.Fatalf("labelled anew: %+v, %d asks, ended %q", now, len(y.asks), y.ended)
		}
		y.moved(Outcome{AskID: "ask1", Triage: Triaged, Tasks: 1})
		if now, _ := y.at(1); now.Triage != Filed {
			y.t.Errorf("the ask before decides: %+v", now)
		}
		y.moved(Outcome{AskID: "ask2", Triage: Triaged, Tasks: 1})
		last := y.edits[len(y.edits)-1]
		if len(y.said) != 2 || !slices.Equal(last.AddLabels, []string{"yardmaster-triaged"}) ||
			!slices.Contains(last.RemoveLabels, "yardmaster-escalated") {
			y.t.Errorf("said %q, %+v", y.said, last)
		}
		y.now = y.now.Add(time.Hour)
		y.tells(event1(codehost.ActionLabeled, "ann", y.bug(1, "yardmaster")))
		y.pass()
		if len(y.asks) != 2 {
			y.t.Error("an issue of which work came is triaged again")
		}
	})
}

// The label with which an issue is opened has a delivery of its own, in the same second. That
// begins nothing anew, however fast triage was.
func TestOpenedWithLabel(t *testing.T) {
	t.Parallel()
	onBoth(t, all, func(y *yard) {
		i := y.bug(1, "yardmaster")
		y.tells(event1(codehost.ActionOther, "bob", i))
		y.pass()
		y.moved(Outcome{AskID: "ask1", Triage: Escalated, EscalationID: "question"})
		y.tells(event1(codehost.ActionLabeled, "bob", i))
		y.pass()
		if r, _ := y.at(1); r.Triage != Escalated || len(y.asks) != 1 {
			y.t.Errorf("%+v, %d asks", r, len(y.asks))
		}
	})
}

// An issue follows the ask that somebody files about it, whatever became of it before.
func TestFollow(t *testing.T) {
	t.Parallel()
	onBoth(t, labelled, func(y *yard) {
		r := y.filed(1)
		ref := func() (out Ref, err error) {
			y.write(func(tx *db.Tx) error { out, err = y.ForAsk(tx, r.ID); return nil })
			return out, err
		}
		if got, err := ref(); err != nil || got.AskID != "ask1" || got.RepoID != "r1" || got.Repo != "acme/web" || !got.Enabled {
			y.t.Errorf("beside a pending ask: %+v, %v", got, err)
		}
		y.moved(Outcome{AskID: "ask1", Triage: Escalated, EscalationID: "question"})
		if got, err := ref(); err != nil || got.AskID != "" || got.URL != r.URL {
			y.t.Errorf("escalated: %+v, %v", got, err)
		}
		y.write(func(tx *db.Tx) error { return y.Follow(tx, r.ID, "mine") })
		if now, _ := y.at(1); now.Triage != Filed || *now.AskID != "mine" || now.EscalationID != nil ||
			!slices.Equal(y.ended, []string{"question"}) {
			y.t.Errorf("%+v, ended %q", now, y.ended)
		}
		y.moved(Outcome{AskID: "mine", Triage: Dropped})
		closed := y.bug(1, "yardmaster")
		closed.Open, closed.UpdatedAt = false, y.now.Add(time.Minute)
		y.tells(event1(codehost.ActionOther, "ann", closed))
		if _, err := ref(); fault.From(err).Slug != "issue-closed" {
			y.t.Errorf("closed: %v", err)
		}
	})
}

// A second reading that is due is not dropped by a decision, nor by the filing of an ask.
func TestReadingStaysDue(t *testing.T) {
	t.Parallel()
	onBoth(t, labelled, func(y *yard) {
		y.webhooks = []string{"coder"}
		i := y.bug(1)
		y.tells(event1(codehost.ActionOther, "bob", i))
		tie := i
		tie.Title = "Tie"
		y.tells(event1(codehost.ActionEdited, "bob", tie))
		y.there[1] = tie
		r, _ := y.at(1)
		if _, err := y.handoff(y.ctx(), handoffIn{ID: r.ID, Reason: "x", WebhookRef: new("coder")}); err != nil {
			y.t.Fatal(err)
		}
		if now, _ := y.at(1); !now.Reading {
			y.t.Errorf("handed off: %+v", now)
		}
		y.pass()
		if now, _ := y.at(1); now.Title != "Tie" || now.Triage != HandedOff {
			y.t.Errorf("read: %+v", now)
		}
	})
}

const auto = "version: 1\nissues: {triage: all, webhook_ref: coder, handoff: auto}\n"

// Where the policy file hands issues off, those that a trusted person stands behind go to its
// webhook instead of triage; those of strangers do not. If the webhook does not take them, a
// person is asked.
func TestHandedOffByPolicy(t *testing.T) {
	t.Parallel()
	onBoth(t, auto, func(y *yard) {
		y.webhooks = []string{"coder"}
		y.may["ann"], y.may["bob"] = codehost.PermitWrite, codehost.PermitRead
		opened := func(number int64, by string) row {
			i := y.bug(number)
			i.Author.Login = by
			y.tells(event1(codehost.ActionOther, by, i))
			y.pass()
			r, _ := y.at(number)
			return r
		}
		if r := opened(1, "ann"); r.Triage != HandedOff || r.AskID != nil || len(y.asks) != 0 {
			y.t.Errorf("of a maintainer: %+v", r)
		}
		if r := opened(2, "bob"); r.Triage != Filed || y.asks[*r.AskID].Trusted {
			y.t.Errorf("of a stranger: %+v", r)
		}
		y.write(func(tx *db.Tx) error {
			filed, err := y.Import(tx, "r1", "operator", y.bug(1), true)
			if filed {
				y.t.Error("an issue that a webhook has is filed from the backlog")
			}
			return err
		})
		y.obstacle = NotHealthy
		if r := opened(3, "ann"); r.Triage != Escalated || len(y.raised) != 1 || y.raised[0].Category != notHandedOff ||
			!strings.Contains(y.raised[0].Reason, "unhealthy") || y.raised[0].IssueID != r.ID {
			y.t.Errorf("to an unhealthy webhook: %+v, %+v", r, y.raised)
		}
		y.webhooks = nil
		if r := opened(4, "ann"); r.Triage != Escalated ||
			!strings.Contains(y.raised[1].Reason, `"coder", which is the name of no webhook`) {
			y.t.Errorf("to no webhook: %+v, %+v", r, y.raised)
		}
		if !slices.Equal(y.said, []string{"#1 " + handedText, "#3 " + askedText, "#4 " + askedText}) {
			y.t.Errorf("said %q", y.said)
		}
	})
}

// A hand-off is queued, sent, and delivered or failed; the issue shows the newest.
func TestHandoffMoves(t *testing.T) {
	t.Parallel()
	onBoth(t, labelled, func(y *yard) {
		y.webhooks = []string{"coder"}
		y.tells(event1(codehost.ActionOther, "bob", y.bug(1)))
		r, _ := y.at(1)
		shown := func() *HandoffView {
			out, err := y.get(y.ctx(), idIn{ID: r.ID})
			if err != nil {
				y.t.Fatal(err)
			}
			return out.Handoff
		}
		if shown() != nil {
			y.t.Error("a hand-off of an issue that was never handed off")
		}
		out, err := y.handoff(y.ctx(), handoffIn{ID: r.ID, Reason: "Ours knows it.", WebhookRef: new("coder")})
		if err != nil || out.Issue.Handoff == nil || out.Issue.Handoff.State != Queued {
			y.t.Fatalf("%+v, %v", out, err)
		}
		for _, c := range []struct{ state, why string }{{Sent, ""}, {Failed, "It is gone."}, {Sent, ""}, {Delivered, ""}} {
			y.write(func(tx *db.Tx) error { return y.HandoffMoved(tx, out.HandoffID, c.state, c.why) })
			h := shown()
			if string(h.State) != c.state || h.MovedAt == nil || (h.Failure != nil) != (c.why != "") || h.WebhookRef != "coder" {
				y.t.Errorf("after %s: %+v", c.state, h)
			}
		}
		if told := kinds(y, r.ID); !slices.Equal(told, []string{"issue.handoff", "issue.handoff_failed", "issue.handoff_delivered"}) {
			y.t.Errorf("told %q", told)
		}
		y.write(func(tx *db.Tx) error { return y.HandoffMoved(tx, "unknown", Delivered, "") })
	})
}

var kindsOf = db.Q[string](`SELECT kind FROM audit WHERE account_id = $1 AND object = $2 ORDER BY seq`)

func kinds(y *yard, object string) (out []string) {
	y.t.Helper()
	y.write(func(tx *db.Tx) (err error) {
		out, err = kindsOf.All(tx, "acme", object)
		return err
	})
	return out
}

// The issue of work that is merged is closed once, with the pull requests by name; one that a
// person has taken out of triage since is not.
func TestClosedOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, labelled, func(y *yard) {
		y.filed(1)
		y.moved(Outcome{AskID: "ask1", Triage: Triaged, Plan: true})
		by := []Done{{"r1", "#12", "https://here/12"}, {"r2", "#3", "https://there/3"}, {"r1", "#13", "https://here/13"}}
		for range 2 {
			y.write(func(tx *db.Tx) error { return y.Merged(tx, "ask1", false, by) })
			y.pass()
		}
		if n := len(y.said); n != 2 || y.said[1] != "#1 Done in #12, https://there/3 and #13." {
			y.t.Errorf("said %q", y.said)
		}
		other := y.filed(2)
		y.moved(Outcome{AskID: *other.AskID, Triage: Dropped})
		if _, err := y.escalate(y.ctx(), escalateIn{ID: other.ID, Category: "unclear", Reason: "x"}); err != nil {
			y.t.Fatal(err)
		}
		before := len(y.said)
		y.write(func(tx *db.Tx) error { return y.Merged(tx, *other.AskID, false, by) })
		y.pass()
		if len(y.said) != before {
			y.t.Errorf("closed, although a person is asked: %q", y.said)
		}
	})
}

// A sweep may see a label before its delivery, and before that of the opening, which has the same
// time at the host. What is read again for that does not have the ask filed the sooner, as one that
// nobody who may write stands behind.
func TestLabelIsWaitedFor(t *testing.T) {
	t.Parallel()
	onBoth(t, labelled, func(y *yard) {
		y.may["ann"] = codehost.PermitWrite
		i := y.bug(1, "yardmaster")
		y.there[1] = i
		y.open = append(y.open, i)
		y.write(func(tx *db.Tx) error { return y.Walk(tx, repo.Ref{ID: "r1", AccountID: "acme"}) })
		y.pass()
		opened := i
		opened.Labels = nil
		y.tells(event1(codehost.ActionOther, "bob", opened))
		y.pass()
		if r, _ := y.at(1); r.AskID != nil || !r.Reading || !r.Filing {
			y.t.Fatalf("before the label's delivery: %+v", r)
		}
		y.tells(event1(codehost.ActionLabeled, "ann", i))
		y.pass()
		if r, _ := y.at(1); r.AskID == nil || !y.asks[*r.AskID].Trusted || r.Reading {
			y.t.Errorf("after it: %+v of %+v", r, y.asks)
		}
	})
}
