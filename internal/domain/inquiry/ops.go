package inquiry

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

const group = "Repositories"

// mostQuestion is the longest question, in characters.
const mostQuestion = 1000

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "project.ask", Method: "POST", Path: "/v1/repos/{owner}/{repo}/ask", Group: group,
			Rule: policy.Require(policy.ReadRepos), MaxBody: 16 << 10,
			Refuses: []op.Refusal{
				{Status: 402, Slug: "budget_exhausted"}, {Status: 402, Slug: "payment-required"}, {Status: 402, Slug: "unpriced_model"},
				{Status: 403, Slug: "no_credential"}, {Status: 404, Slug: "not-found"}, {Status: 409, Slug: "repo_not_enabled"},
				{Status: 422, Slug: "model_unavailable"}, {Status: 503, Slug: "provider_unavailable"},
			},
			Summary: "Ask about a repository's code; an answer has citations, or is refused",
			Doc: "A model of the account reads lines of the default branch and answers in sentences that name them. A sentence whose lines " +
				"lack its names, quotes or numbers is dropped, and with none left the answer is refused, with 200. One question at a time."},
			s.ask),
		op.New(op.Row{ID: "project.answers", Method: "GET", Path: "/v1/repos/{owner}/{repo}/answers", Group: group,
			Rule: policy.Require(policy.ReadRepos), Paging: &op.Paging{Default: 5, Max: 100},
			Refuses: []op.Refusal{{Status: 402, Slug: "payment-required"}, {Status: 409, Slug: "repo_not_enabled"}},
			Summary: "Your own last answers about a repository, newest first, and where their lines are now",
			Doc: "The last 50 answers that were not refused are kept for whoever asked, and for nobody else. Each citation is looked for at the " +
				"head of the default branch, anew at each call."},
			s.answers),
	}
}

type askIn struct {
	Owner    string `json:"owner" doc:"owner of the repository"`
	Repo     string `json:"repo" doc:"name of the repository"`
	Question string `json:"question" minLength:"1" maxLength:"1000" example:"Which port does the server listen on?" doc:"what to find out, in a sentence or two"`
}

func (s *Service) ask(ctx context.Context, in askIn) (Answer, error) {
	q := strings.TrimSpace(in.Question)
	switch {
	case q == "":
		return Answer{}, fault.Field("question", "must not be empty")
	case strings.ContainsRune(q, 0) || !utf8.ValidString(q):
		return Answer{}, fault.Field("question", "must be text, without NUL")
	case utf8.RuneCountInString(q) > mostQuestion:
		return Answer{}, fault.Field("question", fmt.Sprintf("must have at most %d characters", mostQuestion))
	}
	return s.answer(ctx, in.Owner, in.Repo, q)
}
