package app

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// counted carries connections to PostgreSQL, and breaks the one that executes the next
// statement when left statements have passed.
type counted struct {
	net.Listener
	network, address string
	left             atomic.Int64 // -1: all pass
}

// execute is the type of the message that executes a statement.
// Source: PostgreSQL's documentation, "Message Formats", Execute.
const execute = 'E'

func (c *counted) serve() {
	for {
		near, err := c.Accept()
		if err != nil {
			return
		}
		go c.carry(near)
	}
}

func (c *counted) carry(near net.Conn) {
	far, err := net.Dial(c.network, c.address)
	if err != nil {
		near.Close()
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(near, far) // ends with either connection
		near.Close()
	})
	both.Go(func() {
		c.pass(far, near)
		far.Close()
	})
	both.Wait()
}

// pass carries messages of a client: a length and its bytes to begin with, then each behind a type.
func (c *counted) pass(to io.Writer, from io.Reader) {
	var head [5]byte
	for at := 1; ; at = 0 {
		if _, err := io.ReadFull(from, head[at:]); err != nil {
			return
		}
		if at == 0 && head[0] == execute && c.left.Load() >= 0 && c.left.Add(-1) < 0 {
			return
		}
		if _, err := to.Write(head[at:]); err != nil {
			return
		}
		if _, err := io.CopyN(to, from, int64(binary.BigEndian.Uint32(head[1:]))-4); err != nil {
			return
		}
	}
}

// panics keeps the lines of a log that tell of a panic.
type panics struct {
	mu   sync.Mutex
	said []string
}

func (p *panics) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("panic: ")) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.said = append(p.said, string(line))
	}
	return len(line), nil
}

var pathValue = regexp.MustCompile(`\{[^}]*\}`)

// filled is a path with the ids of things that are there: of each collection on the way the first.
func (y *yard) filled(path string) string {
	path = strings.NewReplacer("{owner}/{name}", "acme/web", "{owner}/{repo}", "acme/web", "{userId}", y.user).Replace(path)
	for {
		at := pathValue.FindStringIndex(path)
		if at == nil {
			return path
		}
		var list struct {
			Data []map[string]any
		}
		_ = json.Unmarshal(y.send("GET", strings.TrimSuffix(path[:at[0]], "/"), y.owner, "").body, &list)
		value := "none"
		if len(list.Data) > 0 {
			if id, ok := list.Data[0]["id"].(string); ok {
				value = id
			}
		}
		path = path[:at[0]] + url.PathEscape(value) + path[at[1]:]
	}
}

// A database that goes away between any two statements of a call fails the call: the answer is a
// problem, and nothing panics.
func TestDatabaseGoesAwayInACall(t *testing.T) {
	t.Parallel()
	dsn, err := url.Parse(dbtest.DSN(t, db.Postgres))
	if err != nil {
		t.Fatal(err)
	}
	config, err := pgconn.ParseConfig(dsn.String())
	if err != nil {
		t.Fatal(err)
	}
	c := &counted{}
	c.network, c.address = pgconn.NetworkAddress(config.Host, config.Port)
	c.left.Store(-1)
	if c.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go c.serve()
	dsn.Host = c.Addr().String()
	query := dsn.Query()
	query.Del("host")
	query.Del("port")
	dsn.RawQuery = query.Encode()

	said := &panics{}
	y := enter(bootWith(t, slog.New(slog.NewTextHandler(said, nil)), db.Postgres, "--database", dsn.String()))
	y.push("acme/web", map[string]string{"README": "hello\n"})
	y.send("POST", "/v1/tasks", y.owner, `{"repo": "acme/web", "title": "Mend it", "problem": "It fails."}`).want(202)
	y.send("POST", "/v1/asks", y.owner, `{"repo": "acme/web", "title": "A wish", "body": "Please."}`).want(202)
	calls, failed := 0, 0
	for _, o := range Ops() {
		if o.Method != "GET" || !strings.HasPrefix(o.Path, "/v1/") || o.IsStream() {
			continue
		}
		path := y.filled(o.Path)
		for n := range int64(12) {
			c.left.Store(n)
			got := y.send("GET", path, y.owner, "")
			whole := c.left.Swap(-1) >= 0
			calls++
			if got.StatusCode >= 500 {
				failed++
				known := got.StatusCode == 503 || got.StatusCode == 500
				if !known || !strings.HasPrefix(got.Header.Get("Content-Type"), "application/problem+json") {
					t.Errorf("%s, after %d statements: %d %s", o.ID, n, got.StatusCode, got.body)
				}
			}
			if whole {
				break
			}
		}
	}
	said.mu.Lock()
	defer said.mu.Unlock()
	for _, line := range said.said {
		t.Error(line)
	}
	if failed < 100 {
		t.Errorf("of %d calls %d have lost the database", calls, failed)
	}
	t.Logf("of %d calls %d have lost the database", calls, failed)
}
