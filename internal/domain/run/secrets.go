package run

import (
	"context"
	"encoding/json"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

// sealFor seals a value for the process with the key. It returns fault.Invalid
// if there is no key.
func sealFor(key, purpose string, v any) (string, error) {
	if key == "" {
		return "", fault.New(fault.Invalid, "", "The box has not said hello: there is no key to seal to.")
	}
	plain, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return seal.SealTo(key, purpose, plain)
}

func sealTokens(key, runID string, t protocol.Tokens) (string, error) {
	return sealFor(key, protocol.TokensPurpose(runID), t)
}

// Secrets gives a live attempt the present secrets of its vaults, sealed to the
// process that claimed it. A later process of the box, and a program elsewhere
// that has the box's credentials, gets fault.Forbidden. An attempt that the box
// does not hold is fault.NotFound.
func (s *Service) Secrets(ctx context.Context, boxID string, ask protocol.SecretsAsk) (out protocol.Secrets, err error) {
	var key string
	var values []protocol.Secret
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		values = nil
		r, err := held(tx, boxID, ask.Run, ask.Attempt, false)
		if err != nil {
			return err
		}
		defer tx.About(r.AccountID)()
		if key, err = s.Boxes.SealKey(tx, boxID); err != nil {
			return err
		}
		claimed, err := selectKey.One(tx, r.ID)
		if err != nil {
			return err
		}
		if !seal.Equal(claimed, key) {
			return fault.New(fault.Forbidden, protocol.OtherProcess, "Another process of the box has claimed this attempt.")
		}
		if !r.lent() { // a stranger's box gets none
			if values, err = s.Vault.ForRun(tx, r.RepoID, r.TaskID); err != nil {
				return err
			}
		}
		first, err := givenOnce.Exec(tx, r.ID)
		if err != nil || first == 0 {
			return err
		}
		names := make([]string, len(values))
		for i, v := range values {
			names[i] = v.Name
		}
		return secretsGivenEvent.Record(tx, event.Subject{ID: r.ID, RepoID: r.RepoID},
			secretsGivenData{BoxID: boxID, Names: names, Right: r.right()})
	})
	if err != nil {
		return out, err
	}
	out.Sealed, err = sealFor(key, protocol.SecretsPurpose(ask.Run), append([]protocol.Secret{}, values...))
	return out, err
}
