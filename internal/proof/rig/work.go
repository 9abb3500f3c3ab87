package rig

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/box"
	"yardmaster/internal/client"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/token"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/protocol"
)

// Write writes to the database as an account.
func (y *Yard) Write(account string, fn func(*db.Tx) error) {
	y.T.Helper()
	if err := y.DB.Write(db.WithAccount(context.Background(), account), fn); err != nil {
		y.T.Fatal(err)
	}
}

// Mint makes a token without the API; without a user it is a machine's, and without
// a time it does not expire, unless it has scopes over the platform.
func (y *Yard) Mint(kind policy.Credential, account, user string, scopes policy.Set, expires *time.Time) (plaintext string) {
	y.T.Helper()
	y.Write(account, func(tx *db.Tx) error {
		if expires == nil && scopes&policy.PlatformRead != 0 {
			end := tx.Now.Add(90 * 24 * time.Hour)
			expires = &end
		}
		m, err := token.Mint(tx, kind, user, nil, scopes, expires)
		plaintext = m.Token
		return err
	})
	return plaintext
}

// Operator makes a token of ada's with every operator scope.
func (y *Yard) Operator() (plaintext string) {
	y.T.Helper()
	return y.Mint(policy.Operator, y.Account, y.User, policy.OperatorOnly, nil)
}

// Push makes a repository of files, by path, and pushes it as owner/name. It
// returns the fault of a server that refuses.
func (y *Yard) Push(name string, files map[string]string) error {
	y.T.Helper()
	dir := y.T.TempDir()
	for path, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(path))
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		if err == nil {
			err = os.WriteFile(at, []byte(text), 0o644)
		}
		if err != nil {
			y.T.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "--all"},
		{"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message",
			"Begin"},
	} {
		if _, err := client.Git(y.T.Context(), dir, "", "", args...); err != nil {
			y.T.Fatal(err)
		}
	}
	owner, repo, _ := strings.Cut(name, "/")
	c := &client.Client{URL: y.URL, Token: y.Owner}
	return c.AddRepo(y.T.Context(), dir, owner, repo)
}

// Box enrolls a real box with a token and runs it until the test ends. A test may
// revoke the box.
func (y *Yard) Box(enrollment string) {
	y.T.Helper()
	y.BoxThatSavesFor(enrollment, 0)
}

// BoxThatSavesFor is Box with another time after which a run gives up to save its work; 0
// is the usual one.
func (y *Yard) BoxThatSavesFor(enrollment string, wrap time.Duration) {
	y.T.Helper()
	dir := y.T.TempDir()
	// Agents run as another user where the box is root, and must get through.
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		y.T.Fatal(err)
	}
	identity, err := box.Enroll(y.T.Context(), y.URL, enrollment, box.Info{Name: "bench", Version: "test", Slots: 2})
	if err == nil {
		err = identity.Save(dir)
	}
	if err != nil {
		y.T.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- box.Run(ctx, box.Config{
			DataDir: dir, Slots: 2, Version: "test", Logger: y.Log.With("side", "box"),
			Timing: box.Timing{
				Beat: time.Second, Retry: 20 * time.Millisecond, Wrap: wrap,
			},
		})
	}()
	y.T.Cleanup(func() {
		stop()
		y.await(ended, "the box", box.ErrRevoked)
	})
}

// OnTask locks a task of acme and hands it to fn. It fails the test if there is no
// such task.
func (y *Yard) OnTask(taskID string, fn func(tx *db.Tx, t *task.Row) error) {
	y.T.Helper()
	y.Write(y.Account, func(tx *db.Tx) error {
		t, ok, err := task.Lock(tx, tx.Account, taskID)
		if err != nil || !ok {
			return errors.Join(err, errors.New("there is no such task"))
		}
		return fn(tx, &t)
	})
}

// Block declares a blocker as a run of the task would, and holds the task if it
// waits in the queue. Fields are "kind" or "kind environment" by name.
func (y *Yard) Block(taskID, kind string, fields map[string]string) {
	y.T.Helper()
	b := protocol.BlockerDeclared{ID: id.New(), Kind: kind, Question: "How do I get <b>in</b>?"}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		f := protocol.BlockerField{Name: name, Description: "for the tests"}
		kind, environment, _ := strings.Cut(strings.TrimSpace(fields[name]), " ")
		f.Kind, f.Environment = protocol.FieldKind(kind), environment
		b.Fields = append(b.Fields, f)
	}
	y.OnTask(taskID, func(tx *db.Tx, t *task.Row) error {
		if err := y.Blockers.Declare(tx, t.RepoID, t.ID, id.New(), b); err != nil || t.Status != task.Pending {
			return err
		}
		return y.Tasks.Hold(tx, t, task.Blocked, b.Question)
	})
}
