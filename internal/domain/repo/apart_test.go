package repo

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
)

// A folder that is older than its row is named by each pass, which records nothing of it, until the
// commit is there again or somebody goes on with what is there. One that is younger is recorded, and
// one without a row is named.
func TestFoldersOfAnotherTime(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		s.make()
		folder := filepath.Join(s.root, "acme", "web.git")
		put := func(from, to string) {
			t.Helper()
			if err := os.RemoveAll(to); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(to, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
		}
		pass := func() (Apart, row) {
			t.Helper()
			s.Pass(t.Context(), map[string]time.Time{})
			a, err := Compare(t.Context(), s.DB, s.host, func(codehost.Repo) bool { return false })
			found := s.FoundApart()
			if err != nil || !slices.Equal(a.Older, found.Older) || !slices.Equal(a.Unknown, found.Unknown) {
				t.Errorf("compared: %+v, %v; the pass has found %+v", a, err, found)
			}
			return found, s.stored()
		}
		old, young := filepath.Join(t.TempDir(), "old"), filepath.Join(t.TempDir(), "young")
		put(folder, old)
		head := s.push("a", "a\n")
		put(folder, young)
		if a, _ := pass(); len(a.Older)+len(a.Unknown)+len(a.Newer)+len(a.Lost) != 0 {
			t.Errorf("before: %+v", a)
		}

		put(old, folder)
		put(old, filepath.Join(s.root, "acme", "new.git"))
		for range 2 {
			a, r := pass()
			older, unknown := []Older{{"acme/web", "main", head}}, []string{"acme/new"}
			if !slices.Equal(a.Older, older) || !slices.Equal(a.Unknown, unknown) || r.HeadSHA != head {
				t.Errorf("an older folder: %+v, the row has %s", a, r.HeadSHA)
			}
		}
		put(young, folder)
		if err := os.RemoveAll(filepath.Join(s.root, "acme", "new.git")); err != nil {
			t.Fatal(err)
		}
		if a, _ := pass(); len(a.Older)+len(a.Unknown) != 0 {
			t.Errorf("with the right folder: %+v", a)
		}

		put(old, folder)
		s.git("reset", "--quiet", "--hard", "HEAD~1")
		other := s.push("b", "b\n")
		if a, r := pass(); len(a.Older) != 0 || r.HeadSHA != other {
			t.Errorf("after a push to an older folder: %+v, the row has %s", a, r.HeadSHA)
		}
		untold := s.commit("c", "c\n")
		if a, r := pass(); !slices.Equal(a.Newer, []string{"acme/web"}) || r.HeadSHA != untold {
			t.Errorf("a younger folder: %+v, the row has %s", a, r.HeadSHA)
		}
	})
}

// stored is the row of acme/web.
func (s *site) stored() (r row) {
	s.t.Helper()
	s.write("", func(tx *db.Tx) (err error) {
		r, _, err = byPlace.Maybe(tx, web.Host, web.Owner, web.Name)
		return err
	})
	return r
}
