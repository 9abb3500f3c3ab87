package pull

import (
	"context"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/fault"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
)

const group = "Pull requests"

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "pr.pending_approvals", Method: "GET", Path: "/v1/approvals", Group: group, Rule: policy.Require(policy.ReadPRs), Paging: &op.Paging{Default: 50, Max: 200},
			Summary: "Every question that waits for a person, newest first"}, s.approvals),
		op.New(op.Row{ID: "pr.pending_approvals_summary", Method: "GET", Path: "/v1/prs/pending-approvals", Group: group, Rule: policy.Require(policy.ReadPRs), Paging: &op.Paging{Default: 20, Max: 100, Bounded: true},
			Summary: "The newest questions that wait for a person"}, s.summary),
		op.New(op.Row{ID: "pr.list", Method: "GET", Path: "/v1/repos/{owner}/{repo}/prs", Group: group, Rule: policy.Require(policy.ReadPRs),
			Paging:  &op.Paging{Default: 50, Max: 200, Filters: map[string][]string{"state": {Open, Merged, Closed}}},
			Summary: "A repository's pull requests, newest first"}, s.list),
		op.New(op.Row{ID: "pr.get", Method: "GET", Path: "/v1/prs/{id}", Group: group, Rule: policy.Require(policy.ReadPRs),
			Summary: "One pull request"}, s.get),
		op.New(op.Row{ID: "pr.approve_pending", Method: "POST", Path: "/v1/prs/{id}/approve-pending", Group: group, Rule: policy.Require(policy.WritePRs),
			Refuses: []op.Refusal{{Status: 409, Slug: "head_moved"}, {Status: 409, Slug: "pr_not_open"}, {Status: 409, Slug: "no_pending_action"}},
			Summary: "Approve what is asked about the head named"}, s.approve),
		op.New(op.Row{ID: "pr.skip_pending", Method: "POST", Path: "/v1/prs/{id}/skip-pending", Group: group, Rule: policy.Require(policy.WritePRs),
			Refuses: []op.Refusal{{Status: 409, Slug: "head_moved"}, {Status: 409, Slug: "pr_not_open"}, {Status: 409, Slug: "no_pending_action"}},
			Summary: "Decline what is asked about the head named"}, s.skip),
		op.New(op.Row{ID: "pr.rearm_babysit", Method: "POST", Path: "/v1/prs/{id}/rearm-babysit", Group: group, Rule: policy.Require(policy.WritePRs), Status: 202,
			Refuses: []op.Refusal{{Status: 409, Slug: "pr_not_open"}, {Status: 409, Slug: "repo_disabled"}},
			Summary: "Let agents repair a pull request again whose rounds are spent"}, s.rearm),
	}
}

func (a actionRow) wire() PendingAction {
	out := PendingAction{
		ID: a.ID, PRID: a.PRID, Kind: a.Kind, HeadSHA: a.HeadSHA, State: a.State, Error: a.Error, DecidedBy: a.DecidedBy,
		RequestedAt: a.RequestedAt, DecidedAt: a.DecidedAt, ExpiresAt: a.ExpiresAt,
	}
	if a.Protected != nil {
		out.Protected = &a.Protected.V
	}
	out.Question = out.Protected.question()
	return out
}

func (r row) wire(pending map[string]actionRow) PullRequest {
	out := PullRequest{
		ID: r.ID, Repo: r.Owner + "/" + r.Name, Number: r.Number, Title: r.Title, URL: r.URL, State: r.State,
		HeadRef: r.HeadRef, BaseRef: r.BaseRef, HeadSHA: r.HeadSHA, BaseSHA: r.BaseSHA, MergeSHA: r.MergeSHA,
		Mergeable: r.Mergeable, Checks: r.Checks, TaskID: r.TaskID, AuthorKind: r.AuthorKind,
		Babysit: r.babysitting(), CreatedAt: r.CreatedAt, MergedAt: r.MergedAt, MergedBy: r.MergedBy,
	}
	if r.PatchID != "" {
		out.PatchID = &r.PatchID
	}
	if a, ok := pending[r.ID]; ok {
		w := a.wire()
		out.PendingAction = &w
	}
	return out
}

// Approval is a question that waits for a person, with what it is about.
type Approval struct {
	PendingAction
	Repo   string `json:"repo"`
	Number int64  `json:"number"`
	Title  string `json:"title"`
	URL    string `json:"url"`
}

func (r approvalRow) wire() Approval {
	return Approval{r.actionRow.wire(), r.Owner + "/" + r.Name, r.Number, r.Title, r.URL}
}

type pageIn struct{ op.PageIn }

func (s *Service) asked(ctx context.Context, p op.PageIn) (rows []approvalRow, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = approvals(tx, p)
		return err
	})
	return rows, err
}

func (s *Service) approvals(ctx context.Context, in pageIn) (op.Page[Approval], error) {
	rows, err := s.asked(ctx, in.PageIn)
	p := op.NewPage(in.PageIn, rows, func(r approvalRow) []string { return op.TimeKey(r.RequestedAt, r.ID) })
	out := op.Page[Approval]{Data: make([]Approval, len(p.Data)), NextCursor: p.NextCursor}
	for i, r := range p.Data {
		out.Data[i] = r.wire()
	}
	return out, err
}

func (s *Service) summary(ctx context.Context, in pageIn) (op.Bounded[Approval], error) {
	rows, err := s.asked(ctx, in.PageIn)
	all := make([]Approval, len(rows))
	for i, r := range rows {
		all[i] = r.wire()
	}
	return op.NewBounded(in.PageIn, all), err
}

type listIn struct {
	Owner string `json:"owner"`
	Repo  string `json:"repo"`
	op.PageIn
}

func (s *Service) list(ctx context.Context, in listIn) (op.Page[PullRequest], error) {
	var rows []row
	var pending map[string]actionRow
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		r, ok, err := repo.ByName(tx, in.Owner, in.Repo)
		if err != nil {
			return err
		}
		if !ok || !r.Enabled {
			return fault.Missing("enabled repository")
		}
		if rows, err = list(tx, r.ID, in.PageIn); err != nil {
			return err
		}
		ids := make([]string, len(rows))
		for i := range rows {
			ids[i] = rows[i].ID
		}
		pending, err = pendingOf(tx, ids)
		return err
	})
	p := op.NewPage(in.PageIn, rows, func(r row) []string { return op.TimeKey(r.CreatedAt, r.ID) })
	out := op.Page[PullRequest]{Data: make([]PullRequest, len(p.Data)), NextCursor: p.NextCursor}
	for i, r := range p.Data {
		out.Data[i] = r.wire(pending)
	}
	return out, err
}

type idIn struct {
	ID string `json:"id"`
}

func (s *Service) get(ctx context.Context, in idIn) (PullRequest, error) {
	var out PullRequest
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		r, ok, err := byID.Maybe(tx, tx.Account, in.ID)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("pull request")
		}
		pending, err := pendingOf(tx, []string{r.ID})
		out = r.wire(pending)
		return err
	})
	return out, err
}

type decideIn struct {
	ID      string `json:"id"`
	HeadSHA string `json:"head_sha" pattern:"^[0-9a-f]{40}$" doc:"the head that was looked at"`
}

// Decision is the answer to a question, and the question it answers.
type Decision struct {
	Action PendingAction `json:"action"`
}

func (s *Service) approve(ctx context.Context, in decideIn) (Decision, error) {
	return s.decided(ctx, in, ActionApproved)
}

func (s *Service) skip(ctx context.Context, in decideIn) (Decision, error) {
	return s.decided(ctx, in, ActionSkipped)
}

func (s *Service) decided(ctx context.Context, in decideIn, state string) (out Decision, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		a, err := s.decide(tx, in.ID, in.HeadSHA, state)
		out = Decision{a.wire()}
		return err
	})
	return out, err
}
