package creation

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

var (
	states  = db.Q[string](`SELECT state FROM repo_creations ORDER BY created_at, id`)
	known   = db.Q[string](`SELECT account_id || ' ' || host || ' ' || owner || '/' || name FROM repos ORDER BY 1`)
	audited = db.Q[string](`SELECT kind FROM audit WHERE kind LIKE 'repo.creat%' ORDER BY seq`)
)

// yard is the service beside the built-in host and another one, which does what a test
// says.
type yard struct {
	*Service
	t    *testing.T
	ctx  context.Context
	root string // of the repositories of the host elsewhere
	far  *far

	mu    sync.Mutex
	now   time.Time
	place Place
	note  string // why no task can be queued
	wrote error
	tasks []Setup
}

// far is a host that gives ids and has organisations.
type far struct {
	*builtin.Host
	codehost.NoForge
	before, after error // of CreateRepo: before the repository is made, and after
	calls         int
}

// Upstream implements codehost.GitAccess.
func (*far) Upstream(context.Context, codehost.Repo, bool) (*url.URL, string, time.Time, error) {
	return nil, "", time.Time{}, errors.New("nobody fetches here")
}

// Renew implements codehost.GitAccess.
func (*far) Renew(codehost.Repo) {}

// Can implements codehost.Forge.
func (*far) Can(codehost.Capability) bool { return false }

// Of implements Places.
func (y *yard) Of(*db.Tx) ([]Place, error) {
	return []Place{y.place, {Host: codehost.BuiltIn, Owner: "acme", Administration: true}}, nil
}

// Wrote implements Repos.
func (y *yard) Wrote(context.Context, codehost.Repo, string, string, string) error { return y.wrote }

// Rows implements Repos.
func (y *yard) Rows(tx *db.Tx, ids []string, _ int) ([]repo.Repository, error) {
	r, ok, err := repo.ByID(tx, ids[0])
	if err != nil || !ok {
		return nil, err
	}
	return []repo.Repository{{ID: r.ID, FullName: r.FullName()}}, nil
}

// Begin implements Setups.
func (y *yard) Begin(_ *db.Tx, s Setup) (string, string, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.note != "" {
		return "", y.note, nil
	}
	y.tasks = append(y.tasks, s)
	return "task of " + s.RepoID, "", nil
}

func (y *yard) clock() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.now
}

func (y *yard) pass(d time.Duration) {
	y.mu.Lock()
	y.now = y.now.Add(d)
	y.mu.Unlock()
	duetest.Pass(y.t.Context(), y.t, y.Due)
}

func onBoth(t *testing.T, fn func(*yard)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := &yard{t: t, now: time.Unix(1_800_000_000, 0), root: t.TempDir()}
			y.place = Place{Host: "elsewhere", Owner: "acme-org", InstallationID: "7", Administration: true}
			d := dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: y.clock})
			y.ctx = as(t.Context(), "ada")
			near, err := builtin.New(builtin.Config{Root: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			other, err := builtin.New(builtin.Config{Name: "elsewhere", Root: y.root})
			if err != nil {
				t.Fatal(err)
			}
			y.far = &far{Host: other}
			hosts := codehost.NewHosts(map[string]codehost.Sides{
				codehost.BuiltIn: {Host: near, Forge: builtin.Forge{}}, "elsewhere": {Host: y.far, Forge: y.far, Git: y.far},
			})
			hub := event.NewHub()
			y.Service = New(Needs{
				DB: d, Hub: hub, Due: duetest.New(d, hub), Logger: slog.New(slog.DiscardHandler), Hosts: hosts,
				Places: y, Repos: y, Setups: y,
				Author: codehost.Person{Name: "Yard", Email: "yard@example.com"},
			})
			y.write(func(tx *db.Tx) error {
				return seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "free", Tier: "free"})
			})
			fn(y)
		})
	}
}

func as(ctx context.Context, user string) context.Context {
	return policy.With(db.WithAccount(ctx, "acme"), policy.Actor{Credential: policy.Session, UserID: user, AccountID: "acme"})
}

func (y *yard) write(fn func(*db.Tx) error) {
	y.t.Helper()
	if err := y.DB.Write(y.ctx, fn); err != nil {
		y.t.Fatal(err)
	}
}

// holds fails the test unless the creations have these states, and these repositories
// are known.
func (y *yard) holds(what, wantStates, wantRepos, wantEvents string) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error {
		s, err := states.All(tx)
		if err != nil {
			return err
		}
		r, err := known.All(tx)
		if err != nil {
			return err
		}
		a, err := audited.All(tx)
		if got := strings.Join(s, ","); got != wantStates {
			y.t.Errorf("%s: the states are %s, not %s", what, got, wantStates)
		}
		if got := strings.Join(r, ","); got != wantRepos {
			y.t.Errorf("%s: known are %s, not %s", what, got, wantRepos)
		}
		if got := strings.Join(a, ","); got != wantEvents {
			y.t.Errorf("%s: recorded is %s, not %s", what, got, wantEvents)
		}
		return err
	})
}

func (y *yard) refused(what string, in createIn, kind fault.Kind, slug string) {
	y.t.Helper()
	_, err := y.create(y.ctx, in)
	f, is := errors.AsType[*fault.Error](err)
	if !is || f.Kind != kind || slug != "" && f.Slug != slug {
		y.t.Errorf("%s: %v, want %v %s", what, err, kind, slug)
	}
}

const lacking = fault.Unavailable

var (
	web  = createIn{Name: "web", Description: "A shop."}
	lost = &codehost.BusyError{Cause: errors.New("the connection was reset")}
)

// Wherever a server is killed, the loop makes the rest, once, and the same call again is
// answered.
func TestKilled(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		cut := map[string]func(c row) error{
			"before the host was called": func(row) error { return nil },
			"before the answer came": func(c row) error {
				_, err := y.produce(y.ctx, c)
				return err
			},
			"before the first commit": func(c row) error {
				info, err := y.produce(y.ctx, c)
				if err == nil {
					_, err = y.know(y.ctx, c, info)
				}
				return err
			},
			"after the first commit": func(c row) error {
				y.wrote = errors.New("killed")
				defer func() { y.wrote = nil }()
				if _, err := y.first(y.ctx, c); err == nil {
					return errors.New("work goes on")
				}
				return nil
			},
		}
		n := 0
		var wantStates, wantRepos, wantEvents []string
		for _, where := range []string{"builtin", "elsewhere"} {
			for what, die := range cut {
				in := createIn{Name: "web" + string(rune('a'+n)), Host: where, Description: "A shop."}
				n++
				c, joined, err := y.begun(y.ctx, in)
				if err != nil || joined {
					y.t.Fatal(joined, err)
				}
				if err := die(c); err != nil {
					y.t.Fatalf("%s: %v", what, err)
				}
				y.pass(hold)
				out, err := y.create(y.ctx, in)
				if err != nil || out.Manifest.CommitSHA == nil || len(out.Manifest.Artifacts) != len(base) || out.ScaffoldTaskID == nil {
					y.t.Errorf("%s, %s: %+v, %v", where, what, out, err)
				}
				owner := map[string]string{"builtin": "acme", "elsewhere": "acme-org"}[where]
				wantStates, wantEvents = append(wantStates, done), append(wantEvents, "repo.created")
				wantRepos = append(wantRepos, "acme "+where+" "+owner+"/"+in.Name)
				y.refused("a second of the name", in, fault.Conflict, "repo-exists")
			}
		}
		y.holds("at the end", strings.Join(wantStates, ","), strings.Join(wantRepos, ","), strings.Join(wantEvents, ","))
		if len(y.tasks) != n {
			y.t.Errorf("%d tasks for %d repositories", len(y.tasks), n)
		}
	})
}

// An answer that is lost is no failure: the next try finds what the first one made.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.far.after = lost
		c, _, err := y.begun(y.ctx, web)
		if err != nil {
			y.t.Fatal(err)
		}
		if final, err := y.first(y.ctx, c); final || err == nil {
			y.t.Fatal(final, err)
		}
		y.holds("lost", asked, "", "")
		y.far.after = nil
		y.pass(shortest)
		y.holds("found", done, "acme elsewhere acme-org/web", "repo.created")
		out, err := y.create(y.ctx, web)
		if err != nil || out.Repo.FullName != "acme-org/web" || y.far.calls != 2 {
			y.t.Errorf("%+v after %d calls, %v", out, y.far.calls, err)
		}
		c, _, err = y.begun(y.ctx, createIn{Name: "late"})
		if err != nil {
			y.t.Fatal(err)
		}
		y.far.before = lost
		if _, err := y.first(y.ctx, c); err == nil {
			y.t.Fatal("no failure")
		}
		y.pass(lifetime)
		y.holds("given up", done+","+failed, "acme elsewhere acme-org/web", "repo.created,repo.creation_failed")
		y.far.before = nil
		if out, err := y.create(y.ctx, createIn{Name: "late"}); err != nil || out.Repo.FullName != "acme-org/late" {
			y.t.Errorf("begun anew: %+v, %v", out, err)
		}
	})
}

// A repository that somebody else has made is never taken.
func TestStranger(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		there := codehost.Repo{Host: "elsewhere", Owner: "acme-org", Name: "web"}
		if err := y.far.Create(y.ctx, there, codehost.CreateOptions{}); err != nil {
			y.t.Fatal(err)
		}
		y.refused("an empty one, at the first try", web, fault.Conflict, "repo-exists")
		theirs, err := y.far.FirstCommit(y.ctx, there, codehost.FirstOptions{
			Branch: "main", Files: map[string][]byte{"a": nil}, Title: "a", At: y.now, Author: y.Author, Committer: y.Author,
		})
		if err != nil {
			y.t.Fatal(err)
		}
		if _, _, err := y.begun(y.ctx, web); err != nil {
			y.t.Fatal(err)
		}
		y.pass(hold) // as after a kill
		y.holds("one with files, at the second try", failed+","+failed, "", "repo.creation_failed")
		c, _, err := y.begun(y.ctx, createIn{Name: "mine"})
		if err != nil {
			y.t.Fatal(err)
		}
		info, err := y.produce(y.ctx, c)
		if err == nil {
			c, err = y.know(y.ctx, c, info)
		}
		if err != nil {
			y.t.Fatal(err)
		}
		if _, err = y.far.FirstCommit(y.ctx, info.Repo, codehost.FirstOptions{
			Branch: "main", Files: map[string][]byte{"b": nil}, Title: "b", At: y.now, Author: y.Author, Committer: y.Author,
		}); err != nil {
			y.t.Fatal(err)
		}
		if _, err := y.first(y.ctx, c); err != nil {
			y.t.Fatal(err)
		}
		out, err := y.create(y.ctx, createIn{Name: "mine"})
		if err != nil || out.Manifest.CommitSHA != nil || len(out.Manifest.Artifacts) != 0 {
			y.t.Errorf("a person pushed first: %+v, %v", out, err)
		}
		if head, err := y.far.Head(y.ctx, there, "main"); err != nil || head != theirs {
			y.t.Errorf("the stranger's repository is at %s, %v", head, err)
		}
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		for what, c := range map[string]struct {
			err  error
			kind fault.Kind
			slug string
		}{
			"a person's account": {codehost.ErrCannot, fault.Unprocessable, "owner-is-a-person"},
			"no permission":      {&codehost.ForbiddenError{Permission: "administration: write"}, lacking, "code-host-permission"},
			"a rule":             {&codehost.BlockedError{Missing: []string{"no more"}}, fault.Conflict, "code-host-rule"},
			"no installation":    {codehost.ErrGone, lacking, "code-host-gone"},
			"a limit":            {&codehost.BusyError{Limit: true, After: time.Hour}, lacking, "code-host-busy"},
			"a name":             {codehost.ErrExists, fault.Conflict, "repo-exists"},
		} {
			y.far.before = c.err
			y.refused(what, web, c.kind, c.slug)
		}
		y.far.before = nil
		y.holds("refused", strings.TrimSuffix(strings.Repeat(failed+",", 6), ","), "", "")
		calls := y.far.calls
		y.place.Administration = false
		y.refused("a permission that was not granted", web, lacking, "code-host-permission")
		y.place.Suspended = true
		y.refused("a suspended installation", web, lacking, "code-host-gone")
		y.place.Suspended, y.place.Administration = false, true
		y.refused("another owner", createIn{Name: "web", Owner: "eve"}, fault.Invalid, "")
		y.refused("an owner of another host", createIn{Name: "web", Owner: "acme-org", Host: "builtin"}, fault.Invalid, "")
		y.refused("an unknown host", createIn{Name: "web", Host: "nowhere"}, fault.Invalid, "")
		open := false
		y.refused("an open one at the built-in host", createIn{Name: "web", Host: "builtin", Private: &open}, fault.Invalid, "")
		for _, name := range []string{"a.git", "a.GIT", "a.wiki", "a..b", "a.", "a.lock", "a.atom"} {
			y.refused("the name "+name, createIn{Name: name}, fault.Invalid, "")
		}
		y.ctx = db.WithAccount(y.ctx, "free")
		y.refused("a tier without private ones", web, fault.PaymentRequired, "")
		if y.far.calls != calls {
			y.t.Errorf("the host was called %d times", y.far.calls-calls)
		}
		out, err := y.create(y.ctx, createIn{Name: "open", Private: &open})
		if err != nil || out.Repo.FullName != "acme-org/open" {
			y.t.Errorf("an open one: %+v, %v", out, err)
		}
	})
}

// Two equal calls at once are one repository; another person's is refused.
func TestTwins(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		var both sync.WaitGroup
		ids := make([]string, 2)
		for i := range ids {
			both.Go(func() {
				out, err := y.create(y.ctx, web)
				if ids[i] = out.Repo.ID; err != nil && !errors.Is(err, codehost.ErrExists) { // the other one was answered before
					y.t.Error(err)
				}
			})
		}
		both.Wait()
		if ids[0] == "" && ids[1] == "" || ids[0] != "" && ids[1] != "" && ids[0] != ids[1] {
			y.t.Errorf("the twins are %v", ids)
		}
		y.holds("twins", done, "acme elsewhere acme-org/web", "repo.created")
		if _, _, err := y.begun(y.ctx, createIn{Name: "api"}); err != nil {
			y.t.Fatal(err)
		}
		if _, err := y.create(as(y.t.Context(), "bob"), createIn{Name: "api"}); !errors.Is(err, codehost.ErrExists) {
			y.t.Errorf("another person's: %v", err)
		}
	})
}

func TestNoTask(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.note = "The account has no seat."
		out, err := y.create(y.ctx, web)
		if err != nil || out.ScaffoldTaskID != nil || out.ScaffoldNote == nil || *out.ScaffoldNote != y.note {
			y.t.Errorf("%+v, %v", out, err)
		}
	})
}

// What a repository begins with is valid, and its checks pass and fail.
func TestBase(t *testing.T) {
	t.Parallel()
	files, programs, err := render("web", "A shop.")
	if err != nil {
		t.Fatal(err)
	}
	p, wrong := repo.ParsePolicy(files[repo.PolicyPath])
	if wrong != nil || p.Checks.Command != "sh scripts/check" || p.Instructions == "" {
		t.Errorf("the policy: %+v, %v", p, wrong)
	}
	for path, text := range files {
		if strings.Contains(string(text), "{{") || !strings.HasSuffix(string(text), "\n") {
			t.Errorf("%s:\n%s", path, text)
		}
	}
	if !strings.Contains(string(files["README.md"]), "# web\n\nA shop.\n\n## ") {
		t.Errorf("%s", files["README.md"])
	}
	root := t.TempDir()
	h, err := builtin.New(builtin.Config{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	r := codehost.Repo{Host: codehost.BuiltIn, Owner: "acme", Name: "web"}
	if err := h.Create(t.Context(), r, codehost.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	me := codehost.Person{Name: "Yard", Email: "yard@example.com"}
	if _, err := h.FirstCommit(t.Context(), r, codehost.FirstOptions{
		Branch: "main", Files: files, Programs: programs, Title: "Begin", Author: me, Committer: me, At: time.Unix(1_800_000_000, 0),
	}); err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(t.TempDir(), "web")
	run := func(dir, name string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("", "git", "clone", "-q", filepath.Join(root, "acme", "web.git"), work); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := run(work, "scripts/check"); err != nil {
		t.Errorf("the checks fail: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(work, "README.md"), []byte("<<<<<<< ours\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(work, "sh", "scripts/check"); err == nil || !strings.Contains(out, "failed: conflict markers") {
		t.Errorf("the checks pass: %s", out)
	}
}
