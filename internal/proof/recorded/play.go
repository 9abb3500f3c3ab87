package recorded

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// Player is a provider that answers each call with a case: the first element of a
// call's path names it, and behind ~ a variant of it, as in
// /chat-usage-last~byte/v1/chat/completions. It is no net/http server, because that
// would choose the framing, add headers and refuse to break off.
type Player struct {
	URL string
	ln  net.Listener
}

// Play starts a player, which the end of the test stops.
func Play(t testing.TB) *Player {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	p := &Player{"http://" + ln.Addr().String(), ln}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return p
}

func serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for reply(c, in) {
	}
}

// reply plays one answer, and tells whether the connection can take another. A
// connection is kept like that of a real provider: some clients take a body that is
// cut for a whole one if the answer has said Connection: close.
func reply(c net.Conn, in *bufio.Reader) (more bool) {
	req, err := http.ReadRequest(in)
	if err != nil {
		return false
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return false
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	name, variant, _ := strings.Cut(name, "~")
	a, err := read(name)
	if err == nil && variant != "" {
		a, err = a.Vary(variant)
	}
	if err != nil {
		fmt.Fprintf(c, "HTTP/1.1 599 No Such Case\r\nContent-Length: %d\r\n\r\n%s", len(err.Error()), err)
		return true
	}
	return a.send(c) == nil && a.Whole() && (a.chunked() || a.length() >= 0 || a.Status == http.StatusNoContent)
}

// send writes each piece by itself. Whether the reader sees them apart is up to the
// kernel; what depends on that is tested on the pieces themselves.
func (a *Answer) send(c net.Conn) error {
	tcp, _ := c.(*net.TCPConn)
	if a.None {
		return nil
	}
	if _, err := io.WriteString(c, a.line+"\r\n"+strings.Join(append(a.names[:len(a.names):len(a.names)], "", ""), "\r\n")); err != nil {
		return err
	}
	for _, piece := range a.Pieces {
		if a.chunked() {
			piece = fmt.Appendf(nil, "%x\r\n%s\r\n", len(piece), piece)
		}
		if _, err := c.Write(piece); err != nil {
			return err
		}
	}
	switch a.End {
	case "":
		if a.chunked() {
			_, err := io.WriteString(c, "0\r\n\r\n")
			return err
		}
	case "reset":
		return tcp.SetLinger(0)
	case "hang": // until the reader gives up
		_, err := io.Copy(io.Discard, c)
		return err
	}
	return nil
}
