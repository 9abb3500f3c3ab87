// Package redistest gives a test a Redis server of its own: the real program,
// on a free loopback port, without a disk. It never skips: without the program
// the test fails.
package redistest

import (
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"yardmaster/internal/proof/loopback"
	"yardmaster/internal/proof/patience"
)

// Server is a running server.
type Server struct {
	t      testing.TB
	listen string
	cmd    *exec.Cmd
	exited chan struct{}
}

// Start runs a server until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	for range 5 { // another program may take the port that was free
		s := &Server{t: t, listen: loopback.Address()}
		if s.start() {
			return s
		}
	}
	t.Fatal("redis-server does not start")
	return nil
}

// URL returns the server's address.
func (s *Server) URL() string { return "redis://" + s.listen + "/0" }

// Client returns a client that is connected to the server until the test ends.
func (s *Server) Client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.listen})
	s.t.Cleanup(func() { c.Close() })
	return c
}

// Stop ends the server and deletes its data.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// Freeze makes the server hang: it accepts connections and answers none.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw lets a frozen server continue.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Again starts a stopped server at the same address.
func (s *Server) Again() {
	s.t.Helper()
	if !s.start() {
		s.t.Fatal("redis-server does not start again")
	}
}

// start starts the server and tells whether it answers.
func (s *Server) start() bool {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.listen)
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd = exec.Command("redis-server", "--bind", host, "--port", port, "--save", "", "--appendonly", "no", "--dir", s.t.TempDir())
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("%v; run `make deps`, and put the folder on the PATH that it names", err)
	}
	exited := make(chan struct{})
	s.exited = exited
	s.t.Cleanup(s.Stop)
	go func() {
		_ = s.cmd.Wait()
		close(exited)
	}()
	c := redis.NewClient(&redis.Options{Addr: s.listen, MaxRetries: -1})
	defer c.Close()
	up := false
	patience.Until(s.t, "redis-server answers or ends", func() bool {
		select {
		case <-exited:
			return true
		default:
			up = c.Ping(s.t.Context()).Err() == nil
			return up
		}
	})
	return up
}
