//go:build walk

package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// late is when a wait is given up: what is waited for takes seconds.
const late = 3 * time.Minute

// enter makes a root the root of what it runs, in a mount namespace of its own. Not by chroot:
// the kernel gives no user namespace to who is in one, and then bubblewrap makes no sandbox.
const enter = `set -e
at=$1
shift
mount --make-rprivate /
mount --rbind "$at" "$at"
mount -t proc proc "$at/proc"
mount --rbind /dev "$at/dev"
cd "$at"
pivot_root . mnt
umount -l /mnt
exec "$@"
`

// station is a machine of the walk: a bare Debian in a network namespace.
type station struct {
	t                    *testing.T
	space, root, address string
}

// stations are two that reach each other, and nothing else.
func stations(t *testing.T, tree string) (server, far *station) {
	t.Helper()
	server = newStation(t, tree, "s", "10.77.0.1")
	far = newStation(t, tree, "b", "10.77.0.2")
	a, b := server.space, far.space
	command(t, "ip", "link", "add", a, "netns", a, "type", "veth", "peer", "name", b, "netns", b)
	for _, s := range []*station{server, far} {
		command(t, "ip", "-n", s.space, "address", "add", s.address+"/24", "dev", s.space)
		command(t, "ip", "-n", s.space, "link", "set", s.space, "up")
	}
	return server, far
}

func newStation(t *testing.T, tree, name, address string) *station {
	t.Helper()
	s := &station{t: t, space: fmt.Sprintf("ymw%s%d", name, os.Getpid()), root: filepath.Join(t.TempDir(), name), address: address}
	if err := os.Mkdir(s.root, 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, "tar", "-x", "--numeric-owner", "-C", s.root, "-f", tree)
	// Names are asked of a machine that no route leads to, so that a look-up is counted as well.
	s.write("/etc/resolv.conf", "nameserver 192.0.2.53\n")
	s.write("/etc/hosts", "127.0.0.1 localhost "+name+"\n")
	command(t, "ip", "netns", "add", s.space)
	t.Cleanup(func() { command(t, "ip", "netns", "del", s.space) })
	command(t, "ip", "-n", s.space, "link", "set", "lo", "up")
	return s
}

func command(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", argv, err, out)
	}
	return string(out)
}

// write puts a file of root's on the machine.
func (s *station) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.root, name), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// command is one that runs on the machine as a user, with the environment of a service.
func (s *station) command(ctx context.Context, user string, argv ...string) *exec.Cmd {
	home := "/var/lib/" + user
	if user == "root" {
		home = "/root"
	}
	all := append([]string{"netns", "exec", s.space, "unshare", "--mount", "sh", "-c", enter, "enter", s.root,
		"setpriv", "--reuid", user, "--regid", user, "--init-groups",
		"env", "-i", "-C", home, "HOME=" + home, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"DEBIAN_FRONTEND=noninteractive", "NO_COLOR=1"}, argv...)
	return exec.CommandContext(ctx, "ip", all...)
}

// try runs a command, with standard input if that is not empty.
func (s *station) try(user, input string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), late)
	defer cancel()
	cmd := s.command(ctx, user, argv...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *station) run(user string, argv ...string) string {
	s.t.Helper()
	return s.fed(user, "", argv...)
}

func (s *station) fed(user, input string, argv ...string) string {
	s.t.Helper()
	out, err := s.try(user, input, argv...)
	if err != nil {
		s.t.Fatalf("%s: %v: %s", argv, err, out)
	}
	return strings.TrimSpace(out)
}

// refuses runs what must fail, and say why.
func (s *station) refuses(want, user string, argv ...string) {
	s.t.Helper()
	out, err := s.try(user, "", argv...)
	if err == nil || !strings.Contains(out, want) {
		s.t.Errorf("%s: %v: %q, not %q", argv, err, out, want)
	}
}

// until asks again until the answer has what is wanted.
func (s *station) until(want, user string, argv ...string) string {
	s.t.Helper()
	for end := time.Now().Add(late); ; time.Sleep(200 * time.Millisecond) {
		out, err := s.try(user, "", argv...)
		if err == nil && strings.Contains(out, want) {
			return out
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s: %v: %q, not %q", argv, err, out, want)
		}
	}
}

// service is a process of the machine that goes on.
type service struct {
	t    *testing.T
	cmd  *exec.Cmd
	said log
	done chan error
}

// log keeps what a process writes.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (s *station) start(user string, argv ...string) *service {
	s.t.Helper()
	p := &service{t: s.t, cmd: s.command(context.Background(), user, argv...), done: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	s.t.Cleanup(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		if s.t.Failed() {
			text := p.said.String()
			s.t.Logf("%s said:\n%s", argv, text[max(0, len(text)-6000):])
		}
	})
	return p
}

// stop ends it as systemd does, and wants it to end by itself.
func (p *service) stop() {
	p.t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.done:
		if err != nil {
			p.t.Errorf("%s: %v", p.cmd.Args[len(p.cmd.Args)-1], err)
		}
	case <-time.After(late):
		p.t.Fatal("it does not end")
	}
}

// said waits for a line of it.
func (p *service) says(want string) {
	p.t.Helper()
	for end := time.Now().Add(late); !strings.Contains(p.said.String(), want); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("it did not say %q", want)
		}
	}
}

// strays is how often the machine wanted to reach what no route leads to.
func (s *station) strays() string {
	s.t.Helper()
	text := command(s.t, "ip", "netns", "exec", s.space, "cat", "/proc/net/snmp")
	lines := strings.SplitN(text, "\n", 3)
	names, values := strings.Fields(lines[0]), strings.Fields(lines[1])
	for i, name := range names {
		if name == "OutNoRoutes" {
			return values[i]
		}
	}
	s.t.Fatal("this kernel does not count what it has no route for")
	return ""
}

// copied puts files of the host into a folder of the machine.
func (s *station) copied(from, to string) {
	s.t.Helper()
	if err := os.CopyFS(filepath.Join(s.root, to), os.DirFS(from)); err != nil {
		s.t.Fatal(err)
	}
}

// TestMain serves files where the walk starts this program on a machine of its own.
func TestMain(m *testing.M) {
	folder := os.Getenv("WALK_FILES")
	if folder == "" {
		os.Exit(m.Run())
	}
	panic(http.ListenAndServe("10.77.0.1:8000", http.FileServerFS(os.DirFS(folder))))
}
