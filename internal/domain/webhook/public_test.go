package webhook

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/dial"
	"yardmaster/internal/event"
	"yardmaster/internal/hook"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

// The network of a namespace that has no other: an address that looks public, and one that
// is private.
const (
	envApart  = "WEBHOOK_TEST_APART"
	public    = "93.184.215.14"
	private   = "10.9.8.7"
	wasInside = "the test ran in a network of its own"
)

// Without any network that the operator allows, a delivery arrives at a public address. A
// name that leads to a private one after it was judged is refused at the connection, and a
// redirect to one is not followed. All of it is in a network namespace of this test, because
// no test may use the real network.
func TestPublicAddress(t *testing.T) {
	t.Parallel()
	if os.Getenv(envApart) != "" {
		t.Run("apart", apart)
		fmt.Println(wasInside)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run", "^TestPublicAddress$", "-test.v")
	cmd.Env = append(os.Environ(), envApart+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.Process == nil:
		t.Fatalf("this machine makes no user and network namespace for a test, which isolation of agents needs as well: %v", err)
	case err != nil || !strings.Contains(string(out), wasInside):
		t.Fatalf("%v\n%s", err, out)
	}
}

// attach gives an address to the loopback device, or to another name of it.
func attach(t *testing.T, name, address string) {
	t.Helper()
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	r, err := unix.NewIfreq(name)
	if err != nil {
		t.Fatal(err)
	}
	as4 := netip.MustParseAddr(address).As4()
	if err := r.SetInet4Addr(as4[:]); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlIfreq(s, unix.SIOCSIFADDR, r); err != nil {
		t.Fatalf("give %s to %s: %v", address, name, err)
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
}

// nameServer answers every question for the address of a name with what leads says.
func nameServer(t *testing.T, leads func(name string) string) *net.Resolver {
	t.Helper()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		for b := make([]byte, 1500); ; {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			if n < 12 {
				continue
			}
			var labels []string
			at := 12
			for at < n && b[at] > 0 {
				labels = append(labels, string(b[at+1:at+1+int(b[at])]))
				at += 1 + int(b[at])
			}
			question := b[12 : at+5]
			out := append([]byte{b[0], b[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
			if binary.BigEndian.Uint16(question[len(question)-4:]) == 1 { // an IPv4 address, good for no time
				as4 := netip.MustParseAddr(leads(strings.Join(labels, "."))).As4()
				out[7] = 1
				out = append(append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), as4[:]...)
			}
			_, _ = c.WriteTo(out, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp4", c.LocalAddr().String())
	}}
}

// visited is a server at an address that counts its requests.
type visited struct {
	at    string
	count atomic.Int64
}

func visit(t *testing.T, address string, answer http.HandlerFunc) *visited {
	t.Helper()
	l, err := net.Listen("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	v := &visited{at: l.Addr().String()}
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.count.Add(1)
		answer(w, r)
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() { s.Close(); serving.Wait() })
	return v
}

func apart(t *testing.T) {
	attach(t, "lo", "127.0.0.1")
	attach(t, "lo:1", public)
	attach(t, "lo:2", private)
	var turned atomic.Bool
	names := nameServer(t, func(name string) string {
		if strings.HasPrefix(name, "turning.") && turned.Load() {
			return private
		}
		return public
	})
	net.DefaultResolver = names // of this process, which has no other test
	inside := visit(t, private+":0", func(http.ResponseWriter, *http.Request) {})
	_, port, err := net.SplitHostPort(inside.at)
	if err != nil {
		t.Fatal(err)
	}
	outside := visit(t, net.JoinHostPort(public, port), func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/away") {
			http.Redirect(w, r, "http://"+inside.at+"/", http.StatusTemporaryRedirect)
		}
	})
	resp, err := http.Get("http://" + inside.at) // so it is not the namespace that keeps anybody from it
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()

	y := &yard{t: t, at: time.Unix(1_800_000_000, 0)}
	d := dbtest.Open(t, dbtest.DSN(t, db.SQLite), db.Options{Clock: y.now})
	ring, guard := seal.New(), dial.NewGuard(nil)
	for i := range y.nodes {
		y.nodes[i] = New(Needs{
			DB: d, Hub: event.NewHub(), Ring: ring, Guard: guard, Sender: hook.NewSender(guard, "test", y.now),
			Logger: slog.New(slog.DiscardHandler),
		})
	}
	if err := d.Write(t.Context(), func(tx *db.Tx) error {
		return seed.Add(tx, seed.Account{ID: "acme"}, seed.User{ID: "ada"}, seed.Member{Account: "acme", User: "ada", Role: "member"})
	}); err != nil {
		t.Fatal(err)
	}
	for name, address := range map[string]string{
		"good": "http://good.example:" + port + "/", "turning": "http://turning.example:" + port + "/",
		"away": "http://good.example:" + port + "/away", "bare": "http://" + outside.at + "/",
	} {
		if _, err := y.nodes[0].create(y.as("acme"), createIn{Name: name, URL: address, Events: []string{PullMerged}}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	turned.Store(true)
	for _, address := range []string{"http://" + inside.at + "/", "http://turning.example:" + port + "/"} {
		if _, err := y.nodes[0].create(y.as("acme"), createIn{Name: "x", URL: address, Events: []string{PullMerged}}); err == nil {
			t.Errorf("%s, a private address, is taken", address)
		}
	}
	y.send(merged("one"))
	y.pass()
	if a, b := outside.count.Load(), inside.count.Load(); a != 3 || b != 1 {
		t.Errorf("%d requests outside, %d inside", a, b-1)
	}
	says := map[string]string{}
	for _, a := range y.ledger() {
		says[a.HookName] = string(a.Status)
		if a.Error != nil {
			says[a.HookName] += ": " + *a.Error
		}
	}
	for name, want := range map[string]string{
		"good": OK, "bare": OK, "turning": Retrying + ": No connection was made", "away": Retrying + ": The answer is a redirect",
	} {
		if !strings.HasPrefix(says[name], want) {
			t.Errorf("%s: %q, want %q", name, says[name], want)
		}
	}
}
