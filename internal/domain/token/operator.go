package token

import (
	"context"
	"strconv"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// operatorLife is the lifetime of an operator token.
const operatorLife = time.Hour

type operatorIn struct {
	Name   string   `json:"name" minLength:"1" maxLength:"100" example:"raise seats of acme" doc:"what it is for"`
	Scopes []string `json:"scopes" maxItems:"16" example:"[\"admin:accounts\"]" doc:"of the admin scopes that write, and admin:bugs"`
}

// issue mints an operator token. No other code gives operator scopes.
func (s *Service) issue(ctx context.Context, in operatorIn) (out MintedToken, err error) {
	want, unknown := policy.ParseScopes(in.Scopes)
	if len(unknown) > 0 {
		return out, fault.Field("scopes", "has no scope named "+strconv.Quote(unknown[0]))
	}
	if want == 0 {
		return out, fault.Field("scopes", "must name at least one scope")
	}
	if over := want &^ policy.OperatorOnly; over != 0 {
		return out, fault.Field("scopes", "names one that is no operator's: "+over.Names()[0])
	}
	a := policy.From(ctx)
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		if err := a.Present(tx.Now); err != nil {
			return err
		}
		expires := tx.Now.Add(operatorLife)
		out, err = Mint(tx, policy.Operator, a.UserID, &in.Name, want, &expires)
		return err
	})
	return out, err
}
