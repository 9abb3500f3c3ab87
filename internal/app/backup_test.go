package app

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	command "os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"yardmaster/internal/backup"
	"yardmaster/internal/blob"
	"yardmaster/internal/codehost"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/nodes"
	"yardmaster/internal/domain/repo"
)

// artifact uploads a file with a content of its own.
func (y *yard) artifact(content string) (id string) {
	y.t.Helper()
	var made struct {
		ID        string
		UploadURL string            `json:"upload_url"`
		Headers   map[string]string `json:"upload_headers"`
	}
	said := y.send("POST", "/v1/artifacts", y.owner, fmt.Sprintf(`{"name": "a.txt", "content_type": "text/plain", "size": %d}`, len(content)))
	if err := json.Unmarshal(said.want(201).body, &made); err != nil {
		y.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(y.t.Context(), http.MethodPut, made.UploadURL, strings.NewReader(content))
	if err != nil {
		y.t.Fatal(err)
	}
	for name, v := range made.Headers {
		req.Header.Set(name, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		y.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode >= 300 {
		y.t.Fatal(resp.Status)
	}
	return made.ID
}

// clone clones a repository as the owner, and answers how git is run in it.
func (y *yard) clone(name string) (work func(args ...string)) {
	y.t.Helper()
	dir := y.t.TempDir()
	work = func(args ...string) {
		cmd := command.CommandContext(y.t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=ada", "GIT_AUTHOR_EMAIL=ada@example.com",
			"GIT_COMMITTER_NAME=ada", "GIT_COMMITTER_EMAIL=ada@example.com")
		if said, err := cmd.CombinedOutput(); err != nil {
			y.t.Errorf("git %s: %v: %s", args[0], err, said)
		}
	}
	work("clone", "--quiet", strings.Replace(y.URL(), "://", "://x:"+y.owner+"@", 1)+"/git/"+name+".git", ".")
	return work
}

// spare is the address of an empty database, where a drill needs one.
func spare(t *testing.T, e db.Engine) string {
	if e == db.Postgres {
		return dbtest.Empty(t)
	}
	return ""
}

// hooked calls f at the first word that is written to it.
type hooked struct {
	bytes.Buffer
	at string
	f  func()
}

func (h *hooked) Write(b []byte) (int, error) {
	if f := h.f; f != nil && strings.Contains(string(b), h.at) {
		h.f = nil
		f()
	}
	return h.Buffer.Write(b)
}

// TestBackup: a server is copied while people push to it and store objects, and the copy is one that
// a server starts on. What came between the database and the repositories is said.
func TestBackup(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := start(t, e)
			y.push("acme/web", map[string]string{"README.md": "one"})
			y.artifact("kept")
			work := y.clone("acme/web")
			var rounds atomic.Int64
			stop, ended := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(ended)
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					work("commit", "--quiet", "--allow-empty", "-m", fmt.Sprint("round ", n))
					work("push", "--quiet", "origin", "HEAD:main")
					y.artifact(fmt.Sprint("artifact ", n))
					rounds.Add(1)
				}
			}()
			more := func() { // a few rounds more
				n := rounds.Load() + 2
				y.rig().Eventually("two rounds of the writer", func() bool { return rounds.Load() >= n })
			}
			more()
			to := filepath.Join(t.TempDir(), "backup")
			out := &hooked{at: "database:", f: more}
			err := Backup{Version: "test", Out: out}.Make(t.Context(), y.cfg, to)
			more()
			close(stop)
			<-ended
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{backup.KeyFile, backup.HeadsFile} {
				if _, err := os.Stat(filepath.Join(to, name)); err == nil {
					t.Error(name, "is in the backup")
				}
			}
			said := new(bytes.Buffer)
			if err := (Backup{Version: "test", Out: said}).Drill(t.Context(), y.cfg, to, spare(t, e)); err != nil {
				t.Fatal(err, said)
			}
			for _, want := range []string{"rows: ", "server: it starts", "record: ", "objects: ", "each is whole (git fsck)",
				"bus: it runs, and nobody is on it", "acme/web: refs/heads/main was moved while the backup was made", "The backup is sound."} {
				if !strings.Contains(said.String(), want) {
					t.Errorf("%q is not said:\n%s", want, said)
				}
			}
			err = Backup{Version: "test", Out: said}.Make(t.Context(), y.cfg, to)
			if err == nil || !strings.Contains(err.Error(), "already") {
				t.Error("a backup was made over another:", err)
			}
			keyless := *y.cfg
			keyless.MasterKey, keyless.KeyFile = "", filepath.Join(t.TempDir(), "none")
			said.Reset()
			err = Backup{Keys: true, Out: said}.Make(t.Context(), &keyless, to+"-keys")
			if err == nil || !strings.Contains(err.Error(), "--with-keys") || said.Len() > 0 {
				t.Error("something was copied before the keys were looked for:", err, said)
			}
			err = Backup{Out: said}.Drill(t.Context(), &keyless, to, "")
			if err == nil || !strings.Contains(err.Error(), keyless.KeyFile) {
				t.Error("the key that lacks is not named:", err)
			}
		})
	}
}

// TestBackupLacksOtherNodes: the repositories of another node are in its folder. A backup that lacks
// them is made only where it may be a part, and says so.
func TestBackupLacksOtherNodes(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := start(t, e)
			to, said := filepath.Join(t.TempDir(), "backup"), new(bytes.Buffer)
			y.push("acme/web", map[string]string{"README.md": "one"})
			if err := os.RemoveAll(filepath.Join(y.cfg.Data, "git", "acme")); err != nil { // it is in the other's folder
				t.Fatal(err)
			}
			if err := (Backup{Out: said}).Make(t.Context(), y.cfg, to+"-lost"); err != nil {
				t.Fatal(err)
			}
			err := Backup{Out: said}.Drill(t.Context(), y.cfg, to+"-lost", spare(t, e))
			if err == nil || !strings.Contains(said.String(), "acme/web is not in the backup") {
				t.Error("a repository that no node has is not missed:", err, said)
			}
			other := nodes.New(nodes.Config{DB: y.db, Self: nodes.Self{ID: "far", Name: "the far node"}})
			err = errors.Join(other.Enter(t.Context()), nodes.Settle(t.Context(), y.db, "far", [][2]string{{"acme", "web"}}))
			if err != nil {
				t.Fatal(err)
			}
			err = Backup{Out: said}.Make(t.Context(), y.cfg, to)
			if err == nil || !strings.Contains(err.Error(), "the far node (1)") || !strings.Contains(err.Error(), "--part") {
				t.Error(err)
			}
			if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
				t.Error("what was refused is there:", err)
			}
			if err := (Backup{Part: true, Out: said}).Make(t.Context(), y.cfg, to); err != nil {
				t.Fatal(err)
			}
			said.Reset()
			if err := (Backup{Out: said}).Drill(t.Context(), y.cfg, to, spare(t, e)); err != nil {
				t.Error("a part is not sound by itself:", err)
			}
			if !strings.Contains(said.String(), "The repositories of the node the far node (1) are not in it.") {
				t.Error(said)
			}
			own, err := os.ReadFile(filepath.Join(y.cfg.Data, nodes.File))
			if kept, e := os.ReadFile(filepath.Join(to, nodes.File)); err != nil || e != nil || !bytes.Equal(kept, own) {
				t.Errorf("the node is %q (%v), and in the backup %q (%v)", own, err, kept, e)
			}
		})
	}
}

// TestRestore: a backup of a stopped server, with its keys, is put back, and the server goes on with it.
func TestRestore(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := start(t, e)
			y.push("acme/web", map[string]string{"README.md": "one"})
			id := y.artifact("kept")
			y.stop()
			to := filepath.Join(t.TempDir(), "backup")
			if err := (Backup{Version: "test", Keys: true, Out: new(bytes.Buffer)}).Make(t.Context(), y.cfg, to); err != nil {
				t.Fatal(err)
			}
			data := filepath.Join(t.TempDir(), "data")
			args := []string{"--data", data, "--listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0"}
			if e == db.Postgres {
				args = append(args, "--database", dbtest.Empty(t))
			}
			cfg, err := config.Load("test", args, func(string) (string, bool) { return "", false }, new(bytes.Buffer))
			if err != nil {
				t.Fatal(err)
			}
			said := new(bytes.Buffer)
			if err := (Backup{Version: "test", Out: said}).Restore(t.Context(), cfg, to); err != nil {
				t.Fatal(err, said)
			}
			if !strings.Contains(said.String(), "refs: none was moved") {
				t.Error(said)
			}
			err = Backup{Version: "test", Out: said}.Restore(t.Context(), cfg, to)
			if err == nil || !strings.Contains(err.Error(), "empty") {
				t.Error("a backup was put over a server:", err)
			}
			elsewhere := *cfg // the database of a server, and a new folder
			elsewhere.Data = filepath.Join(t.TempDir(), "data")
			err = Backup{Version: "test", Out: said}.Restore(t.Context(), &elsewhere, to)
			if _, e := os.Stat(filepath.Join(elsewhere.Data, "git")); err == nil || !errors.Is(e, fs.ErrNotExist) {
				t.Error("something was put beside a database that is in use:", err, e)
			}
			ctx, end := context.WithCancel(t.Context())
			defer end()
			err = Run(ctx, cfg, Options{Version: "test", Ready: func(a *App) {
				defer end()
				again := &yard{App: a, t: t, owner: y.owner, acct: y.acct}
				if said := again.send("GET", "/v1/artifacts", y.owner, "").want(200); !strings.Contains(string(said.body), id) {
					t.Errorf("%s", said.body)
				}
				work := again.clone("acme/web")
				work("commit", "--quiet", "--allow-empty", "-m", "two")
				work("push", "--quiet", "origin", "HEAD:main")
			}})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDrillFinds: a copy that is spoiled is not sound, whatever the sums of its files say.
func TestDrillFinds(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	y.push("acme/web", map[string]string{"README.md": "one"})
	id := y.artifact("kept")
	for name, c := range map[string]struct {
		spoil func(t *testing.T, to string)
		says  string
	}{
		"an object is missing": {func(t *testing.T, to string) {
			if err := os.Remove(filepath.Join(to, "blob", y.acct, "artifacts", id+"~")); err != nil {
				t.Fatal(err)
			}
		}, "object " + y.acct + "/artifacts/" + id + " is missing"},
		"an object of git is broken": {func(t *testing.T, to string) {
			found, err := filepath.Glob(filepath.Join(to, "git/acme/web.git/objects/??/*"))
			packs, e := filepath.Glob(filepath.Join(to, "git/acme/web.git/objects/pack/*.pack"))
			if found = append(found, packs...); err != nil || e != nil || len(found) == 0 {
				t.Fatal(err, e, found)
			}
			if err := os.WriteFile(found[0], []byte("spoiled"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "acme/web: git"},
		"a row of the record was changed": {func(t *testing.T, to string) {
			d, err := db.Open(t.Context(), "sqlite:"+filepath.Join(to, "database.db"), db.Options{AsIs: true})
			if err != nil {
				t.Fatal(err)
			}
			err = d.Write(t.Context(), func(tx *db.Tx) error {
				_, err := falsify.Exec(tx, y.acct)
				return err
			})
			if err != nil || d.Close() != nil {
				t.Fatal(err)
			}
		}, "the record of " + y.acct + ": row 2 was changed"},
		"a row is missing": {func(t *testing.T, to string) {
			d, err := db.Open(t.Context(), "sqlite:"+filepath.Join(to, "database.db"), db.Options{AsIs: true})
			if err != nil {
				t.Fatal(err)
			}
			err = d.Write(t.Context(), func(tx *db.Tx) error {
				_, err := cutRows.Exec(tx, y.acct, 2)
				return err
			})
			if err != nil || d.Close() != nil {
				t.Fatal(err)
			}
		}, "table audit has 2 rows, and had "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := filepath.Join(t.TempDir(), "backup")
			if err := (Backup{Out: new(bytes.Buffer)}).Make(t.Context(), y.cfg, to); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, to)
			said := new(bytes.Buffer)
			if err := (Backup{Out: said}).Drill(t.Context(), y.cfg, to, ""); err == nil || strings.Contains(said.String(), "server:") {
				t.Error("the sums do not show it:", err, said)
			}
			resum(t, to)
			said.Reset()
			err := (Backup{Out: said}).Drill(t.Context(), y.cfg, to, "")
			if err == nil || !strings.Contains(err.Error(), "not sound") || !strings.Contains(said.String(), c.says) {
				t.Errorf("%v: %q is not said:\n%s", err, c.says, said)
			}
		})
	}
}

var falsify = db.S(`UPDATE audit SET actor = 'user:nobody' WHERE account_id = $1 AND seq = 2`)

// resum writes the sums of a backup anew, as somebody does who knows how it is made.
func resum(t *testing.T, to string) {
	t.Helper()
	sums := filepath.Join(to, "files.sha256")
	old, err := os.ReadFile(sums)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(old)) {
		_, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		text, err := os.ReadFile(filepath.Join(to, name))
		if err != nil {
			continue
		}
		sum := sha256.Sum256(text)
		out.WriteString(hex.EncodeToString(sum[:]) + "  " + name + "\n")
	}
	m, err := backup.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(out.String()))
	was := m.Sums
	manifest := filepath.Join(to, "manifest.json")
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte(was), []byte(hex.EncodeToString(sum[:])))
	if os.WriteFile(sums, []byte(out.String()), 0o600) != nil || os.WriteFile(manifest, text, 0o600) != nil {
		t.Fatal("the sums cannot be written")
	}
}

// TestNothingIsDeletedMeanwhile: while a backup is made, objects stay, of git and of the store.
func TestNothingIsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	y.push("acme/web", map[string]string{"README.md": "one"})
	id := y.artifact("kept")
	key := y.acct + "/artifacts/" + id
	release, err := backup.Hold(t.Context(), filepath.Join(y.cfg.Data, "git"))
	if err != nil {
		t.Fatal(err)
	}
	y.send("DELETE", "/v1/artifacts/"+id, y.owner, "").want(200)
	if _, err := y.blob.Stat(t.Context(), key); err != nil {
		t.Error("the object is gone:", err)
	}
	if err := y.kept().Delete(t.Context(), key); err != blob.ErrHeld {
		t.Error(err)
	}
	objects := func() string {
		found, err := filepath.Glob(filepath.Join(y.cfg.Data, "git/acme/web.git/objects/*/*"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(found, "\n")
	}
	were := objects()
	maintain := func() error {
		web := codehost.Repo{Host: codehost.BuiltIn, Owner: "acme", Name: "web"}
		return part[*repo.Service](y).Folders.Maintain(t.Context(), web, y.now())
	}
	if err := maintain(); err != nil || objects() != were {
		t.Error("the repository was packed:", err)
	}
	release()
	if err := y.kept().Delete(t.Context(), key); err != nil {
		t.Error(err)
	}
	if err := maintain(); err != nil || objects() == were {
		t.Error("the repository was not packed:", err)
	}
}
