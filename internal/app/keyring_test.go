package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/bus"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/vault"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/seal"
)

// turnedAway starts a server that must not come up, and answers what it says.
func turnedAway(t *testing.T, flags ...string) string {
	t.Helper()
	cfg, err := config.Load("test", append([]string{"--listen", "127.0.0.1:0"}, flags...), func(string) (string, bool) { return "", false },
		io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(patience.Context(t))
	defer cancel()
	err = Run(ctx, cfg, Options{Version: "test", Ready: func(*App) { cancel() }})
	if err == nil {
		t.Fatal("the server came up")
	}
	return err.Error()
}

// tree is what lies in a folder, without the files that SQLite keeps while it
// has the database open.
func tree(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if !strings.Contains(path, "yardmaster.db-") {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A master key that is missing is never replaced while something is sealed with
// it, a wrong one is told from the right one by name, and neither leaves
// anything behind.
func TestMissingKeyIsNotReplaced(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		data := flags[1]
		y := start(t, e, flags...)
		want := y.ring.ID()
		y.stop()
		file := filepath.Join(data, "master.key")
		right, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		before := tree(t, data)
		if said := turnedAway(t, flags...); !strings.Contains(said, "there is no "+file) || !strings.Contains(said, want) ||
			strings.Contains(said, "\n") {
			t.Errorf("without the key: %s", said)
		}
		elsewhere := filepath.Join(t.TempDir(), "keys")
		if said := turnedAway(t, append(flags, "--master-key-file", elsewhere)...); !strings.Contains(said, "there is no "+elsewhere) ||
			!strings.Contains(said, want) {
			t.Errorf("without the named file: %s", said)
		}
		if after := tree(t, data); !slices.Equal(before, after) {
			t.Errorf("refusals left\n%q\nof\n%q", after, before)
		}
		if left := tree(t, filepath.Dir(elsewhere)); len(left) != 1 {
			t.Errorf("refusals left %q", left)
		}
		nowhere := filepath.Join(t.TempDir(), "new") // where no server has run
		if e == db.Postgres {
			turnedAway(t, "--data", nowhere, "--database", flags[3])
		}
		turnedAway(t, "--data", nowhere, "--database", flags[3], "--master-key", "xy")
		if left := tree(t, filepath.Dir(nowhere)); len(left) != 1 {
			t.Errorf("refusals left %q", left)
		}
		wrong := seal.New()
		write(t, file, wrong.Reveal())
		before = tree(t, data)
		for _, how := range [][]string{flags, append(flags, "--master-key", wrong.Reveal()),
			append(flags, "--master-key-command", "cat "+file)} {
			said := turnedAway(t, how...)
			if !strings.Contains(said, wrong.ID()) || !strings.Contains(said, "sealed with the master key "+want) ||
				strings.Contains(said, strings.TrimSpace(wrong.Reveal())) {
				t.Errorf("with another key: %s", said)
			}
		}
		for _, bad := range []string{"", "no key\n", string(right) + string(right)} {
			write(t, file, bad)
			if said := turnedAway(t, flags...); !strings.Contains(said, file+": ") {
				t.Errorf("the file says %q: %s", bad, said)
			}
		}
		if after := tree(t, data); !slices.Equal(before, after) {
			t.Errorf("refusals left\n%q\nof\n%q", after, before)
		}
		// From wherever it comes, and whatever else is there, the right key opens.
		write(t, elsewhere, wrong.Reveal()+string(right))
		boot(t, e, append(flags, "--master-key-file", elsewhere)...).stop()
		boot(t, e, append(flags, "--master-key-command", `["cat", "`+elsewhere+`"]`)...).stop()
		boot(t, e, append(flags, "--master-key", wrong.Reveal()+","+string(right))...).stop()
	})
}

// Of two servers that start on one empty database with folders of their own,
// one makes the master key. The other says what is wrong, and leaves no key
// that somebody could take for the right one.
func TestSecondServerMakesNoKey(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.DSN(t, db.Postgres), db.Options{})
	cfg := &config.Config{Data: t.TempDir()}
	if _, err := busKeys(t.Context(), d, seal.New()); err != nil { // the other's
		t.Fatal(err)
	}
	if _, err := firstKey(t.Context(), d, cfg); err == nil ||
		!strings.Contains(err.Error(), "copy it to "+filepath.Join(cfg.Data, "master.key")) {
		t.Error(err)
	}
	if left := tree(t, cfg.Data); len(left) != 1 {
		t.Errorf("it left %q", left)
	}
}

// What the keys of the bus become is sealed in their place.
func TestChangeBusKeys(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		ring := seal.New()
		before, err := busKeys(t.Context(), d, ring)
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := bus.NewKeys()
		if err != nil {
			t.Fatal(err)
		}
		if err := changeBusKeys(t.Context(), d, ring, func(k *bus.Keys) error {
			if !same(t, *k, before) {
				t.Error("others are to be changed")
			}
			*k = fresh
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if got, err := busKeys(t.Context(), d, ring); err != nil || !same(t, got, fresh) {
			t.Errorf("they are not what they became: %v", err)
		}
	})
}

func same(t *testing.T, a, b bus.Keys) bool {
	t.Helper()
	one, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	other, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(one, other)
}

// rotate has everything of a stopped server sealed with the newest key, or with
// another, and takes an old one out.
func rotate(t *testing.T, flags []string, another bool, forget string) (said string) {
	t.Helper()
	cfg, err := config.Load("test", flags, func(string) (string, bool) { return "", false }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	k, err := OpenKeys(t.Context(), cfg, true)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	var out strings.Builder
	if err := k.Rotate(t.Context(), another, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if forget != "" {
		if err := k.Forget(t.Context(), forget, &out); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

var (
	setSSO = db.S(`INSERT INTO org_sso (account_id, issuer, client_id, sealed, domains, role, created_at, updated_at)
		VALUES ($1, 'https://idp.example', 'c', $2, '[]', 'member', 0, 0)`)
	setLogSink = db.S(`INSERT INTO log_sinks (account_id, kind, masked, header_names, sealed, probed_at, created_at, updated_at)
		VALUES ($1, 'https', '', '[]', $2, 0, 0, 0)`)
	setTracker = db.S(`INSERT INTO trackers (account_id, sealed, team_id, team_key, team_name, viewer_id, viewer_name, connected_by, connected_at)
		VALUES ($1, $2, 't', 'ENG', 'Engineering', 'u', 'Bot', 'user:ada', 0)`)
	setHostToken = db.S(`INSERT INTO host_tokens (id, account_id, user_id, host, login, masked, sealed, grants, checked_at, created_at)
		VALUES ('of-ada', $1, 'ada', 'h', 'ada', '', $2, '[]', 0, 0)`)
	setCodeHost = db.S(`INSERT INTO code_hosts (name, address, app_id, slug, client_id, owner_id, owner_login, account_id, switches, sealed,
		created_at, created_by) VALUES ('h', 'https://h.example', '1', 'yard', '', '1', 'acme', $1, '{}', $2, 0, 'ada')`)
	mailText = db.Q[string](`SELECT sealed FROM mails WHERE id = $1`)
	mailOf   = db.Q[string](`SELECT id FROM mails WHERE recipient = $1 AND subject LIKE 'Your code%'`)
)

// Everything that an old master key has sealed or signed is good after it was
// replaced: what is stored even without the old key, what travels as long as it
// lives.
func TestRotation(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		served := append(slices.Clone(flags),
			"--allow-networks", "127.0.0.0/8", "--smtp-url", "smtp+plain://127.0.0.1:1") // mails stay, and stay sealed
		y := start(t, e, served...)
		y.push("acme/web", map[string]string{"README": "hello\n"})
		y.send("POST", "/v1/billing/keys", y.owner, `{"provider": "openai", "key": "sk-of-acme-0123456789"}`).want(201)
		y.send("POST", "/v1/webhooks", y.owner, `{"name": "coder", "url": "http://127.0.0.1:1/of-acme"}`).want(201)
		y.send("POST", "/v1/me/push", y.owner, `{"endpoint": "http://127.0.0.1:1/of-ada", "keys": {"auth": "tBHItJI5svbpez7KI4CCXg",
			"p256dh": "BNcRdreALRFXTkOOUHK1EtK2wtaz5Ry4YfYCA_0QTpQtUbVlUls0VJXg7A8u-Ts1XbjhazAkj7I99e8QcYP7DkM"}}`).want(201)
		y.send("POST", "/v1/me/push/test", y.owner, "").want(202) // nobody is there: it waits
		y.send("POST", "/v1/integrations", y.owner, `{"name": "tracker", "kind": "gitlab"}`).want(201)
		y.send("PUT", "/v1/repos/acme/web/secrets/DSN", y.owner, `{"value": "postgres://of-web", "environment": "staging"}`).want(200)
		y.send("PUT", "/v1/secrets/DSN", y.owner, `{"value": "postgres://of-acme"}`).want(200)
		y.in(y.acct, func(tx *db.Tx) error {
			if _, err := setCodeHost.Exec(tx, y.acct, y.ring.Seal("code-host/h", []byte("{}"))); err != nil {
				return err
			}
			if _, err := setHostToken.Exec(tx, y.acct, y.ring.Seal("host-token/of-ada", []byte("of ada"))); err != nil {
				return err
			}
			if _, err := setTracker.Exec(tx, y.acct, y.ring.Seal("tracker/"+y.acct, []byte("lin_api_of-acme"))); err != nil {
				return err
			}
			if _, err := setLogSink.Exec(tx, y.acct, y.ring.Seal("log-sink/"+y.acct, []byte("{}"))); err != nil {
				return err
			}
			_, err := setSSO.Exec(tx, y.acct, y.ring.Seal("org-sso/"+y.acct, []byte("of the provider")))
			return err
		})
		file := func() (task string) {
			var made struct {
				ID string `json:"task_id"`
			}
			decode(t, y.send("POST", "/v1/tasks", y.owner, `{"repo": "acme/web", "title": "t", "problem": "p"}`).want(202), &made)
			return made.ID
		}
		asked, open := file(), file()
		y.block(asked, "decision", nil)
		type blockers struct {
			Data []struct {
				ID     string
				FixURL string `json:"fix_url"`
			}
		}
		var one, two blockers
		decode(t, y.send("GET", "/v1/blockers", y.owner, "").want(200), &one)
		y.send("POST", "/v1/blockers/"+one.Data[0].ID+"/answer", y.owner, `{"answer": "by the back door"}`).want(200)
		y.block(open, "missing_credential", map[string]string{"TOKEN": "env_secret"})
		decode(t, y.send("GET", "/v1/blockers", y.owner, "").want(200), &two)
		var client struct {
			ID string `json:"client_id"`
		}
		decode(t, y.send("POST", "/oauth/register", "", `{"client_name": "Editor", "redirect_uris": ["http://127.0.0.1/cb"]}`).want(201),
			&client)
		b, err := json.Marshal(map[string]any{"n": "Old", "r": []string{"http://127.0.0.1/cb"}})
		if err != nil {
			t.Fatal(err)
		}
		oldClient := y.ring.Seal("oauth-client", b)
		y.send("POST", "/auth/email", "", `{"email": "ada@example.com"}`, "Origin", y.URL()).want(202)
		bus, err := busKeys(t.Context(), y.db, y.ring)
		if err != nil {
			t.Fatal(err)
		}
		old := y.ring.ID()
		if k, err := OpenKeys(t.Context(), y.cfg, true); e == db.SQLite && (err == nil || !strings.Contains(err.Error(), "stop it first")) {
			t.Errorf("beside a server on SQLite: %v", err)
		} else if e == db.Postgres && (err != nil || k.Close() != nil) {
			t.Errorf("beside a server on PostgreSQL: %v", err)
		}
		y.stop()
		if left := unregistered(t, e, flags[3]); left != nil {
			t.Errorf("sealed values that no rotation reaches: %q", left)
		}

		said := rotate(t, flags, e == db.Postgres, "")
		for _, column := range sealedColumns() {
			if !strings.Contains(said, column.String()+": ") {
				t.Errorf("nothing of %s was sealed anew:\n%s", column, said)
			}
		}
		if !strings.Contains(said, " 0 with other keys.") {
			t.Errorf("it ends with\n%s", said)
		}

		y2 := boot(t, e, served...)
		y2.owner, y2.acct = y.owner, y.acct
		if got := y2.ring.IDs(); len(got) != 2 || got[0] == old || got[1] != old {
			t.Fatalf("keys %q after %s", got, old)
		}
		fix := y2.URL() + strings.TrimPrefix(two.Data[0].FixURL, y.URL())
		v := y2.visitor()
		if resp, page := v.open("GET", fix, ""); resp.StatusCode != 200 {
			t.Errorf("a link of the old key: %s\n%s", resp.Status, page)
		}
		var code string
		y2.in(y.acct, func(tx *db.Tx) error {
			mailID, err := mailOf.One(tx, "ada@example.com")
			if err != nil {
				return err
			}
			sealed, err := mailText.One(tx, mailID)
			if err != nil {
				return err
			}
			opened, err := y2.ring.Unseal("mail/"+mailID, sealed)
			if err != nil {
				return err
			}
			var letter struct{ Text string }
			decode(y2.t, answer{body: opened}, &letter)
			if found := mailedCode.FindStringSubmatch(letter.Text); found != nil {
				code = found[1]
			}
			return nil
		})
		y2.send("POST", "/auth/email/verify", "", `{"email": "ada@example.com", "code": "`+code+`"}`, "Origin", y2.URL()).want(200)
		known := func(y *yard, clientID string) int {
			resp := y.send("GET", "/oauth/authorize?response_type=code&redirect_uri=http%3A%2F%2F127.0.0.1%2Fcb&client_id="+clientID,
				"", "")
			return resp.StatusCode
		}
		if a, b := known(y2, client.ID), known(y2, oldClient); a != 303 || b != 303 {
			t.Errorf("client_ids that are older than the key: %d, %d", a, b)
		}
		y2.stop()

		// And now without the old one.
		if said := rotate(t, flags, false, old); !strings.Contains(said, "has no key "+old) {
			t.Errorf("forgetting it: %s", said)
		}
		y3 := boot(t, e, served...)
		y3.owner, y3.acct = y.owner, y.acct
		if got := y3.ring.IDs(); len(got) != 1 || slices.Contains(got, old) {
			t.Fatalf("keys %q without %s", got, old)
		}
		if a, b := known(y3, client.ID), known(y3, oldClient); a != 303 || b != 400 {
			t.Errorf("client_ids without the old key: %d, %d", a, b)
		}
		if after, err := busKeys(t.Context(), y3.db, y3.ring); err != nil || !same(t, bus, after) {
			t.Errorf("the keys of the bus: %v", err)
		}
		y3.in(y.acct, func(tx *db.Tx) error {
			for _, c := range sealedColumns() {
				rows, err := c.List(tx, "", 100)
				if err != nil || len(rows) == 0 {
					t.Errorf("%s: %d values, %v", c, len(rows), err)
				}
				for _, r := range rows {
					if _, err := y3.ring.Unseal(c.Purpose(r), r.Sealed); err != nil {
						t.Errorf("%s, %s: %v", c, r.Key, err)
					}
				}
			}
			said, err := blocker.Said(tx, y3.ring, asked, "")
			if !strings.Contains(said.Text, "by the back door") {
				t.Errorf("the run is told %q", said.Text)
			}
			return err
		})
	})
}

// Several servers are moved to a new key one after the other, while they run: a
// server that still seals with the old one keeps it from being forgotten.
func TestRotationBesideServers(t *testing.T) {
	t.Parallel()
	old, fresh := seal.New(), seal.New()
	list := func(keys ...*seal.Keyring) (flag string) {
		for _, k := range keys {
			flag += "," + strings.TrimSpace(k.Reveal())
		}
		return flag[1:]
	}
	dsn := dbtest.DSN(t, db.Postgres)
	with := func(data string, keys ...*seal.Keyring) []string {
		return []string{"--data", data, "--database", dsn, "--cluster", "on", "--blob", "off", "--master-key", list(keys...)}
	}
	here, there := t.TempDir(), t.TempDir()
	keep := func(y *yard, name string) {
		t.Helper()
		y.send("PUT", "/v1/secrets/"+name, y.owner, `{"value": "value of `+name+`"}`).want(200)
	}
	one := start(t, db.Postgres, with(here, old, fresh)...)
	one.push("acme/web", map[string]string{"README": "hello\n"})
	keep(one, "FIRST")
	two := one.again(db.Postgres, with(there, old, fresh))
	one.stop()
	one = two.again(db.Postgres, with(here, fresh, old))
	keep(one, "SECOND")

	k, err := OpenKeys(t.Context(), one.cfg, true)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	var out strings.Builder
	if err := k.Rotate(t.Context(), false, &out); err != nil ||
		!strings.Contains(out.String(), "secrets.sealed: 1 sealed with "+fresh.ID()) {
		t.Fatalf("%v\n%s", err, out.String())
	}
	keep(two, "THIRD")
	if err := k.Forget(t.Context(), old.ID(), &out); err == nil || !strings.Contains(err.Error(), "1 values are sealed with "+old.ID()) {
		t.Errorf("a key is forgotten that a server seals with: %v", err)
	}
	two.stop()
	if err := k.Rotate(t.Context(), false, &out); err != nil {
		t.Error(err)
	}
	if err := k.Forget(t.Context(), old.ID(), &out); err != nil || !strings.Contains(out.String(), "take it out of master-key") {
		t.Errorf("%v\n%s", err, out.String())
	}
	one.stop()
	one = one.again(db.Postgres, with(here, fresh))
	one.in(one.acct, func(tx *db.Tx) error {
		rows, err := vault.Sealed.List(tx, "", 10)
		if err != nil || len(rows) != 3 {
			t.Errorf("%d secrets, %v", len(rows), err)
		}
		for _, r := range rows {
			if plain, err := one.ring.Unseal(vault.Sealed.Purpose(r), r.Sealed); err != nil ||
				!strings.HasPrefix(string(plain), "value of ") {
				t.Errorf("%s is %q, %v", r.Key, plain, err)
			}
		}
		return err
	})
}
