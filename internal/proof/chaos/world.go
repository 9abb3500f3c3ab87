package chaos

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
	_ "modernc.org/sqlite"             // registers the driver "sqlite"

	"yardmaster/internal/box"
	"yardmaster/internal/client"
)

const (
	account = "acme"
	project = "widgets"
)

// world has the processes and data of a run.
type world struct {
	Options
	began   time.Time
	web     *Cable // of all boxes to the API and the git host
	front   *Cable // of people; of one server the same
	boxes   []*machine
	c       *client.Client
	setup   string
	secrets map[string]string // name -> value
	marker  string            // printed like the secrets, but not one

	nodes    []*node
	hostTurn sync.Mutex
	ended    context.CancelFunc // of balance

	mu      sync.Mutex
	found   map[Fault][]string
	done    map[action]int
	filed   []string        // titles of acknowledged tasks
	ids     []string        // of the tasks, in the same order
	putDown int             // tasks cancelled at the end
	fit     map[string]bool // by the address of a node: it is ready
	turns   int             // connections that were given to nodes
}

// machine is one box: its data folder outlives its processes.
type machine struct {
	name  string
	data  string
	line  *Cable // to the bus
	fault sync.Mutex
	*Process
	ahead time.Duration // how far the box's clock is ahead
}

func (w *world) path(name string) string { return filepath.Join(w.Data, name) }

// begin starts everything, until the boxes are online.
func (w *world) begin(ctx context.Context) (err error) {
	w.setup = rand.Text()
	password := rand.Text()
	w.marker = "marker+" + rand.Text() + "/="
	w.secrets = map[string]string{
		"the password of the owner":             password,
		"a secret that agents are given":        "open+" + rand.Text() + "/=",
		"a secret that only the broker knows":   "closed+" + rand.Text() + "/=",
		"a key in the environment of the boxes": "sk-ambient-" + rand.Text(),
	}
	if w.Database != "" {
		if err := w.empty(ctx); err != nil {
			return err
		}
	}
	if err := os.WriteFile(w.path("scenario.yml"), []byte(scenario()), 0o600); err != nil {
		return err
	}
	if w.web, err = NewCable(); err != nil {
		return err
	}
	if err := w.layNodes(); err != nil {
		return err
	}
	for _, n := range w.nodes {
		if err := w.serve(ctx, n); err != nil {
			return err
		}
	}
	if w.several() {
		var balancing context.Context
		balancing, w.ended = context.WithCancel(ctx)
		go w.balance(balancing)
	}
	w.c, err = client.Setup(ctx, w.people(), w.setup, client.Owner{
		Login: "ada", Name: "Ada", Email: "ada@example.com", Password: password, Account: account,
	})
	if err != nil {
		return err
	}
	w.secrets["the token of the owner"] = w.c.Token
	w.c.HTTP = &http.Client{Timeout: hung, Transport: keyed{http.DefaultTransport}}
	if err := w.furnish(ctx); err != nil {
		return err
	}
	for i := range w.Boxes {
		b, err := w.enroll(ctx, fmt.Sprintf("box%d", i+1))
		if err != nil {
			return err
		}
		w.boxes = append(w.boxes, b)
		if err := w.runBox(b); err != nil {
			return err
		}
	}
	for _, b := range w.boxes {
		if err := w.online(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// database opens the server's database.
func (w *world) database() (*sql.DB, error) {
	if w.Database != "" {
		return sql.Open("pgx", w.Database)
	}
	return sql.Open("sqlite", "file:"+w.path("server/yardmaster.db")+"?mode=ro")
}

// empty refuses a database that has accounts.
func (w *world) empty(ctx context.Context) error {
	d, err := w.database()
	if err != nil {
		return err
	}
	defer d.Close()
	r := Record{DB: d}
	if _, err := r.rows(ctx, `SELECT 1`); err != nil {
		return fmt.Errorf("the database: %w", err)
	}
	if rows, err := r.rows(ctx, `SELECT id FROM accounts LIMIT 1`); err == nil && len(rows) > 0 {
		return errors.New("the database holds accounts: chaos takes an empty one")
	}
	return nil
}

// people is where people reach the server: not through what is cut for boxes.
func (w *world) people() string {
	if !w.several() {
		return "http://" + w.nodes[0].listen
	}
	return "http://" + w.front.Addr().String()
}

func tail(text string) string { return text[max(0, len(text)-3000):] }

// until waits until come answers true, unless the program hangs.
func until(ctx context.Context, what string, come func() (bool, error)) error {
	for deadline := time.Now().Add(hung); ; {
		if ok, err := come(); ok || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %s in vain: %s", hung, what)
		}
		if !pause(ctx, 50*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// furnish puts a repository, a model key, secrets and templates on the server.
func (w *world) furnish(ctx context.Context) error {
	dir := w.path("source")
	for name, text := range map[string]string{
		"README.md":       "# Widgets\n",
		".svc/policy.yml": "version: 1\nreview: {mode: off}\nmerge: {mode: auto}\nagent: {isolation: none}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "--all"},
		{"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message=Begin"},
	} {
		if _, err := client.Git(ctx, dir, "", "", args...); err != nil {
			return err
		}
	}
	if err := w.c.AddRepo(ctx, dir, account, project); err != nil {
		return err
	}
	for _, put := range []struct {
		method, path string
		body         map[string]any
	}{
		{http.MethodPost, "/v1/billing/keys", map[string]any{"provider": "scripted"}},
		{http.MethodPut, "/v1/secrets/OPEN_SECRET", map[string]any{"value": w.secrets["a secret that agents are given"]}},
		{http.MethodPut, "/v1/secrets/CLOSED_SECRET", map[string]any{
			"value": w.secrets["a secret that only the broker knows"], "delivery": "broker", "hosts": []string{"api.example.com"}}},
		{http.MethodPut, "/v1/templates/script",
			map[string]any{"agent": "command", "command": []string{"/bin/sh", "-c", script(w.marker)}}},
		{http.MethodPut, "/v1/templates/broken",
			map[string]any{"agent": "command", "command": []string{"/bin/sh", "-c", talk(w.marker) + "exit 7"}}},
	} {
		if err := w.c.Call(ctx, put.method, put.path, put.body, nil); err != nil {
			return fmt.Errorf("%s: %w", put.path, err)
		}
	}
	return nil
}

// enroll makes a box that reaches the control plane through cables only.
func (w *world) enroll(ctx context.Context, name string) (*machine, error) {
	var minted struct {
		Token string `json:"token"`
	}
	if err := w.c.Call(ctx, http.MethodPost, "/v1/runners/enrollments", map[string]any{"name": name}, &minted); err != nil {
		return nil, err
	}
	w.secrets["the enrollment token of "+name] = minted.Token
	id, err := box.Enroll(ctx, w.people(), minted.Token, box.Info{Name: name, Slots: 2})
	if err != nil {
		return nil, err
	}
	b := &machine{name: name, data: w.path(name)}
	if b.line, err = NewCable(); err != nil {
		return nil, err
	}
	b.line.Plug(w.nodes[0].bus)
	id.ServerURL, id.NATSURL = "http://"+w.web.Addr().String(), "nats://"+b.line.Addr().String()
	if w.several() { // each node has its own cable, see node.near
		var all []string
		for _, n := range w.nodes {
			all = append(all, "nats://"+address(besides, n.bus))
		}
		id.NATSURL = strings.Join(all, ",")
	}
	return b, id.Save(b.data)
}

// runBox starts a process of the box.
func (w *world) runBox(b *machine) (err error) {
	key := w.secrets["a key in the environment of the boxes"]
	b.Process, err = Start(w.path(b.name+".log"), w.Data, []string{"OPENAI_API_KEY=" + key, "ANTHROPIC_API_KEY=" + key},
		w.Self, "astray", seconds(b.ahead), "box", "run", "--data", b.data, "--slots", "2")
	return err
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// online waits until the control plane sees the box.
func (w *world) online(ctx context.Context, b *machine) error {
	return until(ctx, b.name+" is online", func() (bool, error) {
		if b.Ended() {
			return false, fmt.Errorf("%s ended:\n%s", b.name, tail(b.Output()))
		}
		var p struct {
			Data []struct {
				Name     string
				Presence struct{ Status string }
			}
		}
		err := w.c.Call(ctx, http.MethodGet, "/v1/runners", nil, &p)
		for _, r := range p.Data {
			if r.Name == b.name && r.Presence.Status == "online" {
				return true, nil
			}
		}
		return false, err
	})
}

// stop stops all processes. A process that has ended by itself before, or has
// panicked, is a Crash.
func (w *world) stop() (err error) {
	for _, b := range w.boxes {
		err = errors.Join(err, ends(b.name, b.Process))
	}
	for _, n := range w.nodes {
		err = errors.Join(err, ends(n.name, n.Process))
	}
	return err
}

func ends(name string, p *Process) error {
	if p.Ended() {
		return fmt.Errorf("%s had ended: %s", name, tail(p.Output()))
	}
	err := p.Stop()
	if lines := strings.Split(p.Output(), "\n"); slices.ContainsFunc(lines,
		func(l string) bool { return strings.HasPrefix(l, "panic: ") || strings.HasPrefix(l, "fatal error: ") }) {
		err = errors.Join(err, fmt.Errorf("%s panicked: %s", name, tail(p.Output())))
	}
	return err
}

// end kills all processes and closes all cables, whatever has happened.
func (w *world) end() {
	for _, b := range w.boxes {
		if b.Process != nil {
			b.Kill()
		}
		b.line.Close()
	}
	if w.ended != nil {
		w.ended()
	}
	for _, n := range w.nodes {
		n.close()
	}
	if w.front != nil && w.front != w.web {
		w.front.Close()
	}
	if w.web != nil {
		w.web.Close()
	}
}
