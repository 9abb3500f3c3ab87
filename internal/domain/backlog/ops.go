package backlog

import (
	"context"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
)

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "account.backlog_import", Method: "POST", Path: "/v1/admin/accounts/{id}/repos/{owner}/{repo}/backlog-import",
			Group: "Account and platform operator", Rule: policy.Require(policy.AdminAccounts), Status: 202,
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}, {Status: 409, Slug: "import_in_flight"}, {Status: 409, Slug: "repo_disabled"}},
			Summary: "File an ask for each issue that is open at the repository's host and has none; the account's record says what came of it"}, s.request),
	}
}

type requestIn struct {
	ID      string `json:"id" doc:"of the account"`
	Owner   string `json:"owner"`
	Repo    string `json:"repo"`
	Confirm bool   `json:"confirm" doc:"must be true"`
}

// BacklogImport is an import that will be made.
type BacklogImport struct {
	JobID string `json:"job_id"`
	State State  `json:"state" enum:"queued,running"`
}

func (s *Service) request(ctx context.Context, in requestIn) (out BacklogImport, err error) {
	if !in.Confirm {
		return out, fault.Field("confirm", "must be true")
	}
	by := policy.From(ctx).Label()
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, ok, err := repoByName.Maybe(tx, in.ID, in.Owner, in.Repo)
		switch {
		case err != nil:
			return err
		case !ok:
			return fault.Missing("repository")
		case !r.Enabled:
			return fault.Reason("repo_disabled", "The repository "+r.Owner+"/"+r.Name+" is not enabled.")
		}
		if _, ok, err = inFlight.Maybe(tx, in.ID, r.ID); err != nil {
			return err
		} else if ok {
			return fault.Reason("import_in_flight", "An import for the repository is queued or running.")
		}
		out = BacklogImport{id.New(), Queued}
		n, err := insert.Exec(tx, out.JobID, in.ID, r.ID, by, tx.Now)
		if err != nil {
			return err
		}
		if n == 0 { // a twin was queued at this very moment; it is as good
			out, err = inFlight.One(tx, in.ID, r.ID)
			return err
		}
		s.Hub.Notify(tx, event.BacklogTopic)
		return event.Record(tx, event.Change{Kind: "backlog.import_requested", Object: out.JobID, Account: in.ID, RepoID: r.ID, Data: map[string]any{"operator": by}})
	})
	return out, err
}
