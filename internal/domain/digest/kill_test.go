package digest

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/event"
	"yardmaster/internal/mail"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

// What a child process is told by its environment.
const (
	envStep = "DIGEST_TEST_STEP" // where it kills itself
	envDSN  = "DIGEST_TEST_DSN"
)

// post queues a mail about each digest, and kills its process at a step.
type post struct {
	*mail.Outbox
	step string
}

// Mail implements Mails.
func (p post) Mail(tx *db.Tx, l Letter) error {
	if p.step == "moved" {
		die()
	}
	if err := p.Post(tx, mail.Message{To: "ada@example.com", Subject: l.Subject, Text: l.Text}); err != nil {
		return err
	}
	if p.step == "mailed" {
		die()
	}
	if p.step == "made" {
		tx.AfterCommit(die)
	}
	return nil
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// killable is a node that kills itself at a step, at a time.
func killable(t *testing.T, dsn, at, step string) *Service {
	t.Helper()
	y := &yard{t: t}
	y.set(at)
	d := dbtest.Open(t, dsn, db.Options{Clock: y.now})
	hub := event.NewHub()
	return New(Needs{
		DB: d, Due: duetest.New(d, hub), Logger: slog.New(slog.DiscardHandler), BaseURL: "https://yard.example",
		Mails: post{&mail.Outbox{DB: d, Hub: hub, Ring: seal.New()}, step}, Actors: callers{},
	})
}

var (
	countDigests = db.Q[int64](`SELECT COUNT(*) FROM digests`)
	countMails   = db.Q[int64](`SELECT COUNT(*) FROM mails`)
)

// A server that is killed at any step of a digest leaves it to the next one, or has made it:
// there is one digest of the day, and one mail about it.
func TestKilled(t *testing.T) {
	t.Parallel()
	const due = "2026-03-04T08:00:10Z"
	if step := os.Getenv(envStep); step != "" {
		duetest.Pass(t.Context(), t, killable(t, os.Getenv(envDSN), due, step).Due)
		t.Fatal("it lives")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		for _, step := range []string{"moved", "mailed", "made"} {
			t.Run(e.String()+"/"+step, func(t *testing.T) {
				t.Parallel()
				dsn := dbtest.DSN(t, e)
				before := killable(t, dsn, "2026-03-03T12:00:00Z", "")
				if err := before.DB.Write(db.WithAccount(t.Context(), "acme"), func(tx *db.Tx) error {
					if err := seed.Add(tx, seed.Account{ID: "acme"}, seed.Repo{ID: "web", Account: "acme"},
						seed.Pull{ID: "p", Account: "acme", Repo: "web", Number: 7, Title: "x", State: "merged",
							Merged: micros(t, "2026-03-03T13:00:00Z")}); err != nil {
						return err
					}
					return before.Plan(tx, "acme")
				}); err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), self, "-test.run", "^TestKilled$")
				cmd.Env = append(os.Environ(), envStep+"="+step, envDSN+"="+dsn)
				out, err := cmd.CombinedOutput()
				ended, is := errors.AsType[*exec.ExitError](err)
				if !is || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
					t.Fatalf("the process ended with %v: %s", err, out)
				}
				next := killable(t, dsn, "2026-03-04T08:01:00Z", "")
				for range 2 {
					duetest.Pass(t.Context(), t, next.Due)
				}
				if err := next.DB.Read(t.Context(), func(tx *db.Tx) error {
					digests, err := countDigests.One(tx)
					if err != nil {
						return err
					}
					mails, err := countMails.One(tx)
					if digests != 1 || mails != 1 {
						t.Errorf("%d digests and %d mails", digests, mails)
					}
					return err
				}); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}
