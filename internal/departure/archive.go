package departure

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
)

const manifestFile = "manifest.json"

// ErrNoAccount means that there is no account of a login.
var ErrNoAccount = errors.New("there is no such account")

// List says what an account has outside of its rows, and where its record ends.
func List(tx *db.Tx, login string) (m Manifest, err error) {
	account, ok, err := accountOf.Maybe(tx, login)
	if err == nil && !ok {
		err = fmt.Errorf("%w as %q", ErrNoAccount, login)
	}
	if err != nil {
		return m, err
	}
	m = Manifest{Form: Form, AccountID: account, Login: login, MadeAt: tx.Now, Rows: map[string]int64{}, Left: map[string]string{},
		Hidden: map[string][]string{}, Files: map[string]string{}}
	if m.Schema, err = db.SchemaVersion(tx); err != nil {
		return m, err
	}
	if m.Record.Seq, m.Record.Hash, err = event.Head(tx, account); err != nil {
		return m, err
	}
	repos, err := reposOf.All(tx, account)
	for _, r := range repos {
		if r.Host == builtIn {
			m.Repositories = append(m.Repositories, Repository{Owner: r.Owner, Name: r.Name})
		} else {
			m.Elsewhere = append(m.Elsewhere, r.Host+": "+r.Owner+"/"+r.Name)
		}
	}
	return m, err
}

// Rows writes the rows of an account into the folder tables of dir, and says what they are. It is
// all of one moment.
func Rows(tx *db.Tx, login, dir string) (m Manifest, err error) {
	if m, err = List(tx, login); err != nil {
		return m, err
	}
	if err := os.Mkdir(filepath.Join(dir, "tables"), 0o700); err != nil {
		return m, err
	}
	all, unknown, err := Parts(tx)
	if err == nil && len(unknown) > 0 {
		err = fmt.Errorf("it is not known whose the rows of %v are", unknown)
	}
	if err != nil {
		return m, err
	}
	for _, p := range all {
		if err := m.table(tx, p, dir); err != nil {
			return m, err
		}
	}
	return m, m.people(tx, dir)
}

// builtIn is the name of this server as a code host.
const builtIn = "builtin"

// table writes what the account has of one table.
func (m *Manifest) table(tx *db.Tx, p Part, dir string) error {
	if p.Where == "" {
		return nil
	}
	part := db.Part{Table: p.Table, Where: p.Where}
	if p.Private != "" {
		n, err := db.CountPart(tx, part, m.AccountID)
		if n > 0 {
			m.Left[p.Table] = p.Private
		}
		return err
	}
	columns, err := db.ColumnNames(tx, p.Table)
	if err != nil {
		return err
	}
	out := hidden[p.Table]
	if len(out) > 0 {
		m.Hidden[p.Table] = out
	}
	columns = slices.DeleteFunc(columns, func(c string) bool { return slices.Contains(out, c) })
	return m.lines(tx, part, columns, dir)
}

// people writes who belongs to the account, or did: no more of them than the account sees.
func (m *Manifest) people(tx *db.Tx, dir string) error {
	part := db.Part{Table: "users", Where: `id IN (SELECT user_id FROM memberships WHERE account_id = $1
		UNION SELECT user_id FROM former_members WHERE account_id = $1)`}
	m.Left["users"] = "of a person, only what the account sees: id, login, name, avatar_url"
	return m.lines(tx, part, []string{"id", "login", "name", "avatar_url"}, dir)
}

func (m *Manifest) lines(tx *db.Tx, part db.Part, columns []string, dir string) (err error) {
	f, err := os.OpenFile(filepath.Join(dir, "tables", part.Table+".jsonl"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	err = db.EachOf(tx, part, columns, m.AccountID, func(line []byte) error {
		m.Rows[part.Table]++
		_, err := w.Write(line)
		return err
	})
	return errors.Join(err, w.Flush())
}

// Pack writes the folder dir and its manifest into a new file, a compressed tar, and returns the sum
// of that. It is there whole or not at all.
func Pack(m Manifest, dir, file string) (sum string, err error) {
	if _, err := os.Lstat(file); err == nil {
		return "", fmt.Errorf("%s is there already", file)
	}
	names, err := filesBelow(dir)
	if err != nil {
		return "", err
	}
	out, err := os.CreateTemp(filepath.Dir(file), ".archive-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, remove(out.Name())) }()
	hash := sha256.New()
	z := gzip.NewWriter(io.MultiWriter(out, hash))
	t := tar.NewWriter(z)
	for _, name := range names {
		if m.Files[name], err = add(t, filepath.Join(dir, filepath.FromSlash(name)), name, m.MadeAt); err != nil {
			return "", errors.Join(err, out.Close())
		}
	}
	said, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = t.WriteHeader(&tar.Header{Name: manifestFile, Mode: 0o600, Size: int64(len(said)), ModTime: m.MadeAt})
	}
	if err == nil {
		_, err = t.Write(said)
	}
	if err = errors.Join(err, t.Close(), z.Close(), out.Sync(), out.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), os.Link(out.Name(), file)
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func filesBelow(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(at string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, at)
		names = append(names, filepath.ToSlash(rel))
		return err
	})
	slices.Sort(names)
	return names, err
}

func add(t *tar.Writer, path, name string, at time.Time) (sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: info.Size(), ModTime: at}); err != nil {
		return "", err
	}
	hash := sha256.New()
	if _, err := io.Copy(io.MultiWriter(t, hash), f); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// Read holds every file of an archive against its manifest, and returns that and the sum of the file.
func Read(file string) (m Manifest, sum string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return m, "", err
	}
	defer f.Close()
	whole := sha256.New()
	in := io.TeeReader(f, whole)
	z, err := gzip.NewReader(in)
	if err != nil {
		return m, "", fmt.Errorf("%s is no archive of an account: %w", file, err)
	}
	found := map[string]string{}
	t := tar.NewReader(z)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return m, "", fmt.Errorf("%s is no whole archive: %w", file, err)
		}
		if h.Name == manifestFile {
			if err := json.NewDecoder(t).Decode(&m); err != nil {
				return m, "", fmt.Errorf("the manifest of %s: %w", file, err)
			}
			continue
		}
		hash := sha256.New()
		if _, err := io.Copy(hash, t); err != nil {
			return m, "", fmt.Errorf("%s is no whole archive: %w", file, err)
		}
		found[h.Name] = hex.EncodeToString(hash.Sum(nil))
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return m, "", err
	}
	if m.Form != Form {
		return m, "", fmt.Errorf("%s is no archive of an account that this program knows: its form is %d", file, m.Form)
	}
	for name, sum := range m.Files {
		if found[name] != sum {
			return m, "", fmt.Errorf("%s is not what its manifest says: %s was changed or is missing", file, name)
		}
	}
	if len(found) != len(m.Files) {
		return m, "", fmt.Errorf("%s has files that its manifest does not name", file)
	}
	return m, hex.EncodeToString(whole.Sum(nil)), nil
}
