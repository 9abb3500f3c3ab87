package overview

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/money"
	"yardmaster/internal/policy"
)

const group = "Overview"

// Ops returns the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{
			ID:      "overview.counts",
			Method:  "GET",
			Path:    "/v1/overview/counts",
			Group:   group,
			Rule:    policy.Require(policy.ReadPRs),
			Summary: "Repositories, pull requests and approvals of the account, counted",
			Doc:     "Of the whole account, as of now.",
		}, s.counts),
		op.New(op.Row{
			ID:      "overview.burn",
			Method:  "GET",
			Path:    "/v1/overview/burn",
			Group:   group,
			Rule:    policy.Require(policy.ReadSessions),
			Summary: "What sessions cost in the last hour, estimated",
			Doc: "Of sessions that called a model within the last hour. An estimate and no bill: calls without a known " +
				"price are counted apart.",
		}, s.burn),
	}
}

func (s *Service) counts(ctx context.Context, _ op.None) (out Counts, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out, err = selectCounts.One(tx, tx.Account, tx.Now.Add(-24*time.Hour))
		return err
	})
	return out, err
}

func (s *Service) burn(ctx context.Context, _ op.None) (out Burn, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		b, err := selectBurn.One(tx, tx.Account, tx.Now.Add(-time.Hour).Truncate(time.Minute))
		out = Burn{CostUSD: money.DollarsOrNone(b.Micros), Sessions: b.Sessions, Unpriced: b.Unpriced}
		return err
	})
	return out, err
}
