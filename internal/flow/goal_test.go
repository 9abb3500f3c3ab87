package flow

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/goal"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/seed"
)

// milestones is a forge that keeps milestones alone.
type milestones struct {
	codehost.Forge
	err     error
	renamed []string
	pages   int
}

func (m *milestones) Can(c codehost.Capability) bool { return c == codehost.KeepIssues }

func (m *milestones) Milestones(_ context.Context, r codehost.Repo, _ codehost.Tag) ([]codehost.Milestone, codehost.Tag, error) {
	if r.ID != "77" {
		return nil, "", fmt.Errorf("asked about %+v", r)
	}
	return []codehost.Milestone{
		{Number: 3, Title: "One", Open: true, OpenIssues: 2, Closed: 1}, {Number: 4, Title: "Two", Closed: 5},
	}, "", m.err
}

func (m *milestones) IssuesSince(
	_ context.Context, _ codehost.Repo, since time.Time, open bool, cursor string,
) ([]codehost.Issue, string, error) {
	if m.pages++; open {
		return nil, "", errors.New("asked for open ones alone")
	}
	at := func(days int) *time.Time { t := since.AddDate(0, 0, days); return &t }
	if cursor == "" {
		return []codehost.Issue{{Milestone: "One", ClosedAt: at(50)}, {Milestone: "One", ClosedAt: at(20)}, {ClosedAt: at(80)}}, "next", nil
	}
	return []codehost.Issue{{Milestone: "One", ClosedAt: at(60)}, {Milestone: "Two", ClosedAt: at(-1)}, {Milestone: "Two"}}, "", nil
}

func (m *milestones) RenameMilestone(_ context.Context, _ codehost.Repo, once codehost.Once, n int64, title string) error {
	m.renamed = append(m.renamed, fmt.Sprint(n, " ", title, " ", once != ""))
	return m.err
}

// The milestones of the configured repository are the goals, and every failure of the
// host has a reason.
func TestGoalBoard(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		at := codehost.Repo{Host: "github:github.com", ID: "77", Owner: "acme", Name: "roadmap"}
		err := d.Write(db.WithAccount(t.Context(), "acme"), func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Account{ID: "acme"}); err != nil {
				return err
			}
			_, err := repo.Install(tx, at, "main", false)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		forge := &milestones{}
		board := GoalBoard{DB: d, Place: "github:github.com/acme/roadmap", Hosts: codehost.NewHosts(map[string]codehost.Sides{
			"github:github.com": {Host: &builtin.Host{}, Forge: forge}, codehost.BuiltIn: {Host: &builtin.Host{}, Forge: builtin.Forge{}},
		})}
		now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		name, all, err := board.Goals(t.Context(), now)
		if err != nil || name != "acme/roadmap" || len(all) != 2 || forge.pages != 2 {
			t.Fatalf("%s %+v %v, %d pages", name, all, err, forge.pages)
		}
		if one := all[0]; one.Number != 3 || !one.Open || one.Items != 3 || one.Done != 1 || one.LastClosed == nil ||
			!one.LastClosed.Equal(now.Add(-goal.LookBack).AddDate(0, 0, 60)) {
			t.Errorf("%+v", one)
		}
		if two := all[1]; two.Open || two.Items != 5 || two.LastClosed != nil {
			t.Errorf("%+v", two)
		}
		if err := board.Rename(t.Context(), 3, "Uno"); err != nil || len(forge.renamed) != 1 || forge.renamed[0] != "3 Uno true" {
			t.Errorf("%q %v", forge.renamed, err)
		}

		for name, c := range map[string]struct {
			place, want string
			err         error
		}{
			"none":         {"", goal.NotConfigured, nil},
			"another host": {"github:ghe.example/acme/roadmap", goal.NotConnected, nil},
			"built-in":     {"builtin/acme/roadmap", goal.NoMilestones, nil},
			"unknown":      {"github:github.com/acme/other", goal.NotInstalled, nil},
			"removed":      {board.Place, goal.NotInstalled, codehost.ErrGone},
			"permission":   {board.Place, goal.Forbidden, &codehost.ForbiddenError{Permission: "issues: read"}},
			"busy":         {board.Place, goal.Busy, &codehost.BusyError{After: time.Minute, Cause: errors.New("502")}},
			"odd":          {board.Place, goal.Failed, errors.New("odd")},
		} {
			b := board
			b.Place, forge.err = c.place, c.err
			_, _, read := b.Goals(t.Context(), now)
			write := b.Rename(t.Context(), 3, "Tre")
			for _, err := range []error{read, write} {
				e, ok := errors.AsType[*goal.UnreadableError](err)
				if !ok || e.Reason != c.want || e.Reason == goal.Busy && e.After != time.Minute {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		for cause, want := range map[*fault.Error]error{codehost.ErrNotFound: goal.ErrMissing, codehost.ErrExists: goal.ErrTaken} {
			if forge.err = cause; !errors.Is(board.Rename(t.Context(), 3, "Tre"), want) {
				t.Errorf("%v is not %v", cause, want)
			}
		}
	})
}
