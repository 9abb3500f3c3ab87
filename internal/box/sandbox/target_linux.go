package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// targetArgument is the argument that makes Main the target: the process outside of any
// sandbox that no agent must reach.
const targetArgument = "target"

// requestVariable holds the request to a target or an attempt, in JSON.
const requestVariable = "YARDMASTER_SANDBOX_PROBE"

// targetRequest configures the target.
type targetRequest struct {
	Dir   string // folder for its files and sockets
	Token string // text that proves access
	Port  int    // port to listen at, of another loopback address
}

// targetFacts are the places at which the target can be reached. The environment of
// the target holds the token as well.
type targetFacts struct {
	Dir          string
	PID          int
	File         string // a file that every user may write
	Memory       string // a file of shared memory; empty: this machine has no such folder
	Socket       string // a socket in Dir that every user may connect to
	Datagrams    string // a socket in Dir to which every user may send datagrams
	Abstract     string
	TCP, UDP     int // ports of 127.0.0.1
	OtherAddress string
}

// signalOf is the signal that the attempt at a level sends. These signals have no
// other meaning.
func signalOf(l Level) syscall.Signal { return syscall.Signal(40 + slices.Index(levels, l)) }

// lastSignal is delivered after the signals of all levels if both are pending.
const lastSignal = syscall.Signal(50)

// runTarget is the main function of the target. It makes its files and sockets, answers
// each line of its input with the signals that it has received, and ends with its
// input.
func runTarget() int {
	got := make(chan os.Signal, 64)
	for _, l := range levels {
		signal.Notify(got, signalOf(l))
	}
	signal.Notify(got, lastSignal)
	var in targetRequest
	err := json.Unmarshal([]byte(os.Getenv(requestVariable)), &in)
	var t targetFacts
	if err == nil {
		t, err = in.offer()
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(t)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "target:", err)
		return codeFailed
	}
	var signals []int
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		_ = syscall.Kill(os.Getpid(), lastSignal)
		for sig := range got {
			if sig == lastSignal {
				break
			}
			signals = append(signals, int(sig.(syscall.Signal)))
		}
		if err := json.NewEncoder(os.Stdout).Encode(signals); err != nil {
			return codeFailed
		}
	}
	return 0
}

func (in *targetRequest) offer() (targetFacts, error) {
	t := targetFacts{
		Dir:       in.Dir,
		PID:       os.Getpid(),
		File:      filepath.Join(in.Dir, "file"),
		Socket:    "stream",
		Datagrams: "datagrams",
		Abstract:  "@" + in.Token,
	}
	if err := errors.Join(os.WriteFile(t.File, []byte(in.Token), 0o666), os.Chmod(t.File, 0o666), os.Chdir(in.Dir)); err != nil {
		return t, err
	}
	if memory := filepath.Join("/dev/shm", "yardmaster-probe-"+in.Token); os.WriteFile(memory, []byte(in.Token), 0o600) == nil {
		t.Memory = memory
		_ = os.Chmod(memory, 0o666)
	}
	t.OtherAddress = net.JoinHostPort("127.0.0.2", strconv.Itoa(in.Port))
	for _, at := range []struct {
		network, address string
		port             *int
	}{{"unix", t.Socket, nil}, {"unix", t.Abstract, nil}, {"tcp", "127.0.0.1:0", &t.TCP}, {"tcp", t.OtherAddress, nil}} {
		ln, err := net.Listen(at.network, at.address)
		if err != nil {
			return t, err
		}
		if at.port != nil {
			*at.port = ln.Addr().(*net.TCPAddr).Port
		}
		go greet(ln, in.Token)
	}
	if _, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: t.Datagrams, Net: "unixgram"}); err != nil {
		return t, err
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return t, err
	}
	t.UDP = udp.LocalAddr().(*net.UDPAddr).Port
	go func() {
		b := make([]byte, 64)
		for {
			_, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo([]byte(in.Token), from)
		}
	}()
	return t, errors.Join(os.Chmod(t.Socket, 0o777), os.Chmod(t.Datagrams, 0o777))
}

// runningTarget is a running target.
type runningTarget struct {
	targetFacts
	process *Process
	mu      sync.Mutex // one question at a time
	answers *bufio.Reader
}

func startTarget(ctx context.Context, s Spec, in targetRequest) (*runningTarget, error) {
	request, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	s.Env[requestVariable] = string(request)
	var complaint strings.Builder
	s.Piped, s.Stderr = true, &complaint
	p, err := Start(ctx, s)
	if err != nil {
		return nil, err
	}
	o := &runningTarget{process: p, answers: bufio.NewReader(p.Stdout())}
	line, err := o.answers.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &o.targetFacts)
	}
	if err != nil {
		o.end()
		return nil, fmt.Errorf("sandbox: nothing could be tried: %w: %s", errors.Join(err, p.Wait()), complaint.String())
	}
	return o, nil
}

// signals returns the signals that the target has received since it began.
func (o *runningTarget) signals() (got []int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.process.Stdin().Write([]byte{'\n'}); err != nil {
		return nil, err
	}
	line, err := o.answers.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	return got, json.Unmarshal(line, &got)
}

func (o *runningTarget) end() {
	o.process.Kill()
	o.process.Stdin().Close()
	o.process.Stdout().Close()
	if o.Memory != "" {
		_ = os.Remove(o.Memory)
	}
}
