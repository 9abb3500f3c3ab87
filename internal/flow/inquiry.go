package flow

import (
	"context"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/gateway"
	"yardmaster/internal/domain/inquiry"
	"yardmaster/internal/domain/kb"
)

// maxReply is the longest answer to a question, in tokens.
const maxReply = 4_000

// InquiryModel implements inquiry.Model with the account's own model, as the template of the
// repository chooses it.
type InquiryModel struct {
	DB      *db.DB
	Gateway *gateway.Service
}

// Begin opens a session of kind ask.
func (j InquiryModel) Begin(ctx context.Context, m inquiry.Matter) (inquiry.Talk, error) {
	return open(ctx, j.DB, j.Gateway, gateway.Opening{
		AccountID: m.AccountID, RepoID: m.RepoID, RequestedBy: m.RequestedBy, Trigger: "question", Kind: "ask", MaxTokens: maxReply,
		Longest: 10 * time.Minute,
	})
}

// InquiryPages implements inquiry.Pages.
type InquiryPages struct{}

// Near are the pages of a repository that are near to a question.
func (InquiryPages) Near(tx *db.Tx, repoID, question string) ([]inquiry.Page, error) {
	rows, err := kb.Near(tx, repoID, question)
	out := make([]inquiry.Page, len(rows))
	for i, r := range rows {
		out[i] = inquiry.Page(r)
	}
	return out, err
}
