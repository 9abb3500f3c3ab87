package mail

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/seal"
)

// What a child process is told by its environment.
const (
	envStep = "MAIL_TEST_STEP" // where it kills itself
	envDSN  = "MAIL_TEST_DSN"
	envRing = "MAIL_TEST_RING"
	envFile = "MAIL_TEST_FILE" // where it notes the letters that it has sent
)

// notes is a transport that writes the IDs of letters into a file, and kills its process
// before or after that.
type notes struct{ file, step string }

func (n notes) Send(_ context.Context, l Letter) error {
	if n.step == "taken" {
		die()
	}
	f, err := os.OpenFile(n.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(l.ID + "\n"); err != nil {
		return err
	}
	if n.step == "sent" {
		die()
	}
	return nil
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// victim posts a mail and sends it, and kills itself at a step.
func victim(step string) {
	ctx := context.Background()
	ring, err := seal.Parse(os.Getenv(envRing))
	if err != nil {
		panic(err)
	}
	d, err := db.Open(ctx, os.Getenv(envDSN), db.Options{Clock: func() time.Time { return time.Unix(1_800_000_000, 0) }})
	if err != nil {
		panic(err)
	}
	o := &Outbox{DB: d, Hub: event.NewHub(), Ring: ring, From: "yard@example.com", Logger: slog.New(slog.DiscardHandler),
		Transport: notes{os.Getenv(envFile), step}}
	if err := d.Write(ctx, func(tx *db.Tx) error {
		if err := o.Post(tx, welcome); err != nil || step != "posting" {
			return err
		}
		die()
		return nil
	}); err != nil {
		panic(err)
	}
	if step == "posted" {
		die()
	}
	if err := o.Pass(ctx); err != nil {
		panic(err)
	}
	die()
}

// A process that is killed between any two steps loses no mail that was posted; the next
// one sends it, with the same ID if it may have been sent before.
func TestKilled(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		for step, want := range map[string]int{"posting": 0, "posted": 1, "taken": 1, "sent": 2, "settled": 1} {
			t.Run(e.String()+"/"+step, func(t *testing.T) {
				t.Parallel()
				dsn, ring, file := dbtest.DSN(t, e), seal.New(), filepath.Join(t.TempDir(), "sent")
				cmd := exec.CommandContext(t.Context(), self)
				cmd.Env = append(os.Environ(), envStep+"="+step, envDSN+"="+dsn, envRing+"="+ring.Reveal(), envFile+"="+file)
				out, err := cmd.CombinedOutput()
				if state, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); err == nil || !ok || state.Signal() != syscall.SIGKILL {
					t.Fatalf("the process ended with %v: %s", err, out)
				}
				d := dbtest.Open(t, dsn, db.Options{Clock: func() time.Time { return time.Unix(1_800_000_000, 0).Add(lease) }})
				next := &Outbox{DB: d, Hub: event.NewHub(), Ring: ring, From: "yard@example.com", Logger: slog.New(slog.DiscardHandler),
					Transport: notes{file: file}}
				for range 2 {
					if err := next.Pass(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				text, err := os.ReadFile(file)
				if err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				sent := strings.Fields(string(text))
				if len(sent) != want || len(slices.Compact(sent)) > 1 {
					t.Errorf("the letters %q were sent, and not %d of one", text, want)
				}
			})
		}
	}
}
