package db

import (
	"context"
	"sync"
)

// Claim answers the rows that a node of a loop has to work on: those that take answers, which
// keeps them from other nodes for a while. take runs in a write transaction, and only if due
// tells of the present time, in microseconds, that there are any. Most passes of a loop find
// none, and reading keeps nobody else from writing. take may run twice.
func Claim[T any](ctx context.Context, d *DB, due Query[bool], take func(*Tx) ([]T, error)) (rows []T, err error) {
	some := false
	err = d.Read(ctx, func(tx *Tx) (err error) {
		some, err = due.One(tx, tx.Micros())
		return err
	})
	if err != nil || !some {
		return nil, err
	}
	err = d.Write(ctx, func(tx *Tx) (err error) {
		rows, err = take(tx)
		return err
	})
	return rows, err
}

// Drain claims rows, see Claim, and has work work on those of one claim at the same time,
// claim after claim, until none are due or ctx has ended. The error is that of a claim.
func Drain[T any](ctx context.Context, d *DB, due Query[bool], take func(*Tx) ([]T, error), work func(T)) error {
	for ctx.Err() == nil {
		rows, err := Claim(ctx, d, due, take)
		if err != nil || len(rows) == 0 {
			return err
		}
		var all sync.WaitGroup
		for _, row := range rows {
			all.Go(func() { work(row) })
		}
		all.Wait()
	}
	return nil
}
