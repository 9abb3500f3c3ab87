package app

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/proof/patience"
)

// Parts of a copy that are of different times are noticed at start and named; what can be done about
// each is said by restore, and is so.
func TestPartsOfDifferentTimes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		l := start(t, e, flags...).lab()
		l.land("acme/web", "main", map[string]string{"README.md": "1\n"}, nil)
		root := filepath.Join(flags[1], "git", "acme")
		copied := func(from, to string) {
			t.Helper()
			if err := os.CopyFS(filepath.Join(root, to), os.DirFS(filepath.Join(root, from))); err != nil {
				t.Fatal(err)
			}
		}
		copied("web.git", "new.git")
		work := filepath.Join(t.TempDir(), "work")
		l.git("/", l.owner, "clone", "-q", l.URL()+"/git/acme/web.git", work)
		l.git(work, "", "commit", "-q", "--allow-empty", "-m", "More")
		l.git(work, l.owner, "push", "-q", "origin", "main")
		head := strings.TrimSpace(l.git(work, "", "rev-parse", "HEAD"))
		l.stop()
		if err := os.RemoveAll(filepath.Join(root, "web.git")); err != nil {
			t.Fatal(err)
		}
		copied("new.git", "web.git")

		l = &lab{l.again(e, flags), l.home}
		repositories := func() string {
			var health struct {
				Checks map[string]struct{ Status, Detail string }
			}
			decode(t, l.send("GET", "/healthz", "", "").want(http.StatusOK), &health)
			return health.Checks["repositories"].Detail
		}
		patience.Until(t, "the start has noticed it", func() bool {
			return strings.Contains(repositories(), "the folders of 1 are older, and 1 are not known to it")
		})
		compare := func() (string, error) {
			said := &strings.Builder{}
			err := Backup{Out: said}.Compare(t.Context(), l.cfg)
			return said.String(), err
		}
		said, err := compare()
		for _, want := range []string{
			"acme/web: its folder is older than the database: the commit " + head + " of main is not there.\n  Push main from a clone that has it",
			"acme/new: the database does not know it.\n  Its owner makes it known with `yardmaster repo add`",
		} {
			if err == nil || !strings.Contains(said, want) {
				t.Errorf("compared: %v\n%s", err, said)
			}
		}
		for _, name := range []string{"web", "new"} {
			l.git(work, l.owner, "push", "-q", l.URL()+"/git/acme/"+name+".git", "main")
			l.send("GET", "/v1/repos/acme/"+name, l.owner, "").want(http.StatusOK)
		}
		l.parts.repo.Pass(t.Context(), map[string]time.Time{})
		if detail := repositories(); detail != "" {
			t.Errorf("after the pushes: %s", detail)
		}
		if said, err := compare(); err != nil || !strings.Contains(said, "fit the database") {
			t.Errorf("compared: %v\n%s", err, said)
		}
	})
}
