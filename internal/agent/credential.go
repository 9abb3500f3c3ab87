package agent

import (
	"context"
	"time"

	"yardmaster/internal/protocol"
)

// keepCredentials renews the box's NATS credential at half its life and its
// durable token in the last third of its life, until ctx is done. A request on
// b.rotate renews both at once.
func (b *box) keepCredentials(ctx context.Context) {
	for failures := 0; ; {
		id, now := b.keys.get(), time.Now()
		due := id.NATSJWT.at(now, 0.5)
		if durable := id.RunToken.at(now, 2./3); durable.Before(due) {
			due = durable
		}
		wait := due.Sub(now)
		if failures > 0 {
			wait = max(wait, min(b.cfg.Timing.Retry<<min(failures, 10), time.Minute))
		}
		renew := b.renew
		select {
		case <-ctx.Done():
			return
		case <-b.rotate:
			renew = b.reissue
		case <-time.After(wait):
		}
		failures++
		if err := renew(ctx); err == nil {
			failures = 0
		} else if ctx.Err() == nil {
			b.log.Warn("credentials not renewed", "error", err)
		}
	}
}

// renew asks on the connection there is; what that cannot give comes over HTTPS.
func (b *box) renew(ctx context.Context) error {
	id, now := b.keys.get(), time.Now()
	if now.Before(id.RunToken.at(now, 2./3)) && now.Before(id.NATSJWT.Until) {
		call, cancel := context.WithTimeout(ctx, b.cfg.Timing.Renew/2)
		defer cancel()
		var reply protocol.CredentialReply
		err := b.conn.Call(call, protocol.CallCredential, struct{}{}, &reply)
		if err == nil && reply.JWT != "" {
			return b.adopt(b.keys.update(func(id *Identity) {
				id.NATSJWT = Credential{Value: reply.JWT, From: now, Until: now.Add(time.Duration(reply.ExpiresMS) * time.Millisecond)}
			}))
		}
		b.log.Debug("no credential over the connection", "error", err)
	}
	return b.reissue(ctx)
}

func (b *box) reissue(ctx context.Context) error {
	err := b.keys.reissue(ctx)
	if revoked(err) {
		b.revoke("the control plane refuses this box's credentials")
	}
	return b.adopt(err)
}

// adopt makes the connection use new credentials now, while the old ones would
// still do, so that a mistake shows early.
func (b *box) adopt(err error) error {
	if err != nil {
		return err
	}
	b.log.Info("credentials renewed")
	return b.conn.Reconnect()
}
