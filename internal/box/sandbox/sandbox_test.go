package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"yardmaster/internal/proof/executable"
	free "yardmaster/internal/proof/loopback"
	"yardmaster/internal/proof/patience"
)

// boxCommand is the argument that makes the test binary a box, which starts a sandbox
// and waits to be killed.
const boxCommand = "play-box"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case Command:
			os.Exit(Main(os.Args[2:]))
		case boxCommand:
			os.Exit(playBox(os.Args[2:]))
		case probeCommand:
			os.Exit(playProbe(os.Args[2]))
		case agentCommand:
			os.Exit(playAgent(os.Args[2], os.Args[3:]))
		}
	}
	os.Exit(m.Run())
}

// every runs f at all levels. A level that this machine does not offer fails by name
// with the reason, so that no level is left out in silence.
func every(t *testing.T, f func(t *testing.T, l Level)) {
	for _, l := range levels {
		t.Run(string(l), func(t *testing.T) {
			if err := withheld(t, l); err != nil {
				t.Fatal(err)
			}
			f(t, l)
		})
	}
}

// withheld tells why this machine does not offer a level.
func withheld(t *testing.T, l Level) error {
	t.Helper()
	p, err := Start(t.Context(), folders(t, l, "exit 0"))
	if err == nil {
		err = p.Wait()
	}
	if err == nil {
		return nil
	}
	need := map[Level]string{
		Bubblewrap: "install it, and let it make namespaces, to run this test",
		Landlock:   "this test needs Linux 6.2 or later, started with it",
	}[l]
	return fmt.Errorf("%s is not to be had on this machine (%w): %s", l, err, need)
}

// folders makes the folders of a run, which the agent's user can reach.
func folders(t *testing.T, l Level, script string, args ...string) Spec {
	t.Helper()
	root, err := os.MkdirTemp("", "sandbox-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	s := Spec{Level: l, Task: filepath.Join(root, "task"), Home: filepath.Join(root, "home")}
	err = errors.Join(os.Chmod(root, 0o755), os.Mkdir(s.Task, 0o700), os.Mkdir(s.Home, 0o700),
		os.WriteFile(filepath.Join(root, "canary"), []byte("canary"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	s.Argv = append([]string{"/bin/sh", "-c", script, "sh"}, args...)
	return s
}

func canary(s Spec) string { return filepath.Join(filepath.Dir(s.Task), "canary") }

// plant writes a script.
func plant(t *testing.T, path, script string) {
	t.Helper()
	if err := executable.Write(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// output runs a sandbox to its end.
func output(t *testing.T, s Spec) (string, error) {
	t.Helper()
	var b bytes.Buffer
	s.Stdout, s.Stderr = &b, &b
	p, err := Start(patience.Context(t), s)
	if err != nil {
		t.Fatal(err)
	}
	err = p.Wait()
	return b.String(), err
}

func TestAtLeast(t *testing.T) {
	for _, x := range []struct {
		have, want Level
		ok         bool
	}{
		{Bubblewrap, Bubblewrap, true}, {Bubblewrap, None, true}, {Landlock, Bubblewrap, false}, {None, None, true},
		{None, Landlock, false}, {"docker", None, false}, {Bubblewrap, "docker", false},
	} {
		if got := x.have.AtLeast(x.want); got != x.ok {
			t.Errorf("%s at least %s: %v", x.have, x.want, got)
		}
	}
}

func TestBubblewrapThatFailsIsUnavailable(t *testing.T) {
	bin := t.TempDir()
	plant(t, filepath.Join(bin, "bwrap"), "echo 'no namespaces for you' >&2\nexit 1")
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	_, err := Start(t.Context(), folders(t, Bubblewrap, "exit 0"))
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "no namespaces for you") {
		t.Error(err)
	}
	if slices.Contains(Held(Probe(t.Context(), "", openProgram(t))), Bubblewrap) {
		t.Error("the probe believes in it")
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := Start(t.Context(), folders(t, Bubblewrap, "exit 0")); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
}

func TestFilesInsideAndOutside(t *testing.T) {
	every(t, func(t *testing.T, l Level) {
		caller, err := os.MkdirTemp("", "caller-home-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(caller)
		secret := filepath.Join(caller, ".netrc")
		if err := errors.Join(os.Chmod(caller, 0o755), os.WriteFile(secret, []byte("canary"), 0o666), os.Chmod(secret, 0o666)); err != nil {
			t.Fatal(err)
		}
		t.Setenv("HOME", caller)
		s := folders(t, l, `
echo 1 >in-task && mkdir a b && echo 1 >a/f && mv a/f b/f && echo 1 >"$HOME/in-home" && echo 1 >"$TMPDIR/in-tmp" && echo wrote-inside
for f in "$@"; do cat "$f" 2>/dev/null; done
(echo changed >"$1") 2>/dev/null; (truncate -s 0 "$1") 2>/dev/null; rm -f "$1" 2>/dev/null
(echo x >/usr/planted) 2>/dev/null || echo usr-is-closed
(echo x >/etc/planted) 2>/dev/null || echo etc-is-closed
cat /dev/null && git --version >/dev/null && echo tools-work`)
		s.Argv = append(s.Argv, secret, canary(s))
		out, err := output(t, s)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, want := range []string{"wrote-inside", "usr-is-closed", "etc-is-closed", "tools-work"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in %q", want, out)
			}
		}
		if l.AtLeast(Landlock) {
			if strings.Contains(out, "canary") {
				t.Errorf("read outside: %q", out)
			}
			if b, err := os.ReadFile(secret); string(b) != "canary" {
				t.Errorf("wrote outside: %q %v", b, err)
			}
		}
		for _, f := range []string{filepath.Join(s.Task, "in-task"), filepath.Join(s.Home, "in-home")} {
			if _, err := os.Stat(f); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestReadOnlyPathsAreShownAndClosed(t *testing.T) {
	every(t, func(t *testing.T, l Level) {
		s := folders(t, l, `cat "$1" "$2/tool"; (echo x >"$1") 2>/dev/null; (echo x >"$2/new") 2>/dev/null; exit 0`)
		dir := filepath.Join(filepath.Dir(s.Task), "agents")
		err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "tool"), []byte("tool"), 0o644))
		if err != nil {
			t.Fatal(err)
		}
		s.ReadOnly = []string{dir, canary(s)}
		s.Argv = append(s.Argv, canary(s), dir)
		out, err := output(t, s)
		if err != nil || out != "canarytool" {
			t.Fatalf("%q %v", out, err)
		}
		if !l.AtLeast(Landlock) {
			return
		}
		if b, _ := os.ReadFile(canary(s)); string(b) != "canary" {
			t.Errorf("wrote %q", b)
		}
		if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
			t.Error("wrote into a read-only folder")
		}
	})
}

func TestEnvironmentIsMade(t *testing.T) {
	every(t, func(t *testing.T, l Level) {
		t.Setenv("BOX_SECRET", "of-the-box")
		s := folders(t, l, `env; echo "whoami $(id -u)"; pwd; cat /proc/$PPID/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' '`)
		s.Env = map[string]string{"MODEL_TOKEN": "given-token", "LANG": "C"}
		var b bytes.Buffer
		s.Stdout = &b
		p, err := Start(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(); err != nil {
			t.Fatal(err)
		}
		out := b.String()
		task, home := p.task, p.home
		if strings.Contains(out, "of-the-box") {
			t.Error("the box's environment is visible")
		}
		for _, want := range []string{"MODEL_TOKEN=given-token\n", "LANG=C\n", "HOME=" + home + "\n", "\n" + task + "\n"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in %q", want, out)
			}
		}
		if strings.Contains(out, "whoami 0\n") {
			t.Error("the agent is root")
		}
		if n := strings.Count(out, "given-token"); n != 1 {
			t.Errorf("the token shows %d times: an argument list or the shim's environment has it", n)
		}
		if l == Bubblewrap && (task != TaskDir || home != HomeDir) {
			t.Errorf("paths are %s %s", task, home)
		}
	})
}

func TestPipesCarryMuch(t *testing.T) {
	every(t, func(t *testing.T, l Level) {
		s := folders(t, l, "cat")
		s.Piped = true
		p, err := Start(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		const size = 32 << 20
		go func() {
			_, _ = io.CopyN(p.Stdin(), zeros{}, size)
			p.Stdin().Close()
		}()
		n, err := io.Copy(io.Discard, p.Stdout())
		if n != size || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
		s = folders(t, l, "cat; echo end")
		s.Stdin = strings.NewReader("line\n")
		if out, err := output(t, s); out != "line\nend\n" || err != nil {
			t.Errorf("%q %v", out, err)
		}
	})
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestHowAnAgentEnds(t *testing.T) {
	every(t, func(t *testing.T, l Level) {
		var exit *ExitError
		if _, err := output(t, folders(t, l, "exit 7")); !errors.As(err, &exit) || exit.Code != 7 {
			t.Error(err)
		}
		if _, err := output(t, folders(t, l, "kill -SEGV $$")); !errors.As(err, &exit) || exit.Code != 128+11 {
			t.Error(err)
		}
		s := folders(t, l, "exit 0")
		s.Argv = []string{"no-such-agent"}
		if p, err := Start(t.Context(), s); err == nil || errors.Is(err, ErrUnavailable) ||
			!strings.Contains(err.Error(), "no-such-agent") {
			t.Error(p, err)
		}
		s = folders(t, l, `trap 'echo got-term; exit 0' TERM; echo ready; while :; do sleep 0.05; done`)
		s.Piped = true
		p, err := Start(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		ready := make([]byte, 6)
		if _, err := io.ReadFull(p.Stdout(), ready); err != nil {
			t.Fatal(err)
		}
		if err := p.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		rest, _ := io.ReadAll(p.Stdout())
		if err := p.Wait(); err != nil || string(rest) != "got-term\n" {
			t.Errorf("%q %v", rest, err)
		}
		if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		p.Kill()
		if err := p.Wait(); err != nil {
			t.Errorf("a late Kill changed the end: %v", err)
		}
	})
}

func TestLimits(t *testing.T) {
	every(t, func(t *testing.T, l Level) {
		s := folders(t, l, `head -c 1000000 /dev/zero >big; wc -c <big`)
		s.Limits = Limits{FileBytes: 4096}
		if out, _ := output(t, s); !strings.Contains(out, "4096\n") {
			t.Errorf("%q", out)
		}
	})
}

func TestNetworkIsTheForwards(t *testing.T) {
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	every(t, func(t *testing.T, l Level) {
		s := folders(t, l, `exec git ls-remote "http://127.0.0.1:$1/repo"`)
		sock := filepath.Join(filepath.Dir(s.Task), "s")
		ln, err := net.Listen("unix", sock)
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		heard := make(chan string, 8)
		go serve(ln, "forwarded", heard)
		go serve(outside, "outside", heard)
		_, port, _ := net.SplitHostPort(free.Address())
		number, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		s.Forward = []Forward{{Port: number, Socket: sock}}
		s.Argv = append(s.Argv, port)
		if out, err := output(t, s); err == nil || len(heard) != 1 || <-heard != "forwarded" {
			t.Fatalf("the forward was not reached: %q %v", out, err)
		}
		if l == None {
			return
		}
		s.Argv[len(s.Argv)-1] = strconv.Itoa(outside.Addr().(*net.TCPAddr).Port)
		if out, err := output(t, s); err == nil || len(heard) != 0 {
			t.Errorf("reached the host: %q %v", out, err)
		}
	})
}

// serve answers every request with 404, and tells that there was one.
func serve(ln net.Listener, name string, heard chan<- string) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		_, _ = c.Read(make([]byte, 4096))
		heard <- name
		_, _ = io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		c.Close()
	}
}

func TestPortInUseIsSaid(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	s := folders(t, None, "exit 0")
	s.Forward = []Forward{{Port: ln.Addr().(*net.TCPAddr).Port, Socket: "/nonexistent"}}
	if _, err := Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Error(err)
	}
}
