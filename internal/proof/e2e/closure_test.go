package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/backup"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/mail"
	"yardmaster/internal/proof/till"
)

// An owner has an account deleted that has a run under way and pays for seats. The server is killed
// when the subscription has been ended, and again when the rows are gone and the files are not. After
// each start it goes on, until nothing is left but the proof, which is mailed.
func TestAccountDeletedByItsOwner(t *testing.T) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) { deletedByItsOwner(t, e) })
	}
}

func deletedByItsOwner(t *testing.T, e db.Engine) {
	far := till.Open(t)
	st := newStack(t, "--database", dbtest.DSN(t, e),
		"--stripe-url", far.URL, "--stripe-secret-key", till.Key, "--stripe-webhook-secret", till.Secret,
		"--stripe-seat-price", "price_seat", "--deletion-wait", "0", "--waitlist", "on")
	st.second()
	st.call(http.MethodPost, "/v1/billing/checkout", map[string]any{"kind": "seats", "quantity": 3}, nil)
	far.Has("cus_till1", till.Subscription{ID: "sub_1", Status: "active", Price: "price_seat", Quantity: 3,
		PeriodEnd: time.Now().Add(24 * time.Hour)})
	st.script("work", work)
	b, asleep := st.join("busy"), st.enroll("asleep", nil)
	st.live(st.file("work", "Be worked on"), 1)
	repository, killed := st.bare(), make(chan struct{})
	var die func()
	die = func() {
		if all := far.Calls(); strings.HasPrefix(all[len(all)-1], "DELETE ") {
			st.server.kill()
			close(killed)
			return
		}
		far.Before(die)
	}
	far.Before(die)

	st.browse(http.MethodPut, "/v1/account/deletion", map[string]string{"login": owner})
	<-killed
	st.server.goes()
	release, err := backup.Hold(t.Context(), filepath.Join(st.path("server"), backup.GitFolder)) // the files wait for it
	if err != nil {
		t.Fatal(err)
	}
	st.serve()
	st.until("the rows are gone", func() bool { return st.status("/v1/me") == http.StatusUnauthorized })
	st.server.kill()
	st.server.goes()
	if _, err := os.Stat(repository); err != nil {
		t.Fatal("the files went with the rows:", err)
	}
	release()
	st.serve()
	folder := mail.Folder{Dir: filepath.Join(st.path("server"), "mail")}
	var proof mail.Letter
	st.until("the proof is mailed", func() bool {
		all, err := folder.List()
		i := slices.IndexFunc(all, func(l mail.Letter) bool { return l.Subject == "The account "+owner+" is deleted" })
		if i >= 0 {
			proof = all[i]
		}
		return err == nil && i >= 0
	})
	if _, err := os.Stat(repository); !errors.Is(err, fs.ErrNotExist) {
		t.Error("its repository is there:", err)
	}
	if n := slices.DeleteFunc(far.Calls(), func(c string) bool { return c != "DELETE /v1/subscriptions/sub_1" }); len(n) != 1 {
		t.Errorf("the subscription was ended %d times", len(n))
	}
	b.goes()       // it is revoked,
	asleep.begin() // as is one that was off meanwhile
	asleep.goes()
	st.proven(proof)
}

// second makes another account, by a mailed code.
func (st *stack) second() {
	st.t.Helper()
	st.paged(http.MethodPost, "/auth/email", map[string]string{"email": "bob@example.com"}, nil)
	folder := mail.Folder{Dir: filepath.Join(st.path("server"), "mail")}
	var code string
	st.until("the code is mailed", func() bool {
		all, _ := folder.List()
		for _, l := range all {
			code = regexp.MustCompile(`\b\d{6}\b`).FindString(l.Text)
		}
		return code != ""
	})
	st.paged(http.MethodPost, "/auth/email/verify", map[string]string{"email": "bob@example.com", "code": code}, nil)
}

// paged is a call from the server's own pages.
func (st *stack) paged(method, path string, in any, jar http.CookieJar) {
	st.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		st.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(st.ctx, method, "http://"+st.listen+path, strings.NewReader(string(body)))
	if err != nil {
		st.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	res, err := (&http.Client{Jar: jar}).Do(r)
	if err != nil {
		st.t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode >= 300 {
		st.t.Fatalf("%s %s: %s", method, path, res.Status)
	}
}

// browse is a call of a session of ada's that has just begun.
func (st *stack) browse(method, path string, in any) {
	st.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		st.t.Fatal(err)
	}
	st.paged(http.MethodPost, "/auth/password", map[string]string{"login": "ada", "password": password}, jar)
	st.paged(method, path, in, jar)
}

// status is what a call is answered with, 0 if it is not.
func (st *stack) status(path string) int {
	st.t.Helper()
	r, err := http.NewRequestWithContext(st.ctx, http.MethodGet, "http://"+st.listen+path, nil)
	if err != nil {
		st.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+st.c.Token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	res.Body.Close()
	return res.StatusCode
}

// proven has the program check the proof of a mail.
func (st *stack) proven(l mail.Letter) {
	st.t.Helper()
	line, key := regexp.MustCompile(`(?m)^\{.*\}\s*$`).FindString(l.Text), regexp.MustCompile(`--key (\S+)`).FindStringSubmatch(l.Text)
	if line == "" || len(key) != 2 {
		st.t.Fatalf("the mail has no proof:\n%s", l.Text)
	}
	file := st.path("proof.json")
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		st.t.Fatal(err)
	}
	out, err := exec.CommandContext(st.ctx, binary, "account", "proof", file, "--key", key[1]).CombinedOutput()
	if err != nil || !strings.Contains(string(out), owner) {
		st.t.Error(fmt.Errorf("%w: %s", err, out))
	}
}
