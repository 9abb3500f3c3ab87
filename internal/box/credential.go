package box

import (
	"context"
	"errors"
	"time"

	"yardmaster/internal/client"
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
		err := renew(ctx)
		var silent *client.Unreachable
		switch {
		case err == nil:
			failures = 0
		case ctx.Err() != nil:
		case errors.As(err, &silent) && b.isCutOff():
			b.log.Debug("credentials not renewed", "error", err)
		case unknown(err):
			b.log.Error(
				"the control plane does not know this box; to enroll it anew, stop it, delete its identity and run `yardmaster box join`",
				"server", b.keys.get().ServerURL, "identity", identityPath(b.cfg.DataDir))
		default:
			b.log.Warn("credentials not renewed", "error", err)
		}
	}
}

// maxSeek is the longest pause between two attempts to find the bus.
const maxSeek = 10 * time.Minute

// seekBus asks over HTTPS for the address of the bus and for credentials when there
// has been no connection for Timing.Seek: the bus may have moved.
func (b *box) seekBus(ctx context.Context) {
	pause := b.cfg.Timing.Seek
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if !b.isCutOff() {
			pause = b.cfg.Timing.Seek
			continue
		}
		nudge(b.rotate)
		pause = min(2*pause, maxSeek)
	}
}

func (b *box) isCutOff() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cutOff
}

// renew renews the credential over the connection, or all over HTTPS if that fails
// or is not enough.
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

// adopt makes the connection use the new credentials now, while the old ones are
// still valid, so that a mistake shows early.
func (b *box) adopt(err error) error {
	if err != nil {
		return err
	}
	b.log.Info("credentials renewed")
	return b.conn.Reconnect(b.keys.get().NATSURL)
}
