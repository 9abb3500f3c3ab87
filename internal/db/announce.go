package db

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// MaxAnnouncement is the limit of one announcement in bytes: PostgreSQL takes less
// than 8000.
const MaxAnnouncement = 7900

// Announce sends a text to every process that listens to the channel of this
// database, including this one. A process that listens later does not get it. On
// SQLite, which a single process uses, Announce does nothing.
func (d *DB) Announce(ctx context.Context, channel, text string) error {
	p, ok := d.backend.(*postgresBackend)
	if !ok {
		return nil
	}
	if _, err := p.pool.ExecContext(ctx, `SELECT pg_notify($1, $2)`, channel, text); err != nil {
		return fmt.Errorf("announce on %s: %w", channel, err)
	}
	return nil
}

// Listen calls hear for each announcement on the channel, on a connection of its
// own, until ctx ends or the connection is lost, and returns the cause. It calls
// ready once it misses no announcement any more. On SQLite it calls ready and waits
// for ctx.
func (d *DB) Listen(ctx context.Context, channel string, ready func(), hear func(text string)) error {
	p, ok := d.backend.(*postgresBackend)
	if !ok {
		ready()
		<-ctx.Done()
		return ctx.Err()
	}
	conn, err := p.pool.Conn(ctx)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", channel, err)
	}
	defer conn.Close()
	err = conn.Raw(func(driver any) error {
		c := driver.(*stdlib.Conn).Conn()
		// The connection must not return to the pool while it listens.
		defer c.Close(context.WithoutCancel(ctx))
		if _, err := c.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
			return err
		}
		ready()
		for {
			n, err := c.WaitForNotification(ctx)
			if err != nil {
				return err
			}
			hear(n.Payload)
		}
	})
	return fmt.Errorf("listen on %s: %w", channel, err)
}
