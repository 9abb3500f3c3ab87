package cli

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/patience"
)

var (
	cutRows  = db.S(`DELETE FROM audit WHERE account_id IS NOT NULL AND seq > 3`)
	headBack = db.S(`UPDATE audit_heads SET seq = 3, hash = (SELECT hash FROM audit a WHERE a.account_id = audit_heads.account_id AND a.seq = 3) WHERE account_id <> ''`)
)

// served is a server that runs as a program until the test stops or kills it.
type served struct {
	*hoard
	cmd *exec.Cmd
	url string
	log *strings.Builder
	end chan error
}

var address = regexp.MustCompile(`serves (http://\S+),`)

func (h *hoard) serve() *served {
	h.t.Helper()
	s := &served{hoard: h, log: &strings.Builder{}, end: make(chan error, 1)}
	s.cmd = h.command("serve", "--listen", "127.0.0.1:0", "--setup-token", "dev_set_0123456789", "--log-format", "json")
	s.cmd.Stderr = s.log
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { s.cmd.Process.Kill() })
	var said strings.Builder
	buf := make([]byte, 4096)
	for address.FindStringSubmatch(said.String()) == nil {
		n, err := out.Read(buf)
		said.Write(buf[:n])
		if err != nil {
			h.t.Fatalf("the server ended: %s%s", said.String(), s.log.String())
		}
	}
	s.url = address.FindStringSubmatch(said.String())[1]
	go func() {
		io.Copy(io.Discard, out)
		s.end <- s.cmd.Wait()
	}()
	return s
}

// over stops the server, or kills it, and answers its log.
func (s *served) over(kill bool) string {
	s.t.Helper()
	if kill {
		s.cmd.Process.Kill()
	} else {
		s.cmd.Process.Signal(os.Interrupt)
	}
	patience.Ended(s.t, "the end of the server", s.end)
	return s.log.String()
}

// call makes a request of the API.
func (s *served) call(method, path, token, body string) (status int, answer string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// All audit commands, on both databases: a killed server raises no alarm; an export
// is verified against the heads with the public key alone; rows that are deleted
// with SQL are reported at start and by verify; accepting that needs a reason.
func TestAuditHeads(t *testing.T) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			h := &hoard{t: t, dsn: dbtest.DSN(t, e), data: t.TempDir()}
			s := h.serve()
			if status, said := s.call("POST", "/setup/dev_set_0123456789", "",
				`{"login": "ada", "email": "ada@example.com", "password": "a long password", "account": "acme"}`); status != 201 {
				t.Fatalf("%d %s", status, said)
			}
			out, code := h.with(s.url, "a long password\n", "login", "--login", "ada")
			if code != 0 {
				t.Fatal(out)
			}
			for _, name := range []string{"one", "two", "three", "four"} {
				if out, code := h.with(s.url, "", "call", "template.set", "name="+name, "agent=builtin", "model=m"); code != 0 {
					t.Fatal(out)
				}
			}
			s.over(true)
			s = h.serve()
			if log := s.over(false); strings.Contains(log, "audit chain") || !strings.Contains(log, `"msg":"audit head"`) {
				t.Fatalf("after it was killed: %s", log)
			}
			list, ok := h.run("keys", "list")
			key := regexp.MustCompile(`[A-Za-z0-9_-]{43}`).FindString(list)
			if !ok || key == "" {
				t.Fatalf("no public key in\n%s", list)
			}
			heads := filepath.Join(h.data, "audit-heads.jsonl")
			export := func() string {
				t.Helper()
				s := h.serve()
				out, code := h.with(s.url, "", "audit", "export")
				if code != 0 {
					t.Fatal(out)
				}
				s.over(false)
				file := filepath.Join(t.TempDir(), "export.jsonl")
				if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
					t.Fatal(err)
				}
				return file
			}
			file := export()
			if out, code := h.with("", "", "audit", "verify", "--head", heads, "--key", key, file); code != 0 ||
				!strings.Contains(out, ": every head that is signed is there, ") {
				t.Errorf("as it is: %d %s", code, out)
			}
			text, err := os.ReadFile(heads)
			if err != nil {
				t.Fatal(err)
			}
			if out, code := h.with("", string(text), "audit", "verify", "--head", "-", "--key", key, file); code != 0 {
				t.Errorf("heads from standard input: %d %s", code, out)
			}
			other := "A" + key[1:]
			if other == key {
				other = "B" + key[1:]
			}
			if out, code := h.with("", "", "audit", "verify", "--head", heads, "--key", other, file); code != 1 ||
				!strings.Contains(out, "is not signed with a key that can be trusted") {
				t.Errorf("with another key: %d %s", code, out)
			}
			for _, args := range [][]string{{"--head", heads}, {"--key", key}, {"--head", "-", "--key", key, "-"},
				{"--head", heads, "--key", "x"}} {
				if len(args) < 5 {
					args = append(args, file)
				}
				if out, code := h.with("", "", append([]string{"audit", "verify"}, args...)...); code != 2 {
					t.Errorf("%q: %d %s", args, code, out)
				}
			}

			d, err := db.Open(t.Context(), h.dsn, db.Options{})
			if err != nil {
				t.Fatal(err)
			}
			err = d.Write(t.Context(), func(tx *db.Tx) error {
				if _, err := cutRows.Exec(tx); err != nil {
					return err
				}
				_, err := headBack.Exec(tx)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			d.Close()
			s = h.serve()
			if log := s.over(false); !strings.Contains(log,
				`"level":"ERROR","msg":"the audit chain of an account is not what was noted of it","account":"`) ||
				!strings.Contains(log, "was noted at 20") {
				t.Errorf("at start: %s", log)
			}
			file = export()
			if out, code := h.with("", "", "audit", "verify", file); code != 0 {
				t.Errorf("alone: %d %s", code, out)
			}
			if out, code := h.with("", "", "audit", "verify", "--head", heads, "--key", key, file); code != 1 ||
				!strings.Contains(out, ": the newest row has the number 3, but ") {
				t.Errorf("against the heads: %d %s", code, out)
			}
			if out, ok := h.run("audit", "accept", "a test of the alarm"); !ok || !strings.Contains(out, "This is accepted") {
				t.Errorf("accepting: %s", out)
			}
			s = h.serve()
			if log := s.over(false); strings.Contains(log, "audit chain") {
				t.Errorf("after it was accepted: %s", log)
			}
			if out, code := h.with("", "", "audit", "verify", "--head", heads, "--key", key, export()); code != 0 ||
				!strings.Contains(out, "a test of the alarm") {
				t.Errorf("after it was accepted: %d %s", code, out)
			}
		})
	}
}

// with runs a command as a client of the server at url; its login is stored in the
// data folder.
func (h *hoard) with(url, stdin string, args ...string) (said string, code int) {
	h.t.Helper()
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	if args[0] == "login" {
		args = append(args, "--url", url)
	}
	cmd := exec.CommandContext(h.t.Context(), self, args...)
	cmd.Env = []string{"YARDMASTER_TEST_AS=program", "HOME=" + h.data, "PATH=" + os.Getenv("PATH")}
	if url != "" && args[0] != "login" {
		// The server has another address each time, and a token stays with its server.
		token, code := h.with("", "", "auth", "token")
		if code != 0 {
			h.t.Fatal(token)
		}
		cmd.Env = append(cmd.Env, "YARDMASTER_TOKEN="+strings.TrimSpace(token))
		cmd.Env = append(cmd.Env, "YARDMASTER_URL="+url)
	}
	cmd.Stdin = strings.NewReader(stdin)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}
