package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"yardmaster/internal/bus"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/event/hashchain"
	"yardmaster/internal/event/notary"
	"yardmaster/internal/seal"
	"yardmaster/internal/seal/keys"
)

// KeyChest is the master keys of a server with what they seal, for the commands
// that look after them.
type KeyChest struct {
	cfg  *config.Config
	db   *db.DB
	ring *seal.Keyring
	lock *os.File // nil: servers may run
}

// exists tells whether the database is a file of SQLite. It fails if that is not there.
func exists(c *config.Config) (lite bool, err error) {
	path, lite := strings.CutPrefix(c.Database, "sqlite:")
	if lite {
		if _, err := os.Stat(path); err != nil {
			return lite, fmt.Errorf("there is no database (%w): name the server's folder with --data, or its database with --database", err)
		}
	}
	return lite, nil
}

// OpenKeys opens the database of a server that was started before, and its
// master keys. Whoever is going to change something holds the data folder of a
// SQLite server, which must be stopped; servers on PostgreSQL may run.
func OpenKeys(ctx context.Context, c *config.Config, change bool) (_ *KeyChest, err error) {
	lite, err := exists(c)
	if err != nil {
		return nil, err
	}
	k := &KeyChest{cfg: c}
	if k.ring, err = readKeys(ctx, c); err != nil {
		return nil, err
	}
	if k.ring == nil {
		return nil, fmt.Errorf("there is no %s: say where the master key is with master-key-file or master-key-command", keyPlace(c))
	}
	if lite && change {
		if err := k.hold(); err != nil {
			return nil, err
		}
	}
	if k.db, err = db.Open(ctx, c.Database, db.Options{}); err != nil {
		return nil, errors.Join(fmt.Errorf("open the database: %w", err), k.Close())
	}
	return k, nil
}

// hold keeps servers off the data folder.
func (k *KeyChest) hold() (err error) {
	if k.lock != nil {
		return nil
	}
	if _, err := os.Stat(k.cfg.Data); err != nil {
		return err
	}
	if k.lock, err = lock(k.cfg.Data); err != nil {
		return fmt.Errorf("%w: stop it first", err)
	}
	return nil
}

// Close releases the locks and the database that OpenKeys took.
func (k *KeyChest) Close() error {
	var errs []error
	if k.db != nil {
		errs = append(errs, k.db.Close())
	}
	if k.lock != nil {
		errs = append(errs, unlock(k.lock))
	}
	return errors.Join(errs...)
}

// notary returns a notary for a command. It logs nothing and sends no mail.
func (k *KeyChest) notary() *notary.Notary {
	n := newNotary(k.cfg, k.db, k.ring)
	n.Logger = slog.New(slog.DiscardHandler)
	return n
}

// HeldKey is one master key.
type HeldKey struct {
	ID     string // empty: values that no key opens
	Here   bool   // the server has it
	Seals  bool
	Values int64  // that are sealed with it
	Audit  string // public key that heads of the record are verified with
}

// List is every key that the server has, the one that seals first, and every
// other one that the database is sealed with.
func (k *KeyChest) List(ctx context.Context) ([]HeldKey, error) {
	census, err := k.census(ctx)
	if err != nil {
		return nil, err
	}
	var out []HeldKey
	signers := notary.Signers(k.ring)
	for i, id := range k.ring.IDs() {
		out = append(out, HeldKey{id, true, i == 0, census.Under(id), hashchain.PublicKey(signers[i])})
	}
	for _, id := range census.Keys() {
		if !slices.Contains(k.ring.IDs(), id) {
			out = append(out, HeldKey{ID: id, Values: census.Under(id)})
		}
	}
	return out, nil
}

func (k *KeyChest) census(ctx context.Context) (keys.Census, error) {
	return keys.Take(ctx, k.db, k.ring, sealedColumns())
}

// Rotate seals every value anew with the first key, and makes that key before,
// if another is to be made: where the keys are in a file, it is the only one
// there and the server is a SQLite one; or where another is asked for. It may
// be cut off at any moment, and goes on when it is called again. What it does
// is written to out.
func (k *KeyChest) Rotate(ctx context.Context, another bool, out io.Writer) error {
	census, err := k.census(ctx)
	if err != nil {
		return err
	}
	if err := keys.Opens(k.ring, census); err != nil {
		return fmt.Errorf("%s has the master key %s, but %w", keyPlace(k.cfg), strings.Join(k.ring.IDs(), ", "), err)
	}
	if another || census.Under(k.ring.ID()) == census.Total() {
		if err := k.renew(another, out); err != nil {
			return err
		}
	}
	stuck, err := keys.Rotate(ctx, k.db, k.ring, sealedColumns(), func(column string, n int) {
		fmt.Fprintf(out, "%s: %d sealed with %s\n", column, n, k.ring.ID())
	})
	if err != nil {
		return err
	}
	for _, s := range stuck {
		fmt.Fprintf(out, "%s, row %s: stays as it is: %v\n", s.Column, s.Row, s.Err)
	}
	if census, err = k.census(ctx); err != nil {
		return err
	}
	left := census.Total() - census.Under(k.ring.ID())
	fmt.Fprintf(out, "%d values are sealed with %s, %d with other keys.\n", census.Under(k.ring.ID()), k.ring.ID(), left)
	if left > 0 {
		return fmt.Errorf("%d values are not sealed with %s: keep the other keys, and run this again once every server seals with it", left,
			k.ring.ID())
	}
	for _, id := range k.ring.IDs()[1:] {
		fmt.Fprintf(out, "%s holds no value any more: `yardmaster keys forget %s` removes it.\n", id, id)
	}
	return nil
}

// RotateBus gives the message bus new seeds: what the old ones have signed, or
// would sign in the hands of others, is worth nothing once the server is started
// again. Every box is then refused, or refuses a bus of another authority than it
// knows, asks over HTTPS for new credentials and for the authority at once, and goes
// on with its runs.
func (k *KeyChest) RotateBus(ctx context.Context, out io.Writer) error {
	fresh, err := bus.NewKeys()
	if err != nil {
		return err
	}
	if err := changeBusKeys(ctx, k.db, k.ring, func(keys *bus.Keys) error { *keys = fresh; return nil }); err != nil {
		return err
	}
	if err := changeBusAuthority(ctx, k.db, k.ring); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "The message bus has new keys, and an authority for its certificates. Start every server on this database again: until then it uses the old ones.")
	return err
}

// renew makes a new first key, or says why not: everything is sealed with the
// first one already.
func (k *KeyChest) renew(another bool, out io.Writer) error {
	path := keyFile(k.cfg)
	switch {
	case path == "" && len(k.ring.IDs()) > 1:
		return nil
	case path == "":
		return fmt.Errorf("everything is sealed with %s, the first key of %s, already: put a new one (`yardmaster keys new` makes one) before it, keep the old one behind it, and run this again",
			k.ring.ID(), keyPlace(k.cfg))
	case another:
	case len(k.ring.IDs()) > 1:
		return nil // it was done before; what is left is to forget the old one
	case k.db.Engine() == db.Postgres:
		return fmt.Errorf("everything is sealed with %s already. Every server must have a new key before one of them seals with it: add one (`yardmaster keys new`) as the last line of %s on each, restart them, move it to the first line on each, restart them, and run this again. With --new this server, if it is the only one and stopped, gets one now",
			k.ring.ID(), path)
	}
	if err := k.hold(); err != nil { // a server that runs would not know the key
		return err
	}
	ring, err := seal.New().Before(k.ring)
	if err != nil {
		return err
	}
	if err := ring.Replace(path); err != nil {
		return err
	}
	k.ring = ring
	fmt.Fprintf(out, "%s has a new first key, %s. Put a copy of the file where the last one is kept, now.\n", path, ring.ID())
	return nil
}

// Forget takes a key out of the file of them, if no value is sealed with it.
// Where there is no file it says that the key may go.
func (k *KeyChest) Forget(ctx context.Context, id string, out io.Writer) error {
	i := slices.Index(k.ring.IDs(), id)
	switch {
	case i < 0:
		return fmt.Errorf("there is no key %s here, but %s", id, strings.Join(k.ring.IDs(), ", "))
	case i == 0:
		return fmt.Errorf("%s is the key that seals: `yardmaster keys rotate` puts another in its place first", id)
	}
	census, err := k.census(ctx)
	if err != nil {
		return err
	}
	if n := census.Under(id); n > 0 {
		return fmt.Errorf("%d values are sealed with %s, and would be lost: `yardmaster keys rotate` seals them anew", n, id)
	}
	if err := k.notary().Introduce(ctx); err != nil {
		return fmt.Errorf("what the key has signed could not be vouched for: %w", err)
	}
	path := keyFile(k.cfg)
	if path == "" {
		fmt.Fprintf(out, "No value is sealed with %s: take it out of %s.\n", id, keyPlace(k.cfg))
		return nil
	}
	// As it is now: another command may have changed it.
	ring, err := seal.Read(path)
	if err != nil {
		return err
	}
	if ring.ID() == id || len(ring.IDs()) == 1 {
		return errors.New("the keys were changed meanwhile: try again")
	}
	if err := ring.Without(id).Replace(path); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s has no key %s any more. Links, forms and mailed codes that are older than the key that seals end with it, as do copies of the database from then without a copy of the key.\n", path, id)
	return nil
}
