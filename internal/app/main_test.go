package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/box"
	"yardmaster/internal/box/coder"
	"yardmaster/internal/client"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/token"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/protocol"
)

// patience bounds every wait of a test.
const patience = 30 * time.Second

// The test binary is also the shim that a box starts its agents with.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if inner, ok := box.Inner()[os.Args[1]]; ok {
			os.Exit(inner(os.Args[2:]))
		}
	}
	if len(os.Args) == 2 && os.Args[1] == "agent" { // of boxes in this process
		if err := coder.Main(context.Background(), os.Stdin, os.Stdout, os.Environ()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	dbtest.Main(m)
}

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

const password = "a long password"

// start runs a control plane until the test ends. Flags are further ones of
// `yardmaster serve`.
func start(t *testing.T, e db.Engine, flags ...string) *yard {
	t.Helper()
	return enter(boot(t, e, flags...))
}

// enter sets a control plane up for ada of acme.
func enter(y *yard) *yard {
	t := y.t
	t.Helper()
	var made struct {
		User    struct{ ID string }
		Account struct{ ID string }
	}
	resp := y.send(http.MethodPost, "/setup/"+y.setup, "", `{"login": "ada", "email": "ada@example.com", "password": "`+password+`", "account": "acme"}`)
	resp.want(http.StatusCreated)
	if err := json.Unmarshal(resp.body, &made); err != nil {
		t.Fatal(err)
	}
	y.user, y.acct = made.User.ID, made.Account.ID
	y.owner = y.mint(y.acct, &y.user, policy.Owner.Ceiling()|policy.PlatformRead, nil)
	return y
}

// boot runs a control plane that nobody has set up. Polling tests would soon be
// refused, so requests are not counted unless a flag says so.
func boot(t *testing.T, e db.Engine, flags ...string) *yard {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	return bootWith(t, log, e, flags...)
}

// bootWith is boot with a log.
func bootWith(t *testing.T, log *slog.Logger, e db.Engine, flags ...string) *yard {
	t.Helper()
	y := &yard{t: t, dsn: dbtest.DSN(t, e), setup: id.Secret(id.Setup)}
	none := func(string) (string, bool) { return "", false }
	args := []string{"--data", t.TempDir(), "--listen", "127.0.0.1:0", "--database", y.dsn, "--setup-token", y.setup, "--lease", "3s", "--rate-limits", "off", "--scenario", "../proof/transcript/testdata/scenario.yml", "--service-token", "the-form"}
	cfg, err := config.Load("test", append(args, flags...), none, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan *App, 1), make(chan error, 1)
	go func() {
		ended <- Run(ctx, cfg, Options{Version: "test", Logger: log, Ready: func(a *App) { ready <- a }})
	}()
	select {
	case y.App = <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	y.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Error("the control plane does not stop")
		}
	})
	t.Cleanup(y.stop)
	return y
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
	ctx, stop := context.WithTimeout(y.t.Context(), patience)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, y.URL()+path, nil)
	if err != nil {
		y.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := plain.Do(req)
	if err != nil {
		y.t.Fatal(err)
	}
	defer resp.Body.Close()
	a := answer{t: y.t, Response: resp}
	for buf := make([]byte, 64<<10); ; {
		n, err := resp.Body.Read(buf)
		if a.body = append(a.body, buf[:n]...); err != nil || enough(a) {
			return a
		}
	}
}

// plain follows no redirect and keeps no cookie.
var plain = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Timeout: patience}

// send makes a request with a token, if any, and further headers, Host among them.
func (y *yard) send(method, path, bearer, body string, header ...string) answer {
	y.t.Helper()
	req, err := http.NewRequestWithContext(y.t.Context(), method, y.URL()+path, strings.NewReader(body))
	if err != nil {
		y.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := plain.Do(req)
	if err != nil {
		y.t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		y.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{y.t, resp, b.Bytes()}
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
	if err := y.db.Write(db.WithAccount(context.Background(), account), fn); err != nil {
		y.t.Fatal(err)
	}
}

// mint makes a token behind the API's back; without a user it is a machine's.
func (y *yard) mint(account string, user *string, scopes policy.Set, expires *time.Time) (plaintext string) {
	y.t.Helper()
	return y.mintAs(policy.PAT, account, user, scopes, expires)
}

// operator mints ada a token with every operator scope.
func (y *yard) operator() (plaintext string) {
	y.t.Helper()
	return y.mintAs(policy.Operator, y.acct, &y.user, policy.OperatorOnly, nil)
}

func (y *yard) mintAs(kind policy.Credential, account string, user *string, scopes policy.Set, expires *time.Time) (plaintext string) {
	y.t.Helper()
	y.in(account, func(tx *db.Tx) error {
		var userID string
		if user != nil {
			userID = *user
		}
		m, err := token.Mint(tx, kind, userID, nil, scopes, expires)
		plaintext = m.Token
		return err
	})
	return plaintext
}

var (
	addAccount = db.S(`INSERT INTO accounts (id, login, kind, tier, seats, created_at) VALUES ($1, $2, 'organization', 'self_hosted', 2, 0)`)
	addUser    = db.S(`INSERT INTO users (id, login, name, email, approved_at, created_at) VALUES ($1, $2, $2, $2 || '@example.com', 0, 0)`)
	addMember  = db.S(`INSERT INTO memberships (account_id, user_id, role, created_at) VALUES ($1, $2, $3, 0)`)
	setRole    = db.S(`UPDATE memberships SET role = $3 WHERE account_id = $1 AND user_id = $2`)
)

// person makes a user with a role in an account; there is no API for it yet.
func (y *yard) person(login, account string, role policy.Role) (userID string) {
	y.t.Helper()
	userID = id.New()
	y.in(account, func(tx *db.Tx) error {
		if _, err := addUser.Exec(tx, userID, login); err != nil {
			return err
		}
		_, err := addMember.Exec(tx, account, userID, string(role))
		return err
	})
	return userID
}

// tenant makes a second account; there is no API for it yet.
func (y *yard) tenant(login string) (accountID string) {
	y.t.Helper()
	accountID = id.New()
	y.in(accountID, func(tx *db.Tx) error {
		_, err := addAccount.Exec(tx, accountID, login)
		return err
	})
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
	dir := y.t.TempDir()
	for path, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			y.t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			y.t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "--all"},
		{"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message", "Begin"},
	} {
		if _, err := client.Git(y.t.Context(), dir, "", "", args...); err != nil {
			y.t.Fatal(err)
		}
	}
	owner, repo, _ := strings.Cut(name, "/")
	c := &client.Client{URL: y.URL(), Token: y.owner}
	return c.AddRepo(y.t.Context(), dir, owner, repo)
}

// box enrolls a real box with a token and runs it until the test ends.
func (y *yard) box(enrollment string) {
	y.t.Helper()
	dir := y.t.TempDir()
	// Agents run as another user where the box is root, and must get through.
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		y.t.Fatal(err)
	}
	identity, err := box.Enroll(y.t.Context(), y.URL(), enrollment, box.Info{Name: "bench", Version: "test", Slots: 2})
	if err != nil {
		y.t.Fatal(err)
	}
	if err := identity.Save(dir); err != nil {
		y.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- box.Run(ctx, box.Config{DataDir: dir, Slots: 2, Version: "test", Logger: y.log.With("side", "box"), Timing: box.Timing{
			Renew: time.Second, Beat: 200 * time.Millisecond, Retry: 20 * time.Millisecond, Grace: time.Second,
		}})
	}()
	y.t.Cleanup(func() {
		stop()
		select {
		case err := <-ended:
			if err != nil && !errors.Is(err, box.ErrRevoked) { // which a test has seen to
				y.t.Error("box:", err)
			}
		case <-time.After(patience):
			y.t.Error("the box does not stop")
		}
	})
}
func decode(t *testing.T, a answer, into any) {
	t.Helper()
	if err := json.Unmarshal(a.body, into); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
}

// eventually polls for what becomes true outside our sight.
func (y *yard) eventually(what string, is func() bool) {
	y.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	over := time.After(patience)
	for !is() {
		select {
		case <-tick.C:
		case <-over:
			y.t.Fatalf("it never came to pass that %s", what)
		}
	}
}

// block declares a blocker as a run of the task would, and holds the task if
// it waits in the queue.
func (y *yard) block(taskID, kind string, fields map[string]string) {
	y.t.Helper()
	b := protocol.BlockerDeclared{ID: id.New(), Kind: kind, Question: "How do I get <b>in</b>?"}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		f := protocol.BlockerField{Name: name, Kind: strings.TrimSpace(fields[name]), Description: "for the tests"}
		f.Kind, f.Environment, _ = strings.Cut(f.Kind, " ")
		b.Fields = append(b.Fields, f)
	}
	y.in(y.acct, func(tx *db.Tx) error {
		return withTask(tx, taskID, func(t *task.Row) error {
			if err := y.parts.blocker.Declare(tx, t.RepoID, t.ID, id.New(), b); err != nil || t.Status != task.Pending {
				return err
			}
			return y.parts.task.Hold(tx, t, task.Blocked, b.Question)
		})
	})
}

// withTask locks a task and hands it to fn.
func withTask(tx *db.Tx, taskID string, fn func(*task.Row) error) error {
	t, ok, err := task.Lock(tx, tx.Account, taskID)
	if err != nil || !ok {
		return err
	}
	return fn(&t)
}
