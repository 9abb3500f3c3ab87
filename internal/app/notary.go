package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/event/notary"
	"yardmaster/internal/seal"
)

func newNotary(c *config.Config, d *db.DB, ring *seal.Keyring) *notary.Notary {
	return &notary.Notary{DB: d, Ring: ring, Path: c.HeadsFile, Every: c.HeadsEvery, Hook: c.HeadsHook, MailTo: c.HeadsMail}
}

// startNotary compares the audit chains with the heads that were noted. A break is
// reported in the log, in the file, by mail and to the webhook; the server goes on.
func (a *App) startNotary(ctx context.Context) error {
	a.notary = newNotary(a.cfg, a.db, a.ring)
	a.notary.Logger, a.notary.Post = a.log, a.post
	_, err := a.notary.Start(ctx)
	return err
}

// reaper removes old rows of the record.
func (a *App) reaper() *event.Reaper {
	return &event.Reaper{DB: a.db, Logger: a.log, Keep: days(a.cfg.KeepAudit)}
}

// closeNotary notes the heads as they are when everything is stored.
func (a *App) closeNotary() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return a.notary.Close(ctx)
}

// AcceptBreaks accepts the audit chains that differ from their noted heads as they
// are now. It returns an error if no chain differs.
func (k *KeyChest) AcceptBreaks(ctx context.Context, reason string, out io.Writer) error {
	n := k.notary()
	breaks, err := n.Accept(ctx, reason)
	if err != nil {
		return err
	}
	if len(breaks) == 0 {
		return errors.New("there is nothing to accept: every chain is as it was noted")
	}
	for _, b := range breaks {
		account := b.Account
		if account == "" {
			account = "the platform"
		}
		fmt.Fprintf(out, "%s: %s\n", account, b.Why)
	}
	fmt.Fprintln(out, "This is accepted, on the record of each of them. What is noted from now on has to hold.")
	return nil
}
