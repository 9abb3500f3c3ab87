package actor

import (
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/policy"
)

// Ops returns the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{
			ID:      "actor.names",
			Method:  "GET",
			Path:    "/v1/actors",
			Group:   "Sessions, audit, streams",
			Rule:    policy.PerRequest(),
			Paging:  &op.Paging{Full: true},
			Summary: "Who some actors of the account are, by name",
			Doc: "For every credential of the account, whatever its scopes: who may read a row may know who made it. Takes what rows " +
				"have, such as user:<id> in created_by, at most 100 at once. Answers those who are known: members and " +
				"those who were, the account's own tokens and boxes, its sources and schedules.",
		}, s.names),
	}
}

type namesIn struct {
	Actors []string `json:"actor,omitempty" maxItems:"100" maxLength:"200" example:"[\"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd\"]" doc:"actors, as rows name them"`
}

func (s *Service) names(ctx context.Context, in namesIn) (op.Page[Name], error) {
	var all []Name
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		all, err = Names(tx, in.Actors)
		return err
	})
	return op.Whole(all), err
}
