package tracker

import (
	"context"
	"errors"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/linear"
	"yardmaster/internal/policy"
)

const group = "Sources"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.ReadWebhooks), policy.Require(policy.WriteWebhooks)
	return []op.Op{
		op.New(op.Row{ID: "integration.linear_get", Method: "GET", Path: "/v1/integrations/linear", Group: group, Rule: read,
			Summary: "Where tasks with the sink linear go",
			Doc:     "connected is false until integration.linear_set has given a key. error says why Linear refuses the key."}, s.get),
		op.New(op.Row{ID: "integration.linear_set", Method: "PUT", Path: "/v1/integrations/linear", Group: group, Rule: write,
			Refuses: []op.Refusal{{Status: 422, Slug: "linear-refused"}, {Status: 503, Slug: "linear-busy"}},
			Summary: "Give the API key by which tasks with the sink linear become issues of a team",
			Doc: "Linear is asked first whether it takes the key, and whether the key may see the team. The key is sealed and never shown. " +
				"Issues that waited for a key that works are opened."}, s.set),
		op.New(op.Row{ID: "integration.linear_delete", Method: "DELETE", Path: "/v1/integrations/linear", Group: group, Rule: write,
			Summary: "Forget the API key of Linear; again is no error",
			Doc:     "Tasks with the sink linear are refused again. Issues that are yet to be opened fail; those that were stay there."}, s.delete),
		op.New(op.Row{ID: "integration.linear_issues", Method: "GET", Path: "/v1/integrations/linear/issues", Group: group,
			Rule:    policy.Require(policy.ReadTasks),
			Paging:  &op.Paging{Default: 50, Max: 200, Filters: map[string][]string{"state": {Wanted, Opened, Failed}}},
			Summary: "The issues that tasks with the sink linear became, newest first, for 180 days",
			Doc:     "wanted: yet to be opened, and error says why the last try failed; failed: Linear refused it, or did not answer for a day."}, s.issues),
	}
}

// Connection is where tasks with the sink linear go.
type Connection struct {
	_           struct{}   `doc:"The connection of an account to Linear." schema:"LinearConnection"`
	Connected   bool       `json:"connected" doc:"whether there is an API key"`
	Team        *string    `json:"team" example:"ENG" doc:"key of the team whose issues tasks become; null: not connected"`
	TeamName    *string    `json:"team_name" example:"Engineering" doc:"name of the team; null: not connected"`
	Viewer      *string    `json:"viewer" example:"Yard Bot" doc:"name of the user there whose key it is; null: not connected"`
	Error       *string    `json:"error" example:"null" doc:"why Linear refuses the key; null: it does not"`
	ConnectedBy *string    `json:"connected_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who gave the key; null: not connected"`
	ConnectedAt *time.Time `json:"connected_at" doc:"when; null: not connected"`
}

func (r row) wire() Connection {
	return Connection{
		Connected: true, Team: &r.TeamKey, TeamName: &r.TeamName, Viewer: &r.ViewerName, Error: r.Error, ConnectedBy: &r.ConnectedBy,
		ConnectedAt: &r.ConnectedAt,
	}
}

func (s *Service) get(ctx context.Context, _ op.None) (out Connection, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, ok, err := byAccount.Maybe(tx, tx.Account)
		if out = (Connection{}); ok {
			out = r.wire()
		}
		return err
	})
	return out, err
}

type setIn struct {
	APIKey string `json:"api_key" minLength:"16" maxLength:"500" example:"lin_api_example0123" doc:"a personal API key, or an access token of OAuth; it is sealed and never shown again"`
	Team   string `json:"team" minLength:"1" maxLength:"100" example:"ENG" doc:"key or id of the team"`
}

func (s *Service) set(ctx context.Context, in setIn) (out Connection, err error) {
	key := strings.TrimSpace(in.APIKey)
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return out, fault.Field("api_key", "must be printable ASCII without spaces")
	}
	viewer, err := s.Linear.Viewer(ctx, key)
	if _, busy := errors.AsType[*linear.BusyError](err); busy {
		return out, fault.New(fault.Unavailable, "linear-busy", "Linear does not answer, or limits the key. Try again.").After(time.Minute).Because(err)
	} else if err != nil {
		return out, fault.New(fault.Unprocessable, "linear-refused", "Linear refuses the API key.").Because(err)
	}
	var team linear.Team
	var known []string
	for _, t := range viewer.Teams {
		if t.ID == in.Team || strings.EqualFold(t.Key, in.Team) {
			team = t
		}
		known = append(known, t.Key)
	}
	if team.ID == "" {
		return out, fault.Field("team", "is no team that the key may see: "+strings.Join(known, ", "))
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		_, err := put.Exec(tx, putArgs{
			AccountID: tx.Account, Sealed: s.Ring.Seal(purpose(tx.Account), []byte(key)), TeamID: team.ID, TeamKey: team.Key,
			TeamName: team.Name,
			ViewerID: viewer.ID, ViewerName: viewer.Name, ConnectedBy: policy.From(ctx).Label(), ConnectedAt: tx.Micros(),
		})
		if err != nil {
			return err
		}
		if err := s.retryNow(tx); err != nil {
			return err
		}
		r, err := byAccount.One(tx, tx.Account)
		if err != nil {
			return err
		}
		out = r.wire()
		return connectedEvent.Record(tx, event.Subject{ID: tx.Account}, connectedData{Team: team.Key})
	})
	return out, err
}

// Deleted is the answer of integration.linear_delete.
type Deleted struct {
	_       struct{} `doc:"What integration.linear_delete did." schema:"LinearDeleted"`
	Deleted bool     `json:"deleted" doc:"false: there was no key"`
}

func (s *Service) delete(ctx context.Context, _ op.None) (out Deleted, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		n, err := drop.Exec(tx, tx.Account)
		if out = (Deleted{Deleted: n > 0}); err != nil || n == 0 {
			return err
		}
		if err := s.retryNow(tx); err != nil { // they fail, and people hear of it
			return err
		}
		return removedEvent.Record(tx, event.Subject{ID: tx.Account}, event.None{})
	})
	return out, err
}

// Issue is an issue at Linear as the API shows it.
type Issue struct {
	_          struct{}   `doc:"An issue that a task with the sink linear became." schema:"LinearIssue"`
	ID         string     `json:"id" format:"uuid" doc:"id of the issue, here and at Linear"`
	Repo       *string    `json:"repo" example:"acme/web" doc:"repository that the task was for; null: the account has it no more"`
	Title      string     `json:"title" doc:"its title"`
	State      State      `json:"state" example:"opened" doc:"wanted: it is yet to be opened; failed: Linear refused it, or did not answer for a day"`
	Identifier *string    `json:"identifier" example:"ENG-7" doc:"what Linear calls it; null until it was opened"`
	URL        *string    `json:"url" example:"https://linear.app/acme/issue/ENG-7" doc:"its page; null until it was opened"`
	Error      *string    `json:"error" example:"null" doc:"why the last try failed; null if none did, or it was opened since"`
	CreatedBy  string     `json:"created_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who sent the task"`
	CreatedAt  time.Time  `json:"created_at" doc:"when it was sent"`
	EndedAt    *time.Time `json:"ended_at" doc:"when it was opened, or failed; null until then"`
}

type issuesIn struct{ op.PageIn }

func (s *Service) issues(ctx context.Context, in issuesIn) (page op.Page[Issue], err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		rows, err := list(tx, in.PageIn)
		if err != nil {
			return err
		}
		var ids []string
		for _, r := range rows {
			ids = append(ids, r.RepoID)
		}
		names := map[string]string{}
		if len(ids) > 0 {
			all, err := repo.ByIDsAnywhere(tx, ids)
			if err != nil {
				return err
			}
			for _, r := range all {
				if r.AccountID == tx.Account {
					names[r.ID] = r.FullName()
				}
			}
		}
		page = op.ShowPage(in.PageIn, rows, func(r issueRow) []string { return op.TimeKey(r.CreatedAt, r.ID) }, func(r issueRow) Issue {
			return Issue{
				ID: r.ID, Repo: db.NullText(names[r.RepoID]), Title: r.Title, State: State(r.State), Identifier: r.Identifier, URL: r.URL,
				Error:     r.Error,
				CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt, EndedAt: r.EndedAt,
			}
		})
		return nil
	})
	return page, err
}
