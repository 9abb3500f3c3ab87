package pull

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
)

// counted is a keeper that counts how often it was asked for a pull request. then is called before the
// answer is given, after it was read.
type counted struct {
	*keeper
	asked atomic.Int64
	then  func()
}

// Pull implements codehost.Forge.
func (c *counted) Pull(ctx context.Context, r codehost.Repo, n int64, t codehost.Tag) (codehost.Pull, codehost.Tag, error) {
	c.asked.Add(1)
	p, tag, err := c.keeper.Pull(ctx, r, n, t)
	if c.then != nil {
		c.then()
	}
	return p, tag, err
}

func (y *yard) count() *counted {
	c := &counted{keeper: &keeper{yard: y}}
	y.Hosts.Set(codehost.BuiltIn, codehost.Sides{Host: y.host, Forge: c})
	return c
}

// theirs is a pull request of a person, of the given second.
func (c *counted) theirs(labels ...string) codehost.Pull {
	p := c.add(codehost.Pull{
		Title: "Mine", HeadRef: "theirs", HeadSHA: c.git("rev-parse", "main"), BaseRef: "main", Author: codehost.User{Login: "bob"},
	})
	p.Labels = labels
	return p
}

func (y *yard) web() (r repo.Ref) {
	y.t.Helper()
	y.write(func(tx *db.Tx) (err error) { r, _, err = repo.ByID(tx, y.repo); return err })
	return r
}

func (y *yard) numbered(number int64) record.Pull {
	y.t.Helper()
	var prID string
	y.write(func(tx *db.Tx) (err error) { prID, err = record.ByNumber.One(tx, "acme", y.repo, number); return err })
	return y.row(prID)
}

func said(action codehost.Action, by string, p codehost.Pull) codehost.PullChanged {
	return codehost.PullChanged{
		Happening: codehost.Happening{Repo: webRepo, Action: action, By: codehost.User{Login: by}, At: p.UpdatedAt}, Pull: p,
	}
}

// The opening and the labels of a new pull request come at the same time, with the same
// second in them: it is recorded once, with the labels that its host has.
func TestFirstSightAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		c := y.count()
		r := y.web()
		for range 12 {
			bare := c.theirs()
			one, both := bare, bare
			one.Labels, both.Labels = []string{"a"}, []string{"a", "b"}
			c.pulls[bare.Number-1] = both
			told := make(chan error, 3)
			for _, e := range []codehost.PullChanged{
				said(codehost.ActionOther, "bob", bare),
				said(codehost.ActionLabeled, "ann", both), said(codehost.ActionLabeled, "ann", one),
			} {
				go func() { told <- y.HostChanged(y.ctx(), r, e) }()
			}
			if err := errors.Join(<-told, <-told, <-told); err != nil {
				t.Fatal(err)
			}
			if pr := y.numbered(bare.Number); !slices.Equal(pr.Labels.V, both.Labels) {
				t.Fatalf("pull request %d has the labels %q", bare.Number, pr.Labels.V)
			}
		}
	})
}

// Two labels of one second are recorded as the host has them, in whichever order their
// deliveries come. What says what is recorded does not have the host asked.
func TestLabelsOfOneSecond(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		c := y.count()
		tell := func(e codehost.PullChanged) {
			t.Helper()
			if err := y.HostChanged(y.ctx(), y.web(), e); err != nil {
				t.Fatal(err)
			}
		}
		bare := c.theirs()
		one, both := bare, bare
		one.Labels, both.Labels = []string{"a"}, []string{"a", "b"}
		c.pulls[0] = both
		tell(said(codehost.ActionOther, "bob", bare))
		tell(said(codehost.ActionLabeled, "ann", both)) // asks
		tell(said(codehost.ActionLabeled, "ann", one))  // asks
		if pr := y.numbered(1); !slices.Equal(pr.Labels.V, both.Labels) || c.asked.Load() != 2 {
			t.Errorf("the labels %q, asked %d times", pr.Labels.V, c.asked.Load())
		}
		tell(said(codehost.ActionLabeled, "ann", both))
		tell(said(codehost.ActionEdited, "yard[bot]", both))
		if c.asked.Load() != 2 {
			t.Errorf("asked %d times about what is recorded", c.asked.Load())
		}
		// While the host is asked, something of the same second is recorded: it is asked again.
		next := both
		next.UpdatedAt, next.Labels = next.UpdatedAt.Add(time.Second), []string{"c"}
		c.pulls[0] = next
		tell(said(codehost.ActionLabeled, "ann", next))
		last := next
		last.Labels = []string{"c", "d"}
		stale := next
		stale.Title = "As it was"
		before := c.asked.Load()
		c.then = func() {
			c.then = nil
			c.pulls[0] = last
			tell(said(codehost.ActionLabeled, "ann", last))
		}
		c.pulls[0] = stale
		tell(said(codehost.ActionEdited, "bob", stale))
		if pr := y.numbered(1); !slices.Equal(pr.Labels.V, last.Labels) || pr.Title != last.Title || c.asked.Load()-before != 3 {
			t.Errorf("%q with the labels %q, asked %d times", pr.Title, pr.Labels.V, c.asked.Load()-before)
		}
	})
}

// What people do to a pull request of ours, before the answer that it is open is recorded,
// is put off; what the server has caused is not.
func TestSaidWhileOpening(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		k := y.keep()
		k.may = map[string]codehost.Permission{"ann": codehost.PermitWrite}
		sha := y.commit("one", "a", "a")
		prID := y.propose("one", sha)
		there, err := k.OpenPull(y.ctx(), webRepo, "", codehost.NewPull{Title: "Do one", Head: "one", Base: "main"})
		if err != nil {
			t.Fatal(err)
		}
		busy := func(err error) bool { _, is := errors.AsType[*codehost.BusyError](err); return is }
		labelled := said(codehost.ActionLabeled, "ann", there)
		if err := y.HostChanged(y.ctx(), y.web(), labelled); !busy(err) {
			t.Errorf("a label: %v", err)
		}
		echo := said(codehost.ActionOther, "yard[bot]", there)
		echo.By.Own = true
		if err := y.HostChanged(y.ctx(), y.web(), echo); err != nil {
			t.Errorf("the echo: %v", err)
		}
		if err := k.reviewed(codehost.ActionSubmitted, "1", "ann", "changes_requested", sha); !busy(err) {
			t.Errorf("a review: %v", err)
		}
		r := y.web()
		y.write(func(tx *db.Tx) error {
			return y.opened(tx, intent.Call[openArgs]{Repo: r, Object: prID}, there, nil)
		})
		if err := k.reviewed(codehost.ActionSubmitted, "1", "ann", "changes_requested", sha); err != nil {
			t.Fatal(err)
		}
		if pr := y.row(prID); pr.Objections != 1 {
			t.Errorf("%d objections", pr.Objections)
		}
	})
}
