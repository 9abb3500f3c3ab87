package kb

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

var outdatedRows = db.Q[string](`SELECT data FROM audit WHERE kind = 'kb.pages_outdated' AND account_id = $1 ORDER BY seq`)

// home is a repository with a git folder, and the service of its pages.
type home struct {
	*Service
	model *model
	tasks *tasks
	t     *testing.T
	ctx   context.Context
	host  *builtin.Host
	head  string
}

var (
	web    = codehost.Repo{Host: codehost.BuiltIn, Owner: "acme", Name: "web"}
	person = codehost.Person{Name: "Ada", Email: "ada@example.com"}
)

func onGit(t *testing.T, fn func(h *home)) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		host, err := builtin.New(builtin.Config{Root: t.TempDir(), BaseURL: "http://host"})
		if err != nil {
			t.Fatal(err)
		}
		hosts := codehost.NewHosts(map[string]codehost.Sides{codehost.BuiltIn: {Host: host, Forge: codehost.NoForge{}}})
		judge, filed := &model{}, &tasks{}
		h := &home{
			Service: New(Needs{DB: d, Due: duetest.New(d, event.NewHub()), Logger: slog.Default(), Hosts: hosts, Runs: runs{},
				Model: judge, Tasks: filed}), model: judge, tasks: filed,
			t: t, host: host,
			ctx: policy.With(db.WithAccount(t.Context(), "acme"), policy.Actor{Credential: policy.Session, UserID: "ada"}),
		}
		err = d.Write(h.ctx, func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Account{ID: "acme"}); err != nil {
				return err
			}
			return seed.Add(tx, seed.Repo{ID: "web", Account: "acme", Name: "web"})
		})
		if err == nil {
			err = host.Create(h.ctx, web, codehost.CreateOptions{DefaultBranch: "main"})
		}
		if err == nil {
			h.head, err = host.FirstCommit(h.ctx, web, codehost.FirstOptions{
				Branch: "main", Files: map[string][]byte{
					"Makefile": []byte("all:\n"), "src/a.go": []byte("package a\n"), "README.md": []byte("x\n"),
				},
				Title: "Begin", Author: person, Committer: person, At: time.Unix(1_700_000_000, 0),
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		fn(h)
	})
}

// commit makes a commit on main, and tells of the push; "" takes a file out.
func (h *home) commit(files map[string]string) {
	h.t.Helper()
	o := codehost.WriteOptions{
		Branch: "main", Parent: h.head, Title: "Change", Author: person, Committer: person, Files: map[string][]byte{},
	}
	for name, content := range files {
		if content == "" {
			o.Remove = append(o.Remove, name)
		} else {
			o.Files[name] = []byte(content)
		}
	}
	head, err := h.host.WriteFiles(h.ctx, web, o)
	if err != nil {
		h.t.Fatal(err)
	}
	h.tell("main", head)
	h.head = head
}

// tell has the service hear of a push, and looks.
func (h *home) tell(branch, head string) {
	h.t.Helper()
	h.push(branch, head)
	duetest.Pass(h.ctx, h.t, h.Due)
}

// push has the service hear of a push.
func (h *home) push(branch, head string) {
	h.t.Helper()
	err := h.DB.Write(h.ctx, func(tx *db.Tx) error {
		r, _, err := repo.ByID(tx, "web")
		if err != nil {
			return err
		}
		return h.Pushed(tx, event.Event[repo.Push]{Data: repo.Push{Branch: branch, Old: h.head, New: head, Repo: r, Head: head}})
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// page writes a page from files at a commit, and looks.
func (h *home) page(slug, body, commit string, files ...string) {
	h.t.Helper()
	in := putIn{RepoID: "web", Slug: slug, Body: body, Provenance: &source{Commit: commit, Files: files}}
	if _, err := h.put(h.ctx, in); err != nil {
		h.t.Fatal(err)
	}
	duetest.Pass(h.ctx, h.t, h.Due)
}

// stale holds which pages are stale, with the files that changed.
func (h *home) stale(want map[string][]string) {
	h.t.Helper()
	got := map[string][]string{}
	err := h.DB.Read(h.ctx, func(tx *db.Tx) error {
		rows, err := heads(tx, "web", "", "true", 100)
		for _, r := range rows {
			got[r.Slug] = r.stale().Files
		}
		return err
	})
	if err != nil || !maps.EqualFunc(got, want, slices.Equal[[]string]) {
		h.t.Errorf("stale are %v, want %v; %v", got, want, err)
	}
}

// A page is stale once a file that it was written from is another one on the default branch,
// and until it is replaced.
func TestPagesBecomeStale(t *testing.T) {
	t.Parallel()
	onGit(t, func(h *home) {
		first := h.head
		h.page("build", "Run make.", first, "Makefile", "src/a.go")
		h.page("code", "It is Go.", "", "src/a.go")
		h.page("free", "Nobody says.", "")
		h.commit(map[string]string{"README.md": "y\n"})
		h.stale(map[string][]string{})
		h.commit(map[string]string{"Makefile": "all: test\n"})
		h.stale(map[string][]string{"build": {"Makefile"}})
		h.commit(map[string]string{"src/a.go": "", "README.md": "z\n"})
		h.stale(map[string][]string{"build": {"Makefile"}, "code": {"src/a.go"}})
		if err := h.DB.Read(h.ctx, func(tx *db.Tx) error {
			rows, err := outdatedRows.All(tx, "acme")
			if len(rows) != 2 {
				t.Errorf("%d events: %v", len(rows), rows)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}

		h.page("build", "Run make test.", h.head, "Makefile")
		h.page("code", "It is Go.", "", "src/a.go") // still right, says somebody
		h.stale(map[string][]string{})
		h.page("build", "Run make, as at first.", first, "Makefile") // from a commit that is old already
		h.stale(map[string][]string{"build": {"Makefile"}})
		h.page("build", "From nowhere.", "0123456789012345678901234567890123456789", "README.md")
		h.stale(map[string][]string{"build": {"README.md"}})
		if err := h.DB.Read(h.ctx, func(tx *db.Tx) error {
			ages, err := Ages(tx, []string{"web", "none"})
			if len(ages) != 1 || ages[0].RepoID != "web" || ages[0].Pages != 3 || ages[0].Fresh != 2 || ages[0].Newest.IsZero() {
				t.Errorf("the ages are %+v", ages)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// A push to another branch, and one that a page was written before, changes nothing.
func TestOtherBranchesMakeNothingStale(t *testing.T) {
	t.Parallel()
	onGit(t, func(h *home) {
		h.page("build", "Run make.", h.head, "Makefile")
		h.push("topic", h.head)
		if err := h.DB.Read(h.ctx, func(tx *db.Tx) error {
			_, owed, err := asked.Maybe(tx, "web")
			if owed {
				t.Error("a push to another branch is looked at")
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		h.stale(map[string][]string{})
	})
}
