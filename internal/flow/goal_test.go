package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	issues  []codehost.Issue
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

// IssuesSince lists what changed from a time on, the oldest change first, 100 a page.
func (m *milestones) IssuesSince(
	_ context.Context, _ codehost.Repo, since time.Time, open bool, cursor string,
) ([]codehost.Issue, string, error) {
	if m.pages++; open {
		return nil, "", errors.New("asked for open ones alone")
	}
	from := 0
	if cursor != "" {
		var err error
		if from, err = strconv.Atoi(cursor); err != nil {
			return nil, "", err
		}
	}
	var changed []codehost.Issue
	for _, i := range m.issues {
		if !i.UpdatedAt.Before(since) {
			changed = append(changed, i)
		}
	}
	slices.SortStableFunc(changed, func(a, b codehost.Issue) int { return a.UpdatedAt.Compare(b.UpdatedAt) })
	end := min(from+100, len(changed))
	if end < len(changed) {
		cursor = strconv.Itoa(end)
	} else {
		cursor = ""
	}
	return changed[from:end], cursor, nil
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
		closed := func(milestone string, ago time.Duration) {
			at := now.Add(-ago)
			forge.issues = append(forge.issues, codehost.Issue{Milestone: milestone, ClosedAt: &at, UpdatedAt: at})
		}
		const day = 24 * time.Hour
		closed("One", 40*day)
		closed("One", 30*day)
		closed("One", 70*day)
		closed("", 10*day)
		closed("Two", goal.LookBack+day)
		name, all, err := board.Goals(t.Context(), now)
		if err != nil || name != "acme/roadmap" || len(all) != 2 {
			t.Fatalf("%s %+v %v", name, all, err)
		}
		if one := all[0]; one.Number != 3 || !one.Open || one.Items != 3 || one.Done != 1 || one.LastClosed == nil ||
			!one.LastClosed.Equal(now.Add(-30*day)) {
			t.Errorf("%+v", one)
		}
		if two := all[1]; two.Open || two.Items != 5 || two.LastClosed != nil {
			t.Errorf("%+v", two)
		}
		// In a busy repository it is the newest close that counts, however much is older.
		for range 2 * mostPages * 100 {
			closed("", 20*day)
		}
		closed("One", 2*day)
		_, all, err = board.Goals(t.Context(), now)
		if err != nil || all[0].LastClosed == nil || !all[0].LastClosed.Equal(now.Add(-2*day)) {
			t.Errorf("in a busy repository: %+v, %v", all, err)
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
