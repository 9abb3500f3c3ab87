// Package remote carries out one script on a machine over SSH (RFC 4251 to 4254). Nothing
// that the machine does can take longer, or send more, than the limits here, and a key is
// never offered to a machine whose host key is not the one that was named.
//
// The key that signs is of one account: it follows from the key of the deployment and the
// account's id. So a machine that lets one account in lets no other one in, although the
// same server dials for both.
//
//   - remote.go: the call
//   - key.go: the keys
package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"yardmaster/internal/rlimit"
)

// The limits of a call.
const (
	greeting = 15 * time.Second // until the machine has let us in
	patience = 2 * time.Minute  // of a call as a whole
	received = 1 << 20          // bytes that a machine may send in a call, in all
	kept     = 4 << 10          // bytes of the script's output
)

// The ways in which a call can fail.
const (
	Unreachable = "unreachable"      // there is no SSH server, or it does not answer in time
	KeyUnknown  = "host_key_unknown" // no host key was named
	KeyChanged  = "host_key_changed" // the machine has another one than was named
	Refused     = "login_refused"    // the machine does not let the key in
	ScriptError = "script_failed"    // the script ended with an error, or the machine would not run it
	TooLong     = "took_too_long"    // the script did not end in time, or had too much to say
)

// Reasons lists the ways in which a call can fail.
func Reasons() []string {
	return []string{Unreachable, KeyUnknown, KeyChanged, Refused, ScriptError, TooLong}
}

// Failure is an error of Run. Its text is for people, and has nothing that the machine has
// said before its host key was known.
type Failure struct {
	Reason string
	Detail string
	Seen   ssh.PublicKey // of KeyUnknown and KeyChanged: the host key that the machine has
}

func (f *Failure) Error() string { return f.Reason + ": " + f.Detail }

// Place is where a script is carried out.
type Place struct {
	Host string
	Port int
	User string
}

// String writes a place as people do: user@host, with the port if it is not 22.
func (p Place) String() string {
	at := p.Host
	switch {
	case p.Port != 22:
		at = net.JoinHostPort(p.Host, strconv.Itoa(p.Port))
	case strings.Contains(p.Host, ":"):
		at = "[" + p.Host + "]"
	}
	return p.User + "@" + at
}

// Script is what is carried out. Text is asked for once the machine has let the key in, and
// given to a shell on its standard input, so that nothing in it is on a command line.
type Script struct {
	At      Place
	HostKey HostKey // the zero value names none: nothing is carried out
	Signer  ssh.Signer
	Text    func(ctx context.Context) (string, error)

	greeting, patience time.Duration // of tests; 0: those above
}

// Dialer connects, as net.Dialer does.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Run carries a script out and returns what it has printed, cut to the limit. An error is a
// *Failure, that of ctx, or that of Text.
func Run(ctx context.Context, d Dialer, s Script) (output string, err error) {
	whole, cancel := context.WithTimeout(ctx, cmp.Or(s.patience, patience))
	defer cancel()
	client, err := find(whole, d, s)
	if err == nil {
		output, err = carry(whole, client, s.Text)
		client.Close() // the machine may have ended the connection already
	}
	if err != nil && ctx.Err() != nil {
		return output, ctx.Err()
	}
	return output, err
}

// find connects to the machine. A fingerprint does not say of which kind its key is, so the
// machine is asked for one of each.
func find(ctx context.Context, d Dialer, s Script) (client *link, err error) {
	all := s.HostKey.algorithms()
	if s.HostKey == "" || s.HostKey.whole() {
		return connect(ctx, d, s, all)
	}
	var first error
	for _, kind := range families {
		client, err = connect(ctx, d, s, kind)
		other, is := errors.AsType[*Failure](err)
		if err == nil || ctx.Err() != nil || is && other.Reason == Refused {
			return client, err
		}
		if f, is := errors.AsType[*Failure](first); first == nil || is && f.Reason == Unreachable {
			first = err
		}
	}
	return nil, first
}

// connect opens a connection, checks who is at its other end, and proves who we are.
func connect(ctx context.Context, d Dialer, s Script, algorithms []string) (*link, error) {
	greeted, cancel := context.WithTimeout(ctx, cmp.Or(s.greeting, greeting))
	defer cancel()
	address := net.JoinHostPort(s.At.Host, strconv.Itoa(s.At.Port))
	raw, err := d.DialContext(greeted, "tcp", address)
	if err != nil {
		return nil, unreachable()
	}
	c := &bounded{Conn: raw, left: received}
	context.AfterFunc(ctx, func() { raw.Close() }) // the end of whatever waits for the machine
	slow := context.AfterFunc(greeted, func() { raw.Close() })
	var seen ssh.PublicKey
	known := false
	conn, channels, requests, err := ssh.NewClientConn(c, address, &ssh.ClientConfig{
		User: s.At.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(s.Signer)}, HostKeyAlgorithms: algorithms,
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			seen = key
			if known = s.HostKey.is(key); !known {
				return errors.New("another host key")
			}
			return nil
		},
		BannerCallback: func(string) error { return nil },
	})
	if err == nil && slow() {
		return &link{ssh.NewClient(conn, channels, requests), c}, nil
	}
	raw.Close()
	switch {
	case seen == nil, known && greeted.Err() != nil:
		return nil, unreachable()
	case !known && s.HostKey == "":
		return nil, &Failure{Reason: KeyUnknown, Seen: seen,
			Detail: "No host key was named, so nothing was done. Compare this one with the machine's own, and name it."}
	case !known:
		return nil, &Failure{Reason: KeyChanged, Seen: seen,
			Detail: "The machine has another host key than the one that was named, so nothing was done. It is another machine, or was set up anew."}
	}
	return nil, &Failure{Reason: Refused, Detail: "The machine does not let the server in as " + s.At.User +
		": the server's key has to stand in the authorized_keys of that user."}
}

// unreachable is the failure of an address at which nothing speaks SSH in time, in the same
// words for each, so that nobody learns from it what there is.
func unreachable() *Failure {
	return &Failure{Reason: Unreachable, Detail: "No SSH server answers there in time."}
}

// carry gives a script to a shell on the machine, and waits for its end.
func carry(ctx context.Context, client *link, script func(context.Context) (string, error)) (string, error) {
	text, err := script(ctx)
	if err != nil {
		return "", err
	}
	session, err := client.NewSession()
	if err != nil {
		return "", failed("The machine opens no session.")
	}
	out := &output{Output: rlimit.Output{Most: kept}}
	session.Stdout, session.Stderr = out, out
	in, err := session.StdinPipe()
	if err == nil {
		err = session.Start("exec sh -s")
	}
	if err == nil {
		go func() { // a machine need not read all of it
			_, _ = io.WriteString(in, text)
			in.Close()
		}()
		err = session.Wait()
	}
	said := out.text()
	switch {
	case err == nil:
		return said, nil
	case ctx.Err() != nil:
		return said, &Failure{Reason: TooLong, Detail: "The machine did not end the join in time."}
	}
	if exit, is := errors.AsType[*ssh.ExitError](err); is {
		return said, failed(fmt.Sprintf("The join ended with the exit code %d.", exit.ExitStatus()))
	}
	if client.over.Load() {
		return said, &Failure{Reason: TooLong, Detail: "The machine had too much to say."}
	}
	return said, failed("The machine broke the connection off.")
}

func failed(detail string) *Failure { return &Failure{Reason: ScriptError, Detail: detail} }

// output takes what the machine prints on both of its streams.
type output struct {
	mu sync.Mutex
	rlimit.Output
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Output.Write(p)
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return Plain(o.String())
}

// Plain is text of a machine without what could move a cursor or hide something: lines of
// characters that can be seen.
func Plain(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case strconv.IsPrint(r):
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, "?")))
}

var errTooMuch = errors.New("the machine sends too much")

// bounded is a connection of which so many bytes are read and no more.
type bounded struct {
	net.Conn
	left int // of the one goroutine that reads
	over atomic.Bool
}

// link is a connection to a machine that has let us in.
type link struct {
	*ssh.Client
	*bounded
}

// Close ends the connection.
func (l *link) Close() error { return l.Client.Close() }

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.over.Store(true)
		b.Conn.Close()
		return 0, errTooMuch
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
