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
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/departure"
	"yardmaster/internal/event/hashchain"
	"yardmaster/internal/id"
	"yardmaster/internal/mail"
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
			y.copied()
			y.in(second, func(tx *db.Tx) error {
				_, err := db.Select[string](tx, db.Build(`INSERT INTO memberships (account_id, user_id, role, created_at) VALUES (`,
					second, gus, "member", 1).SQL(`) RETURNING user_id`))
				if err != nil {
					return err
				}
				_, err = db.Select[string](tx, db.Build(`INSERT INTO donations (id, account_id, kind, repo_id, given_by, created_at)
					SELECT 'gift', `, second).SQL(`, 'money', id, 'user:x', 1 FROM repos WHERE owner = 'acme' AND name = 'web' RETURNING id`))
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

// copied puts a copy of a repository at a code host, and mails, into the folders of the server: of
// somebody who belongs to acme alone, and of gus.
func (y *yard) copied() {
	y.t.Helper()
	y.person("zoe", y.acct, policy.Member)
	y.in(y.acct, func(tx *db.Tx) error {
		_, err := db.Select[string](tx, db.Build(`INSERT INTO repos (id, account_id, owner, name, host, default_branch, private, enabled,
			created_at, host_repo_id) VALUES ('far', `, y.acct).SQL(`, 'acme', 'far', 'github', 'main', FALSE, FALSE, 1, '42') RETURNING id`))
		return err
	})
	if err := os.MkdirAll(filepath.Join(mirrorsOf(y.cfg.Data, "github"), "42.git"), 0o700); err != nil {
		y.t.Fatal(err)
	}
	for _, who := range []string{"zoe", "gus"} {
		said := mail.Message{To: who + "@example.com", Subject: "Hello", Text: "Hello."}
		l := mail.Letter{Message: said, ID: id.New(), From: "yard@example.com", At: time.Now()}
		if err := (mail.Folder{Dir: filepath.Join(y.cfg.Data, "mail")}).Send(y.t.Context(), l); err != nil {
			y.t.Fatal(err)
		}
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
	if shown.By != departure.ByOperator || shown.Mails != 1 || len(shown.Mirrors) != 1 || shown.Mirrors[0].Number != "42" {
		y.t.Errorf("the proof says of copies: %s %d %+v", shown.By, shown.Mails, shown.Mirrors)
	}
	if _, err := os.Stat(filepath.Join(mirrorsOf(y.cfg.Data, "github"), "42.git")); !errors.Is(err, fs.ErrNotExist) {
		y.t.Error("the copy of a repository is there:", err)
	}
	letters, no := mail.Folder{Dir: filepath.Join(y.cfg.Data, "mail")}.List()
	if no != nil || len(letters) != 1 || letters[0].To != "gus@example.com" {
		y.t.Errorf("the mails that are left: %+v %v", letters, no)
	}
	if err != nil || shown.Removed["repos"] != 2 || len(shown.Objects) != 1 || shown.PeopleStay == 0 {
		y.t.Errorf("%+v %v", shown, err)
	}
	_, other, _ := ed25519.GenerateKey(nil)
	if _, err := (Departure{}).Verified(text, "", other.Public().(ed25519.PublicKey)); err == nil {
		y.t.Error("a proof is good under another key")
	}
}
