package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/vault"
)

// LogSecrets finds what must not leave with copies of model calls. It is logsink.Secrets.
type LogSecrets struct {
	Vaults *vault.Service
	Keys   *modelkey.Service
}

// Secrets opens the secrets of tx.Account in all its vaults, and all keys of models, those of its
// people too.
func (l LogSecrets) Secrets(tx *db.Tx) ([]string, error) {
	values, err := l.Vaults.Values(tx)
	if err != nil {
		return nil, err
	}
	keys, err := l.Keys.Values(tx)
	return append(values, keys...), err
}
