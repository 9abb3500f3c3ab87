package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/rig"
	"yardmaster/internal/proof/seed"
)

func TestMain(m *testing.M) { rig.Main(m) }

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.DeclaredEverywhere(t)
}

// yard is a running control plane with one owner, ada of acme.
type yard struct {
	*App
	t     *testing.T
	dsn   string
	setup string // token of the first-boot address, used up by then
	stop  func() // ends it; what the test ends with otherwise
	owner string // a token with everything an owner may hold
	user  string // ada's id
	acct  string // acme's id
}

const password = rig.Password

// start runs a control plane until the test ends. Flags are further ones of
// `yardmaster serve`.
func start(t *testing.T, e db.Engine, flags ...string) *yard {
	t.Helper()
	return enter(boot(t, e, flags...))
}

// enter sets a control plane up for ada of acme.
func enter(y *yard) *yard {
	y.t.Helper()
	r := y.rig()
	r.Enter()
	y.user, y.acct, y.owner = r.User, r.Account, r.Owner
	return y
}

// boot runs a control plane that nobody has set up. Requests are not counted unless
// a flag says so.
func boot(t *testing.T, e db.Engine, flags ...string) *yard {
	t.Helper()
	return bootWith(t, rig.Log(t), e, flags...)
}

// bootWith is boot with a log.
func bootWith(t *testing.T, log *slog.Logger, e db.Engine, flags ...string) *yard {
	t.Helper()
	y := &yard{t: t}
	r := rig.Boot(t, e, log, func(ctx context.Context, cfg *config.Config, log *slog.Logger, ready func(rig.Plane)) error {
		return Run(ctx, cfg, Options{Version: "test", Logger: log, Ready: func(a *App) {
			y.App = a
			ready(a.plane())
		}})
	}, flags...)
	y.dsn, y.setup, y.stop = r.DSN, r.Setup, r.Stop
	return y
}

// plane returns what the tests of other packages use of a running control plane.
func (a *App) plane() rig.Plane {
	return rig.Plane{URL: a.URL(), DB: a.db, Tasks: a.parts.task, Blockers: a.parts.blocker}
}

// part returns the domain of a type that a program is made of, such as *pull.Service.
func part[D domain](a interface{ domains() []domain }) (d D) {
	for _, one := range a.domains() {
		if found, ok := one.(D); ok {
			return found
		}
	}
	panic(fmt.Sprintf("there is no %T", d))
}

func (a *App) domains() []domain { return a.parts.all }

// rig returns what the tests of the running program have in common, for the test of
// y.
func (y *yard) rig() *rig.Yard {
	return &rig.Yard{Plane: y.plane(), T: y.t, Log: y.log, Setup: y.setup, Owner: y.owner, User: y.user, Account: y.acct}
}

// answer is a response, read to its end.
type answer struct {
	t *testing.T
	*http.Response
	body []byte
}

// hear reads a stream until enough says so, it ends, or patience does.
func (y *yard) hear(path, bearer string, header []string, enough func(answer) bool) answer {
	y.t.Helper()
	resp, body := y.rig().Hear(path, bearer, header, func(resp *http.Response, body []byte) bool { return enough(answer{y.t, resp, body}) })
	return answer{y.t, resp, body}
}

// send makes a request with a token, if any, and further headers, Host among them.
func (y *yard) send(method, path, bearer, body string, header ...string) answer {
	y.t.Helper()
	resp, text := y.rig().Send(method, path, bearer, body, header...)
	return answer{y.t, resp, text}
}

func (a answer) want(status int) answer {
	a.t.Helper()
	if a.StatusCode != status {
		a.t.Fatalf("%s %s answers %d, want %d: %s", a.Request.Method, a.Request.URL.Path, a.StatusCode, status, a.body)
	}
	return a
}

// problem holds the answer against what every failure looks like, and answers
// its members.
func (a answer) problem(status int, slug string) map[string]any {
	a.t.Helper()
	a.want(status)
	at := a.Request.Method + " " + a.Request.URL.Path
	if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
		a.t.Errorf("%s: a problem of type %q", at, got)
	}
	var p map[string]any
	if err := json.Unmarshal(a.body, &p); err != nil {
		a.t.Fatalf("%s: %v: %s", at, err, a.body)
	}
	kind, _ := p["type"].(string)
	if got := kind[strings.LastIndex(kind, "/")+1:]; got != slug {
		a.t.Errorf("%s: slug %q, want %q: %s", at, got, slug, a.body)
	}
	if p["status"] != float64(status) || p["request_id"] != a.Header.Get("X-Request-Id") || p["instance"] != a.Request.URL.Path {
		a.t.Errorf("%s: the problem contradicts the response: %s", at, a.body)
	}
	for _, member := range []string{"title", "detail", "request_id"} {
		if s, _ := p[member].(string); s == "" {
			a.t.Errorf("%s: the problem has no %s: %s", at, member, a.body)
		}
	}
	return p
}

// in writes to the database as an account.
func (y *yard) in(account string, fn func(*db.Tx) error) {
	y.t.Helper()
	y.rig().Write(account, fn)
}

// mint makes a token behind the API's back; without a user it is a machine's.
func (y *yard) mint(account string, user *string, scopes policy.Set, expires *time.Time) (plaintext string) {
	y.t.Helper()
	return y.mintAs(policy.PAT, account, user, scopes, expires)
}

// operator mints ada a token with every operator scope.
func (y *yard) operator() (plaintext string) {
	y.t.Helper()
	return y.rig().Operator()
}

func (y *yard) mintAs(kind policy.Credential, account string, user *string, scopes policy.Set, expires *time.Time) (plaintext string) {
	y.t.Helper()
	var userID string
	if user != nil {
		userID = *user
	}
	return y.rig().Mint(kind, account, userID, scopes, expires)
}

// person makes a user with a role in an account; there is no API for it yet.
func (y *yard) person(login, account string, role policy.Role) (userID string) {
	y.t.Helper()
	userID = id.New()
	y.in(account, func(tx *db.Tx) error {
		return seed.Add(tx, seed.User{ID: userID, Login: login}, seed.Member{Account: account, User: userID, Role: string(role)})
	})
	return userID
}

// tenant makes a second account; there is no API for it yet.
func (y *yard) tenant(login string) (accountID string) {
	y.t.Helper()
	accountID = id.New()
	y.in(accountID, func(tx *db.Tx) error { return seed.Account{ID: accountID, Login: login}.Add(tx) })
	return accountID
}

// push makes a repository of the files and pushes it as owner/name.
func (y *yard) push(name string, files map[string]string) {
	y.t.Helper()
	if err := y.tryPush(name, files); err != nil {
		y.t.Fatal(err)
	}
}

// tryPush is push of what may be refused.
func (y *yard) tryPush(name string, files map[string]string) error {
	y.t.Helper()
	return y.rig().Push(name, files)
}

// box enrolls a real box with a token and runs it until the test ends.
func (y *yard) box(enrollment string) {
	y.t.Helper()
	y.rig().Box(enrollment)
}

func decode(t *testing.T, a answer, into any) {
	t.Helper()
	if err := json.Unmarshal(a.body, into); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
}

// block declares a blocker as a run of the task would, and holds the task if
// it waits in the queue.
func (y *yard) block(taskID, kind string, fields map[string]string) {
	y.t.Helper()
	y.rig().Block(taskID, kind, fields)
}

// withTask locks a task and hands it to fn.
func withTask(tx *db.Tx, taskID string, fn func(*task.Row) error) error {
	t, ok, err := task.Lock(tx, tx.Account, taskID)
	if err != nil || !ok {
		return err
	}
	return fn(&t)
}
