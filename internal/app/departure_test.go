package app

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"io/fs"
	"os"
	command "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/departure"
	"yardmaster/internal/event/hashchain"
	"yardmaster/internal/policy"
)

// No sealed value is in an archive, of whatever table.
func TestArchivesHaveNothingSealed(t *testing.T) {
	t.Parallel()
	for _, c := range sealedColumns() {
		if departure.Archived(c.Table, c.Name) {
			t.Errorf("%s.%s is sealed, and in an archive: say so in parts.go", c.Table, c.Name)
		}
	}
	if !departure.Archived("tasks", "title") {
		t.Error("a title of a task is in no archive")
	}
}

var errKilled = errors.New("killed")

// An account with a repository, an object, a member who belongs elsewhere too and a gift of somebody
// else is exported while the server runs, and deleted. The deletion is ended between every two of its
// steps and goes on each time; what it leaves is what others have, with the proof.
func TestAccountLeaves(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := start(t, e)
			y.push("acme/web", map[string]string{"README.md": "one"})
			y.artifact("kept")
			second := y.tenant("second")
			gus := y.person("gus", y.acct, policy.Member)
			y.in(second, func(tx *db.Tx) error {
				_, err := db.Select[string](tx, db.Build(`INSERT INTO memberships (account_id, user_id, role, created_at) VALUES (`,
					second, gus, "member", 1).SQL(`) RETURNING user_id`))
				if err != nil {
					return err
				}
				_, err = db.Select[string](tx, db.Build(`INSERT INTO donations (id, account_id, kind, repo_id, given_by, created_at)
					SELECT 'gift', `, second).SQL(`, 'money', id, 'user:x', 1 FROM repos WHERE owner = 'acme' RETURNING id`))
				if err != nil {
					return err
				}
				_, err = db.Select[string](tx, db.Build(`INSERT INTO donation_uses (donation_id, account_id, repo_id, calls, unpriced, micros,
					last_at) VALUES ('gift', `, y.acct).SQL(`, 'web', 3, 0, 7, 1) RETURNING donation_id`))
				return err
			})
			file := filepath.Join(t.TempDir(), "acme.tar.gz")
			out := new(bytes.Buffer)
			d := Departure{Version: "test", Out: out}
			if err := d.Export(t.Context(), y.cfg, "nobody", file); !errors.Is(err, departure.ErrNoAccount) {
				t.Error(err)
			}
			if err := d.Export(t.Context(), y.cfg, "acme", file); err != nil {
				t.Fatal(err)
			}
			y.cloned(file)
			proof := filepath.Join(t.TempDir(), "acme.dsse.json")
			if err := d.Delete(t.Context(), y.cfg, "acme", file, proof); err == nil {
				t.Fatal("it was deleted while the server ran")
			}
			y.send("POST", "/v1/tokens", y.owner, `{"scopes": ["read:tasks"]}`).want(201)
			y.stop()
			if err := d.Delete(t.Context(), y.cfg, "acme", file, proof); !errors.Is(err, departure.ErrMoved) {
				t.Fatal("the archive is older than the record:", err)
			}
			file += "-2"
			if err := d.Export(t.Context(), y.cfg, "acme", file); err != nil {
				t.Fatal(err)
			}
			kills := 0
			for done := false; !done; {
				left := kills // one step more each time
				d.step = func() error {
					if left--; left < 0 {
						return errKilled
					}
					return nil
				}
				err := d.Delete(t.Context(), y.cfg, "acme", file, proof)
				if done = err == nil; !done && !errors.Is(err, errKilled) {
					t.Fatal(err)
				}
				if kills++; kills > 20 {
					t.Fatal("it does not come to an end")
				}
			}
			if kills < 3 {
				t.Errorf("it was ended %d times only", kills-1)
			}
			y.left(gus, proof, file)
		})
	}
}

// cloned clones the repository out of an archive.
func (y *yard) cloned(file string) {
	y.t.Helper()
	dir := y.t.TempDir()
	for _, args := range [][]string{{"tar", "-xzf", file, "-C", dir},
		{"git", "clone", "--quiet", filepath.Join(dir, "repositories/acme/web.bundle"), filepath.Join(dir, "web")}} {
		if said, err := command.CommandContext(y.t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			y.t.Fatalf("%q: %v: %s", args, err, said)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "web", "README.md"))
	if err != nil || string(text) != "one" {
		y.t.Errorf("%q %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "tables", "audit.jsonl")); err != nil {
		y.t.Error(err)
	}
}

// left holds what is there after the deletion against what the others had.
func (y *yard) left(gus, proof, file string) {
	y.t.Helper()
	k, err := OpenKeys(y.t.Context(), y.cfg, true)
	if err != nil {
		y.t.Fatal(err)
	}
	defer k.Close()
	said := new(bytes.Buffer)
	if err := k.AcceptBreaks(y.t.Context(), "none", said); err == nil || !strings.Contains(err.Error(), "nothing to accept") {
		y.t.Error("the record is said to be broken:", err, said)
	}
	if _, err := os.Stat(filepath.Join(y.cfg.Data, "git", "acme")); !errors.Is(err, fs.ErrNotExist) {
		y.t.Error("its repositories are there:", err)
	}
	if at, ok := y.cfg.BlobFolder(); ok {
		if _, err := os.Stat(filepath.Join(at, y.acct)); !errors.Is(err, fs.ErrNotExist) {
			y.t.Error("its objects are there:", err)
		}
	}
	err = k.db.Read(y.t.Context(), func(tx *db.Tx) error {
		gift, err := db.Select[string](tx, db.Build(`SELECT COALESCE(d.parked_why, '') || ' ' || COALESCE(d.repo_id, 'none') || ' ' || u.account_id
			FROM donations d JOIN donation_uses u ON u.donation_id = d.id`))
		if err != nil || len(gift) != 1 || gift[0] != "gone none "+y.acct {
			y.t.Errorf("the gift is %q %v", gift, err)
		}
		people, err := db.Select[string](tx, db.Build(`SELECT id FROM users WHERE id = `, gus))
		if err != nil || len(people) != 1 {
			y.t.Error("a member of another account is gone", err)
		}
		return err
	})
	if err != nil {
		y.t.Error(err)
	}
	text, err := os.ReadFile(proof)
	if err != nil {
		y.t.Fatal(err)
	}
	key, err := hashchain.ParsePublicKey(hashchain.PublicKey(departure.Signer(k.ring)))
	if err != nil {
		y.t.Fatal(err)
	}
	shown, err := Departure{}.Verified(text, file, key)
	if err != nil || shown.Removed["repos"] != 1 || len(shown.Objects) != 1 || shown.PeopleStay == 0 {
		y.t.Errorf("%+v %v", shown, err)
	}
	_, other, _ := ed25519.GenerateKey(nil)
	if _, err := (Departure{}).Verified(text, "", other.Public().(ed25519.PublicKey)); err == nil {
		y.t.Error("a proof is good under another key")
	}
}
