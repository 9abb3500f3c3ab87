package flow

import (
	"context"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/gateway"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/template"
)

// ModelTokens implements gateway.Attempts with the model tokens of runs.
type ModelTokens struct{ Runs *run.Service }

// Attempt finds the live run of a model token, with the model of its template; ok
// is false for a token without one.
func (m ModelTokens) Attempt(ctx context.Context, token string) (out gateway.Attempt, ok bool, err error) {
	of, ok, err := m.Runs.ResolveToken(ctx, token, run.TokenModel)
	if err != nil || !ok {
		return out, ok, err
	}
	person := of.RequestedBy
	if of.Unbound {
		person = "" // somebody else had a part in the work
	}
	err = m.Runs.DB.Read(ctx, func(tx *db.Tx) error {
		t, _, err := template.ByName(tx, of.AccountID, of.Template)
		out = gateway.Attempt{
			SessionID: of.SessionID, AccountID: of.AccountID, RunID: of.RunID, RepoID: of.RepoID, Person: person,
			Provider: string(t.Provider), Model: t.Model, BaseURL: t.BaseURL, Prefer: preferred(of.Preferred),
		}
		return err
	})
	return out, true, err
}

// Parking implements gateway.Parking.
type Parking struct{ DB *db.DB }

// Park has a run save its work and end because its keys rest, and its task wait.
func (p Parking) Park(ctx context.Context, park gateway.Park) error {
	return p.DB.Write(context.WithoutCancel(ctx), func(tx *db.Tx) error {
		return run.Park(tx, park.RunID, park.Kind, park.Why, park.Until)
	})
}
