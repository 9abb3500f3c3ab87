package app

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/gitlfs"
	"yardmaster/internal/proof/patience"
)

const bigObject = 32 << 20

// bigAddress stores an object that no buffers between a server and a client hold, and answers its
// address.
func (y *yard) bigAddress() string {
	y.t.Helper()
	key := y.acct + "/ci/1.log"
	if err := y.blob.Put(y.t.Context(), key, bytes.NewReader(make([]byte, bigObject)), bigObject, "text/plain"); err != nil {
		y.t.Fatal(err)
	}
	address, err := y.blob.PresignGet(y.t.Context(), key, "check.log", time.Hour)
	if err != nil {
		y.t.Fatal(err)
	}
	return address
}

// ask asks for an object and reads the head of the answer alone.
func (y *yard) ask(address string) (c net.Conn, rest io.Reader, status int) {
	y.t.Helper()
	c, err := net.Dial("tcp", y.listens)
	if err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(func() { c.Close() })
	if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		y.t.Fatal(err)
	}
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: yard\r\n\r\n", strings.TrimPrefix(address, y.URL()))
	answer, err := http.ReadResponse(bufio.NewReaderSize(c, 4<<10), nil)
	if err != nil {
		y.t.Fatal(err)
	}
	return c, answer.Body, answer.StatusCode
}

// largeAddress is bigAddress for an object of Git LFS.
func (y *yard) largeAddress() string {
	y.t.Helper()
	l := y.lab()
	y.push("acme/art", map[string]string{"README.md": "x"})
	text := make([]byte, bigObject)
	p, _ := objectOf(text)
	_, a, said := l.batch("acme/art", y.owner, gitlfs.Upload, p)
	if len(a.Objects) != 1 || a.Objects[0].Actions == nil {
		y.t.Fatal(said)
	}
	if resp, said := l.transfer("PUT", a.Objects[0].Actions["upload"].Href, text); resp.StatusCode != 200 {
		y.t.Fatalf("%d %s", resp.StatusCode, said)
	}
	_, a, _ = l.batch("acme/art", y.owner, gitlfs.Download, p)
	return a.Objects[0].Actions["download"].Href
}

// Those who were given addresses of objects and do not read what they get have no more than the
// account's part of what may be open; all others are answered meanwhile.
func TestObjectsAreHeldForTheirAccount(t *testing.T) {
	t.Parallel()
	const most = 128
	for name, c := range map[string]struct {
		address func(*yard) string
		refused int
	}{"objects": {(*yard).bigAddress, 503}, "Git LFS": {(*yard).largeAddress, 429}} { // its client gives up at 503
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := start(t, db.SQLite, "--most-connections", fmt.Sprint(most), "--most-connections-address", fmt.Sprint(most))
			address := c.address(y)
			given := map[int]int{}
			for range most / 2 {
				_, _, status := y.ask(address)
				given[status]++
			}
			if given[200] != most/8 || given[c.refused] != most/2-most/8 {
				t.Errorf("answered %v", given)
			}
			y.send("GET", "/v1/me", y.owner, "").want(200)
			y.send("GET", "/healthz", "", "").want(200)
		})
	}
}

// Who does not read an object is cut off, and the place is another's.
func TestSlowReadersOfObjectsAreCutOff(t *testing.T) {
	t.Parallel()
	const most = 64
	var address string
	y := hurried(t, func(y *yard) { address = strings.TrimPrefix(y.bigAddress(), y.URL()) }, "--body-timeout", "500ms",
		"--most-connections", fmt.Sprint(most), "--most-connections-address", fmt.Sprint(most))
	for range most / 8 {
		y.ask(y.URL() + address)
	}
	patience.Until(t, "a place is free", func() bool {
		c, _, status := y.ask(y.URL() + address)
		c.Close()
		return status == 200
	})
}
