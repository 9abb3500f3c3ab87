package flow

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/blob"
	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/mergequeue"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/proof/standin"
	"yardmaster/internal/seal"
)

// twoHosts is a server that two code hosts are connected to. Both have a repository
// acme/web: that of the built-in host belongs to the account acme, that of second to
// the account rival.
type twoHosts struct {
	t     *testing.T
	db    *db.DB
	hosts *codehost.Hosts
	repos *repo.Service
	pulls *pull.Service
	api   http.Handler
	urls  map[string]string // addresses of the hosts, by name
	works map[string]string // clones of acme/web, by name of the host
}

// anyAccount takes the id of an account for its token, and knows no attempts and no
// pull requests.
type anyAccount struct{ Pulls }

func (anyAccount) Borrows(*db.Tx, repo.Attempt) (bool, error) { return false, nil }

func (anyAccount) Attempt(context.Context, string) (repo.Attempt, bool, error) {
	return repo.Attempt{}, false, nil
}

func (anyAccount) Authenticate(_ context.Context, account string) (policy.Actor, error) {
	return policy.Actor{
		Credential: policy.PAT, CredentialID: "t", UserID: "ada", AccountID: account,
		Scopes: policy.Scopes(policy.ReadRepos, policy.WriteRepos, policy.ReadPRs, policy.WritePRs),
	}, nil
}

const second = "second"

func onTwoHosts(t *testing.T, fn func(*testing.T, *twoHosts)) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		y := &twoHosts{t: t, db: d, urls: map[string]string{}, works: map[string]string{}}
		servers, sides := map[string]*httptest.Server{}, map[string]codehost.Sides{}
		for _, name := range []string{codehost.BuiltIn, second} {
			server := httptest.NewUnstartedServer(nil)
			y.urls[name] = "http://" + server.Listener.Addr().String()
			host, err := builtin.New(builtin.Config{Name: name, Root: t.TempDir(), BaseURL: y.urls[name]})
			if err != nil {
				t.Fatal(err)
			}
			server.Config.Handler = host.Handler(builtin.Hooks{
				Authorize: func(ctx context.Context, user, password string, r codehost.Repo) (codehost.Access, error) {
					return y.repos.Access(ctx, user, password, r)
				},
				Create: func(ctx context.Context, r codehost.Repo) error { return y.repos.Create(ctx, r) },
				Pushed: func(ctx context.Context, e codehost.PushEvent) {
					if err := y.repos.OnPush(ctx, e); err != nil {
						t.Error(err)
					}
				},
			})
			sides[name], servers[name] = codehost.Sides{Host: host, Forge: builtin.Forge{}}, server
		}
		y.hosts = codehost.NewHosts(sides)
		y.wire()
		y.write("rival", func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "rival"}); err != nil {
				return err
			}
			_, err := repo.Install(tx, webAt(second), "main", true)
			return err
		})
		if err := sides[second].Host.Create(t.Context(), webAt(second), codehost.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, server := range servers {
			server.Start()
			t.Cleanup(server.Close)
		}
		fn(t, y)
	})
}

// wire makes the domains as the program does.
func (y *twoHosts) wire() {
	hub, log := event.NewHub(), slog.New(slog.DiscardHandler)
	stand := standin.Tasks{Agent: "claude", Places: 9}
	tasks, _ := standin.Services(y.db, hub, TaskRepos{Hosts: y.hosts}, stand)
	y.repos = repo.New(repo.Needs{
		DB: y.db, Hub: hub, Hosts: y.hosts, Folders: &builtin.Host{}, Attempts: anyAccount{}, Holders: anyAccount{},
		Pulls: Pulls{}, Contents: Contents{}, Logger: log,
	})
	intents := intent.New(intent.Needs{DB: y.db, Due: duetest.New(y.db, hub), Hosts: y.hosts, Logger: log})
	checks := ci.New(ci.Needs{
		DB: y.db, Hub: hub, Due: duetest.New(y.db, hub), Logger: log, Hosts: y.hosts,
		Tasks: CheckTasks{Tasks: tasks, Hosts: y.hosts}, Logs: RunLogs{},
		Objects: blob.NewFolder(y.t.TempDir(), "http://server", seal.New(), time.Now),
		Pulls:   CheckPulls{}, Intents: intents,
	})
	queues := mergequeue.New(mergequeue.Needs{
		DB: y.db, Hub: hub, Hosts: y.hosts, Logger: log, Intents: intents, Orders: MergeOrders{},
		Checks: QueueChecks{Checks: checks, Tasks: tasks}, Bot: codehost.Person{Name: "Yardmaster", Email: "yardmaster@localhost"},
	})
	y.pulls = pull.New(pull.Needs{
		DB: y.db, Hub: hub, Due: duetest.New(y.db, hub), Hosts: y.hosts, BaseURL: "http://server", Logger: log,
		Tasks:  PullTasks{Tasks: tasks, Hosts: y.hosts},
		Checks: Checks{Service: checks}, Reviews: OpenFindings{}, People: Signers{}, Queue: MergeQueue{Service: queues},
		Bot:     codehost.Person{Name: "Yardmaster", Email: "yardmaster@localhost"},
		Intents: intents,
	})
	repo.PushedEvent.On(y.db, NotePush(y.pulls))
	y.api = rest.Handler(rest.Config{AccountHeader: "X-Caller", Pipeline: &op.Pipeline{
		Authenticate: func(ctx context.Context, p op.Presented) (policy.Actor, error) {
			return anyAccount{}.Authenticate(ctx, p.Account)
		},
		Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
	}}, append(y.repos.Ops(), y.pulls.Ops()...))
}

func webAt(host string) codehost.Repo { return codehost.Repo{Host: host, Owner: "acme", Name: "web"} }

func (y *twoHosts) write(account string, fn func(*db.Tx) error) {
	y.t.Helper()
	if err := y.db.Write(db.WithAccount(y.t.Context(), account), fn); err != nil {
		y.t.Fatal(err)
	}
}

func (y *twoHosts) tryGit(host string, args ...string) (string, error) {
	c := exec.Command("git", args...)
	c.Dir = y.works[host]
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com",
	}
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (y *twoHosts) git(host string, args ...string) string {
	y.t.Helper()
	out, err := y.tryGit(host, args...)
	if err != nil {
		y.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return out
}

// remote is the address of acme/web at a host, with the token of an account.
func (y *twoHosts) remote(host, account string) string {
	return strings.Replace(y.urls[host], "://", "://x:"+account+"@", 1) + "/git/acme/web.git"
}

// push commits a file to a branch of acme/web at a host, and pushes it.
func (y *twoHosts) push(host, account, branch, path, text string) (sha string) {
	y.t.Helper()
	if y.works[host] == "" {
		y.works[host] = y.t.TempDir()
		y.git(host, "init", "--quiet", "--initial-branch=main")
	}
	if branch != "main" {
		if y.git(host, "branch", "--list", branch) == "" {
			y.git(host, "branch", branch, "main")
		}
		y.git(host, "checkout", "--quiet", branch)
	}
	at := filepath.Join(y.works[host], path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		y.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		y.t.Fatal(err)
	}
	y.git(host, "add", "--all")
	y.git(host, "commit", "--quiet", "--message", "Write "+path)
	y.git(host, "push", "--quiet", y.remote(host, account), branch)
	return y.git(host, "rev-parse", "HEAD")
}

// web is the repository acme/web of an account.
func (y *twoHosts) web(account string) (r repo.Ref) {
	y.t.Helper()
	y.write(account, func(tx *db.Tx) (err error) {
		r, _, err = repo.ByName(tx, "acme", "web")
		return err
	})
	return r
}

func (y *twoHosts) propose(account, branch, sha, base string) (prID string) {
	y.t.Helper()
	r := y.web(account)
	y.write(account, func(tx *db.Tx) (err error) {
		prID, err = y.pulls.Propose(tx, r,
			pull.Proposal{TaskID: "task-" + account, Title: "Do it", Branch: branch, HeadSHA: sha, BaseSHA: base})
		return err
	})
	return prID
}

func (y *twoHosts) call(account, method, path, body string, into any) {
	y.t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("X-Caller", account)
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	y.api.ServeHTTP(rec, req)
	if rec.Code != 200 {
		y.t.Fatalf("%s %s: %d: %s", method, path, rec.Code, rec.Body)
	}
	if err := json.Unmarshal(rec.Body.Bytes(), into); err != nil {
		y.t.Fatalf("%v: %s", err, rec.Body)
	}
}

// main is the commit of the branch main at a host.
func (y *twoHosts) main(host string) string {
	y.t.Helper()
	h, err := y.hosts.Of(webAt(host))
	if err != nil {
		y.t.Fatal(err)
	}
	sha, err := h.Head(y.t.Context(), webAt(host), "main")
	if err != nil {
		y.t.Fatal(err)
	}
	return sha
}

// Two hosts have a repository of one name. A push, a policy file, a diff and a merge
// are of the host where they happened, and change nothing at the other.
func TestTwoHostsBesideEachOther(t *testing.T) {
	t.Parallel()
	onTwoHosts(t, func(t *testing.T, y *twoHosts) {
		const file = ".svc/policy.yml"
		here, there := codehost.BuiltIn, second
		bases := map[string]string{
			"acme":  y.push(here, "acme", "main", file, "version: 1\nmerge: {method: merge}\n"),
			"rival": y.push(there, "rival", "main", file, "version: 1\nmerge: {method: squash}\n"),
		}
		if out, err := y.tryGit(there, "ls-remote", y.remote(there, "acme")); err == nil {
			t.Errorf("the account of the one repository reads the other: %s", out)
		}
		if out, err := y.tryGit(here, "ls-remote", y.remote(here, "rival")); err == nil {
			t.Errorf("the account of the other repository reads the one: %s", out)
		}
		for account, want := range map[string]struct {
			host, method string
		}{"acme": {here, "merge"}, "rival": {there, "squash"}} {
			r := y.web(account)
			if got := r.HostRepo(); got != webAt(want.host) {
				t.Errorf("%s has %+v", account, got)
			}
			if got := r.Policy.Merge.Method; got != want.method {
				t.Errorf("the policy of %s says %s", account, got)
			}
			var shown repo.Repository
			y.call(account, "GET", "/v1/repos/acme/web", "", &shown)
			if url := y.urls[want.host] + "/git/acme/web.git"; shown.Host != want.host || shown.CloneURL != url {
				t.Errorf("%s is shown %s at %s", account, shown.CloneURL, shown.Host)
			}
			if got := (TaskRepos{Hosts: y.hosts}).Of(r); got.CloneURL != shown.CloneURL {
				t.Errorf("tasks of %s clone from %s", account, got.CloneURL)
			}
		}

		prs := map[string]string{}
		for account, host := range map[string]string{"acme": here, "rival": there} {
			sha := y.push(host, account, "svc/a", "at-"+host, "1\n")
			prs[account] = y.propose(account, "svc/a", sha, bases[account])
			moved := y.push(host, account, "svc/a", "more-at-"+host, "2\n")
			var got pull.Request
			if y.call(account, "GET", "/v1/prs/"+prs[account], "", &got); got.HeadSHA != moved {
				t.Errorf("%s: the head is %s, pushed was %s", account, got.HeadSHA, moved)
			}
			changed, err := QueueCommits{DB: y.db, Hosts: y.hosts}.Changes(t.Context(), y.web(account).ID, moved)
			if err != nil || len(changed) != 2 || changed[0] != "at-"+host {
				t.Errorf("%s: the branch changes %q, %v", account, changed, err)
			}
			at, err := Branches{DB: y.db, Hosts: y.hosts}.At(t.Context(), y.web(account).ID, "svc/a")
			if err != nil || at != moved {
				t.Errorf("%s: the branch is at %s, %v", account, at, err)
			}
		}
		for account, host := range map[string]string{"acme": here, "rival": there} {
			var d pull.Diff
			y.call(account, "GET", "/v1/prs/"+prs[account]+"/diff", "", &d)
			if len(d.Files) != 2 || d.Files[0].Path != "at-"+host || d.Files[1].Path != "more-at-"+host {
				t.Errorf("the diff of %s: %+v", account, d.Files)
			}
		}

		var got pull.Request
		y.call("rival", "GET", "/v1/prs/"+prs["rival"], "", &got)
		y.call("rival", "POST", "/v1/prs/"+prs["rival"]+"/merge", `{"head_sha": "`+got.HeadSHA+`"}`, new(any))
		y.pulls.Pass(t.Context())
		duetest.Pass(t.Context(), t, y.pulls.Due)
		y.call("rival", "GET", "/v1/prs/"+prs["rival"], "", &got)
		if got.State != record.Merged || got.MergeSHA == nil || *got.MergeSHA != y.main(there) {
			t.Errorf("the merge at %s: %+v, main is at %s", there, got, y.main(there))
		}
		y.call("acme", "GET", "/v1/prs/"+prs["acme"], "", &got)
		if got.State != record.Open || y.main(here) != bases["acme"] {
			t.Errorf("at %s, where nothing was merged: %+v, main is at %s", here, got, y.main(here))
		}
	})
}
