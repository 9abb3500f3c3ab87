package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// proposalCommands are about what runs would have pages say.
func proposalCommands() []tree.Command {
	return []tree.Command{
		{Words: "kb proposals", Summary: "what runs would have pages say, newest first", Answers: "kb.proposal_list", Rows: true,
			Values: map[string]tree.Values{}, Define: defineProposals,
			Examples: []string{"yardmaster kb proposals --state waiting", "yardmaster kb proposals --repo acme/web"}},
		{Words: "kb accept", Args: "PROPOSAL", Summary: "put what a run proposed into its page", Answers: "kb.proposal_decide",
			Define:   decidingProposal(true),
			More:     "Paragraphs that people wrote and the proposal leaves out are gone then; kb restore brings them back.",
			Examples: []string{"yardmaster kb accept 0199d3a4-5b6c-7d8e-9f01-23456789abcd"}},
		{Words: "kb decline", Args: "PROPOSAL", Summary: "decline what a run proposed", Answers: "kb.proposal_decide",
			Define:   decidingProposal(false),
			Examples: []string{`yardmaster kb decline 0199d3a4-5b6c-7d8e-9f01-23456789abcd --reason "It is not so."`}},
	}
}

func defineProposals(fl *flag.FlagSet) tree.Action {
	proposal, l := noun.KnowledgeProposal(), &noun.Listing{}
	l.Skip = "repoId"
	l.Add(fl, proposal)
	repo := fl.String("repo", "", "`OWNER/NAME`; that of the folder's git remote when empty")
	return func(ctx context.Context, _ []string) error {
		p, err := pagesOf(ctx, *repo)
		if err != nil {
			return err
		}
		return proposal.Under(ctx, l, "repoId", p.id)
	}
}

func decidingProposal(accept bool) func(*flag.FlagSet) tree.Action {
	return func(fl *flag.FlagSet) tree.Action {
		k := &knowledge{}
		k.add(fl)
		reason := fl.String("reason", "", "`TEXT`: why")
		return func(ctx context.Context, plain []string) error {
			p, err := k.pages(ctx)
			if err != nil {
				return err
			}
			var of struct{ Slug, State string }
			done, err := k.Answered(ctx, p.Client, http.MethodPost, p.at("proposals", "")+"/"+url.PathEscape(plain[0])+"/decide",
				map[string]any{"accept": accept, "reason": *reason}, &of)
			if done || err != nil {
				return err
			}
			fmt.Printf("The proposal for %s is %s.\n", client.Inert(of.Slug), client.Inert(of.State))
			if accept {
				screen.Afterword("See what it was before, and put that back: " + p.word("history", of.Slug, ""))
			} else {
				screen.Afterword("See the others: yardmaster kb proposals --state waiting --repo " + client.Word(p.repo))
			}
			return nil
		}
	}
}
