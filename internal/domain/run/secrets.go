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

// maxKeyText is the longest public key that is read.
const maxKeyText = 100

// Secrets gives a live attempt what it may use of the vaults as they are now,
// sealed to the process that asked first: whoever steals the box's credentials
// later cannot ask on its behalf.
func (s *Service) Secrets(ctx context.Context, boxID string, ask protocol.SecretsAsk) (out protocol.Secrets, err error) {
	if ask.Key == "" || len(ask.Key) > maxKeyText {
		return out, fault.Field("key", "is no public key")
	}
	var values []protocol.Secret
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		values = nil
		r, ok, err := selectOfBox.Maybe(tx, boxID, ask.Run)
		if err != nil {
			return err
		}
		if !ok || r.EndedAt != nil || r.Attempt != int64(ask.Attempt) {
			return fault.Missing("live attempt")
		}
		defer within(tx, r.AccountID)()
		if s.Vault != nil {
			if values, err = s.Vault(tx, r.RepoID); err != nil {
				return err
			}
		}
		first, err := claimKey.Exec(tx, r.ID, ask.Key)
		if err != nil {
			return err
		}
		if first == 0 {
			held, err := selectKey.One(tx, r.ID)
			if err != nil {
				return err
			}
			if !seal.Equal(held, ask.Key) {
				return fault.New(fault.Forbidden, "other-process", "Another process has asked for this attempt's secrets before.")
			}
			return nil
		}
		names := make([]string, len(values))
		for i, v := range values {
			names[i] = v.Name
		}
		return event.Record(tx, event.Change{Kind: "run.secrets_given", Object: r.ID, RepoID: r.RepoID, Data: map[string]any{"box_id": boxID, "names": names}})
	})
	if err != nil {
		return out, err
	}
	plain, err := json.Marshal(append([]protocol.Secret{}, values...))
	if err != nil {
		return out, err
	}
	if out.Sealed, err = seal.SealTo(ask.Key, protocol.SecretsPurpose(ask.Run), plain); err != nil {
		err = fault.Field("key", "is no public key").Because(err)
	}
	return out, err
}
