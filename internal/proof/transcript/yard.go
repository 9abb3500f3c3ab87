package transcript

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/app"
	"yardmaster/internal/box"
	"yardmaster/internal/client"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/token"
	"yardmaster/internal/id"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/protocol"
)

// patience bounds every wait.
const patience = 30 * time.Second

//go:embed testdata/scenario.yml
var scenario []byte

// yard is a running control plane with one owner, ada of acme.
type yard struct {
	*app.App
	t     *testing.T
	log   *slog.Logger
	dsn   string
	setup string // token of the first-boot address, used up by set up
	owner string // a token with everything an owner may hold
	user  string // ada's id
	acct  string // acme's id
}

// boot runs a control plane that nobody has set up, until the test ends.
// Requests that poll would soon be refused, so none are counted.
func boot(t *testing.T, e db.Engine, flags ...string) *yard {
	t.Helper()
	y := &yard{t: t, dsn: dbtest.DSN(t, e), setup: id.Secret(id.Setup), log: slog.New(slog.DiscardHandler)}
	if testing.Verbose() {
		y.log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "scenario.yml")
	if err := os.WriteFile(script, scenario, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--database", y.dsn, "--setup-token", y.setup,
		"--lease", "3s", "--rate-limits", "off", "--scenario", script, "--service-token", "the-form"}
	cfg, err := config.Load("test", append(args, flags...), func(string) (string, bool) { return "", false }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan *app.App, 1), make(chan error, 1)
	go func() {
		ended <- app.Run(ctx, cfg, app.Options{Version: "test", Logger: y.log, Ready: func(a *app.App) { ready <- a }})
	}()
	select {
	case y.App = <-ready:
	case err := <-ended:
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		y.awaits(ended, "the control plane", nil)
	})
	return y
}

// awaits wants a part of the test to stop without a fault, or with this one.
func (y *yard) awaits(ended <-chan error, what string, unless error) {
	y.t.Helper()
	select {
	case err := <-ended:
		if err != nil && (unless == nil || !errors.Is(err, unless)) {
			y.t.Errorf("%s: %v", what, err)
		}
	case <-time.After(patience):
		y.t.Errorf("%s does not stop", what)
	}
}

// start is boot, and what the first-boot page does.
func start(t *testing.T, e db.Engine, flags ...string) *yard {
	t.Helper()
	y := boot(t, e, flags...)
	var made struct {
		User    struct{ ID string }
		Account struct{ ID string }
	}
	a := y.send(http.MethodPost, "/setup/"+y.setup, "", `{"login": "ada", "email": "ada@example.com", "password": "a long password", "account": "acme"}`)
	if err := json.Unmarshal(a.body, &made); err != nil || a.StatusCode != http.StatusCreated {
		t.Fatalf("set up: %d %s", a.StatusCode, a.body)
	}
	y.user, y.acct = made.User.ID, made.Account.ID
	y.owner = y.mint(policy.PAT, y.acct, y.user, policy.Owner.Ceiling()|policy.PlatformRead)
	return y
}

// answer is a response, read to its end.
type answer struct {
	*http.Response
	body []byte
}

// plain follows no redirect and keeps no cookie.
var plain = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Timeout: patience}

func (y *yard) request(ctx context.Context, method, target, bearer, body string, header []string) *http.Response {
	y.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, y.URL()+target, strings.NewReader(body))
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
	return resp
}

// send makes a request with a token, if any, and further headers, Host among
// them.
func (y *yard) send(method, target, bearer, body string, header ...string) answer {
	y.t.Helper()
	resp := y.request(y.t.Context(), method, target, bearer, body, header)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		y.t.Fatalf("%s %s: %v", method, target, err)
	}
	return answer{resp, b}
}

// hear reads a stream until enough is true, it ends, or patience does.
func (y *yard) hear(target, bearer string, header []string, enough func(answer) bool) answer {
	y.t.Helper()
	ctx, stop := context.WithTimeout(y.t.Context(), patience)
	defer stop()
	resp := y.request(ctx, http.MethodGet, target, bearer, "", header)
	defer resp.Body.Close()
	a := answer{Response: resp}
	for buf := make([]byte, 64<<10); ; {
		n, err := resp.Body.Read(buf)
		if a.body = append(a.body, buf[:n]...); err != nil || enough(a) {
			return a
		}
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

// in writes to the database as an account.
func (y *yard) in(account string, fn func(*db.Tx) error) {
	y.t.Helper()
	if err := y.Inside().DB.Write(db.WithAccount(context.Background(), account), fn); err != nil {
		y.t.Fatal(err)
	}
}

// mint makes a token behind the API's back.
func (y *yard) mint(kind policy.Credential, account, user string, scopes policy.Set) (plaintext string) {
	y.t.Helper()
	y.in(account, func(tx *db.Tx) error {
		m, err := token.Mint(tx, kind, user, nil, scopes, nil)
		plaintext = m.Token
		return err
	})
	return plaintext
}

// person makes a user with an account of their own, and a role in acme if one
// is given. They act in that of the two.
func (y *yard) person(login string, role ...string) (userID, bearer string) {
	y.t.Helper()
	userID, account := id.New(), id.New()
	rows := []seed.Row{
		seed.Account{ID: account, Login: login}, seed.User{ID: userID, Login: login},
		seed.Member{Account: account, User: userID, Role: string(policy.Owner)},
	}
	if len(role) > 0 {
		rows = append(rows, seed.Member{Account: y.acct, User: userID, Role: role[0]})
	}
	y.in(account, func(tx *db.Tx) error { return seed.Add(tx, rows...) })
	if len(role) > 0 {
		account = y.acct
	}
	return userID, y.mint(policy.PAT, account, userID, policy.Owner.Ceiling())
}

// push makes a repository of the files and pushes it as owner/name.
func (y *yard) push(name string, files map[string]string) {
	y.t.Helper()
	dir := y.t.TempDir()
	for path, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(path))
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		if err == nil {
			err = os.WriteFile(at, []byte(text), 0o644)
		}
		if err != nil {
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
	if err := c.AddRepo(y.t.Context(), dir, owner, repo); err != nil {
		y.t.Fatal(err)
	}
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
	if err == nil {
		err = identity.Save(dir)
	}
	if err != nil {
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
		y.awaits(ended, "the box", box.ErrRevoked) // which a step may have seen to
	})
}

// onTask changes a task, as the domains do that tell of its end.
func (y *yard) onTask(taskID string, fn func(tx *db.Tx, t *task.Row) error) {
	y.t.Helper()
	y.in(y.acct, func(tx *db.Tx) error {
		t, ok, err := task.Lock(tx, tx.Account, taskID)
		if err != nil || !ok {
			return errors.Join(err, errors.New("there is no such task"))
		}
		return fn(tx, &t)
	})
}

// block declares a blocker as a run of the task would, and holds the task if
// it waits in the queue.
func (y *yard) block(taskID, kind string, fields map[string]string) {
	y.t.Helper()
	b := protocol.BlockerDeclared{ID: id.New(), Kind: kind, Question: "How do I get <b>in</b>?"}
	for name, text := range fields {
		f := protocol.BlockerField{Name: name, Description: "for the tests"}
		f.Kind, f.Environment, _ = strings.Cut(strings.TrimSpace(text), " ")
		b.Fields = append(b.Fields, f)
	}
	slices.SortFunc(b.Fields, func(a, b protocol.BlockerField) int { return strings.Compare(a.Name, b.Name) })
	y.onTask(taskID, func(tx *db.Tx, t *task.Row) error {
		if err := y.Inside().Blockers.Declare(tx, t.RepoID, t.ID, id.New(), b); err != nil || t.Status != task.Pending {
			return err
		}
		return y.Inside().Tasks.Hold(tx, t, task.Blocked, b.Question)
	})
}

// fail ends a task for good.
func (y *yard) fail(taskID, kind string) {
	y.t.Helper()
	y.onTask(taskID, func(tx *db.Tx, t *task.Row) error { return y.Inside().Tasks.Fail(tx, t, kind, "Failed by a test.") })
}

var mailedCode = regexp.MustCompile(`(?m)^ {4}([0-9]{6})$`)

// operator mints ada a token with every operator scope.
func (y *yard) operator() string {
	y.t.Helper()
	return y.mint(policy.Operator, y.acct, y.user, policy.OperatorOnly)
}

// code waits for a code that is mailed to an address, another one than before.
func (y *yard) code(to, before string) (code string) {
	y.t.Helper()
	y.eventually("a code is mailed to "+to, func() bool {
		all, err := mail.Folder{Dir: filepath.Join(y.Inside().Data, "mail")}.List()
		if err != nil {
			y.t.Fatal(err)
		}
		for _, l := range all {
			if found := mailedCode.FindStringSubmatch(l.Text); l.To == to && found != nil {
				code = found[1]
			}
		}
		return code != "" && code != before
	})
	return code
}

// visit opens a page elsewhere that sends us back here, and returns the query
// it brings.
func (y *yard) visit(address string) (query string) {
	y.t.Helper()
	resp, err := plain.Get(address)
	if err != nil {
		y.t.Fatal(err)
	}
	resp.Body.Close()
	at, err := resp.Location()
	if err != nil || !strings.HasPrefix(at.String(), y.URL()+"/") {
		y.t.Fatalf("%s sends us to %v, %v", address, at, err)
	}
	return at.RawQuery
}

// indented is JSON for people.
func indented(b []byte) string {
	var out bytes.Buffer
	if json.Indent(&out, b, "", "  ") != nil {
		return string(b)
	}
	return out.String()
}
