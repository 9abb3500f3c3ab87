package join

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/dial"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/executable"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/remote"
	"yardmaster/internal/remote/remotetest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

var (
	audited = db.Q[string](`SELECT kind FROM audit WHERE kind LIKE 'box.ssh%' ORDER BY seq`)
	all     = db.Q[string](`SELECT COALESCE(output, '') || COALESCE(detail, '') || url || host_key || labels FROM ssh_joins`)
	past    = db.S(`UPDATE ssh_joins SET created_at = $1`)
	stop    = db.S(`UPDATE ssh_joins SET state = 'joining'`)
)

// yard is a server that may dial this machine.
type yard struct {
	*Service
	t *testing.T

	mu     sync.Mutex
	tokens []string
	boxes  map[string]string // by enrollment: the box that has joined with it
	comes  bool              // a box joins with each enrollment
}

// Handed implements Boxes.
func (y *yard) Handed(context.Context) ([]box.Program, error) { return nil, nil }

// Mint implements Boxes.
func (y *yard) Mint(*db.Tx, box.Wish) (box.Minted, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	m := box.Minted{ID: id.New(), Token: id.Secret(id.Enrollment)}
	if y.tokens = append(y.tokens, m.Token); y.comes {
		y.boxes[m.ID] = id.New()
	}
	return m, nil
}

// Joined implements Boxes.
func (y *yard) Joined(_ *db.Tx, enrollmentID string) (string, bool, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	b, ok := y.boxes[enrollmentID]
	return b, ok, nil
}

func onBoth(t *testing.T, fn func(*testing.T, *yard)) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		key, err := remote.ParseKey(remotetest.NewFile(t))
		if err != nil {
			t.Fatal(err)
		}
		y, hub := &yard{t: t, boxes: map[string]string{}}, event.NewHub()
		y.Service = New(Needs{
			DB: d, Hub: hub, Due: duetest.New(d, hub), Boxes: y, Key: key, Logger: slog.New(slog.DiscardHandler),
			Guard: dial.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}),
		})
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			return seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "rival"})
		}); err != nil {
			t.Fatal(err)
		}
		fn(t, y)
	})
}

func as(ctx context.Context, account string) context.Context {
	actor := policy.Actor{Credential: policy.PAT, CredentialID: "x", UserID: "ada", AccountID: account}
	return policy.With(db.WithAccount(ctx, account), actor)
}

// ask asks for a machine of this one.
func (y *yard) ask(account string, m *remotetest.Machine, key string) (Join, error) {
	port := int64(m.Port)
	return y.add(as(y.t.Context(), account), addIn{Host: "127.0.0.1", Port: &port, User: "yard", HostKey: key})
}

// becomes works on what is due, and returns the newest row of an account.
func (y *yard) becomes(account string) Join {
	y.t.Helper()
	duetest.Pass(y.t.Context(), y.t, y.Due)
	page, err := y.list(as(y.t.Context(), account), listIn{op.FirstPage("box.ssh_joins", &op.Paging{Default: 25})})
	if err != nil || len(page.Data) == 0 {
		y.t.Fatalf("%d rows, %v", len(page.Data), err)
	}
	return page.Data[0]
}

// goes asks for a machine, and fails the test unless it becomes as it should.
func (y *yard) goes(account string, m *remotetest.Machine, key, state, reason string) Join {
	y.t.Helper()
	if _, err := y.ask(account, m, key); err != nil {
		y.t.Fatal(err)
	}
	j := y.becomes(account)
	if j.Reason != nil {
		why := *j.Reason
		if string(j.State) != state || string(why) != reason {
			y.t.Fatalf("%s %s: %s; %q", j.State, why, *j.Detail, j.Output)
		}
	} else if string(j.State) != state || reason != "" {
		y.t.Fatalf("%+v", j)
	}
	return j
}

func (y *yard) select1(q db.Query[string]) (out []string) {
	y.t.Helper()
	if err := y.DB.Read(y.t.Context(), func(tx *db.Tx) (err error) { out, err = q.All(tx); return err }); err != nil {
		y.t.Fatal(err)
	}
	return out
}

func fingerprint(m *remotetest.Machine) string { return ssh.FingerprintSHA256(m.Key()) }

// The first call shows the key of the machine and does nothing; the second, which names it,
// joins. The token is nowhere but on the machine's standard input.
func TestJoin(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.comes = true
		said := ""
		m := (&remotetest.Machine{Runs: func(c remotetest.Command) int {
			b, err := io.ReadAll(c.Stdin)
			if err != nil {
				return 1
			}
			said = string(b)
			_, _ = io.WriteString(c.Stdout, "line: "+c.Line+"; "+said)
			return 0
		}}).Start(t)
		j := y.goes("acme", m, "", failed, remote.KeyUnknown)
		if j.Seen == nil || j.Seen.Fingerprint != fingerprint(m) || j.Seen.Key != remote.Public(m.Key()) ||
			len(y.tokens) > 0 || said != "" {
			t.Fatalf("%+v, %d tokens", j.Seen, len(y.tokens))
		}
		j = y.goes("acme", m, j.Seen.Fingerprint, joined, "")
		if j.BoxID == nil || j.EndedAt == nil || len(y.tokens) != 1 || !strings.Contains(said, "YARDMASTER_ENROLL_TOKEN="+y.tokens[0]) {
			t.Fatalf("%+v, %d tokens; %s", j, len(y.tokens), said)
		}
		for _, text := range y.select1(all) {
			if strings.Contains(text, y.tokens[0]) {
				t.Errorf("the token is stored: %s", text)
			}
		}
		if !strings.Contains(j.Output, "line: exec sh -s; #!/bin/sh") {
			t.Errorf("printed %q", j.Output)
		}
		want := "box.ssh_join_asked box.ssh_join_failed box.ssh_join_asked box.ssh_joined"
		if got := strings.Join(y.select1(audited), " "); got != want {
			t.Errorf("audited %s", got)
		}
	})
}

// What a machine may do wrong, and what is said of it.
func TestFailures(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		m := (&remotetest.Machine{Runs: func(c remotetest.Command) int { _, _ = io.WriteString(c.Stderr, "no disk"); return 3 }}).Start(t)
		y.goes("acme", m, remote.Public(remotetest.NewKey(t).PublicKey()), failed, remote.KeyChanged)
		if j := y.goes("acme", m, fingerprint(m), failed, remote.ScriptError); j.Output != "no disk" {
			t.Errorf("%+v", j)
		}
		y.goes("acme", (&remotetest.Machine{Port: 1}), fingerprint(m), failed, remote.Unreachable)
		quiet := (&remotetest.Machine{}).Start(t)
		y.goes("acme", quiet, fingerprint(quiet), failed, notJoined)
		shut := (&remotetest.Machine{Lets: func(string, ssh.PublicKey) bool { return false }}).Start(t)
		y.goes("acme", shut, fingerprint(shut), failed, remote.Refused)
		if len(y.tokens) != 2 {
			t.Errorf("%d tokens", len(y.tokens))
		}
	})
}

// A machine that lets one account in lets no other one in, and nobody sees the rows of others.
func TestTwoAccounts(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.comes = true
		mine, err := y.key(as(t.Context(), "acme"), op.None{})
		if err != nil {
			t.Fatal(err)
		}
		m := (&remotetest.Machine{Lets: func(_ string, key ssh.PublicKey) bool { return remote.Public(key) == mine.PublicKey }}).Start(t)
		y.goes("rival", m, fingerprint(m), failed, remote.Refused)
		y.goes("acme", m, fingerprint(m), joined, "")
		theirs := y.becomes("rival")
		if theirs.State != failed || len(y.tokens) != 1 {
			t.Errorf("%+v, %d tokens", theirs, len(y.tokens))
		}
		if !strings.HasPrefix(mine.AuthorizedKeys, "restrict "+mine.PublicKey+" yardmaster@") ||
			!strings.HasPrefix(mine.Fingerprint, "SHA256:") {
			t.Errorf("%+v", mine)
		}
	})
}

// A second call for the same machine is refused while the first goes on, as are too many an
// hour, addresses inside and what cannot be a key.
func TestRefusals(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		m := (&remotetest.Machine{}).Start(t)
		if _, err := y.ask("acme", m, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := y.ask("acme", m, ""); fault.From(err).Slug != "ssh-join-running" {
			t.Error(err)
		}
		if _, err := y.ask("rival", m, ""); err != nil {
			t.Error(err)
		}
		y.becomes("acme")
		for range anHour - 1 {
			if _, err := y.ask("acme", m, ""); err != nil {
				t.Fatal(err)
			}
			over := func(tx *db.Tx) error { _, err := forgetOpen.Exec(tx, tx.Micros()); return err }
			if err := y.DB.Write(t.Context(), over); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := y.ask("acme", m, ""); !fault.IsKind(err, fault.RateLimited) {
			t.Error(err)
		}
		for _, in := range []addIn{{Host: "169.254.169.254"}, {Host: "10.0.0.1"}, {Host: "::1"}, {Host: "fe80::1%lo"}} {
			in.User = "yard"
			if _, err := y.add(as(t.Context(), "acme"), in); strings.Join(fault.From(err).Fields["host"], "") != dial.Unreachable {
				t.Errorf("%s: %v", in.Host, err)
			}
		}
		if _, err := y.ask("acme", m, "sha256:none"); fault.From(err).Fields["host_key"] == nil {
			t.Error(err)
		}
		y.Key = nil
		if _, err := y.ask("acme", m, ""); fault.From(err).Slug != "no-platform-ssh-key" {
			t.Error(err)
		}
		if _, err := y.key(as(t.Context(), "acme"), op.None{}); fault.From(err).Slug != "no-platform-ssh-key" {
			t.Error(err)
		}
	})
}

var forgetOpen = db.S(`UPDATE ssh_joins SET ended_at = $1 WHERE ended_at IS NULL`)

// A machine that a stopped server was calling is not called again; rows of long ago go.
func TestStopped(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		m := (&remotetest.Machine{Runs: func(remotetest.Command) int { t.Error("it was called again"); return 0 }}).Start(t)
		if _, err := y.ask("acme", m, fingerprint(m)); err != nil {
			t.Fatal(err)
		}
		change := func(fn func(*db.Tx) (int64, error)) {
			if err := y.DB.Write(t.Context(), func(tx *db.Tx) error { _, err := fn(tx); return err }); err != nil {
				t.Fatal(err)
			}
		}
		change(func(tx *db.Tx) (int64, error) { return stop.Exec(tx) })
		if j := y.becomes("acme"); j.State != failed || *j.Reason != interrupted {
			t.Errorf("%+v", j)
		}
		change(func(tx *db.Tx) (int64, error) { return past.Exec(tx, 1) })
		change(func(tx *db.Tx) (int64, error) { return forget.Exec(tx, 2) })
		if rows := y.select1(all); len(rows) > 0 {
			t.Errorf("%d rows are left", len(rows))
		}
	})
}

// The script of the join does on a real shell what it is there for: the box goes on without the
// connection, the token is in no command line, and a machine that is a box stays one.
func TestScript(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	bin := filepath.Join(home, "bin")
	program := "#!/bin/sh\necho \"$@\" >args\necho \"$YARDMASTER_ENROLL_TOKEN\" >token\necho $$ >pid\n" +
		"mkdir yardmaster-box && echo '{}' >yardmaster-box/identity.json\nexec sleep 300\n"
	sh := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), "sh", "-s")
		cmd.Env = []string{"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH")}
		cmd.Stdin = strings.NewReader(box.Detached("https://yard.example", "dev_enr_secret", 20, nil))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(home, name))
		if err != nil {
			t.Error(err)
		}
		return strings.TrimSpace(string(b))
	}
	if out, err := sh(); err == nil || !strings.Contains(out, "yardmaster is not installed") {
		t.Errorf("without the program: %v, %s", err, out)
	}
	install := func(text string) {
		if err := os.MkdirAll(bin, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := executable.Write(filepath.Join(bin, "yardmaster"), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	install("#!/bin/sh\necho 'there is no git here'\nexit 1\n")
	if out, err := sh(); err == nil || !strings.Contains(out, "there is no git here") {
		t.Errorf("with one that fails: %v, %s", err, out)
	}
	install(program)
	out, err := sh()
	if err != nil || !strings.Contains(out, "The box runs.") || read("token") != "dev_enr_secret" ||
		read("args") != "box join --url https://yard.example" {
		t.Fatalf("%v, %s, %q, %q", err, out, read("token"), read("args"))
	}
	pid, err := strconv.Atoi(read("pid"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the box does not run: %v", err)
	}
	if out, err := sh(); err == nil || !strings.Contains(out, "is a box already") {
		t.Errorf("again: %v, %s", err, out)
	}
}
