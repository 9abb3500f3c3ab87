package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"yardmaster/internal/proof/executable"
	free "yardmaster/internal/proof/loopback"
)

const agentCommand = "play-agent" // makes the test binary play an agent that tries one thing

// openProgram returns the path of the test binary where agents may run it.
func openProgram(t *testing.T) string {
	t.Helper()
	_, dir := nest(t, 0o755)
	path := filepath.Join(dir, "program")
	text, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = executable.Write(path, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// agents runs one try after the other in one sandbox and returns their output.
func agents(t *testing.T, l Level, program string, change func(*Spec), all [][]string) []string {
	t.Helper()
	s := folders(t, l, `while read -r args; do "$0" $args </dev/null; done`)
	s.Program, s.ReadOnly, s.Argv[3] = program, []string{program}, program
	var lines strings.Builder
	for _, args := range all {
		lines.WriteString(agentCommand + " " + strings.Join(args, " ") + "\n")
	}
	s.Stdin = strings.NewReader(lines.String())
	if change != nil {
		change(&s)
	}
	out, err := output(t, s)
	said := strings.Split(strings.TrimSpace(out), "\n")
	if err != nil || len(said) != len(all) {
		t.Fatalf("%d tries said %q: %v", len(all), said, err)
	}
	return said
}

// expect compares the results of tries with those expected at a level.
func expect(t *testing.T, l Level, program string, change func(*Spec), rows []row) {
	t.Helper()
	var all [][]string
	for _, x := range rows {
		all = append(all, x.args)
	}
	for i, got := range agents(t, l, program, change, all) {
		want := rows[i].want.level(l)
		if l == None { // where nothing is tried that could be refused
			want = "could"
		}
		if got != want {
			t.Errorf("%v: %s, want %s", rows[i].args, got, want)
		}
	}
}

// row is a try and its expected result.
type row struct {
	args []string
	want at
}

func playAgent(try string, args []string) int {
	if err := tries[try](args); err != nil {
		var errno syscall.Errno
		if errors.As(err, &errno) {
			fmt.Println(unix.ErrnoName(errno))
		} else {
			fmt.Println(err)
		}
		return 0
	}
	fmt.Println("could")
	return 0
}

func raw(nr uintptr, args ...uintptr) error {
	a := append(args, 0, 0, 0, 0, 0)
	if _, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], 0); errno != 0 {
		return errno
	}
	return nil
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

// hear connects and waits for a byte, for as long as its sandbox has.
func hear(network, address string) error {
	c, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte{'x'}); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	return err
}

var tries = map[string]func(args []string) error{
	"hear":    func(a []string) error { return hear(a[0], a[1]) },
	"signal":  func(a []string) error { return syscall.Kill(number(a[0]), 0) },
	"trace":   func(a []string) error { return raw(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(number(a[0]))) },
	"environ": func(a []string) error { _, err := os.ReadFile("/proc/" + a[0] + "/environ"); return err },
	"fifo": func(a []string) error {
		f, err := os.OpenFile(a[0], os.O_WRONLY|unix.O_NONBLOCK, 0)
		if err == nil {
			f.Close()
		}
		return err
	},
	"socket": func(a []string) error { _, err := unix.Socket(number(a[0]), number(a[1]), number(a[2])); return err },
	"pair": func(a []string) error {
		_, err := unix.Socketpair(unix.AF_UNIX, number(a[0])|unix.SOCK_CLOEXEC, 0)
		return err
	},
	"bind": func(a []string) error { _, err := net.Listen(a[0], a[1]); return err },
	"serve": func(a []string) error { // itself
		ln, err := net.Listen(a[0], a[1])
		if err != nil {
			return err
		}
		go greet(ln, "come in")
		at := ln.Addr().(*net.TCPAddr)
		if !at.IP.IsLoopback() && os.Getenv("ALONE") == "" {
			return fmt.Errorf("at %s", at)
		}
		if at.IP.IsUnspecified() {
			at.IP = net.IPv4(127, 0, 0, 1)
		}
		return hear("tcp", at.String())
	},
	"serve-on": func([]string) error { // others, until the input ends
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		go greet(ln, "come in")
		fmt.Println(ln.Addr())
		_, err = io.Copy(io.Discard, os.Stdin)
		return err
	},
	"closed": func([]string) error {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		ln.Close()
		return hear("tcp", ln.Addr().String())
	},
	"interfaces": func([]string) error { _, err := net.Interfaces(); return err },
	"fastopen": func(a []string) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err == nil {
			err = unix.Sendto(fd, []byte{'x'}, unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: number(a[0]), Addr: [4]byte{127, 0, 0, 1}})
		}
		return err
	},
	"stuff": func([]string) error {
		c := byte('x')
		return raw(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&c)))
	},
	"stuff-x32": func([]string) error { return raw(unix.SYS_GETPID | 0x40000000) },
	"keyring": func([]string) error {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
		return err
	},
	"uring": func([]string) error {
		p := make([]uint64, 15)
		return raw(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&p[0])))
	},
	"userfault":   func([]string) error { return raw(unix.SYS_USERFAULTFD, 1) }, // in user mode only, which all may
	"clone3":      func([]string) error { return raw(unix.SYS_CLONE3, 0, 0) },
	"setns":       func([]string) error { return raw(unix.SYS_SETNS, ^uintptr(0), 0) },
	"unshare":     func([]string) error { runtime.LockOSThread(); return unix.Unshare(unix.CLONE_NEWUSER) },
	"unshare-fs":  func([]string) error { runtime.LockOSThread(); return unix.Unshare(unix.CLONE_FS) },
	"clone":       func([]string) error { return cloned(unix.CLONE_NEWUSER) },
	"clone-plain": func([]string) error { return cloned(0) },
	"shared":      func([]string) error { return raw(unix.SYS_SHMGET, 0, 4096, unix.IPC_CREAT|0o600) },
	"queue": func([]string) error {
		n := []byte("q\x00")
		return raw(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(&n[0])))
	},
	"many": func(a []string) error {
		done := make(chan error)
		for range 200 {
			go func() { done <- hear("tcp", a[0]) }()
		}
		var all error
		for range 200 {
			all = errors.Join(all, <-done)
		}
		return all
	},
}

func cloned(flags uintptr) error {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	return cmd.Run()
}

// isolated runs f at the levels that isolate.
func isolated(t *testing.T, f func(t *testing.T, l Level)) {
	every(t, func(t *testing.T, l Level) {
		if l != None {
			f(t, l)
		}
	})
}

// at holds the expected result at each of the two levels.
type at struct{ bubblewrap, landlock string }

func (a at) level(l Level) string {
	if l == Bubblewrap {
		return a.bubblewrap
	}
	return a.landlock
}

func text(try string, numbers ...int) []string {
	out := []string{try}
	for _, n := range numbers {
		out = append(out, strconv.Itoa(n))
	}
	return out
}

// TestCallsThatAgentsAreRefused tries calls that only the kernel can refuse.
// Without the filter each refused call has another result.
func TestCallsThatAgentsAreRefused(t *testing.T) {
	program := openProgram(t)
	rows := []row{
		{[]string{"stuff"}, at{"EPERM", "EPERM"}}, // otherwise ENOTTY
		{[]string{"keyring"}, at{"EPERM", "EPERM"}},
		{[]string{"uring"}, at{"ENOSYS", "ENOSYS"}},
		{[]string{"userfault"}, at{"EPERM", "EPERM"}},
		{[]string{"clone3"}, at{"ENOSYS", "ENOSYS"}}, // otherwise EINVAL
		{[]string{"setns"}, at{"EPERM", "EPERM"}},    // otherwise EBADF
		{[]string{"unshare"}, at{"EPERM", "EPERM"}},  // otherwise EINVAL, in a process of several threads
		{[]string{"clone"}, at{"EPERM", "EPERM"}},
		{[]string{"shared"}, at{"could", "EPERM"}},
		{[]string{"queue"}, at{"ENOENT", "EPERM"}},
		{text("socket", unix.AF_VSOCK, unix.SOCK_STREAM, 0), at{"EAFNOSUPPORT", "EACCES"}},
		{text("socket", unix.AF_ALG, unix.SOCK_SEQPACKET, 0), at{"EAFNOSUPPORT", "EACCES"}},
		{text("socket", unix.AF_PACKET, unix.SOCK_RAW, 0), at{"EAFNOSUPPORT", "EACCES"}}, // otherwise EPERM
		{text("socket", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT), at{"EAFNOSUPPORT", "EACCES"}},
		{text("socket", unix.AF_UNIX, unix.SOCK_STREAM, 0), at{"could", "EACCES"}},
		{text("socket", unix.AF_INET, unix.SOCK_DGRAM, 0), at{"could", "EACCES"}},
		{text("socket", unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0), at{"could", "EACCES"}},
		{text("socket", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP), at{"could", "EACCES"}},
		{text("socket", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP), at{"EPERM", "EACCES"}},
		{text("pair", unix.SOCK_DGRAM), at{"could", "EACCES"}},
		{text("pair", unix.SOCK_RAW), at{"could", "EACCES"}}, // which are datagrams
		{[]string{"bind", "tcp", "127.0.0.1:7"}, at{"EACCES", "EACCES"}},
		{[]string{"bind", "tcp", free.Address()}, at{"could", "EACCES"}}, // as of another service
		{text("fastopen", 1), at{"ECONNREFUSED", "ENOTSUP"}},
		{text("pair", unix.SOCK_STREAM), at{"could", "could"}},
		{text("pair", unix.SOCK_SEQPACKET), at{"could", "could"}},
		{[]string{"serve", "tcp", "127.0.0.1:0"}, at{"could", "could"}},
		{[]string{"serve", "tcp", "localhost:0"}, at{"could", "could"}},
		{[]string{"serve", "tcp4", ":0"}, at{"could", "could"}},
		{[]string{"serve", "tcp6", "[::1]:0"}, at{"could", "could"}},
		{[]string{"serve", "tcp", ":0"}, at{"could", "could"}}, // as node does
		{[]string{"closed"}, at{"ECONNREFUSED", "ECONNREFUSED"}},
		{[]string{"interfaces"}, at{"could", "could"}}, // node and Go ask for them by netlink
		{[]string{"unshare-fs"}, at{"could", "could"}},
		{[]string{"clone-plain"}, at{"could", "could"}},
	}
	if runtime.GOARCH == "amd64" {
		rows = append(rows, row{[]string{"stuff-x32"}, at{"EPERM", "EPERM"}}) // otherwise ENOSYS
	}
	isolated(t, func(t *testing.T, l Level) {
		expect(t, l, program, func(s *Spec) {
			if l == Bubblewrap { // where all addresses are its own
				s.Env = map[string]string{"ALONE": "yes"}
			}
		}, rows)
		out, err := output(t, folders(t, l, `grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status; unshare -Ur id; ls /proc/self/fd`))
		if want := "NoNewPrivs:\t1\nSeccomp:\t2\n"; !strings.HasPrefix(out, want) || strings.Contains(out, "uid=") || err != nil {
			t.Errorf("%q %v", out, err)
		}
		if !strings.HasSuffix(out, "0\n1\n2\n3\n") { // the last is that of the folder
			t.Errorf("more than the three descriptors are open: %q", out)
		}
	})
}

// TestDaemonsBesideTheSandbox holds that an agent cannot reach daemons outside of the
// sandbox, at any kind of address.
func TestDaemonsBesideTheSandbox(t *testing.T) {
	program := openProgram(t)
	_, dir := nest(t, 0o755)
	stream, fifo := filepath.Join(dir, "s"), filepath.Join(dir, "fifo")
	abstract := "@sandbox-test-" + strconv.Itoa(os.Getpid())
	var ports []string
	for _, x := range [][2]string{{"unix", stream}, {"unix", abstract}, {"tcp", "127.0.0.1:0"}} {
		ln, err := net.Listen(x[0], x[1])
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		go greet(ln, "come in")
		if x[0] == "tcp" {
			ports = append(ports, ln.Addr().String())
		}
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	go func() {
		b := make([]byte, 16)
		for {
			_, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo(b[:1], from)
		}
	}()
	if err := errors.Join(os.Chmod(stream, 0o777), unix.Mkfifo(fifo, 0o666), os.Chmod(fifo, 0o666)); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(fifo, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	every(t, func(t *testing.T, l Level) {
		expect(t, l, program, nil, []row{
			{[]string{"hear", "unix", stream}, at{"ENOENT", "EACCES"}},
			{[]string{"hear", "unix", abstract}, at{"ECONNREFUSED", "EACCES"}},
			{[]string{"hear", "tcp", ports[0]}, at{"ECONNREFUSED", "EACCES"}},
			{[]string{"hear", "udp", udp.LocalAddr().String()}, at{"ECONNREFUSED", "EACCES"}},
			{[]string{"fifo", fifo}, at{"ENOENT", "EACCES"}},
		})
	})
}

// TestForwardedPortIsThatOfLoopback holds that the forwarded port can be reached at
// its loopback address, by many connections at a time, and that no other address
// with that port can.
func TestForwardedPortIsThatOfLoopback(t *testing.T) {
	program := openProgram(t)
	isolated(t, func(t *testing.T, l Level) {
		dir := filepath.Dir(folders(t, l, "").Task)
		inside, err := net.Listen("unix", filepath.Join(dir, "s"))
		if err != nil {
			t.Fatal(err)
		}
		defer inside.Close()
		go greet(inside, "come in")
		_, text, _ := net.SplitHostPort(free.Address())
		elsewhere, err := net.Listen("tcp", "127.0.0.2:"+text)
		if err != nil {
			t.Fatal(err)
		}
		defer elsewhere.Close()
		go greet(elsewhere, "come in")
		port := number(text)
		forward := func(s *Spec) { s.Forward = []Forward{{Port: port, Socket: filepath.Join(dir, "s")}} }
		expect(t, l, program, forward, []row{
			{[]string{"hear", "tcp", fmt.Sprintf("127.0.0.1:%d", port)}, at{"could", "could"}},
			{[]string{"hear", "tcp", fmt.Sprintf("localhost:%d", port)}, at{"could", "could"}},
			{[]string{"many", fmt.Sprintf("127.0.0.1:%d", port)}, at{"could", "could"}},
			{[]string{"hear", "tcp", fmt.Sprintf("127.0.0.2:%d", port)}, at{"ECONNREFUSED", "EACCES"}},
		})
	})
}

// TestAgentsDoNotServeEachOther holds that only the agent itself reaches its
// listening ports, although an agent of another sandbox is the same user on the
// same machine.
func TestAgentsDoNotServeEachOther(t *testing.T) {
	program := openProgram(t)
	isolated(t, func(t *testing.T, l Level) {
		s := folders(t, l, "")
		s.Program, s.ReadOnly, s.Argv, s.Piped = program, []string{program}, []string{program, agentCommand, "serve-on"}, true
		server, err := Start(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		defer server.Kill()
		var address string
		if _, err := fmt.Fscan(server.Stdout(), &address); err != nil {
			t.Fatal(err)
		}
		expect(t, l, program, nil, []row{{[]string{"hear", "tcp", address}, at{"ECONNREFUSED", "EACCES"}}})
		if err := hear("tcp", address); (err == nil) != (l == Landlock) {
			t.Errorf("the machine itself: %v", err)
		}
	})
}

// TestProcessesOutside holds that neither the box nor a process of the agents' user
// outside can be signalled, traced or read, while a process without isolation can
// be.
func TestProcessesOutside(t *testing.T) {
	program := openProgram(t)
	s := folders(t, None, "echo $$; cat")
	s.Piped = true
	sibling, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer sibling.Kill()
	var pid int
	if _, err := fmt.Fscan(sibling.Stdout(), &pid); err != nil {
		t.Fatal(err)
	}
	every(t, func(t *testing.T, l Level) {
		expect(t, l, program, nil, []row{
			{[]string{"signal", strconv.Itoa(pid)}, at{"ESRCH", "EPERM"}},
			{[]string{"trace", strconv.Itoa(pid)}, at{"ESRCH", "EPERM"}},
			{[]string{"environ", strconv.Itoa(pid)}, at{"ENOENT", "EACCES"}},
		})
		if l == None && !Separate() {
			return // the same user's
		}
		want := at{"ESRCH", "EPERM"}.level(l)
		if got := agents(t, l, program, nil, [][]string{{"signal", strconv.Itoa(os.Getpid())}})[0]; got != want {
			t.Errorf("the box: %s, want %s", got, want)
		}
	})
}
