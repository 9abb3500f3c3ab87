package e2e

import (
	"bytes"
	"encoding/pem"
	"io"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/box"
)

// tap is a way to an address, on which somebody listens.
type tap struct {
	l net.Listener

	mu    sync.Mutex
	to    string
	heard bytes.Buffer
}

func newTap(t *testing.T) *tap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p := &tap{l: l}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.join(c)
		}
	}()
	return p
}

func (p *tap) join(c net.Conn) {
	defer c.Close()
	p.mu.Lock()
	to := p.to
	p.mu.Unlock()
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer far.Close()
	go func() {
		io.Copy(io.MultiWriter(far, p), c)
		far.Close()
	}()
	io.Copy(io.MultiWriter(c, p), far)
}

// Write keeps what was heard, of both directions.
func (p *tap) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard.Write(b)
}

func (p *tap) hears(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Contains(p.heard.Bytes(), []byte(text))
}

// A box behind a private authority enrols, clones, works and pushes over TLS alone;
// who listens on its way to the bus reads nothing; and doctor says what goes and, where
// the authority is not named, what does not and how to mend it.
func TestBoxOverTLS(t *testing.T) {
	way := newTap(t)
	front := httptest.NewUnstartedServer(nil)
	base := "https://" + front.Listener.Addr().String()
	st := newStack(t, "--base-url", base, "--nats-tls", "on", "--nats-url", "nats://"+way.l.Addr().String())
	front.Config.Handler = httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: st.listen})
	front.StartTLS()
	t.Cleanup(front.Close)
	at := st.nats
	if at != "tls://"+way.l.Addr().String() {
		t.Fatalf("boxes are told %s", at)
	}
	for i, flag := range st.flags {
		if flag == "--nats-listen" {
			way.mu.Lock()
			way.to = st.flags[i+1]
			way.mu.Unlock()
		}
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	if err := os.WriteFile(st.path("ca.pem"), authority, 0o644); err != nil {
		t.Fatal(err)
	}
	trusting := []string{"SSL_CERT_FILE=" + st.path("ca.pem")}
	b := &machine{st: st, name: "box", data: st.path("box")}
	b.process = start(t, st.path("box.log"), append(trusting, "YARDMASTER_ENROLL_TOKEN="+st.enrollment(b.name)), binary, "box", "join",
		"--url", base, "--data", b.data, "--name", b.name, "--slots", "1", "--log-level", "debug")
	st.boxes = append(st.boxes, b)
	b.online()
	id, err := box.LoadIdentity(b.data)
	if err != nil || len(id.NATSCA) != 64 || id.NATSURL != at {
		t.Fatalf("the box knows %q at %s, %v", id.NATSCA, id.NATSURL, err)
	}
	st.script("work", `grep -q BEGIN "$GIT_SSL_CAINFO" && grep -q BEGIN "$SSL_CERT_FILE" || exit 1; echo a very clear word; `+deliver)
	task := st.file("work", "Work over TLS")
	st.merges(task)
	for _, text := range []string{"INFO", "CONNECT", "rpc.", id.Box, id.NATSJWT.Value, task, "a very clear word"} {
		if way.hears(text) {
			t.Errorf("%q is heard on the way to the bus", text)
		}
	}
	if !way.hears("\x16\x03") {
		t.Error("the tap hears nothing")
	}

	doctor := func(env ...string) string {
		p := start(t, st.path("doctor.log"), append(env, "HOME="+st.path("nobody")), binary, "doctor", "--data", b.data)
		p.goes()
		return p.output()
	}
	said := doctor(trusting...)
	for _, want := range []string{
		"box, server: " + base + " answers", "over TLS, with the authority that the box knows", "box, git: ls-remote reaches",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("doctor does not say %q:\n%s", want, said)
		}
	}
	if strings.Contains(said, "bad ") || strings.Contains(said, "seen to") {
		t.Errorf("doctor finds something wrong:\n%s", said)
	}
	id.NATSCA = strings.Repeat("0", 64)
	if err := id.Save(b.data); err != nil {
		t.Fatal(err)
	}
	said = doctor()
	for _, want := range []string{"bad", "box, server: " + base + " cannot be reached", "box, git: ", "certificate", "set SSL_CERT_FILE to",
		"is not the bus that this box knows", "asks " + base + " by itself how the bus is known now"} {
		if !strings.Contains(said, want) {
			t.Errorf("without the authority doctor does not say %q:\n%s", want, said)
		}
	}
}
