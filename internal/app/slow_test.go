package app

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/api/mcp"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/patience"
)

// hurried starts a control plane that hurries its clients, by flags. What must not be
// hurried is done before: it is set up, and prepared, by a server without the flags.
func hurried(t *testing.T, prepare func(y *yard), flags ...string) *yard {
	t.Helper()
	kept := []string{"--data", t.TempDir(), "--database", dbtest.DSN(t, db.SQLite)}
	y := start(t, db.SQLite, kept...)
	prepare(y)
	y.stop()
	return y.again(db.SQLite, append(kept, flags...))
}

// cutOff holds that the server ends the connection of each client. A client begins with
// its head and goes on, by play, until the connection fails.
func cutOff(t *testing.T, y *yard, what string, heads map[string]string, play func(conn net.Conn, head string) error) {
	t.Helper()
	var clients sync.WaitGroup
	defer clients.Wait()
	for name, head := range heads {
		clients.Go(func() {
			conn, err := net.Dial("tcp", strings.TrimPrefix(y.URL(), "http://"))
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			defer context.AfterFunc(patience.Context(t), func() { conn.SetDeadline(time.Unix(1, 0)) })()
			if err := play(conn, head); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s, %s: the server waits on and on", name, what)
			}
		})
	}
}

// drip sends head at once and then a byte now and then, until the server has cut the
// connection off.
func drip(conn net.Conn, head string) error {
	if _, err := io.WriteString(conn, head); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { // what is answered does not matter, but that it ends
		_, err := io.Copy(io.Discard, conn)
		ended <- err
	}()
	tick := time.NewTicker(20 * time.Millisecond) // the pace of the attack
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
			_, _ = io.WriteString(conn, "1") // fails once it is cut
		}
	}
}

func TestSlowClientsAreCutOff(t *testing.T) {
	t.Parallel()
	y := hurried(t, func(y *yard) { y.push("acme/web", map[string]string{"README": "hello\n"}) },
		"--header-timeout", "500ms", "--body-timeout", "500ms")
	headers, bodies, chunks := map[string]string{}, map[string]string{}, map[string]string{}
	for name, c := range map[string]struct{ method, path, header string }{
		"REST": {"POST", "/v1/tasks", "Authorization: Bearer " + y.owner + "\r\nContent-Type: application/json\r\n"},
		"REST, keyed": {"POST", "/v1/tasks",
			"Authorization: Bearer " + y.owner + "\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\n"},
		"REST, anonymous": {"POST", "/v1/tasks", "Content-Type: application/json\r\n"},
		"no such path":    {"POST", "/nothing", ""},
		"a GET":           {"GET", "/v1/me", "Authorization: Bearer " + y.owner + "\r\n"},
		"MCP":             {"POST", mcp.Path, "Authorization: Bearer " + y.owner + "\r\nContent-Type: application/json\r\n"},
		"OAuth":           {"POST", "/oauth/token", "Content-Type: application/x-www-form-urlencoded\r\n"},
		"git": {"POST", "/git/acme/web.git/git-receive-pack",
			"Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("x:"+y.owner)) +
				"\r\nContent-Type: application/x-git-receive-pack-request\r\n"},
		"git, anonymous": {"POST", "/git/acme/web.git/git-receive-pack", "Content-Type: application/x-git-receive-pack-request\r\n"},
		"model gateway":  {"POST", "/gateway/v1/messages", "X-Api-Key: dev_att_x\r\nContent-Type: application/json\r\n"},
	} {
		head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: yard\r\n%s", c.method, c.path, c.header)
		headers[name] = head + "X-Slow: "
		bodies[name] = head + "Content-Length: 100000\r\n\r\n"
		chunks[name] = head + "Transfer-Encoding: chunked\r\n\r\nffff\r\n"
	}
	cutOff(t, y, "slow headers", headers, drip)
	cutOff(t, y, "a slow body", bodies, drip)
	cutOff(t, y, "a slow body in chunks", chunks, drip)
}

// What takes long for other reasons is not cut: waiting for events. Requests that are
// sent to a server that hurries may be cut on a machine that stands still for longer
// than it waits, so they are sent again; once is as good as any.
func TestWaitingIsNotSlow(t *testing.T) {
	t.Parallel()
	var made struct {
		TaskID string `json:"task_id"`
	}
	y := hurried(t, func(y *yard) {
		y.push("acme/web", map[string]string{"README": "hello\n"})
		decode(t, y.send("POST", "/v1/tasks", y.owner, `{"repo": "acme/web", "title": "t", "problem": "p"}`).want(202), &made)
	}, "--header-timeout", "2s", "--body-timeout", "2s")
	stream := y.insist("GET", "/v1/streams?topics=tasks", "", 200)
	var told []byte
	for buf := make([]byte, 64<<10); !bytes.Contains(told, []byte("the news")); {
		n, err := stream.Body.Read(buf)
		if told = append(told, buf[:n]...); err != nil {
			t.Fatalf("the stream was cut: %v: %s", err, told)
		}
		if len(told) == n { // the first of it: the stream is open
			y.insist("GET", "/v1/tasks/"+made.TaskID+"/events?wait_ms=4000", "", 200)
			y.insist("POST", "/v1/tasks", `{"repo": "acme/web", "title": "the news", "problem": "p"}`, 202)
		}
	}
}

// TestLargeDeliveriesAreCutOff: senders who forge large deliveries and keep sending, slowly, have
// the places for them until they are cut off, and no longer.
func TestLargeDeliveriesAreCutOff(t *testing.T) {
	t.Parallel()
	const given = 4 * time.Second
	kept := []string{"--data", t.TempDir(), "--database", dbtest.DSN(t, db.SQLite)}
	f := connectTo(t, boot(t, db.SQLite, kept...))
	f.stop()
	y := f.again(db.SQLite, append(kept, "--body-timeout", given.String()))
	web, err := url.Parse(f.gh.Web)
	if err != nil {
		t.Fatal(err)
	}
	deliver := func(from string) (net.Conn, *http.Response) {
		return y.beginLong(from, "/v1/inbound/github", 25<<20, "Content-Type: application/json",
			fmt.Sprint("X-GitHub-Hook-Installation-Target-ID: ", f.app.ID), "X-GitHub-Enterprise-Host: "+web.Host)
	}
	var senders sync.WaitGroup
	defer senders.Wait()
	began := time.Now()
	for i := range 8 {
		c, resp := deliver(fmt.Sprintf("127.0.6.%d", 1+i%2))
		if resp.StatusCode != 100 {
			t.Fatalf("the large delivery %d is not read: %d", i, resp.StatusCode)
		}
		senders.Go(func() {
			tick := time.NewTicker(50 * time.Millisecond) // the pace of the attack
			defer tick.Stop()
			for range tick.C {
				if _, err := c.Write(make([]byte, 8<<10)); err != nil {
					return
				}
			}
		})
	}
	if _, resp := deliver("127.0.6.3"); time.Since(began) < given {
		tooManyOpen(t, resp)
	}
	patience.Until(t, "a place for a large delivery", func() bool {
		c, resp := deliver("127.0.6.3")
		c.Close()
		return resp.StatusCode == 100
	})
	if took := time.Since(began); took < given {
		t.Errorf("a place was given away after %s", took)
	}
}

// insist sends a request of the owner until the head of an answer comes, five times at
// most.
func (y *yard) insist(method, path, body string, status int) *http.Response {
	y.t.Helper()
	for range 5 {
		req, err := http.NewRequestWithContext(patience.Context(y.t), method, y.URL()+path, strings.NewReader(body))
		if err != nil {
			y.t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+y.owner)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			y.t.Logf("%s %s: %v", method, path, err)
			continue
		}
		y.t.Cleanup(func() { resp.Body.Close() })
		if resp.StatusCode != status {
			y.t.Fatalf("%s %s answers %d, want %d", method, path, resp.StatusCode, status)
		}
		return resp
	}
	y.t.Fatalf("%s %s was cut each time", method, path)
	return nil
}
