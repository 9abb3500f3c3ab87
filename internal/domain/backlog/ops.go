package backlog

import (
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "account.backlog_import", Method: "POST", Path: "/v1/admin/accounts/{id}/repos/{owner}/{repo}/backlog-import",
			Group: "Account and platform operator", Rule: policy.Require(policy.AdminAccounts), Status: 202,
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}, {Status: 409, Slug: "import_in_flight"},
				{Status: 409, Slug: "repo_disabled"}},
			Summary: "File an ask for each issue that is open at the repository's host and has none; the account's record says what came of it: issues_kept is false at a host that keeps no issues, as the built-in one",
			Doc:     "Queues the import and answers at once. Each open issue of the code host that has no ask yet becomes one, in the account's name, and triage takes them from there; work begins by itself only on issues whose author may write to the repository. Refused while an import of the repository is queued or running, and for a repository that is not enabled."}, s.request),
	}
}

type requestIn struct {
	ID      string `json:"id" format:"uuid" doc:"id of the account"`
	Owner   string `json:"owner" doc:"owner of the repository"`
	Repo    string `json:"repo" example:"web" doc:"name of the repository, without the owner"`
	Confirm bool   `json:"confirm" doc:"must be true, so that nobody files a backlog by accident"`
}

// Import is an import that will be made.
type Import struct {
	_     struct{} `doc:"An import that will be made."`
	JobID string   `json:"job_id" format:"uuid" doc:"id of the import; the account's audit log names it"`
	State State    `json:"state" enum:"queued,running" doc:"where it stands"`
}

func (s *Service) request(ctx context.Context, in requestIn) (out Import, err error) {
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
		out = Import{JobID: id.New(), State: Queued}
		n, err := insert.Exec(tx, insertArgs{ID: out.JobID, AccountID: in.ID, RepoID: r.ID, RequestedBy: by, CreatedAt: tx.Now})
		if err != nil {
			return err
		}
		if n == 0 { // another request has queued an import meanwhile
			out, err = inFlight.One(tx, in.ID, r.ID)
			return err
		}
		s.queue.Add(tx, out.JobID, due.Entry{Account: in.ID})
		return requestedEvent.Operated(tx, event.Subject{ID: out.JobID, Account: in.ID, RepoID: r.ID}, event.None{},
			map[string]any{"operator": by})
	})
	return out, err
}
