package goal

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// board is a Board in memory.
type board struct {
	all     []Milestone
	err     error
	renamed []string
}

func (b *board) Goals(context.Context, time.Time) (string, []Milestone, error) {
	return "acme/roadmap", b.all, b.err
}

func (b *board) Rename(_ context.Context, number int64, title string) error {
	if b.err == nil {
		b.renamed = append(b.renamed, idOf(number)+" "+title)
	}
	return b.err
}

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func onBoth(t *testing.T, fn func(*testing.T, *Service, *board)) {
	dbtest.RunWith(t, db.Options{Clock: func() time.Time { return now }}, func(t *testing.T, d *db.DB) {
		b := &board{}
		fn(t, New(Needs{DB: d, Board: b}), b)
	})
}

func ago(days float64) *time.Time {
	at := now.Add(-time.Duration(days * float64(24*time.Hour)))
	return &at
}

// operator is the context of an operator, who also has an account.
func operator(t *testing.T) context.Context {
	a := policy.Actor{Credential: policy.Operator, UserID: "op", AccountID: "home", Scopes: policy.Scopes(policy.AdminGoals)}
	return policy.With(db.WithAccount(t.Context(), "home"), a)
}

// A goal is graded by its items, its date, and when one was closed last; the board by
// the items of all goals.
func TestBoard(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, b *board) {
		for _, c := range []struct {
			m      Milestone
			status string
		}{
			{Milestone{Open: true, Items: 3, Done: 1, LastClosed: ago(13.9)}, onTrack},
			{Milestone{Open: true, Items: 3, Done: 1, LastClosed: ago(14)}, stalled},
			{Milestone{Open: true, Items: 3, Done: 1}, stalled},
			{Milestone{Open: true, Items: 3, DueOn: ago(-1)}, notStarted},
			{Milestone{Open: true}, notStarted},
			{Milestone{Open: true, Items: 3, Done: 2, LastClosed: ago(1), DueOn: ago(0.1)}, overdue},
			{Milestone{Open: true, Items: 3, Done: 3, DueOn: ago(5)}, done},
			{Milestone{Items: 3, Done: 1, DueOn: ago(5)}, done},
		} {
			c.m.Number = int64(len(b.all) + 1)
			b.all = append(b.all, c.m)
			if got := c.m.status(now); got != c.status {
				t.Errorf("%+v is %s, want %s", c.m, got, c.status)
			}
		}
		out, err := s.board(operator(t), boardIn{op.FirstPage("account.platform_goals", paging)})
		if err != nil {
			t.Fatal(err)
		}
		if out.Repo != "acme/roadmap" || out.Percent != 100*9/21 || len(out.Data) != len(b.all) || !out.ReadAt.Equal(now) {
			t.Errorf("%+v", out)
		}
		var ids []string
		of := map[string]Goal{}
		for _, g := range out.Data {
			ids, of[g.ID] = append(ids, strings.TrimPrefix(g.ID, "goal_")), g
		}
		first := of["goal_1"]
		if first.Percent != 33 || first.DaysSince == nil || *first.DaysSince != 13 || of["goal_5"].Percent != 0 ||
			of["goal_3"].DaysSince != nil {
			t.Errorf("%+v", out.Data)
		}
		if got := strings.Join(ids, " "); got != "7 8 6 4 1 2 3 5" {
			t.Errorf("the goals are in the order %s, and not by due date", got)
		}
	})
}

// A board that cannot be read says why, by the word and in a sentence.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, b *board) {
		for reason, sentence := range whys {
			b.err = &UnreadableError{Reason: reason, Cause: errors.New("a secret of the host"), After: time.Minute}
			_, read := s.board(operator(t), boardIn{op.FirstPage("account.platform_goals", paging)})
			_, write := s.rename(operator(t), renameIn{ID: "goal_1", Title: "x"})
			for _, err := range []error{read, write} {
				f := fault.From(err)
				if f.Kind != fault.Unavailable || f.Slug != "goal-board-unreadable" || f.Extra["reason"] != reason ||
					f.Detail != sentence || f.RetryAfter != time.Minute {
					t.Errorf("%s: %+v", reason, f)
				}
			}
		}
	})
}

var (
	trail = db.Q[string](`SELECT capability FROM operator_trail`)
	acts  = db.Q[string](`SELECT kind || ' ' || object || ' ' || data FROM audit WHERE account_id IS NULL`)
	home  = db.Q[int64](`SELECT COUNT(*) FROM audit WHERE account_id = 'home'`)
)

// A rename is made at the host and recorded on the platform's chain; one that the host
// refuses is not recorded.
func TestRename(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, b *board) {
		refused := func(in renameIn, kind fault.Kind, slug string) {
			t.Helper()
			if _, err := s.rename(operator(t), in); fault.From(err).Kind != kind || fault.From(err).Slug != slug {
				t.Errorf("%+v: %v", in, err)
			}
		}
		for _, id := range []string{
			"", "12", "goal_", "goal_0", "goal_01", "goal_-1", "goal_1x", "GOAL_1", "goal_" + strings.Repeat("9", 30),
		} {
			refused(renameIn{ID: id, Title: "x"}, fault.Unprocessable, "goal-id-unknown")
		}
		for _, title := range []string{" ", "a\nb", "a\u202eb"} {
			refused(renameIn{ID: "goal_1", Title: title}, fault.Invalid, "invalid")
		}
		b.err = ErrMissing
		refused(renameIn{ID: "goal_9", Title: "x"}, fault.NotFound, "not-found")
		b.err = ErrTaken
		refused(renameIn{ID: "goal_9", Title: "x"}, fault.Conflict, "goal-exists")
		b.err = nil
		out, err := s.rename(operator(t), renameIn{ID: "goal_12", Title: " Boxes update "})
		if err != nil || out.ID != "goal_12" || out.Title != "Boxes update" {
			t.Errorf("%+v %v", out, err)
		}
		if len(b.renamed) != 1 || b.renamed[0] != "goal_12 Boxes update" {
			t.Errorf("renamed %q", b.renamed)
		}
		if _, err := s.board(operator(t), boardIn{op.FirstPage("account.platform_goals", paging)}); err != nil {
			t.Fatal(err)
		}
		err = s.DB.Read(t.Context(), func(tx *db.Tx) error {
			looks, err := trail.All(tx)
			if len(looks) != 1 || looks[0] != "account.platform_goals" {
				t.Errorf("looks: %q", looks)
			}
			done, bad := acts.All(tx)
			if len(done) != 1 || done[0] != `goal.renamed goal_12 {"title":"Boxes update"}` {
				t.Errorf("acts: %q", done)
			}
			n, worse := home.One(tx)
			if n != 0 {
				t.Error("it stands on the account of the operator's token")
			}
			return errors.Join(err, bad, worse)
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
