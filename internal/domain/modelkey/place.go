package modelkey

import (
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/policy"
)

// placeOps lists the capabilities about the place of a key in the account's pool; those of
// people's keys are in personal.go.
func (s *Service) placeOps() []op.Op {
	write := policy.Require(policy.WriteBilling)
	return []op.Op{
		op.New(op.Row{
			ID: "billing.key_capacity_set", Method: "PATCH", Path: "/v1/billing/keys/{id}/capacity", Group: group, Rule: write,
			Summary: "Say how many calls at once go over a key of the pool; null clears it",
			Doc:     "As for self.key_capacity_set.",
		}, s.capacitySet(pooled)),
		op.New(op.Row{
			ID: "billing.key_priority_set", Method: "PATCH", Path: "/v1/billing/keys/{id}/priority", Group: group, Rule: write,
			Summary: "Place a key of the pool: the lowest priority is used first",
			Doc:     "Holds from the next call on.",
		}, s.prioritySet(pooled)),
	}
}

type capacityIn struct {
	ID       string `json:"id" format:"uuid" doc:"id of the key"`
	Capacity *int64 `json:"capacity" required:"true" minimum:"1" maximum:"256" example:"8" doc:"calls at once; null: no limit"`
}

func (s *Service) capacitySet(of whose) func(context.Context, capacityIn) (BillingKey, error) {
	return func(ctx context.Context, in capacityIn) (BillingKey, error) {
		return s.use(ctx, of(ctx), in.ID, func(to *keyUseData) { to.Capacity = in.Capacity })
	}
}

type priorityIn struct {
	ID       string `json:"id" format:"uuid" doc:"id of the key"`
	Priority int64  `json:"priority" minimum:"0" maximum:"10000" example:"100" doc:"the lowest is used first"`
}

func (s *Service) prioritySet(of whose) func(context.Context, priorityIn) (BillingKey, error) {
	return func(ctx context.Context, in priorityIn) (BillingKey, error) {
		return s.use(ctx, of(ctx), in.ID, func(to *keyUseData) { to.Priority = in.Priority })
	}
}
