package lfs

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/gitlfs"
	"yardmaster/internal/id"
)

var age = db.S(`UPDATE lfs_objects SET begun_at = begun_at - $2, stored_at = stored_at - $2, told_at = told_at - $2 WHERE oid = $1`)
var ageBegun = db.S(`UPDATE lfs_begun SET begun_at = begun_at - $1`)

// keep stores an object of a repository that came some time ago.
func (s *shelf) keep(to Repo, text string, ago time.Duration) gitlfs.Pointer {
	s.t.Helper()
	p := pointerTo([]byte(text))
	if err := s.store(s.t.Context(), to, p, bytes.NewReader([]byte(text))); err != nil {
		s.t.Fatal(err)
	}
	s.write(func(tx *db.Tx) error {
		_, err := age.Exec(tx, p.OID, ago.Microseconds())
		return err
	})
	return p
}

func (s *shelf) write(fn func(*db.Tx) error) {
	s.t.Helper()
	if err := s.DB.Write(db.WithAccount(s.t.Context(), s.repo.Account), fn); err != nil {
		s.t.Fatal(err)
	}
}

// What nothing names goes with its bytes, and nothing else: what is named, what came within twelve
// hours or was said to be there, and within a day while an upload is under way.
func TestTidy(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := newShelf(t, d)
		named := s.keep(s.repo, "named", 48*time.Hour)
		gone := s.keep(s.repo, "gone", 48*time.Hour)
		s.keep(s.repo, "young", grace-time.Hour)
		today := s.keep(s.repo, "today", grace+time.Hour)
		told := s.keep(s.repo, "told", 48*time.Hour)
		var there map[string]row
		s.write(func(tx *db.Tx) (err error) {
			there, err = storedOf(tx, s.repo.ID, []string{told.OID})
			return err
		})
		if err := s.tell(t.Context(), s.repo.Account, there); err != nil || len(there) != 1 {
			t.Fatal(there, err)
		}
		var asked []string
		tidy := func() {
			t.Helper()
			asked = nil
			if err := s.Tidy(t.Context(), s.repo.ID, func(_ context.Context, oids []string) ([]string, error) {
				asked = append(asked, oids...)
				return []string{named.OID}, nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		upload := row{ID: id.New(), AccountID: s.repo.Account, RepoID: s.repo.ID, OID: gone.OID, Size: 1}
		s.write(func(tx *db.Tx) error {
			_, err := insertUpload.Exec(tx, insertArgs{row: upload, BegunAt: tx.Now.Add(-time.Hour)})
			return err
		})
		tidy()
		if slices.Contains(asked, today.OID) || !slices.Contains(asked, gone.OID) || s.files() != 4 {
			t.Errorf("while an upload is under way: asked for %d, %d files", len(asked), s.files())
		}
		s.write(func(tx *db.Tx) error {
			_, err := deleteUpload.Exec(tx, upload.ID)
			return err
		})
		tidy()
		if !slices.Contains(asked, today.OID) || slices.Contains(asked, told.OID) || s.files() != 3 {
			t.Errorf("asked for %d, %d files", len(asked), s.files())
		}
		for p, want := range map[gitlfs.Pointer]int{named: 1, told: 1, gone: 0, today: 0} {
			if stored, uploads := s.rows(p); stored != want || uploads != 0 {
				t.Errorf("%d of %.4s, want %d; %d uploads", stored, p.OID, want, uploads)
			}
		}
		// Who heard that it is there hears anew when it has gone meanwhile.
		if err := s.Tidy(t.Context(), s.repo.ID, func(context.Context, []string) ([]string, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
		there = map[string]row{named.OID: {ID: id.New(), OID: named.OID}}
		if err := s.tell(t.Context(), s.repo.Account, there); err != nil || len(there) != 0 {
			t.Errorf("it is told of as there: %v, %v", there, err)
		}
	})
}

// A repository whose objects came and whose first push never did is forgotten a day later; one that
// is made keeps them.
func TestRepositoriesThatWereNeverMade(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := newShelf(t, d)
		begin := func(name string) Repo {
			to := Repo{ID: id.New(), Account: s.repo.Account}
			s.write(func(tx *db.Tx) error {
				_, err := insertBegun.Exec(tx, begunArgs{begunRow{to.ID, to.Account}, "acme", name, tx.Now})
				return err
			})
			s.keep(to, fmt.Sprint("of ", name), abandoned+time.Hour)
			return to
		}
		pass := func(files int) {
			t.Helper()
			if err := s.Pass(t.Context()); err != nil || s.files() != files {
				t.Errorf("%v, %d files, want %d", err, s.files(), files)
			}
		}
		place := func(name string) codehost.Repo {
			return codehost.Repo{Host: codehost.BuiltIn, Owner: "acme", Name: name}
		}
		never, made := begin("never"), begin("made")
		pass(2) // they were begun a moment ago
		s.write(func(tx *db.Tx) error {
			if got, err := Begun(tx, place("made")); err != nil || got != made.ID {
				t.Errorf("it is made as %s, %v", got, err)
			}
			_, err := ageBegun.Exec(tx, (abandoned + time.Hour).Microseconds())
			return err
		})
		pass(1)
		s.write(func(tx *db.Tx) error {
			b, ok, err := begunAt.Maybe(tx, "acme", "never")
			if ok || b.ID == never.ID {
				t.Error("its place is there")
			}
			return err
		})
	})
}
