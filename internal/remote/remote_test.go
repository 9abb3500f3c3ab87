package remote

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"yardmaster/internal/remote/remotetest"
)

const soon = 300 * time.Millisecond

func key(t *testing.T) *Key {
	t.Helper()
	k, err := ParseKey(remotetest.NewFile(t))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func of(t *testing.T, k *Key, account string) ssh.Signer {
	t.Helper()
	s, err := k.Of(account)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func script(t *testing.T, port int, named HostKey) Script {
	return Script{At: Place{"127.0.0.1", port, "yard"}, HostKey: named, Signer: of(t, key(t), "acme"),
		Text: func(context.Context) (string, error) { return "echo the token", nil }}
}

func named(key ssh.PublicKey) HostKey { return HostKey(ssh.FingerprintSHA256(key)) }

// fails runs a script, and returns its failure.
func fails(t *testing.T, s Script, reason string) (*Failure, string) {
	t.Helper()
	out, err := Run(t.Context(), &net.Dialer{}, s)
	f, is := errors.AsType[*Failure](err)
	if !is || f.Reason != reason {
		t.Fatalf("%v, want %s; %q", err, reason, out)
	}
	return f, out
}

// The script comes over standard input, its output comes back, and nothing else is asked for.
func TestRun(t *testing.T) {
	t.Parallel()
	var got remotetest.Command
	read := ""
	m := (&remotetest.Machine{Runs: func(c remotetest.Command) int {
		got = c
		b, err := io.ReadAll(c.Stdin)
		if err != nil {
			return 1
		}
		read = string(b)
		_, _ = io.WriteString(c.Stdout, "\x1b[31mdone\x1b]0;title\a\u202e\r\n")
		// What a machine asks of its client is refused.
		if ok, _, err := c.Conn.SendRequest("keepalive@openssh.com", true, nil); ok || err != nil {
			return 2
		}
		for _, kind := range []string{"auth-agent@openssh.com", "forwarded-tcpip", "x11", "session"} {
			if ch, _, err := c.Conn.OpenChannel(kind, nil); err == nil {
				ch.Close()
				return 3
			}
		}
		return 0
	}}).Start(t)
	for _, k := range []HostKey{named(m.Key()), HostKey(Public(m.Key()))} {
		out, err := Run(t.Context(), &net.Dialer{}, script(t, m.Port, k))
		if err != nil || out != "[31mdone]0;title" || got.Line != "exec sh -s" || read != "echo the token" || got.Conn.User() != "yard" {
			t.Errorf("%v, %q, %q, %q", err, out, got.Line, read)
		}
	}
	if asked := m.Asked(); len(asked) > 0 {
		t.Errorf("asked for %q", asked)
	}
}

// Without the right host key no key is offered, and nothing runs.
func TestHostKeys(t *testing.T) {
	t.Parallel()
	runs := false
	m := (&remotetest.Machine{Runs: func(remotetest.Command) int { runs = true; return 0 }}).Start(t)
	other := remotetest.NewKey(t).PublicKey()
	for k, reason := range map[HostKey]string{"": KeyUnknown, named(other): KeyChanged, HostKey(Public(other)): KeyChanged} {
		s := script(t, m.Port, k)
		s.Text = func(context.Context) (string, error) { t.Error("a token was made"); return "", nil }
		f, _ := fails(t, s, reason)
		if f.Seen == nil || Public(f.Seen) != Public(m.Key()) {
			t.Errorf("seen %v", f.Seen)
		}
	}
	if runs || len(m.Offered()) > 0 {
		t.Errorf("it ran: %v, and was offered %d keys", runs, len(m.Offered()))
	}
}

// A fingerprint is found whatever the kind of its key is, and one that is none of the machine's is not.
func TestKindsOfHostKeys(t *testing.T) {
	t.Parallel()
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	old, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	m := &remotetest.Machine{HostKeys: []ssh.Signer{remotetest.NewKey(t)}}
	for _, k := range []any{curve, old} {
		s, err := ssh.NewSignerFromKey(k)
		if err != nil {
			t.Fatal(err)
		}
		m.HostKeys = append(m.HostKeys, s)
	}
	m.Start(t)
	for _, k := range m.HostKeys {
		for _, name := range []HostKey{named(k.PublicKey()), HostKey(Public(k.PublicKey()))} {
			if _, err := Run(t.Context(), &net.Dialer{}, script(t, m.Port, name)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	f, _ := fails(t, script(t, m.Port, named(remotetest.NewKey(t).PublicKey())), KeyChanged)
	if Public(f.Seen) != Public(m.Key()) {
		t.Errorf("seen %v", f.Seen)
	}
}

// The key of one account opens no machine that lets in that of another one.
func TestAccountsHaveKeysOfTheirOwn(t *testing.T) {
	t.Parallel()
	k := key(t)
	mine, theirs := of(t, k, "acme"), of(t, k, "rival")
	if Public(mine.PublicKey()) != Public(of(t, k, "acme").PublicKey()) || Public(mine.PublicKey()) == Public(theirs.PublicKey()) {
		t.Fatal("the keys are not one for each account")
	}
	m := (&remotetest.Machine{Lets: func(_ string, key ssh.PublicKey) bool { return Public(key) == Public(mine.PublicKey()) }}).Start(t)
	s := script(t, m.Port, named(m.Key()))
	s.Signer = theirs
	s.Text = func(context.Context) (string, error) { t.Error("a token was made"); return "", nil }
	fails(t, s, Refused)
	s = script(t, m.Port, named(m.Key()))
	s.Signer = mine
	if _, err := Run(t.Context(), &net.Dialer{}, s); err != nil {
		t.Error(err)
	}
	if line := Line(mine.PublicKey(), "yardmaster@here"); !strings.HasPrefix(line, "restrict ssh-ed25519 AAAA") ||
		!strings.HasSuffix(line, " yardmaster@here") {
		t.Error(line)
	}
}

// A script that fails says how, with the end of its output cut to the limit.
func TestScriptFails(t *testing.T) {
	t.Parallel()
	m := (&remotetest.Machine{Runs: func(c remotetest.Command) int {
		_, _ = io.WriteString(c.Stderr, strings.Repeat("é", 10_000))
		return 7
	}}).Start(t)
	f, out := fails(t, script(t, m.Port, named(m.Key())), ScriptError)
	if f.Detail != "The join ended with the exit code 7." || len(out) > kept+3 || !strings.HasPrefix(out, "éé") {
		t.Errorf("%s, %d bytes", f.Detail, len(out))
	}
	gone := (&remotetest.Machine{Runs: func(c remotetest.Command) int { c.Conn.Close(); return 0 }}).Start(t)
	fails(t, script(t, gone.Port, named(gone.Key())), ScriptError)
}

// A machine that talks without an end is cut off, and so is one that says nothing.
func TestHostileMachines(t *testing.T) {
	t.Parallel()
	endless := (&remotetest.Machine{Runs: func(c remotetest.Command) int {
		for {
			if _, err := c.Stdout.Write(make([]byte, 32<<10)); err != nil {
				return 0
			}
		}
	}}).Start(t)
	fails(t, script(t, endless.Port, named(endless.Key())), TooLong)

	hangs := (&remotetest.Machine{Runs: func(c remotetest.Command) int { _ = c.Conn.Wait(); return 0 }}).Start(t)
	s := script(t, hangs.Port, named(hangs.Key()))
	s.patience = soon
	fails(t, s, TooLong)

	for name, serve := range map[string]func(net.Conn){
		"says nothing":     func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
		"hangs up":         func(net.Conn) {},
		"is no SSH server": func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n"); _, _ = io.Copy(io.Discard, c) },
		"has a huge banner": func(c net.Conn) {
			for {
				if _, err := c.Write([]byte(strings.Repeat("x", 200) + "\r\n")); err != nil {
					return
				}
			}
		},
		"has a huge line": func(c net.Conn) { _, _ = c.Write(make([]byte, 8<<20)) },
		"sends huge packet": func(c net.Conn) {
			_, _ = io.WriteString(c, "SSH-2.0-x\r\n\x7f\xff\xff\xff")
			_, _ = io.Copy(io.Discard, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := script(t, remotetest.Listen(t, serve), named(remotetest.NewKey(t).PublicKey()))
			s.greeting = soon
			f, _ := fails(t, s, Unreachable)
			if f.Error() != unreachable().Error() {
				t.Error(f)
			}
		})
	}
	fails(t, script(t, 1, ""), Unreachable)
}

// A server that stops leaves at once.
func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	m := (&remotetest.Machine{Runs: func(c remotetest.Command) int { cancel(); _ = c.Conn.Wait(); return 0 }}).Start(t)
	if _, err := Run(ctx, &net.Dialer{}, script(t, m.Port, named(m.Key()))); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	failing := errors.New("no token")
	s := script(t, m.Port, named(m.Key()))
	s.Text = func(context.Context) (string, error) { return "", failing }
	if _, err := Run(t.Context(), &net.Dialer{}, s); !errors.Is(err, failing) {
		t.Error(err)
	}
}

func TestParseHostKey(t *testing.T) {
	t.Parallel()
	k := remotetest.NewKey(t).PublicKey()
	whole, sum := Public(k), ssh.FingerprintSHA256(k)
	for text, want := range map[string]HostKey{
		sum: HostKey(sum), sum + "=": HostKey(sum), whole: HostKey(whole), "host.example " + whole: HostKey(whole),
		"[10.1.1.1]:2222,other " + whole + " comment": HostKey(whole),
	} {
		if got, err := ParseHostKey(text); err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "SHA256:", "SHA256:abc", "MD5:aa:bb", "ssh-ed25519", "ssh-ed25519 AAAA", "ssh-rsa " + strings.Fields(whole)[1],
		"@revoked host " + whole, "@cert-authority *.example " + whole, "words that are none",
	} {
		if got, err := ParseHostKey(text); err == nil {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	old, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ssh.MarshalPrivateKey(old, "")
	if err != nil {
		t.Fatal(err)
	}
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(old, "", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	for says, text := range map[string][]byte{
		"ed25519": pem.EncodeToMemory(other), "passphrase": pem.EncodeToMemory(locked), "no private key": []byte("nonsense"),
	} {
		if _, err := ParseKey(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	if p := (Place{"fd00::1", 22, "a"}).String(); p != "a@[fd00::1]" {
		t.Error(p)
	}
	if p := (Place{"fd00::1", 2222, "a"}).String(); p != "a@[fd00::1]:2222" {
		t.Error(p)
	}
	if !slices.Contains(Reasons(), Refused) {
		t.Error(Reasons())
	}
}
