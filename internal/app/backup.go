package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"yardmaster/internal/backup"
	"yardmaster/internal/blob"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/nodes"
	"yardmaster/internal/domain/artifact"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/domain/lfs"
	"yardmaster/internal/domain/release"
)

// Backup is what a backup is made, or put back, with.
type Backup struct {
	Version string    // of this program
	Keys    bool      // the master keys and the signed heads of the record go into it
	Part    bool      // the repositories of other nodes may lack
	Out     io.Writer // is told what is done
}

// namedObjects are the objects that rows name, by the domains that store some.
func namedObjects(tx *db.Tx, at time.Time) (out []blob.Named, err error) {
	seen := map[string]bool{}
	for _, of := range []func(*db.Tx, time.Time) ([]blob.Named, error){artifact.Objects, ci.Objects, lfs.Objects, release.Objects} {
		some, err := of(tx, at)
		if err != nil {
			return nil, err
		}
		for _, o := range some {
			if !seen[o.Key] {
				seen[o.Key] = true
				out = append(out, o)
			}
		}
	}
	return out, nil
}

// Make copies the server that c configures into a new folder. The server may run: while the copy is
// made it deletes nothing of what the copy needs. The order is the database, then of each repository
// the refs, then its objects, then the store of objects.
func (b Backup) Make(ctx context.Context, c *config.Config, to string) (err error) {
	lite, err := exists(c)
	if err != nil {
		return err
	}
	root := filepath.Join(c.Data, backup.GitFolder)
	if _, err := os.Stat(root); err != nil {
		return fmt.Errorf("there are no repositories (%w): name the server's folder with --data", err)
	}
	if abs, err := filepath.Abs(to); err != nil || within(c.Data, abs) {
		return errors.Join(err, fmt.Errorf("%s is in the data folder %s: a backup in what it copies would grow with each", to, c.Data))
	}
	if err := b.keysThere(c); err != nil {
		return err
	}
	f, err := backup.Make(to, time.Now)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(f.Path))
		}
	}()
	release, err := backup.Hold(ctx, root)
	if err != nil {
		return err
	}
	defer release()
	m := backup.Manifest{Program: b.Version, Engine: db.Postgres.String(), Database: "database.dump", WithKeys: b.Keys}
	if lite {
		m.Engine, m.Database = db.SQLite.String(), "database.db"
	}
	before, err := refsOf(root)
	if err != nil {
		return err
	}
	objects, err := b.database(ctx, c, f, &m)
	if err != nil {
		return err
	}
	if err := b.repositories(ctx, f, root, before, &m); err != nil {
		return err
	}
	if err := b.objects(ctx, c, f, objects, &m); err != nil {
		return err
	}
	if b.Keys {
		if err := errors.Join(f.File(keyFile(c), backup.KeyFile), f.File(c.HeadsFile, backup.HeadsFile)); err != nil {
			return err
		}
	}
	if err := f.File(filepath.Join(c.Data, nodes.File), nodes.File); err != nil {
		return err
	}
	if err := f.Finish(m); err != nil {
		return err
	}
	fmt.Fprintf(b.Out, "%s is whole.\n", f.Path)
	for _, key := range m.Lacking {
		fmt.Fprintf(b.Out, "The server itself lacks the object %s, which a row names.\n", key)
	}
	sayElsewhere(b.Out, m)
	if !b.Keys {
		fmt.Fprintf(b.Out, "It has no master key: keep a copy of %s elsewhere, as nothing that is sealed opens without it.\n", keyPlace(c))
	}
	return nil
}

// refsOf are the refs of all repositories.
func refsOf(root string) (map[string]map[string]string, error) {
	names, err := backup.Repositories(root)
	out := map[string]map[string]string{}
	for _, name := range names {
		if err == nil {
			out[name], err = backup.Refs(filepath.Join(root, filepath.FromSlash(name)))
		}
	}
	return out, err
}

func (b Backup) database(ctx context.Context, c *config.Config, f *backup.Folder, m *backup.Manifest) (objects []blob.Named, err error) {
	d, err := db.Open(ctx, c.Database, db.Options{AsIs: true})
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := d.Read(ctx, func(tx *db.Tx) (err error) {
		m.Elsewhere, err = b.elsewhere(tx, c.Data)
		return err
	}); err != nil {
		return nil, err
	}
	copied, err := d.Copy(ctx, f.Within(m.Database), func(tx *db.Tx) (err error) {
		m.MadeAt = tx.Now
		objects, err = namedObjects(tx, tx.Now)
		return err
	})
	if err == nil {
		err = f.Sum(m.Database)
	}
	if err != nil {
		return nil, err
	}
	m.Schema, m.Rows = copied.Schema, copied.Rows
	var rows int64
	for _, n := range copied.Rows {
		rows += n
	}
	fmt.Fprintf(b.Out, "database: %d rows in %d tables\n", rows, len(copied.Rows))
	return objects, nil
}

// elsewhere are the other nodes that have repositories, which are in folders of theirs. It fails
// unless the backup may be a part.
func (b Backup) elsewhere(tx *db.Tx, data string) (names []string, err error) {
	if all, err := nodes.Elsewhere(tx, ""); err != nil || len(all) == 0 {
		return nil, err // it is no cluster, and this server has no id
	}
	own, err := nodes.Identity(data)
	if err != nil {
		return nil, err
	}
	others, err := nodes.Elsewhere(tx, own)
	for i, n := 0, 0; i < len(others); i++ {
		if n++; i+1 == len(others) || others[i+1].Node != others[i].Node {
			names, n = append(names, fmt.Sprintf("%s (%d)", others[i].Node, n)), 0
		}
	}
	if err == nil && len(names) > 0 && !b.Part {
		err = fmt.Errorf("other nodes have repositories: %s; with --part this backup is of the database and of what this node has, "+
			"and each of them makes one of its own", strings.Join(names, ", "))
	}
	return names, err
}

func (b Backup) repositories(
	ctx context.Context, f *backup.Folder, root string, before map[string]map[string]string, m *backup.Manifest,
) error {
	names, err := backup.Repositories(root)
	if err != nil {
		return err
	}
	refs := 0
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := f.Repository(root, name, before[name])
		if err != nil {
			return fmt.Errorf("copy the repository %s: %w", name, err)
		}
		m.Repositories = append(m.Repositories, r)
		refs += r.Refs
	}
	fmt.Fprintf(b.Out, "repositories: %d with %d refs\n", len(names), refs)
	return nil
}

// storeOf opens the store of objects of a server that does not run here.
func storeOf(c *config.Config) (blob.Store, error) {
	if at, ok := c.BlobFolder(); ok {
		return blob.NewFolder(at, "", nil, time.Now), nil
	}
	if c.Blob == config.BlobOff {
		return blob.Off{}, nil
	}
	bucket, err := blob.ParseBucket(c.Blob)
	if err != nil {
		return nil, fmt.Errorf("blob: %w", err)
	}
	return blob.NewS3(bucket)
}

// objects copies the objects that the copied rows name.
func (b Backup) objects(ctx context.Context, c *config.Config, f *backup.Folder, named []blob.Named, m *backup.Manifest) (err error) {
	from, err := storeOf(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to := blob.NewFolder(f.Within(backup.BlobFolder), "", nil, time.Now)
	for _, o := range named {
		size, err := copyObject(ctx, from, to, o.Key)
		if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrOff) {
			m.Lacking = append(m.Lacking, o.Key)
			continue
		}
		if err == nil {
			err = f.Sum(objectFile(o.Key))
		}
		if err != nil {
			return fmt.Errorf("copy the object %s: %w", o.Key, err)
		}
		m.Objects++
		m.ObjectBytes += size
	}
	fmt.Fprintf(b.Out, "objects: %d of %d bytes\n", m.Objects, m.ObjectBytes)
	return nil
}

// objectFile is the file of an object in a backup.
func objectFile(key string) string { return path.Join(backup.BlobFolder, key+"~") }

func copyObject(ctx context.Context, from, to blob.Store, key string) (size int64, err error) {
	in, info, err := from.Get(ctx, key)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	return info.Size, to.Put(ctx, key, in, info.Size, info.Type)
}

// keysThere fails if the master keys shall go into the backup and are in no file.
func (b Backup) keysThere(c *config.Config) error {
	if !b.Keys {
		return nil
	}
	file := keyFile(c)
	if file == "" {
		return fmt.Errorf("--with-keys: the master keys are in %s and in no file", keyPlace(c))
	}
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("--with-keys: %w", err)
	}
	return nil
}

// putObjects stores the objects of a backup in the store that c configures.
func putObjects(ctx context.Context, c *config.Config, from string) (err error) {
	root := filepath.Join(from, backup.BlobFolder)
	have := blob.NewFolder(root, "", nil, time.Now)
	to, err := storeOf(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	return filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(root, at)
		if err != nil {
			return err
		}
		_, err = copyObject(ctx, have, to, strings.TrimSuffix(filepath.ToSlash(rel), "~"))
		return err
	})
}
