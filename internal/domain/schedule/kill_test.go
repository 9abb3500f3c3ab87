package schedule

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/event"
	"yardmaster/internal/proof/seed"
)

// What a child process is told by its environment.
const (
	envStep = "SCHEDULE_TEST_STEP" // where it kills itself
	envDSN  = "SCHEDULE_TEST_DSN"
)

// killer files asks as yard does, and kills its process at a step.
type killer struct {
	*yard
	step string
}

// File implements Asks.
func (k killer) File(tx *db.Tx, f Filing) (string, error) {
	if k.step == "due" {
		die()
	}
	askID, err := k.yard.File(tx, f)
	if err != nil {
		return "", err
	}
	if k.step == "asked" {
		die()
	}
	if k.step == "filed" {
		tx.AfterCommit(die)
	}
	return askID, nil
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// killable is a yard at a time whose nodes kill themselves at a step.
func killable(t *testing.T, dsn, at, step string) *yard {
	t.Helper()
	y := &yard{t: t, repo: Repo{ID: "web", Name: "acme/web", Enabled: true}}
	y.set(at)
	d := dbtest.Open(t, dsn, db.Options{Clock: y.now})
	for i := range y.nodes {
		y.nodes[i] = New(Needs{
			DB: d, Due: duetest.New(d, event.NewHub()), Logger: slog.New(slog.DiscardHandler), Repos: y, Asks: killer{y, step},
		})
	}
	return y
}

// A server that is killed at any step of an occurrence leaves it to the next one, or has
// filed it: there is one ask of each.
func TestKilled(t *testing.T) {
	t.Parallel()
	const due = "2026-03-03T07:00:09Z"
	if step := os.Getenv(envStep); step != "" {
		duetest.Pass(t.Context(), t, killable(t, os.Getenv(envDSN), due, step).nodes[0].Due)
		t.Fatal("it lives")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		for _, step := range []string{"due", "asked", "filed"} {
			t.Run(e.String()+"/"+step, func(t *testing.T) {
				t.Parallel()
				dsn := dbtest.DSN(t, e)
				y := killable(t, dsn, "2026-03-02T12:00:00Z", "")
				y.write(func(tx *db.Tx) error {
					return seed.Add(tx, seed.Account{ID: "acme"}, seed.User{ID: "ada"}, seed.User{ID: "bob"},
						seed.Member{Account: "acme", User: "ada", Role: "member"},
						seed.Member{Account: "acme", User: "bob", Role: "member"}, seed.Repo{ID: "web", Account: "acme"})
				})
				s := y.make("0 8 * * *", "Europe/Berlin", "")
				cmd := exec.CommandContext(t.Context(), self, "-test.run", "^TestKilled$")
				cmd.Env = append(os.Environ(), envStep+"="+step, envDSN+"="+dsn)
				out, err := cmd.CombinedOutput()
				ended, is := errors.AsType[*exec.ExitError](err)
				if !is || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
					t.Fatalf("the process ended with %v: %s", err, out)
				}
				y.set("2026-03-03T07:01:00Z")
				y.pass()
				y.pass()
				y.want(s.ID, Filed, "2026-03-04T07:00:00Z", "2026-03-03T07:00:00Z")
				if got := y.records(); !slices.Equal(got, []string{"schedule.created", "schedule.filed"}) {
					t.Errorf("recorded %q", got)
				}
			})
		}
	}
}
