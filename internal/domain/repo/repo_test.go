package repo

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

var (
	web        = at("acme", "web")
	everything = []policy.Scope{policy.ReadRepos, policy.WriteRepos}
)

// at names a repository of the built-in host.
func at(owner, name string) codehost.Repo {
	return codehost.Repo{Host: codehost.BuiltIn, Owner: owner, Name: name}
}

// site is the repositories of acme and rival at a real code host.
type site struct {
	*Service
	host *builtin.Host
	t    *testing.T
	http http.Handler
	root string
	work string

	writes *atomic.Int64 // write transactions so far

	attempt Attempt // whose token is "live"; none without a repository
	fork    bool    // it is about a fork

	mu     sync.Mutex
	pushed []string // branch and commit
}

// Borrows implements Attempts.
func (s *site) Borrows(*db.Tx, Attempt) (bool, error) { return !s.fork, nil }

// Attempt implements Attempts.
func (s *site) Attempt(_ context.Context, token string) (Attempt, bool, error) {
	return s.attempt, s.attempt.RepoID != "" && token == "live", nil
}

// holders takes <account> or <account>/<scope> for a token.
type holders struct{}

func (holders) Authenticate(_ context.Context, bearer string) (policy.Actor, error) {
	account, scope, one := strings.Cut(bearer, "/")
	if account == "" {
		return policy.Actor{}, policy.Unauthenticated()
	}
	scopes := policy.Scopes(everything...)
	if one {
		scopes = policy.Scopes(policy.Scope(scope))
	}
	return policy.Actor{Credential: policy.PAT, CredentialID: "t", AccountID: account, Scopes: scopes}, nil
}

// noPulls has no pull request open.
type noPulls struct{}

func (noPulls) OpenHeads(*db.Tx, string) (map[string]string, error) { return nil, nil }

func onBoth(t *testing.T, fn func(*testing.T, *site)) {
	var writes atomic.Int64
	count := func(_ context.Context, x db.Transaction) {
		if x.Kind == "write" {
			writes.Add(1)
		}
	}
	dbtest.RunWith(t, db.Options{Observe: count}, func(t *testing.T, d *db.DB) {
		s := &site{t: t, root: t.TempDir(), work: t.TempDir(), writes: &writes}
		host, err := builtin.New(builtin.Config{Root: s.root, BaseURL: "http://host"})
		if err != nil {
			t.Fatal(err)
		}
		s.host = host
		s.Service = New(Needs{
			DB: d, Hub: event.NewHub(), Hosts: served(host), Folders: host,
			Attempts: s, Holders: holders{}, Pulls: noPulls{}, Contents: noContents{}, Logger: slog.New(slog.DiscardHandler),
		})
		PushedEvent.On(d, func(tx *db.Tx, e event.Event[Push]) error {
			tx.AfterCommit(func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.pushed = append(s.pushed, e.Data.Branch+" "+e.Data.Head)
			})
			return nil
		})
		s.write("", func(tx *db.Tx) error {
			err := seed.Add(tx, seed.Account{ID: "acme", Tier: "self_hosted"})
			failed := seed.Add(tx, seed.Account{ID: "rival", Tier: "free"})
			return errors.Join(err, failed)
		})
		s.http = rest.Handler(rest.Config{AccountHeader: "X-Caller", Pipeline: &op.Pipeline{
			Authenticate: func(ctx context.Context, p op.Presented) (policy.Actor, error) {
				return s.Holders.Authenticate(ctx, p.Account)
			},
			Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
		}}, s.Ops())
		fn(t, s)
	})
}

// served are the hosts of a server whose built-in one is host.
func served(host codehost.Host) *codehost.Hosts {
	return codehost.NewHosts(map[string]codehost.Sides{codehost.BuiltIn: {Host: host, Forge: builtin.Forge{}}})
}

func (s *site) write(account string, fn func(*db.Tx) error) {
	s.t.Helper()
	if err := s.DB.Write(db.WithAccount(context.Background(), account), fn); err != nil {
		s.t.Fatal(err)
	}
}

// make creates acme/web with one commit on main, and tells of the push.
func (s *site) make() {
	s.t.Helper()
	if err := s.Create(s.t.Context(), web); err != nil {
		s.t.Fatal(err)
	}
	if err := s.host.Create(s.t.Context(), web, codehost.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.git("init", "--quiet", "--initial-branch=main")
	s.push("README", "hello\n")
}

func (s *site) git(args ...string) string {
	s.t.Helper()
	c := exec.Command("git", args...)
	c.Dir = s.work
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com"}
	out, err := c.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// push commits a file to the branch that is checked out, pushes it, and tells
// of it.
func (s *site) push(path, text string) (sha string) {
	s.t.Helper()
	sha = s.commit(path, text)
	s.tell(s.git("branch", "--show-current"), sha)
	return sha
}

// commit is push without a word of it.
func (s *site) commit(path, text string) (sha string) {
	s.t.Helper()
	at := filepath.Join(s.work, path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
	s.git("add", "--all")
	s.git("commit", "--quiet", "--message", "Write "+path)
	branch := s.git("branch", "--show-current")
	s.git("push", "--quiet", filepath.Join(s.root, "acme", "web.git"), branch)
	return s.git("rev-parse", "HEAD")
}

func (s *site) tell(branch, sha string) {
	s.t.Helper()
	e := codehost.PushEvent{Repo: web, Who: "ann", Updates: []codehost.RefUpdate{
		{Ref: "refs/heads/" + branch, Old: codehost.ZeroSHA, New: sha}, {Ref: "refs/tags/v1", New: sha},
	}}
	if err := s.OnPush(s.t.Context(), e); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) call(caller string, status int, method, path, body string, into any) {
	s.t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("X-Caller", caller)
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	s.http.ServeHTTP(rec, req)
	if rec.Code != status {
		s.t.Fatalf("%s %s %s: %d, want %d: %s", method, path, body, rec.Code, status, rec.Body)
	}
	if into != nil {
		if err := json.Unmarshal(rec.Body.Bytes(), into); err != nil {
			s.t.Fatalf("%v: %s", err, rec.Body)
		}
	}
}

func TestPolicyFileInForce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		s.make()
		get := func() (p EffectivePolicy) {
			t.Helper()
			s.call("acme", 200, "GET", "/v1/repos/acme/web/policy", "", &p)
			return p
		}
		if p := get(); p.YML != nil || p.Fallback == nil || !reflect.DeepEqual(p.Policy, DefaultPolicy()) {
			t.Errorf("without a file: %+v", p)
		}
		yml := "checks: {command: make check}\n"
		s.push(PolicyPath, yml)
		if p := get(); p.YML == nil || *p.YML != yml || p.Fallback != nil || p.Policy.Checks.Command != "make check" {
			t.Errorf("with a file: %+v", p)
		}
		// What is pushed may be anything: the defaults are in force, it is said
		// why, and the push is recorded all the same.
		for name, text := range map[string]string{
			"wrong":      "merge: {mode: yolo}\n",
			"binary":     "version: 1\x00\xff\xfe\n",
			"U+0000":     `checks: {command: "a\0b"}`,
			"large":      "#" + strings.Repeat("x", maxPolicyBytes),
			"very large": "#" + strings.Repeat("x", codehost.MaxFileSize),
			"laughs":     "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\ninstructions: *b\n",
		} {
			sha := s.push(PolicyPath, text)
			if p := get(); p.YML == nil || p.Fallback == nil || *p.Fallback == "" || !reflect.DeepEqual(p.Policy, DefaultPolicy()) {
				t.Errorf("%s: %+v", name, p)
			}
			if last := s.pushed[len(s.pushed)-1]; last != "main "+sha {
				t.Errorf("%s: the last push told of is %s", name, last)
			}
			var r Repository
			if s.call("acme", 200, "GET", "/v1/repos/acme/web", "", &r); r.PolicyValid == nil || *r.PolicyValid {
				t.Errorf("%s: policy_valid is %v", name, r.PolicyValid)
			}
		}
		s.git("checkout", "--quiet", "-b", "side")
		s.push(PolicyPath, "merge: {mode: auto}\n")
		if p := get(); p.Policy.Merge.Mode != "ask" {
			t.Error("a branch other than the default one decides the policy")
		}
		var verdict PolicyVerdict
		if s.call("acme", 200, "POST", "/v1/repos/acme/web/policy/validate", `{"yml": "version: 2"}`, &verdict); verdict.OK ||
			len(verdict.Errors) != 1 {
			t.Errorf("version 2: %+v", verdict)
		}
		if s.call("acme", 200, "POST", "/v1/repos/acme/web/policy/validate", `{"yml": ""}`, &verdict); !verdict.OK ||
			len(verdict.Errors) != 0 {
			t.Errorf("nothing: %+v", verdict)
		}
	})
}

// Pushes are told of in any order, and more than once; what is passed on is
// where the branch is.
func TestPushesOutOfOrder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		s.make()
		first := s.git("rev-parse", "HEAD")
		second := s.push("README", "again\n")
		s.pushed = nil
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() { s.tell("main", []string{first, second}[i%2]) })
		}
		group.Wait()
		s.git("push", "--quiet", filepath.Join(s.root, "acme", "web.git"), "main:gone", "main:kept")
		s.git("push", "--quiet", filepath.Join(s.root, "acme", "web.git"), ":gone")
		s.tell("gone", second)
		s.tell("kept", codehost.ZeroSHA)
		want := slices.Repeat([]string{"main " + second}, 8)
		want = append(want, "gone "+codehost.ZeroSHA, "kept "+second)
		if !slices.Equal(s.pushed, want) {
			t.Errorf("told of %q, want %q", s.pushed, want)
		}
	})
}

func TestAccess(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		s.make()
		fresh, foreign := at("acme", "fresh"), at("rival", "web")
		for name, c := range map[string]struct {
			password           string
			repo               codehost.Repo
			read, push, create bool
		}{
			"its own":               {"acme", web, true, true, false},
			"one that is not there": {"acme", fresh, true, true, true},
			"a foreign name":        {"acme", foreign, false, false, false},
			"a foreign repository":  {"rival", web, false, false, false},
			"a name beside it":      {"rival", fresh, false, false, false},
			"to read":               {"acme/read:repos", web, true, false, false},
			"to read a new one":     {"acme/read:repos", fresh, true, false, false},
			"neither":               {"acme/read:tasks", web, false, false, false},
			"the impossible name":   {"acme", codehost.Repo{}, false, false, false},
		} {
			a, err := s.Access(t.Context(), "x", c.password, c.repo)
			if err != nil || a.Read != c.read || a.MayPush("refs/heads/main") != c.push || a.Create != c.create {
				t.Errorf("%s: %+v, %v", name, a, err)
			}
			if a.MayPush("refs/wip/r/1") || a.MayPush("refs/heads/") && !c.push {
				t.Errorf("%s: may push beyond branches and tags", name)
			}
		}
		if _, err := s.Access(t.Context(), "x", "", web); !errors.Is(err, policy.Unauthenticated()) {
			t.Errorf("a password that is worth nothing: %v", err)
		}

		// An attempt's token is for one repository and the refs it names.
		var webID string
		s.write("acme", func(tx *db.Tx) error {
			r, _, err := ByName(tx, "acme", "web")
			webID = r.ID
			return err
		})
		s.attempt = Attempt{RepoID: webID, Push: []string{"refs/heads/svc/a"}, Who: "run:r"}
		a, err := s.Access(t.Context(), "x", "live", web)
		if err != nil || !a.Read || !a.MayPush("refs/heads/svc/a") || a.MayPush("refs/heads/main") || a.MayPush("refs/heads/svc/a/b") ||
			a.Create {
			t.Errorf("an attempt: %+v, %v", a, err)
		}
		for _, other := range []codehost.Repo{fresh, foreign, {}} {
			if a, err := s.Access(t.Context(), "x", "live", other); err != nil || a.Read || a.Create || len(a.Push) > 0 {
				t.Errorf("an attempt at %s: %+v, %v", other, a, err)
			}
		}
	})
}

func TestCreateRaces(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				if err := s.Create(context.Background(), web); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		var page struct{ Data []Repository }
		if s.call("acme", 200, "GET", "/v1/repos", "", &page); len(page.Data) != 1 {
			t.Errorf("%d repositories", len(page.Data))
		}
		if err := s.Create(t.Context(), at("nobody", "web")); err == nil {
			t.Error("a repository of nobody's was made")
		}
	})
}

func TestSwitches(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		s.make()
		var r Repository
		s.call("acme", 200, "PATCH", "/v1/repos/acme/web", `{"enabled": false, "ai_first": true}`, &r)
		if r.Enabled || !r.AIFirst || r.CanaryEnabled {
			t.Errorf("%+v", r)
		}
		s.call("acme", 400, "PATCH", "/v1/repos/acme/web", `{}`, nil)
		for _, path := range []string{"/v1/repos/acme/web", "/v1/repos/acme/nothing"} {
			s.call("rival", 404, "GET", path, "", nil)
			s.call("rival", 404, "GET", path+"/policy", "", nil)
			s.call("rival", 404, "PATCH", path, `{"enabled": true}`, nil)
			s.call("rival", 404, "POST", path+"/policy/validate", `{"yml": ""}`, nil)
		}
		// Switches that are turned at once are all turned.
		names := []string{"donations_enabled", "ai_first", "canary_enabled", "public_stats_enabled", "enabled"}
		for _, to := range []string{"true", "false"} {
			var group sync.WaitGroup
			for _, name := range names {
				group.Go(func() { s.call("acme", 200, "PATCH", "/v1/repos/acme/web", `{"`+name+`": `+to+`}`, nil) })
			}
			group.Wait()
			s.call("acme", 200, "GET", "/v1/repos/acme/web", "", &r)
			if on := to == "true"; r.Enabled != on || r.DonationsEnabled != on || r.AIFirst != on || r.CanaryEnabled != on ||
				r.PublicStatsEnabled != on {
				t.Errorf("all turned %s at once: %+v", to, r)
			}
		}
		s.write("rival", func(tx *db.Tx) error {
			_, err := Install(tx, at("rival", "secret"), "main", true)
			return err
		})
		s.call("rival", 402, "PATCH", "/v1/repos/rival/secret", `{"enabled": true}`, nil)
		s.call("rival", 200, "PATCH", "/v1/repos/rival/secret", `{"enabled": false}`, nil)
	})
}
