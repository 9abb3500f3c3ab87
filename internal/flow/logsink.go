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

// Secrets opens the secrets of tx.Account in all its vaults, and its keys of models.
func (l LogSecrets) Secrets(tx *db.Tx) ([]string, error) {
	values, err := l.Vaults.Values(tx)
	if err != nil {
		return nil, err
	}
	pool, err := modelkey.Pool(tx, tx.Account)
	if err != nil {
		return nil, err
	}
	for _, k := range pool {
		route, err := l.Keys.Open(k)
		if err != nil {
			return nil, err
		}
		values = append(values, route.Key)
	}
	return values, nil
}
