package app

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/api/mcp"
	"yardmaster/internal/db"
)

// drip sends head at once and then a byte now and then, until the server has
// cut the connection off.
func drip(t *testing.T, url, head string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { // what is answered does not matter, but that it ends
		_, err := io.Copy(io.Discard, conn)
		ended <- err
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if nerr, ok := err.(net.Error); ok && nerr.Timeout() {
				t.Error("the server listens on and on")
			}
			return
		case <-tick.C:
			_, _ = io.WriteString(conn, "1") // fails once it is cut
		}
	}
}

func TestSlowClientsAreCutOff(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--header-timeout", "500ms", "--body-timeout", "500ms")
	y.push("acme/web", map[string]string{"README": "hello\n"})
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
		t.Run(name, func(t *testing.T) {
			head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: yard\r\n%s", c.method, c.path, c.header)
			t.Run("headers", func(t *testing.T) { drip(t, y.URL(), head+"X-Slow: ") })
			t.Run("body", func(t *testing.T) { drip(t, y.URL(), head+"Content-Length: 100000\r\n\r\n") })
			t.Run("chunked", func(t *testing.T) { drip(t, y.URL(), head+"Transfer-Encoding: chunked\r\n\r\nffff\r\n") })
		})
	}
}

// What takes long for other reasons is not cut: waiting for events.
func TestWaitingIsNotSlow(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--header-timeout", "2s", "--body-timeout", "2s")
	y.push("acme/web", map[string]string{"README": "hello\n"})
	var made struct {
		TaskID string `json:"task_id"`
	}
	decode(t, y.send("POST", "/v1/tasks", y.owner, `{"repo": "acme/web", "title": "t", "problem": "p"}`).want(202), &made)
	poll := "/v1/tasks/" + made.TaskID + "/events?wait_ms=4000"
	waited := false
	a := y.hear("/v1/streams?topics=tasks", y.owner, nil, func(a answer) bool {
		if !waited { // with the stream open
			waited = true
			y.send("GET", poll, y.owner, "").want(200)
			y.send("POST", "/v1/tasks", y.owner, `{"repo": "acme/web", "title": "the news", "problem": "p"}`).want(202)
		}
		return strings.Contains(string(a.body), "the news")
	})
	if !strings.Contains(string(a.body), "the news") {
		t.Errorf("the stream was cut: %s", a.body)
	}
}
