package talk

import (
	"yardmaster/internal/api/op"
	"yardmaster/internal/policy"
)

const group = "Pull requests"

// refusals are conflicts with the state of a pull request, by slug.
func refusals(slugs ...string) (out []op.Refusal) {
	for _, slug := range slugs {
		out = append(out, op.Refusal{Status: 409, Slug: slug})
	}
	return out
}

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "pr.comments", Method: "GET", Path: "/v1/prs/{id}/comments", Group: group, Rule: policy.Require(policy.ReadPRs),
			Paging:  &op.Paging{Default: 25, Max: 50, Filters: map[string][]string{"state": {Open, Resolved}}},
			Summary: "What people say about a pull request, newest thread first",
			Doc:     "Threads on lines and on the whole, those at its code host as well."}, s.list),
		op.New(op.Row{ID: "pr.comment", Method: "POST", Path: "/v1/prs/{id}/comments", Group: group,
			Rule: policy.Require(policy.WritePRs).OfUser(), Status: 201,
			Refuses: refusals("head_moved", "pr_not_open", "thread_full", "commits_gone"),
			Summary: "Say something about a pull request, a line of it, or in a thread",
			Doc:     "It begins no work: review.request_changes does."}, s.comment),
		op.New(op.Row{ID: "pr.resolve_thread", Method: "POST", Path: "/v1/prs/{id}/resolve-thread", Group: group,
			Rule: policy.Require(policy.WritePRs).OfUser(), Refuses: refusals("not_resolvable"),
			Summary: "Resolve a thread of a pull request, or open it again",
			Doc:     "A request for changes holds the merge all the same: review.withdraw_request takes it back."}, s.resolve),
		op.New(op.Row{ID: "review.request_changes", Method: "POST", Path: "/v1/prs/{id}/request-changes", Group: group,
			Rule: policy.Require(policy.WritePRs).OfUser(), Status: 201,
			Refuses: refusals("head_moved", "pr_not_open", "commits_gone"),
			Summary: "Request changes of the head named",
			Doc:     "The merge is held until the caller approves or takes it back. An agent that looks after the pull request is given the words, and its answer is asked about."}, s.request),
		op.New(op.Row{ID: "review.withdraw_request", Method: "POST", Path: "/v1/prs/{id}/withdraw-request", Group: group,
			Rule: policy.Require(policy.WritePRs).OfUser(), Refuses: refusals("pr_not_open", "no_request"),
			Summary: "Take back what was requested of a pull request",
			Doc:     "The caller's own requests, or the one named; that of somebody else takes write:account."}, s.withdraw),
	}
}
