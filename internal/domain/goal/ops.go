package goal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/client/inert"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

const group = "Account and platform operator"

// Ops lists the capabilities of the board.
func (s *Service) Ops() []op.Op {
	away := op.Refusal{Status: 503, Slug: "goal-board-unreadable"}
	return []op.Op{
		op.New(op.Row{
			ID: "account.platform_goals", Method: "GET", Path: "/v1/admin/goals", Group: group,
			Rule:    policy.Require(policy.AdminReadPlat),
			Paging:  paging,
			Refuses: []op.Refusal{away},
			Summary: "The goals of the platform, graded from what their code host says now",
			Doc: "The milestones of the configured repository (goals-repo), open and closed. When they cannot be " +
				"read, reason says why: not_configured, host_not_connected, not_installed, no_milestones, forbidden, host_busy " +
				"or host_failed.",
		}, s.board),
		op.New(op.Row{
			ID: "account.platform_goal_rename", Method: "PATCH", Path: "/v1/admin/goals/{id}", Group: group,
			Rule: policy.Require(policy.AdminGoals),
			Refuses: []op.Refusal{
				{Status: 404, Slug: "not-found"}, {Status: 409, Slug: "goal-exists"}, {Status: 422, Slug: "goal-id-unknown"}, away,
			},
			Summary: "Give a goal another title at its code host",
			Doc:     "Nothing is stored here but the record of the act. An id that is not of the form of the board's is 422, one that the host does not have 404.",
		}, s.rename),
	}
}

// Goal is a goal on the board.
type Goal struct {
	_         struct{}   `doc:"A goal of the platform." schema:"Goal"`
	ID        string     `json:"id" example:"goal_12" doc:"id of the goal"`
	Title     string     `json:"title" example:"Boxes update themselves" doc:"as the code host has it"`
	URL       string     `json:"url" format:"uri" example:"https://github.com/acme/roadmap/milestone/12" doc:"where people find it"`
	Status    Status     `json:"status" example:"on_track" doc:"done: closed, or all items are; overdue: its due date is past; not_started: no item is closed; stalled: none was closed for 14 days"`
	Percent   int        `json:"percent" example:"40" doc:"how many of its items are closed, in percent, rounded down"`
	Items     int        `json:"items" example:"10" doc:"its issues and pull requests"`
	Done      int        `json:"items_done" example:"4" doc:"those that are closed"`
	DaysSince *int64     `json:"days_since_last_close" example:"3" doc:"whole days since an item was closed; null: none was within 90 days"`
	DueOn     *time.Time `json:"due_on" example:"null" doc:"when it is due; null: it has no date"`
}

// Goals is the board.
type Goals struct {
	_          struct{}  `doc:"The goals of the platform, as their code host has them." schema:"GoalBoard"`
	Repo       string    `json:"repo" example:"acme/roadmap" doc:"the repository whose milestones they are, owner/name"`
	Percent    int       `json:"percent" example:"55" doc:"of the items of all goals, in percent, rounded down: a goal counts as much as it has items"`
	ReadAt     time.Time `json:"read_at" doc:"when the code host was asked"`
	Data       []Goal    `json:"data" doc:"by due date, those without one last"`
	NextCursor *string   `json:"next_cursor" example:"null" doc:"send it back as cursor for the page after this one; null: nothing follows"`
}

type boardIn struct{ op.PageIn }

var paging = &op.Paging{Default: 100, Max: 200}

// place is the key of a goal on the board.
func place(g Goal) []string {
	due := "none" // behind every number
	if g.DueOn != nil {
		due = fmt.Sprintf("%019d", g.DueOn.UnixMicro())
	}
	number, _ := numberOf(g.ID)
	return []string{due, fmt.Sprintf("%019d", number)}
}

func (s *Service) board(ctx context.Context, in boardIn) (out Goals, err error) {
	var now time.Time
	err = event.ReadRecorded(ctx, s.DB, event.OperatorRead{Capability: "account.platform_goals"}, func(tx *db.Tx) error {
		now = tx.Now
		return nil
	})
	if err != nil {
		return Goals{}, err
	}
	repo, all, err := s.Board.Goals(ctx, now)
	if err != nil {
		return Goals{}, unreadable(err)
	}
	goals := make([]Goal, len(all))
	closed, items := 0, 0
	for i, m := range all {
		g := Goal{
			ID: idOf(m.Number), Title: m.Title, URL: m.URL, Status: Status(m.status(now)), Percent: percent(m.Done, m.Items),
			Items: m.Items,
			Done:  m.Done, DueOn: m.DueOn,
		}
		if m.LastClosed != nil {
			days := max(0, int64(now.Sub(*m.LastClosed)/(24*time.Hour)))
			g.DaysSince = &days
		}
		closed, items = closed+m.Done, items+m.Items
		goals[i] = g
	}
	page := op.Cut(in.PageIn, goals, place)
	return Goals{Repo: repo, ReadAt: now, Percent: percent(closed, items), Data: page.Data, NextCursor: page.NextCursor}, nil
}

type renameIn struct {
	ID    string `json:"id" example:"goal_12" maxLength:"64" doc:"id of the goal"`
	Title string `json:"title" minLength:"1" maxLength:"200" example:"Boxes update themselves" doc:"its new title, one line"`
}

// Renamed is the answer of account.platform_goal_rename.
type Renamed struct {
	_     struct{} `doc:"A goal and its title, as the code host has it now." schema:"RenamedGoal"`
	ID    string   `json:"id" example:"goal_12" doc:"id of the goal"`
	Title string   `json:"title" doc:"its title"`
}

func (s *Service) rename(ctx context.Context, in renameIn) (out Renamed, err error) {
	number, ok := numberOf(in.ID)
	if !ok {
		return out, fault.New(fault.Unprocessable, "goal-id-unknown", "The board has no ids like this one.")
	}
	title := strings.TrimSpace(in.Title)
	if title == "" || inert.Line(title) != title {
		return out, fault.Field("title", "must be one line of text")
	}
	switch err := s.Board.Rename(ctx, number, title); {
	case errors.Is(err, ErrMissing):
		return out, fault.Missing("goal")
	case errors.Is(err, ErrTaken):
		return out, fault.Reason("goal-exists", "Another goal has this title.")
	case err != nil:
		return out, unreadable(err)
	}
	// If this fails, the call can be repeated: the rename has no effect then, and is
	// recorded.
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		out = Renamed{ID: in.ID, Title: title}
		return renamedEvent.Record(tx, event.Subject{ID: in.ID}, renamedData{Title: title})
	})
	return out, err
}
