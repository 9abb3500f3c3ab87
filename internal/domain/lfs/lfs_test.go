package lfs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/gitlfs"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

type noRepos struct{}

func (noRepos) At(*db.Tx, codehost.Repo) (Repo, bool, error) { return Repo{}, false, nil }

type allRoom struct{}

func (allRoom) ObjectsLeft(context.Context, string) (int64, string, error) { return -1, "", nil }
func (allRoom) ObjectMade(*db.Tx) error                                    { return nil }

// shelf is a service with a repository, and a folder of objects.
type shelf struct {
	*Service
	t    *testing.T
	repo Repo
	dir  string
}

func newShelf(t *testing.T, d *db.DB) *shelf {
	t.Helper()
	s := &shelf{t: t, repo: Repo{ID: id.New(), Account: id.New()}, dir: t.TempDir()}
	ring := seal.New()
	s.Service = New(Needs{
		DB: d, Ring: ring, Objects: blob.NewFolder(s.dir, "http://yard", ring, time.Now), Repos: noRepos{}, Room: allRoom{},
		Logger: slog.New(slog.DiscardHandler), BaseURL: "http://yard", Clock: time.Now,
	})
	if err := d.Write(db.WithAccount(t.Context(), s.repo.Account), func(tx *db.Tx) error {
		return seed.Add(tx, seed.Account{ID: s.repo.Account, Login: s.repo.Account[:8]},
			seed.Repo{ID: s.repo.ID, Account: s.repo.Account, Owner: "acme", Name: "web"})
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// files is how many objects there are in the folder, whole or not.
func (s *shelf) files() (n int) {
	s.t.Helper()
	if err := filepath.WalkDir(s.dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// rows are the stored objects and the uploads of the repository.
func (s *shelf) rows(p gitlfs.Pointer) (stored, uploads int) {
	s.t.Helper()
	if err := s.DB.Read(s.t.Context(), func(tx *db.Tx) error {
		there, err := storedOf(tx, s.repo.ID, []string{p.OID})
		if err != nil {
			return err
		}
		open, err := unfinished.All(tx, db.Micros(tx.Now.Add(time.Hour)), atOnce)
		stored, uploads = len(there), len(open)
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
	return stored, uploads
}

func pointerTo(text []byte) gitlfs.Pointer {
	sum := sha256.Sum256(text)
	return gitlfs.Pointer{OID: hex.EncodeToString(sum[:]), Size: int64(len(text))}
}

// Nothing is left of an upload that fails in any way; several of one object at once leave
// one of it.
func TestUploadsLeaveOneOrNothing(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := newShelf(t, d)
		text := bytes.Repeat([]byte("object\n"), 1000)
		p := pointerTo(text)
		for name, c := range map[string]struct {
			from io.Reader
			want error
		}{
			"other bytes": {bytes.NewReader(bytes.Repeat([]byte("0bject\n"), 1000)), errHash},
			"cut":         {bytes.NewReader(text[:6999]), blob.ErrSize},
			"too long":    {io.MultiReader(bytes.NewReader(text), bytes.NewReader([]byte("x"))), blob.ErrSize},
			"broken":      {io.MultiReader(bytes.NewReader(text[:10]), broken{}), io.ErrUnexpectedEOF},
			"not empty":   {bytes.NewReader(nil), blob.ErrSize},
		} {
			err := s.store(t.Context(), s.repo, p, c.from)
			stored, uploads := s.rows(p)
			if !errors.Is(err, c.want) || stored != 0 || uploads != 0 || s.files() != 0 {
				t.Errorf("%s: %v, %d stored, %d uploads, %d files", name, err, stored, uploads, s.files())
			}
		}
		if err := s.store(t.Context(), s.repo, gitlfs.Pointer{OID: p.OID}, bytes.NewReader(nil)); !errors.Is(err, errHash) {
			t.Errorf("no bytes are taken for some: %v", err)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := s.store(t.Context(), s.repo, p, bytes.NewReader(text)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if stored, uploads := s.rows(p); stored != 1 || uploads != 0 || s.files() != 1 {
			t.Errorf("%d stored, %d uploads, %d files", stored, uploads, s.files())
		}
	})
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// What a crash leaves of an upload is removed a day later, and no other.
func TestAbandonedUploads(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := newShelf(t, d)
		text := []byte("object")
		p := pointerTo(text)
		for _, age := range []time.Duration{abandoned + time.Hour, time.Hour} {
			r := row{ID: id.New(), AccountID: s.repo.Account, RepoID: s.repo.ID, OID: p.OID, Size: p.Size}
			if err := s.Objects.Put(t.Context(), r.key(), bytes.NewReader(text), p.Size, "application/octet-stream"); err != nil {
				t.Fatal(err)
			}
			if err := s.DB.Write(t.Context(), func(tx *db.Tx) error {
				_, err := insertUpload.Exec(tx, insertArgs{row: r, BegunAt: tx.Now.Add(-age)})
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.store(t.Context(), s.repo, p, bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		if err := s.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		if stored, uploads := s.rows(p); stored != 1 || uploads != 1 || s.files() != 2 {
			t.Errorf("%d stored, %d uploads, %d files", stored, uploads, s.files())
		}
	})
}
