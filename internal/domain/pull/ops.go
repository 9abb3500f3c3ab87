package pull

import (
	"context"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/fault"
	"yardmaster/internal/money"
	"yardmaster/internal/policy"
	"yardmaster/internal/protocol"
)

const group = "Pull requests"

// refusals are conflicts with the state of a pull request, by slug.
func refusals(slugs ...string) (out []op.Refusal) {
	for _, slug := range slugs {
		out = append(out, op.Refusal{Status: 409, Slug: slug})
	}
	return out
}

// filters are those of both lists of pull requests.
func filters() map[string][]string {
	return map[string][]string{
		"state": {record.Opening, record.Open, record.Merged, record.Closed}, "waits": {"person"}, "merged": {"24h"},
		"id": nil, "branch": nil, "number": nil,
	}
}

// ofAll are the filters of the pull requests of all repositories.
func ofAll() map[string][]string {
	all := filters()
	all["repo"] = nil
	return all
}

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "pr.pending_approvals", Method: "GET", Path: "/v1/approvals", Group: group, Rule: policy.Require(policy.ReadPRs),
			Paging:  &op.Paging{Default: 50, Max: 200},
			Summary: "Every question that waits for a person, newest first",
			Doc:     "Every pull request of the account whose merge waits for a yes or no. Answer with pr.approve_pending or pr.skip_pending, naming the head that was looked at."}, s.approvals),
		op.New(op.Row{ID: "pr.pending_approvals_summary", Method: "GET", Path: "/v1/prs/pending-approvals", Group: group,
			Rule: policy.Require(policy.ReadPRs), Paging: &op.Paging{Default: 20, Max: 100, Bounded: true},
			Summary: "The newest questions that wait for a person",
			Doc:     "The same questions as pr.pending_approvals, as a short list without a cursor."}, s.summary),
		op.New(op.Row{ID: "pr.list", Method: "GET", Path: "/v1/repos/{owner}/{repo}/prs", Group: group,
			Rule:    policy.Require(policy.ReadPRs),
			Paging:  &op.Paging{Default: 50, Max: 200, Q: true, Filters: filters()},
			Summary: "A repository's pull requests, newest first",
			Doc:     "A repository that is not enabled is answered 404. filter=waits:person leaves those that only a person gets on, filter=merged:24h those that were merged within the last 24 hours, filter=number:N the one of that number, filter=branch:NAME those of the head branch, filter=id:PART those whose id begins or ends with it, and q those whose title contains it."}, s.list),
		op.New(op.Row{ID: "pr.all", Method: "GET", Path: "/v1/prs", Group: group, Rule: policy.Require(policy.ReadPRs),
			Paging:  &op.Paging{Default: 50, Max: 200, Q: true, Filters: ofAll()},
			Summary: "The pull requests of all repositories, newest first",
			Doc:     "Filters narrow the list to a state, to those that only a person gets on (waits:person), to those merged within the last 24 hours (merged:24h), to a repository (owner/name), to a number (with the repository), to a head branch, and to ids that begin or end with a part; q leaves titles that contain a text."}, s.all),
		op.New(op.Row{ID: "pr.get", Method: "GET", Path: "/v1/prs/{id}", Group: group, Rule: policy.Require(policy.ReadPRs),
			Summary: "One pull request",
			Doc:     "With what is asked about it, if anything, and how far its repair has come."}, s.get),
		op.New(op.Row{ID: "pr.approve_pending", Method: "POST", Path: "/v1/prs/{id}/approve-pending", Group: group,
			Rule:    policy.Require(policy.WritePRs),
			Refuses: refusals("head_moved", "pr_not_open", "no_pending_action", "question_changed"),
			Summary: "Approve what is asked about the head named",
			Doc:     "Decides the question about exactly the head that is named, and the merge follows soon after. A head that has moved since is refused with the present one in current_head_sha: look at it and decide again. Nothing can be decided when no question is open, or when it has been decided or has expired. Where the head changes what is protected, the question is named by action_id as well, so that nobody says yes to one they have not read."}, s.approve),
		op.New(op.Row{ID: "pr.skip_pending", Method: "POST", Path: "/v1/prs/{id}/skip-pending", Group: group,
			Rule:    policy.Require(policy.WritePRs),
			Refuses: refusals("head_moved", "pr_not_open", "no_pending_action", "question_changed"),
			Summary: "Decline what is asked about the head named",
			Doc:     "The head is not merged; pr.ask_again puts the question once more, and a new head is asked about again. Refused like pr.approve_pending when the head has moved or nothing is asked."}, s.skip),
		op.New(op.Row{ID: "pr.unapprove", Method: "POST", Path: "/v1/prs/{id}/unapprove", Group: group,
			Rule:    policy.Require(policy.WritePRs).OfUser(),
			Refuses: refusals("head_moved", "pr_not_open", "no_approval", "merge_begun"),
			Summary: "Take the caller's approval of the head named back",
			Doc:     "Until the merge begins, which the policy may put off by merge.grace. The question is open again, and it counts as a no."}, s.unapprove),
		op.New(op.Row{ID: "pr.ask_again", Method: "POST", Path: "/v1/prs/{id}/ask-again", Group: group,
			Rule:    policy.Require(policy.WritePRs),
			Refuses: refusals("head_moved", "pr_not_open", "checks_not_passed"),
			Summary: "Put the question about the head named again, or for the first time",
			Doc:     "For a question that was declined or that nobody answered in time, and for a repository whose policy leaves merges to people. While a question is open, or the merge is under way, that one is answered and nothing changes."}, s.askAgain),
		op.New(op.Row{ID: "pr.merge", Method: "POST", Path: "/v1/prs/{id}/merge", Group: group, Rule: policy.Require(policy.WritePRs),
			Refuses: refusals("head_moved", "pr_not_open", "checks_not_passed", "question_changed"),
			Summary: "Have the head named merged, asked about or not",
			Doc:     "Approves the open question, or orders the merge where none is open; it follows soon after. If the head changes what is protected and whoever orders the merge was not told, a question that names it takes the order's place."}, s.merge),
		op.New(op.Row{ID: "pr.diff", Method: "GET", Path: "/v1/prs/{id}/diff", Group: group, Rule: policy.Require(policy.ReadPRs),
			Refuses: refusals("commits_gone", "head_moved"),
			Summary: "What a pull request changes: its files, or one file's lines",
			Doc:     "Without path the files with their counts, at most 3000, and how many more there are; with one of them, its lines as well, at most 1 MiB, and cut says whether there are more. A binary file has no lines. With head_sha it is refused once the head is another one, as an approval is. With since_sha what changed since that commit, say the head that was looked at last. A merged pull request shows what its merge brought to the base."}, s.diff),
		op.New(op.Row{ID: "pr.rearm_babysit", Method: "POST", Path: "/v1/prs/{id}/rearm-babysit", Group: group,
			Rule: policy.Require(policy.WritePRs), Status: 202,
			Refuses: refusals("pr_not_open", "repo_disabled", "fork"),
			Summary: "Let agents repair a pull request again whose rounds are spent",
			Doc:     "Sets the rounds used back to 0 and queues a pass that repairs what is wrong with the head. A head that had passed its check, and was thrown out of a merge queue by it, is checked again first. The reason goes to the agents and to the audit log, and began says what happens now. Refused when the pull request is merged or closed, its repository is not enabled, or its branch is in another repository."}, s.rearm),
	}
}

func reviewState(state string, holding int64) ReviewState {
	out := ReviewState{State: state, Holding: holding}
	switch {
	case holding > 0: // found on an earlier head, perhaps
		out.Verdict = new("failure")
	case state == record.ReviewReviewed:
		out.Verdict = new("success")
	}
	return out
}

func (s *Service) wire(r record.Pull, pending map[string]record.Action, places map[string]record.QueuePlace) Request {
	out := Request{
		ID: r.ID, Repo: r.Owner + "/" + r.Name, Number: max(r.Number, 0), Title: r.Title, URL: r.Address(s.BaseURL),
		State: measure.PullState(r.State),
		Draft: r.Draft, Fork: r.Fork, Labels: r.Labels.V,
		HeadRef: r.HeadRef, BaseRef: r.BaseRef, HeadSHA: r.HeadSHA, BaseSHA: r.BaseSHA, MergeSHA: r.MergeSHA,
		Mergeable: r.Mergeable, Checks: record.CheckResult(r.Checks), TaskID: r.TaskID, AuthorKind: r.AuthorKind,
		Babysit: r.Babysitting(), CreatedAt: r.CreatedAt, MergedAt: r.MergedAt, MergedBy: r.MergedBy,
		ClosedAt: r.ClosedAt, ClosedBy: r.ClosedBy,
	}
	out.Review, out.Size, out.Unwanted = reviewState(r.Review, r.Findings), r.Size(), r.SaysUnwanted()
	out.LeftOut = r.SaysLeftOut()
	if r.Would != nil && r.State == record.Open {
		out.Would = &r.Would.V
	}
	out.Otherwise = db.NullText(r.Otherwise)
	if r.ClosedWhy != "" {
		out.ClosedWhy = (*record.Closing)(&r.ClosedWhy)
	}
	if n, ok := r.Need(pending[r.ID].ID); ok {
		out.NeedsPerson = &n
	}
	if p, ok := places[r.ID]; ok && r.State == record.Open {
		out.Queue = &p
	}
	if r.PatchID != "" {
		out.PatchID = &r.PatchID
	}
	if r.Author != "" {
		out.Author = &r.Author
	}
	if a, ok := pending[r.ID]; ok {
		w := a.Wire()
		out.PendingAction = &w
	}
	return out
}

// Approval is a question that waits for a person, with its pull request.
type Approval struct {
	_ struct{} `doc:"A question that waits for a person, with the pull request it is about." schema:"Approval"`
	record.PendingAction
	Repo     string             `json:"repo" doc:"owner/name"`
	Number   int64              `json:"number" example:"42" doc:"number of the pull request in its repository"`
	Title    string             `json:"title" doc:"title of the pull request"`
	URL      string             `json:"url" format:"uri" example:"https://yardmaster.example.com/ui/prs/0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"address of the pull request, for people"`
	Checks   record.CheckResult `json:"checks" example:"passed" doc:"of the present head of the pull request, as it says itself"`
	Review   ReviewState        `json:"review" doc:"how far the review of the present head by agents has come"`
	Cost     *string            `json:"cost_usd" format:"decimal" example:"1.20" doc:"decimal US dollars: what the task of the pull request, and what repaired it, has cost so far; null where nothing has a price"`
	Unwanted *record.Unwanted   `json:"unwanted" doc:"what the present head changes that it should not, as a rule; null while nobody has looked"`
	Size     *record.Size       `json:"size" doc:"how much the present head changes; null while nobody has looked"`

	LeftOut []protocol.LeftOut `json:"left_out" doc:"what agents made and the pull request does not have"`
}

// priced are questions with what the work that each is about has cost.
func (s *Service) priced(tx *db.Tx, rows []record.ApprovalRow) ([]Approval, error) {
	costs, err := s.costs(tx, rows...)
	out := make([]Approval, len(rows))
	for i, r := range rows {
		out[i] = Approval{
			PendingAction: r.Action.Wire(), Repo: r.Owner + "/" + r.Name, Number: r.Number, Title: r.Title, URL: s.url(r.PRID),
			Checks: record.CheckResult(r.Checks), Review: reviewState(r.Review, r.Findings), Cost: costs[r.ID], Size: r.Size(),
			Unwanted: r.SaysUnwanted(),
			LeftOut:  r.SaysLeftOut(),
		}
	}
	return out, err
}

// costs is what the work that questions are about has cost, in decimal US dollars by the id
// of the question; without those of which nothing has a price.
func (s *Service) costs(tx *db.Tx, rows ...record.ApprovalRow) (map[string]*string, error) {
	var tasks []string
	for i := range rows {
		if rows[i].TaskID != nil {
			tasks = append(tasks, *rows[i].TaskID)
		}
	}
	spent, err := s.Tasks.Spent(tx, tasks)
	out := make(map[string]*string, len(rows))
	for i := range rows {
		if rows[i].TaskID == nil {
			continue
		}
		if micros, ok := spent[*rows[i].TaskID]; ok {
			out[rows[i].ID] = money.DollarsOrNone(&micros)
		}
	}
	return out, err
}

type pageIn struct{ op.PageIn }

func (s *Service) approvals(ctx context.Context, in pageIn) (out op.Page[Approval], err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		rows, err := record.Approvals(tx, in.PageIn)
		if err != nil {
			return err
		}
		p := op.NewPage(in.PageIn, rows, func(r record.ApprovalRow) []string { return op.TimeKey(r.RequestedAt, r.ID) })
		out.NextCursor = p.NextCursor
		out.Data, err = s.priced(tx, p.Data)
		return err
	})
	return out, err
}

func (s *Service) summary(ctx context.Context, in pageIn) (out op.Bounded[Approval], err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		rows, err := record.Approvals(tx, in.PageIn)
		if err != nil {
			return err
		}
		all, err := s.priced(tx, rows)
		out = op.NewBounded(in.PageIn, all)
		return err
	})
	return out, err
}

type listIn struct {
	Owner string `json:"owner" doc:"owner of the repository"`
	Repo  string `json:"repo" example:"web" doc:"name of the repository, without the owner"`
	op.PageIn
}

func (s *Service) list(ctx context.Context, in listIn) (out op.Page[Request], err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, ok, err := repo.ByName(tx, in.Owner, in.Repo)
		if err != nil {
			return err
		}
		if !ok || !r.Enabled {
			return fault.Missing("enabled repository")
		}
		out, err = s.listed(tx, r.ID, in.PageIn)
		return err
	})
	return out, err
}

func (s *Service) all(ctx context.Context, in pageIn) (out op.Page[Request], err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		var repoID string
		if name := in.Want("repo"); name != "" {
			owner, short, _ := strings.Cut(name, "/")
			r, ok, err := repo.ByName(tx, owner, short)
			if err != nil || !ok {
				out = op.NewPage(in.PageIn, []Request{}, nil)
				return err
			}
			repoID = r.ID
		}
		out, err = s.listed(tx, repoID, in.PageIn)
		return err
	})
	return out, err
}

// listed is a page of the pull requests of a repository, or of all if repoID is empty.
func (s *Service) listed(tx *db.Tx, repoID string, in op.PageIn) (op.Page[Request], error) {
	rows, err := record.List(tx, repoID, in)
	if err != nil {
		return op.Page[Request]{}, err
	}
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	pending, err := record.PendingOf(tx, ids)
	if err != nil {
		return op.Page[Request]{}, err
	}
	places, err := s.Queue.Places(tx, ids)
	if err != nil {
		return op.Page[Request]{}, err
	}
	p := op.NewPage(in, rows, func(r record.Pull) []string { return op.TimeKey(r.CreatedAt, r.ID) })
	out := op.Page[Request]{Data: make([]Request, len(p.Data)), NextCursor: p.NextCursor}
	for i, r := range p.Data {
		out.Data[i] = s.wire(r, pending, places)
	}
	return out, nil
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the pull request"`
}

func (s *Service) get(ctx context.Context, in idIn) (out Detail, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, ok, err := record.ByID.Maybe(tx, tx.Account, in.ID)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("pull request")
		}
		if out.Body, err = record.BodyOf.One(tx, tx.Account, r.ID); err != nil {
			return err
		}
		pending, err := record.PendingOf(tx, []string{r.ID})
		if err != nil {
			return err
		}
		places, err := s.Queue.Places(tx, []string{r.ID})
		out.Request = s.wire(r, pending, places)
		return err
	})
	return out, err
}
