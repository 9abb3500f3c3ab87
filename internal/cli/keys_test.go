package cli

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/vault"
	"yardmaster/internal/proof/chance"
	"yardmaster/internal/seal"
	"yardmaster/internal/seal/keys"
)

var (
	addAccount = db.S(`INSERT INTO accounts (id, login, kind, tier, seats, created_at) VALUES ('a', 'acme', 'organization', 'self_hosted', 2, 0)`)
	addSecret  = db.S(`INSERT INTO secrets (account_id, repo_id, environment, name, sealed, size, delivery, hosts, header, prefix, created_at, updated_at, updated_by)
		VALUES ('a', $1, '', $2, $3, 1, 'env', '[]', '', '', 0, 0, '')`)
	addKey = db.S(`INSERT INTO provider_keys (id, account_id, provider, label, masked, sealed, kind, created_at) VALUES ($1, 'a', 'openai', '', '', $2, 'api_key', 0)`)
)

// hoard is the database of a stopped server with thousands of sealed values.
type hoard struct {
	t    *testing.T
	dsn  string
	data string
	file string
	old  string // id of the first key
}

const manySecrets, manyKeys = 4000, 300

func newHoard(t *testing.T, e db.Engine) *hoard {
	h := &hoard{t: t, dsn: dbtest.DSN(t, e), data: t.TempDir()}
	h.file = filepath.Join(h.data, "master.key")
	ring := seal.New()
	h.old = ring.ID()
	if _, err := ring.Create(h.file); err != nil {
		t.Fatal(err)
	}
	d, err := db.Open(t.Context(), h.dsn, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = d.Write(t.Context(), func(tx *db.Tx) error {
		if _, err := addAccount.Exec(tx); err != nil {
			return err
		}
		for i := range manySecrets {
			repo, name := fmt.Sprintf("r%d", i%7), fmt.Sprintf("S%04d", i)
			if _, err := addSecret.Exec(tx, repo, name, ring.Seal("secret/a/"+repo+"//"+name, []byte("value "+name))); err != nil {
				return err
			}
		}
		for i := range manyKeys {
			if _, err := addKey.Exec(tx, fmt.Sprintf("k%04d", i),
				ring.Seal("provider-key/a", fmt.Appendf(nil, "key %04d", i))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *hoard) command(args ...string) *exec.Cmd {
	h.t.Helper()
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := exec.CommandContext(h.t.Context(), self, append(args, "--data", h.data, "--database", h.dsn)...)
	cmd.Env = []string{"YARDMASTER_TEST_AS=program", "HOME=" + h.data, "PATH=" + os.Getenv("PATH")}
	return cmd
}

// run runs a command to its end.
func (h *hoard) run(args ...string) (said string, ok bool) {
	h.t.Helper()
	out, err := h.command(args...).CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		h.t.Fatal(err)
	}
	return string(out), err == nil
}

// killed starts a command that is killed as it prints a line of output, by its number, or,
// with 0, some time after its start.
func (h *hoard) killed(lines int, after time.Duration, args ...string) {
	h.t.Helper()
	cmd := h.command(args...)
	if lines > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprint(diesAfter, "=", lines))
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	if lines == 0 {
		time.AfterFunc(after, func() { cmd.Process.Kill() })
	}
	cmd.Wait()
}

// holds compares all values with the original ones, opened with the keys of the
// file, and answers how many a key has sealed.
func (h *hoard) holds(id string) (n int) {
	h.t.Helper()
	ring, err := seal.Read(h.file)
	if err != nil {
		h.t.Fatal(err)
	}
	d, err := db.Open(h.t.Context(), h.dsn, db.Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	defer d.Close()
	total := 0
	err = d.Read(h.t.Context(), func(tx *db.Tx) error {
		for c, want := range map[*keys.Column]string{&vault.Sealed: "value ", &modelkey.Sealed: "key "} {
			rows, err := c.List(tx, "", 10_000)
			if err != nil {
				return err
			}
			for _, r := range rows {
				plain, err := ring.Unseal(c.Purpose(r), r.Sealed)
				if err != nil || string(plain) != want+r.Key[strings.LastIndexAny(r.Key, "/k")+1:] {
					h.t.Fatalf("%s, row %s is %q: %v", c, r.Key, plain, err)
				}
				total++
				if seal.KeyOf(r.Sealed) == id {
					n++
				}
			}
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if total != manySecrets+manyKeys {
		h.t.Fatalf("%d values are left", total)
	}
	return n
}

// A rotation that is killed repeatedly, at any moment, loses nothing, and a further
// call completes it. The old key cannot be removed earlier.
func TestRotationKilledAgainAndAgain(t *testing.T) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			h := newHoard(t, e)
			r := rand.New(rand.NewPCG(chance.Seed(t), 0))
			rotate := func() []string { // as an operator who sees whether there is a new key
				ring, err := seal.Read(h.file)
				if err != nil {
					t.Fatal(err)
				}
				if len(ring.IDs()) == 1 && e == db.Postgres {
					return []string{"keys", "rotate", "--new"}
				}
				return []string{"keys", "rotate"}
			}
			kills, midway := 0, 0
			for ; kills < 40 && (midway < 4 || kills < 8); kills++ {
				// Each line is of some hundred values, and the first may be of a new key. Later
				// calls may be killed wherever they are after so much time.
				lines := 2 + r.IntN(3)
				if midway > 0 && r.IntN(4) == 0 {
					lines = 0
				}
				h.killed(lines, time.Duration(r.IntN(80))*time.Millisecond, rotate()...)
				left := h.holds(h.old)
				if left > 0 && left < manySecrets+manyKeys {
					midway++
				}
				if left == 0 {
					break
				}
				if said, ok := h.run("keys", "forget", h.old); ok ||
					!strings.Contains(said, fmt.Sprintf("%d values are sealed with %s", left, h.old)) &&
						!strings.Contains(said, "is the key that seals") {
					t.Fatalf("the old key was removed, which holds %d values: %s", left, said)
				}
			}
			if midway == 0 {
				t.Errorf("none of %d kills fell into the middle, nor did the first", kills)
			}
			said, ok := h.run(rotate()...)
			if !ok || !strings.Contains(said, " 0 with other keys.") || !strings.Contains(said, "keys forget "+h.old) ||
				h.holds(h.old) != 0 {
				t.Fatalf("finished with\n%s", said)
			}
			ring, err := seal.Read(h.file)
			if err != nil || len(ring.IDs()) != 2 || ring.IDs()[1] != h.old || h.holds(ring.ID()) != manySecrets+manyKeys {
				t.Fatalf("%d values are under the new key, %v", h.holds(ring.ID()), err)
			}
			if again, ok := h.run("keys", "rotate"); !ok || strings.Contains(again, "new first key") ||
				!strings.Contains(again, " 0 with other keys.") {
				t.Errorf("called again: %s", again)
			}
			if list, ok := h.run("keys", "list"); !ok ||
				!strings.Contains(list, fmt.Sprintf("%s  %d    seals and opens", ring.ID(), manySecrets+manyKeys)) ||
				!strings.Contains(list, h.old+"  0       opens") {
				t.Errorf("the list says\n%s", list)
			}
			if said, ok := h.run("keys", "forget", h.old); !ok {
				t.Errorf("the old key stays: %s", said)
			}
			if h.holds(ring.ID()) != manySecrets+manyKeys {
				t.Error("not everything opens without the old key")
			}
			if said, ok := h.run("keys", "forget", ring.ID()); ok || !strings.Contains(said, "is the key that seals") {
				t.Errorf("the only key: %s", said)
			}
			left, err := filepath.Glob(filepath.Join(h.data, ".key-*"))
			if err != nil || len(left) > 1 { // of the last killed rotation
				t.Errorf("it left %q, %v", left, err)
			}
		})
	}
}

// Keys that are not in a file are rotated in the order that servers need, and a step
// out of order names the next one.
func TestRotationStepByStep(t *testing.T) {
	h := newHoard(t, db.SQLite)
	old, err := os.ReadFile(h.file)
	if err != nil {
		t.Fatal(err)
	}
	fresh, ok := h.run("keys", "new")
	if ok || !strings.Contains(fresh, "there is no flag --data") {
		t.Errorf("keys new: %s", fresh)
	}
	code, made, _ := yardmaster(t, "keys", "new")
	ring, err := seal.Parse(made)
	if code != 0 || err != nil {
		t.Fatalf("keys new: %q, %v", made, err)
	}
	list := strings.TrimSpace(string(old))
	if said, ok := h.run("keys", "rotate", "--master-key", list); ok || !strings.Contains(said, "the first key of master-key, already") {
		t.Errorf("without a new key: %s", said)
	}
	list = strings.TrimSpace(made) + "," + list
	if said, ok := h.run("keys", "rotate", "--master-key", list); !ok ||
		!strings.Contains(said, "4300 values are sealed with "+ring.ID()+", 0 with other keys.") {
		t.Errorf("with a new key: %s", said)
	}
	if said, ok := h.run("keys", "forget", h.old, "--master-key", list); !ok || !strings.Contains(said, "take it out of master-key") {
		t.Errorf("forgetting: %s", said)
	}
	if said, ok := h.run("keys", "rotate"); ok || !strings.Contains(said, "sealed with the master key "+ring.ID()) {
		t.Errorf("with the wrong key: %s", said)
	}
	if now, err := os.ReadFile(h.file); err != nil || string(now) != string(old) {
		t.Errorf("the file was changed: %v", err)
	}

	p := newHoard(t, db.Postgres)
	if said, ok := p.run("keys", "rotate"); ok || !strings.Contains(said, "as the last line of "+p.file) {
		t.Errorf("several servers may run, but: %s", said)
	}
	if said, ok := p.run("keys", "forget", "00000000"); ok || !strings.Contains(said, "there is no key 00000000 here, but "+p.old) {
		t.Errorf("an unknown key: %s", said)
	}
}
