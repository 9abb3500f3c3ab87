package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/operator"
)

// Appoint makes the person with a login an operator of the server that c configures, or no
// longer one. changed is false if the person was that before. The server may run.
func Appoint(ctx context.Context, c *config.Config, login string, admin bool) (changed bool, err error) {
	if _, err := exists(c); err != nil {
		return false, err
	}
	d, err := db.Open(ctx, c.Database, db.Options{})
	if err != nil {
		return false, fmt.Errorf("open the database: %w", err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	err = d.Write(ctx, func(tx *db.Tx) error {
		changed, err = operator.Appoint(tx, strings.ToLower(login), admin)
		return err
	})
	return changed, err
}
