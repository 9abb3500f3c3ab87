package app

import (
	"context"
	"errors"

	"yardmaster/internal/db"
)

// Astray answers in what the rows of a database and its entries of package db/due differ, see
// due.Kernel. It brings the schema up to date, so no server of another version may use the
// database.
func Astray(ctx context.Context, dsn string) (out []string, err error) {
	described()
	d, err := db.Open(ctx, dsn, db.Options{})
	if err != nil {
		return nil, err
	}
	err = d.Read(ctx, func(tx *db.Tx) (err error) {
		out, err = describing.due.Astray(tx)
		return err
	})
	return out, errors.Join(err, d.Close())
}
