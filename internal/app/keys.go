package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"time"

	"yardmaster/internal/bus"
	"yardmaster/internal/certificate"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/meta"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/connection"
	"yardmaster/internal/domain/hosttoken"
	"yardmaster/internal/domain/logsink"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/push"
	"yardmaster/internal/domain/source"
	"yardmaster/internal/domain/sso"
	"yardmaster/internal/domain/tracker"
	"yardmaster/internal/domain/vault"
	"yardmaster/internal/domain/webhook"
	"yardmaster/internal/id"
	"yardmaster/internal/mail"
	"yardmaster/internal/seal"
	"yardmaster/internal/seal/keys"
	"yardmaster/internal/webpush"
)

// remember returns the value that is kept under key. The first call makes it with
// fresh; nodes that start together agree on one.
func remember(ctx context.Context, d *db.DB, key string, fresh func() (string, error)) (string, error) {
	var value string
	var ok bool
	read := func(tx *db.Tx) (err error) {
		value, ok, err = meta.Read(tx, key)
		return err
	}
	if err := d.Read(ctx, read); err != nil || ok {
		return value, err
	}
	v, err := fresh()
	if err != nil {
		return "", err
	}
	err = d.Write(ctx, func(tx *db.Tx) error {
		if err := meta.Add(tx, key, v); err != nil {
			return err
		}
		return read(tx)
	})
	return value, err
}

// sealedColumns are all places of the database that hold sealed values.
func sealedColumns() []keys.Column {
	return []keys.Column{
		meta.Sealed, modelkey.Sealed, webhook.Sealed, vault.Sealed, hosttoken.Sealed, sso.Sealed, connection.Sealed, blocker.Sealed,
		mail.Sealed, push.Sealed, push.SealedMessages, source.Sealed, tracker.Sealed, logsink.Sealed,
	}
}

// rememberSealed is remember for a value that is sealed in the database.
func rememberSealed(ctx context.Context, d *db.DB, ring *seal.Keyring, key string, fresh func() ([]byte, error)) ([]byte, error) {
	sealed, err := remember(ctx, d, key, func() (string, error) {
		b, err := fresh()
		return ring.Seal(key, b), err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	b, err := ring.Unseal(key, sealed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; is this the master key the data was made with?", key, err)
	}
	return b, nil
}

// rememberJSON is rememberSealed for a value that is kept as JSON.
func rememberJSON[T any](ctx context.Context, d *db.DB, ring *seal.Keyring, key string, fresh func() (T, error)) (v T, err error) {
	b, err := rememberSealed(ctx, d, ring, key, func() ([]byte, error) {
		made, err := fresh()
		if err != nil {
			return nil, err
		}
		return json.Marshal(made)
	})
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	return v, err
}

// replaceSealed puts another value in the place of one that is sealed in the database, if
// nobody else has done so meanwhile. name is how the error calls it, with its verb.
func replaceSealed(tx *db.Tx, ring *seal.Keyring, key, name, sealed string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	changed, err := meta.Replace(tx, key, sealed, ring.Seal(key, text))
	if err == nil && !changed {
		err = fmt.Errorf("%s changed by somebody else meanwhile: try again", name)
	}
	return err
}

// busKeys are the NATS seeds, sealed in the database.
func busKeys(ctx context.Context, d *db.DB, ring *seal.Keyring) (bus.Keys, error) {
	return rememberJSON(ctx, d, ring, meta.BusKeys, bus.NewKeys)
}

// busAuthority is the authority by which boxes know the bus. It is sealed in the
// database, so that all servers on it are known by the same one.
func busAuthority(ctx context.Context, d *db.DB, ring *seal.Keyring) (*bus.Authority, error) {
	a, err := rememberJSON(ctx, d, ring, meta.BusCA, func() (bus.Authority, error) { return bus.NewAuthority(time.Now()) })
	return &a, err
}

// nodeAuthority is the authority by which the nodes of a cluster know each other.
func nodeAuthority(ctx context.Context, d *db.DB, ring *seal.Keyring) (bus.Authority, error) {
	return rememberJSON(ctx, d, ring, meta.NodeCA, func() (bus.Authority, error) { return bus.NewAuthority(time.Now()) })
}

// changeBusAuthority puts another authority in the place of the one in the database,
// if there is one. Servers that run keep theirs until they are started again.
func changeBusAuthority(ctx context.Context, d *db.DB, ring *seal.Keyring) error {
	a, err := bus.NewAuthority(time.Now())
	if err != nil {
		return err
	}
	return d.Write(ctx, func(tx *db.Tx) error {
		sealed, ok, err := meta.Read(tx, meta.BusCA)
		if err != nil || !ok {
			return err
		}
		return replaceSealed(tx, ring, meta.BusCA, "the authority of the bus was", sealed, a)
	})
}

// busTLS says how the listener for boxes proves itself: by a certificate of the bus's
// own authority, by one from files or of the server, or, with none, not at all.
func (a *App) busTLS(ctx context.Context) (own *bus.Authority, given *tls.Config, err error) {
	switch {
	case a.cfg.NATSClear():
	case a.cfg.NATSCert != "":
		given, err = certificate.FileTLS(a.cfg.NATSCert, a.cfg.NATSKey, a.log)
	case a.cfg.NATSCertified() && a.authority != nil:
		given = a.authority.TLS()
		given.NextProtos = nil // who connects is no browser
	default:
		own, err = busAuthority(ctx, a.db, a.ring)
	}
	return own, given, err
}

// changeBusKeys puts other NATS seeds in the place of those in the database.
// Servers that run keep theirs until they are started again. change may be
// called more than once.
func changeBusKeys(ctx context.Context, d *db.DB, ring *seal.Keyring, change func(*bus.Keys) error) error {
	return d.Write(ctx, func(tx *db.Tx) error {
		sealed, ok, err := meta.Read(tx, meta.BusKeys)
		if err != nil || !ok {
			return cmp.Or(err, db.ErrNoRows)
		}
		b, err := ring.Unseal(meta.BusKeys, sealed)
		if err != nil {
			return fmt.Errorf("%s: %w", meta.BusKeys, err)
		}
		var k bus.Keys
		if err := json.Unmarshal(b, &k); err != nil {
			return err
		}
		if err := change(&k); err != nil {
			return err
		}
		return replaceSealed(tx, ring, meta.BusKeys, "the keys of the bus were", sealed, k)
	})
}

// clientKeys seal the client_ids of programs that registered themselves. They
// are a key of their own, sealed in the database, because a client_id has no
// end: it outlives the master key.
func clientKeys(ctx context.Context, d *db.DB, ring *seal.Keyring) (*seal.Keyring, error) {
	b, err := rememberSealed(ctx, d, ring, meta.ClientKey, func() ([]byte, error) { return []byte(seal.New().Reveal()), nil })
	if err != nil {
		return nil, err
	}
	return seal.Parse(string(b))
}

// pushKeys are the keys by which browsers know this server. They have no end: a browser
// takes messages of no other.
func pushKeys(ctx context.Context, d *db.DB, ring *seal.Keyring) (webpush.Keys, error) {
	return rememberJSON(ctx, d, ring, meta.PushKeys, webpush.NewKeys)
}

// setupToken returns the token of the first-boot address: the configured one, or
// one that is made once and kept until it is used.
func setupToken(ctx context.Context, d *db.DB, c *config.Config) (string, error) {
	if c.SetupToken != "" {
		return c.SetupToken, nil
	}
	return remember(ctx, d, "setup-token", func() (string, error) { return id.Secret(id.Setup), nil })
}
