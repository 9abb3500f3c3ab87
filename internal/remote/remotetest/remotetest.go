// Package remotetest is an SSH server of this process, for tests. It does what a machine
// does that lets keys in and runs commands, or what a test says.
package remotetest

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

// Command is a command that a client has the machine run.
type Command struct {
	Line           string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Conn           *ssh.ServerConn
}

// Machine is an SSH server.
type Machine struct {
	Port     int
	HostKeys []ssh.Signer
	// Lets tells whether a key is let in; nil: every one is.
	Lets func(user string, key ssh.PublicKey) bool
	// Runs carries a command out and answers its exit code; nil: 0 at once.
	Runs func(Command) int

	mu      sync.Mutex
	offered []ssh.PublicKey
	asked   []string // kinds of requests besides that for the command
}

// Start lets a machine listen on this one until the test ends. It has a host key of the kind
// ed25519 unless it has others.
func (m *Machine) Start(t testing.TB) *Machine {
	t.Helper()
	if m.HostKeys == nil {
		m.HostKeys = []ssh.Signer{NewKey(t)}
	}
	m.Port = Listen(t, m.serve)
	return m
}

// Listen calls serve with each connection to a port of this machine, until the test ends.
func Listen(t testing.TB, serve func(net.Conn)) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	conns, over := map[net.Conn]bool{}, false
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			if conns[c] = true; over {
				c.Close()
			}
			mu.Unlock()
			all.Go(func() { serve(c); c.Close() })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		over = true
		for c := range conns {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return l.Addr().(*net.TCPAddr).Port
}

// Key is the host key that the machine shows first.
func (m *Machine) Key() ssh.PublicKey { return m.HostKeys[0].PublicKey() }

// Offered are the keys that clients have proved to have.
func (m *Machine) Offered() []ssh.PublicKey {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]ssh.PublicKey{}, m.offered...)
}

// Asked are the kinds of what clients have asked for besides commands, such as a terminal.
func (m *Machine) Asked() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string{}, m.asked...)
}

func (m *Machine) serve(c net.Conn) {
	config := &ssh.ServerConfig{PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		m.mu.Lock()
		m.offered = append(m.offered, key)
		m.mu.Unlock()
		if m.Lets != nil && !m.Lets(meta.User(), key) {
			return nil, errors.New("not this key")
		}
		return nil, nil
	}}
	for _, key := range m.HostKeys {
		config.AddHostKey(key)
	}
	conn, channels, requests, err := ssh.NewServerConn(c, config)
	if err != nil {
		return
	}
	defer conn.Close()
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { m.note(requests) })
	for n := range channels {
		if n.ChannelType() != "session" {
			m.add(n.ChannelType())
			_ = n.Reject(ssh.UnknownChannelType, "") // the client is gone, then
			continue
		}
		ch, in, err := n.Accept()
		if err != nil {
			return
		}
		all.Go(func() { m.session(conn, ch, in) })
	}
}

func (m *Machine) add(kind string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, kind)
}

func (m *Machine) note(requests <-chan *ssh.Request) {
	for r := range requests {
		m.add(r.Type)
		_ = r.Reply(false, nil) // the client is gone, then
	}
}

func (m *Machine) session(conn *ssh.ServerConn, ch ssh.Channel, in <-chan *ssh.Request) {
	defer ch.Close()
	for r := range in {
		if r.Type != "exec" {
			m.add(r.Type)
			_ = r.Reply(false, nil) // the client is gone, then
			continue
		}
		var line struct{ Line string }
		err := ssh.Unmarshal(r.Payload, &line)
		if r.Reply(err == nil, nil) != nil || err != nil {
			return
		}
		code := 0
		if m.Runs != nil {
			code = m.Runs(Command{Line: line.Line, Stdin: ch, Stdout: ch, Stderr: ch.Stderr(), Conn: conn})
		}
		_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(code)})) // the client is gone, then
		return
	}
}

// NewKey makes a key of the kind ed25519.
func NewKey(t testing.TB) ssh.Signer {
	t.Helper()
	s, err := ssh.ParsePrivateKey(NewFile(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// NewFile makes a key as ssh-keygen writes it.
func NewFile(t testing.TB) []byte {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "test")
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block)
}
