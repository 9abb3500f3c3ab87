package app

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"yardmaster/internal/backup"
	"yardmaster/internal/blob"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/lease"
	"yardmaster/internal/db/nodes"
	"yardmaster/internal/departure"
	"yardmaster/internal/domain/donation"
	"yardmaster/internal/durable"
	"yardmaster/internal/event/hashchain"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
)

// Departure is what one account leaves a server with.
type Departure struct {
	Version string    // of this program
	Out     io.Writer // is told what is done

	step func() error                                                // called between any two steps; tests end there
	told func(tx *db.Tx, u departure.Unfinished, proof string) error // called when all is gone
}

// Export writes all that an account has into a new file. The server may run: meanwhile it deletes
// nothing of what the archive needs.
func (d Departure) Export(ctx context.Context, c *config.Config, login, file string) (err error) {
	if _, err := exists(c); err != nil {
		return err
	}
	root := filepath.Join(c.Data, backup.GitFolder)
	dir, err := os.MkdirTemp(filepath.Dir(file), ".account-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	release, err := backup.Hold(ctx, root)
	if err != nil {
		return err
	}
	defer release()
	m, err := d.rows(ctx, c, login, dir)
	if err != nil {
		return err
	}
	m.Program = d.Version
	if err := bundles(ctx, root, dir, &m); err != nil {
		return err
	}
	if err := keep(ctx, c, dir, &m); err != nil {
		return err
	}
	sum, err := departure.Pack(m, dir, file)
	if err != nil {
		return err
	}
	var rows int64
	for _, n := range m.Rows {
		rows += n
	}
	fmt.Fprintf(d.Out, "%s is whole. Rows: %d, in tables: %d, repositories: %d, objects: %d.\nSHA-256 %s\n", file, rows, len(m.Rows),
		len(m.Repositories), len(m.Objects), sum)
	for _, r := range m.Elsewhere {
		fmt.Fprintf(d.Out, "Not in it, as the code host has it: %s\n", r)
	}
	return nil
}

// rows writes the rows of an account into dir, all of one moment, and names its objects.
func (d Departure) rows(ctx context.Context, c *config.Config, login, dir string) (m departure.Manifest, err error) {
	data, err := db.Open(ctx, c.Database, db.Options{AsIs: true})
	if err != nil {
		return m, fmt.Errorf("open the database: %w", err)
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	return m, data.Read(ctx, func(tx *db.Tx) (err error) {
		if m, err = departure.Rows(tx, login, dir); err != nil {
			return err
		}
		if err := here(tx, c, m.Repositories); err != nil {
			return err
		}
		named, err := namedObjects(tx, tx.Now)
		for _, o := range named {
			if strings.HasPrefix(o.Key, m.AccountID+"/") {
				m.Objects = append(m.Objects, departure.Object{Key: o.Key, Size: o.Size})
			}
		}
		return err
	})
}

// here fails if another node has one of the repositories.
func here(tx *db.Tx, c *config.Config, all []departure.Repository) error {
	if away, err := nodes.Elsewhere(tx, ""); err != nil || len(away) == 0 {
		return err // it is no cluster
	}
	own, err := nodes.Identity(c.Data)
	if err != nil {
		return err
	}
	away, err := nodes.Elsewhere(tx, own)
	for _, a := range away {
		for _, r := range all {
			if a.Owner == r.Owner && a.Name == r.Name {
				return fmt.Errorf("the node %s has %s/%s: bring the account's repositories to one node first", a.Node, r.Owner, r.Name)
			}
		}
	}
	return err
}

// folderOf is the folder of a repository.
func folderOf(root string, r departure.Repository) string {
	return filepath.Join(root, r.Owner, r.Name+".git")
}

// bundles writes the repositories of an account into dir.
func bundles(ctx context.Context, root, dir string, m *departure.Manifest) error {
	for i := range m.Repositories {
		r := &m.Repositories[i]
		from := folderOf(root, *r)
		if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
			r.Lost = true
			continue
		}
		to := filepath.Join(dir, filepath.FromSlash(r.File()))
		err := os.MkdirAll(filepath.Dir(to), 0o700)
		if err == nil {
			to, err = filepath.Abs(to)
		}
		if err == nil {
			r.Empty, err = backup.Bundle(ctx, from, to)
		}
		if err != nil {
			return fmt.Errorf("bundle %s/%s: %w", r.Owner, r.Name, err)
		}
	}
	return nil
}

// keep writes the objects of an account into dir.
func keep(ctx context.Context, c *config.Config, dir string, m *departure.Manifest) (err error) {
	from, err := storeOf(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	for i := range m.Objects {
		o := &m.Objects[i]
		in, info, err := from.Get(ctx, o.Key)
		if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrOff) {
			o.Lacking = true
			continue
		}
		if err != nil {
			return fmt.Errorf("read the object %s: %w", o.Key, err)
		}
		o.Size = info.Size
		to := filepath.Join(dir, filepath.FromSlash(o.File()))
		if err = os.MkdirAll(filepath.Dir(to), 0o700); err == nil {
			err = durable.Stream(to, ".object-*", in)
		}
		if err = errors.Join(err, in.Close()); err != nil {
			return fmt.Errorf("write the object %s: %w", o.Key, err)
		}
	}
	return nil
}

// Delete deletes an account of which Export has made an archive, and writes the signed proof of it
// into a file. No server may run. Ended between any two steps, it goes on where it is called again.
func (d Departure) Delete(ctx context.Context, c *config.Config, login, archive, proof string) (err error) {
	k, err := OpenKeys(ctx, c, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	if k.db.Engine() == db.Postgres {
		held, err := lease.Take(ctx, lease.Config{DB: k.db, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return fmt.Errorf("stop the servers first: %w", err)
		}
		beating, end := context.WithCancel(ctx)
		var over sync.WaitGroup
		over.Go(func() { _ = held.Loop(beating) })
		defer func() {
			end()
			over.Wait()
			err = errors.Join(err, held.Release(context.WithoutCancel(ctx)))
		}()
	}
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	u, made, err := d.gone(ctx, k, login, archive)
	if err != nil {
		return err
	}
	if made == "" {
		if made, err = d.files(ctx, k, u); err != nil {
			return err
		}
	}
	if err := d.between(); err != nil {
		return err
	}
	if err := durable.Stream(proof, ".proof-*", strings.NewReader(made+"\n")); err != nil {
		return fmt.Errorf("%w: the account is deleted; the same command writes the proof again", err)
	}
	fmt.Fprintf(d.Out, "The account %s is deleted. The proof is %s, and the public key that verifies it is\n%s\n", login, proof,
		hashchain.PublicKey(departure.Signer(k.ring)))
	return nil
}

func (d Departure) between() error {
	if d.step == nil {
		return nil
	}
	return d.step()
}

// gone removes the rows of an account, unless that was done before. proof is that of an account of
// which nothing is left.
func (d Departure) gone(ctx context.Context, k *KeyChest, login, archive string) (u departure.Unfinished, proof string, err error) {
	known := func(tx *db.Tx) (done bool, err error) {
		if u, done, err = departure.ReadUnfinished(tx, login); err != nil || done {
			return done, err
		}
		there, err := departure.Has(tx, login)
		if err != nil || there {
			return false, err
		}
		proof, done, err = departure.Proof(tx, login)
		return done, err
	}
	var done bool
	if err := k.db.Read(ctx, func(tx *db.Tx) (err error) { done, err = known(tx); return err }); err != nil || done {
		return u, proof, err
	}
	if archive == "" {
		return u, "", errors.New("name the archive that account export has made with --archive: without one nothing is deleted")
	}
	m, sum, err := departure.Read(archive)
	if err != nil {
		return u, "", err
	}
	if m.Login != login {
		return u, "", fmt.Errorf("%w: %s", departure.ErrOther, m.Login)
	}
	if err := d.between(); err != nil {
		return u, "", err
	}
	err = k.db.Write(ctx, func(tx *db.Tx) (err error) {
		if m.Mails, err = mail.IDsOf(tx, m.AccountID); err == nil {
			_, err = departure.Remove(tx, m, sum, d.Version, donation.Bereft)
		}
		return err
	})
	if err == nil {
		err = d.between()
	}
	if err == nil {
		err = k.db.Read(ctx, func(tx *db.Tx) (err error) { u, _, err = departure.ReadUnfinished(tx, login); return err })
	}
	return u, "", err
}

// files removes what an account whose rows are gone had outside of the database, and signs the proof.
func (d Departure) files(ctx context.Context, k *KeyChest, u departure.Unfinished) (proof string, err error) {
	root := filepath.Join(k.cfg.Data, backup.GitFolder)
	done, may, err := backup.Deleting(root)
	if err != nil {
		return "", err
	}
	if !may {
		return "", blob.ErrHeld
	}
	defer done()
	for _, r := range u.Deletion.Repositories {
		if err := d.repository(ctx, k, root, r); err != nil {
			return "", fmt.Errorf("remove %s/%s: %w", r.Owner, r.Name, err)
		}
	}
	if err := d.objects(ctx, k.cfg, u); err != nil {
		return "", err
	}
	if err := d.copies(ctx, k, &u); err != nil {
		return "", err
	}
	err = k.db.Write(ctx, func(tx *db.Tx) error {
		end := u
		end.Deletion.Removed = maps.Clone(u.Deletion.Removed)
		if err := end.Again(tx); err != nil {
			return err
		}
		end.Deletion.FilesGoneAt = tx.Now
		made, err := departure.Sign(departure.Signer(k.ring), end.Deletion)
		if err != nil {
			return err
		}
		proof = string(made)
		if d.told != nil {
			if err := d.told(tx, end, proof); err != nil {
				return err
			}
		}
		return departure.Finish(tx, end, made, tx.Now)
	})
	return proof, err
}

// copies removes what the server has kept of code hosts' repositories for the account alone, and its
// mails that are files.
func (d Departure) copies(ctx context.Context, k *KeyChest, u *departure.Unfinished) error {
	for i := range u.Deletion.Mirrors {
		m := &u.Deletion.Mirrors[i]
		err := k.db.Read(ctx, func(tx *db.Tx) (err error) { m.Stays, err = departure.MirrorTaken(tx, *m); return err })
		if err == nil && !m.Stays && filepath.IsLocal(m.Number) {
			err = os.RemoveAll(filepath.Join(mirrorsOf(k.cfg.Data, m.Host), m.Number+".git"))
		}
		if err != nil {
			return fmt.Errorf("remove the copy of a repository at %s: %w", m.Host, err)
		}
		if err := d.between(); err != nil {
			return err
		}
	}
	n, err := mail.Folder{Dir: filepath.Join(k.cfg.Data, "mail")}.Remove(func(l mail.Letter) bool {
		return slices.Contains(u.Rest.Mails, l.ID) || slices.Contains(u.Rest.Gone, l.To)
	})
	u.Deletion.Mails = int64(n)
	return err
}

func (d Departure) repository(ctx context.Context, k *KeyChest, root string, r departure.Repository) error {
	var taken bool
	err := k.db.Read(ctx, func(tx *db.Tx) (err error) { taken, err = departure.Taken(tx, r); return err })
	if err != nil || taken {
		return errors.Join(err, errors.New("another account has a repository of this name by now"))
	}
	if err := os.RemoveAll(folderOf(root, r)); err != nil {
		return err
	}
	_ = os.Remove(filepath.Join(root, r.Owner)) // fails if other repositories are in it
	return d.between()
}

func (d Departure) objects(ctx context.Context, c *config.Config, u departure.Unfinished) (err error) {
	from, err := storeOf(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	for _, o := range u.Deletion.Objects {
		if err := from.Delete(ctx, o.Key); err != nil && !errors.Is(err, blob.ErrOff) {
			return fmt.Errorf("remove the object %s: %w", o.Key, err)
		}
		if err := d.between(); err != nil {
			return err
		}
	}
	if at, ok := c.BlobFolder(); ok { // uploads that never arrived
		return os.RemoveAll(filepath.Join(at, u.Deletion.AccountID))
	}
	return nil
}

// Verified reads a proof that some keys may have signed, and the archive that it names, if file is not empty.
func (Departure) Verified(proof []byte, file string, keys ...ed25519.PublicKey) (departure.Deletion, error) {
	said, err := departure.Verify(bytes.TrimSpace(proof), keys...)
	if err != nil || file == "" {
		return said, err
	}
	m, sum, err := departure.Read(file)
	switch {
	case err != nil:
		return said, err
	case sum != said.Archive || m.AccountID != said.AccountID:
		return said, errors.New("the archive is not the one that the proof names")
	}
	return said, nil
}
