package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"yardmaster/internal/client"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/loopback"
	"yardmaster/internal/proof/patience"
)

// previousProgram names a build of the previous release by its absolute path, so that it is not built again.
const previousProgram = "YARDMASTER_PREVIOUS"

// previous builds the previous release: the newest one that is tagged, or else what was there before the
// newest migration, so that the schemas of the two differ in any case.
func previous(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(previousProgram); path != "" {
		return path
	}
	git := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", "../../.."}, args...)...).Output()
		if err != nil {
			t.Fatalf("the previous release is built from the history of the repository, which this copy lacks: git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	var commit string
	if tags := strings.Fields(git("tag", "--list", "v*", "--merged", "HEAD^", "--sort=-v:refname")); len(tags) > 0 {
		commit = tags[0]
	} else {
		added := git("log", "-1", "--diff-filter=A", "--format=%H", "--", "internal/db/migrations")
		commit = git("rev-parse", "--verify", added+"^")
	}
	source, program := t.TempDir(), filepath.Join(root, "previous")
	tree := filepath.Join(source, "tree.tar")
	git("archive", "--output", tree, commit)
	if out, err := exec.CommandContext(t.Context(), "tar", "-xf", tree, "-C", source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/yardmaster")
	build.Dir = source
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", commit, err, out)
	}
	t.Logf("the previous release is %s", commit)
	return program
}

// member is one node of a cluster, whose program is changed.
type member struct {
	t            *testing.T
	name, listen string
	flags        []string
	current      atomic.Bool // it runs the program of this tree
	p            *process
}

func newMember(t *testing.T, dir, name string) *member {
	m := &member{t: t, name: filepath.Join(dir, name), listen: loopback.Address()}
	bus := loopback.Address()
	m.flags = []string{"serve", "--data", m.name, "--listen", m.listen, "--nats-listen", bus, "--nats-url", "nats://" + bus,
		"--nats-routes", loopback.Address(), "--node-listen", loopback.Address(), "--setup-token", setupToken, "--seats", "16",
		"--rate-limits", "off", "--cluster", "on", "--blob", "off", "--master-key-file", filepath.Join(dir, "master.key"),
		"--stop-delay", "2s"}
	return m
}

// run starts a program as the node, and waits until it answers.
func (m *member) run(program, dsn string) {
	m.t.Helper()
	if !m.starts(program, dsn) {
		m.t.Fatalf("%s ended:\n%s", m.name, m.p.output())
	}
}

// starts is run, and answers false if the program refuses a schema that is newer than it knows and does not say
// that older programs may work with it.
func (m *member) starts(program, dsn string) (fits bool) {
	m.t.Helper()
	m.current.Store(program == binary)
	if m.p == nil {
		m.t.Cleanup(m.complaints)
	}
	m.p = start(m.t, m.name+".log", []string{"YARDMASTER_DATABASE=" + dsn}, append([]string{program}, m.flags...)...)
	patience.Until(m.t, m.name+" is ready", func() bool {
		if m.p.ended() {
			if !strings.Contains(m.p.output(), "and has written nothing") {
				m.t.Fatalf("%s ended:\n%s", m.name, m.p.output())
			}
			return true
		}
		fits = ready.MatchString(m.p.output()) && m.ready() == http.StatusOK
		return fits
	})
	return fits
}

// complaints shows, if the test has failed, what the node says went wrong.
func (m *member) complaints() {
	text, err := os.ReadFile(m.name + ".log")
	if !m.t.Failed() || err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "level=ERROR") {
			m.t.Log(line)
		}
	}
}

// ready is what /readyz answers; 0: nothing does.
func (m *member) ready() int {
	answer, err := http.Get("http://" + m.listen + "/readyz")
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}

// leave tells the node to stop. Until its delay is over it says that it is not ready, and answers; then it ends.
func (m *member) leave(c *client.Client) {
	m.t.Helper()
	m.p.Signal(syscall.SIGTERM)
	patience.Until(m.t, m.name+" says that it is not ready", func() bool {
		switch m.ready() {
		case http.StatusServiceUnavailable:
			return true
		case 0:
			m.t.Fatalf("%s answers nobody before it has said that it is not ready", m.name)
		}
		return false
	})
	own := *c
	own.URL = "http://" + m.listen
	if err := own.Call(m.t.Context(), http.MethodGet, "/v1/tasks", nil, nil); err != nil {
		m.t.Errorf("%s does not answer while it is about to stop: %v", m.name, err)
	}
	m.p.goes()
	if code := m.p.Code(); code != 0 {
		m.t.Errorf("%s ends with %d:\n%s", m.name, code, m.p.output())
	}
}

// load writes to the nodes until it is told to stop, each write with a key of its own and said again, at the
// next node, until it is answered.
type load struct {
	t     *testing.T
	nodes []*member
	token string
	stop  atomic.Bool
	done  atomic.Int64
	again atomic.Int64
	ids   sync.Map // of what was written, by title
	all   sync.WaitGroup
}

func (l *load) begin(writers int) {
	for w := range writers {
		l.all.Go(func() {
			for i := 0; !l.stop.Load(); i++ {
				title := fmt.Sprintf("Task %d of writer %d", i, w)
				id, err := l.write(title, w+i)
				if err != nil {
					l.t.Errorf("%s: %v", title, err)
					return
				}
				l.ids.Store(title, id)
				l.done.Add(1)
			}
		})
	}
}

func (l *load) write(title string, at int) (id string, err error) {
	body, err := json.Marshal(map[string]string{"repo": owner + "/" + repoName, "title": title, "problem": title})
	if err != nil {
		return "", err
	}
	answered := patience.Come(l.t, func() bool {
		m := l.nodes[at%len(l.nodes)]
		at++
		var again bool
		if id, again, err = l.once(m, title, body); again {
			l.again.Add(1)
		}
		return !again
	})
	if !answered {
		return "", errors.New("it was never answered")
	}
	return id, err
}

// once says a write to a node; again: it has to be said again.
func (l *load) once(m *member, title string, body []byte) (id string, again bool, err error) {
	req, err := http.NewRequestWithContext(l.t.Context(), http.MethodPost, "http://"+m.listen+"/v1/tasks", bytes.NewReader(body))
	if err != nil {
		return "", false, err
	}
	req.Header.Set("Authorization", "Bearer "+l.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", title)
	status, text := said(req)
	switch {
	case status == http.StatusAccepted:
		var made struct {
			ID string `json:"task_id"`
		}
		err := json.Unmarshal(text, &made)
		return made.ID, false, err
	case m.current.Load() && bytes.Contains(text, []byte("ended before it was answered")):
		return "", false, fmt.Errorf("a call that was under way as the node stopped: %s", text)
	case status == http.StatusInternalServerError && !m.current.Load(): // of the previous release, as it ends
		return "", true, nil
	case status == 0, status == http.StatusServiceUnavailable, bytes.Contains(text, []byte("idempotency-in-flight")):
		return "", true, nil
	}
	return "", false, fmt.Errorf("%d: %s", status, text)
}

// said is the answer to a request; 0: there was none.
func said(req *http.Request) (status int, body []byte) {
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer answer.Body.Close()
	if body, err = io.ReadAll(answer.Body); err != nil {
		return 0, nil
	}
	return answer.StatusCode, body
}

// more waits until as many writes more are done.
func (l *load) more(n int64) {
	l.t.Helper()
	want := l.done.Load() + n
	patience.Until(l.t, "writes go on", func() bool { return l.done.Load() >= want || l.t.Failed() })
}

// listen reads a stream of a node until it ends.
func (l *load) listen(ctx context.Context, m *member) <-chan error {
	ended := make(chan error, 1)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.listen+"/v1/streams?topics=tasks", nil)
	if err != nil {
		l.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+l.token)
	answer, err := http.DefaultClient.Do(req)
	if err != nil || answer.StatusCode != http.StatusOK {
		l.t.Fatalf("a stream: %v, %v", answer, err)
	}
	go func() {
		_, err := io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		ended <- err
	}()
	return ended
}

// TestRollingUpgrade brings two nodes from the previous release to this one, one after the other, while people
// write. The node of the previous release works on at the schema of this one, and starts at it if that may be; no write fails,
// and none is done twice; a stream of a node that stops ends, and is not broken off.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	former := previous(t)
	dir, err := os.MkdirTemp(root, "rolling")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "master.key"), []byte(strings.Repeat("cd", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dsn := dbtest.DSN(t, db.Postgres)
	a, b := newMember(t, dir, "a"), newMember(t, dir, "b")
	a.run(former, dsn)
	b.run(former, dsn)
	c, err := client.Setup(t.Context(), "http://"+b.listen, setupToken, client.Owner{
		Login: "ada", Name: "Ada", Email: "ada@example.com", Password: password, Account: owner,
	})
	if err != nil {
		t.Fatal(err)
	}
	st := &stack{t: t, ctx: t.Context(), dir: dir, c: c}
	st.addRepo() // at b
	l := &load{t: t, nodes: []*member{a, b}, token: c.Token}
	l.begin(3)
	t.Cleanup(func() {
		l.stop.Store(true)
		l.all.Wait()
	})
	l.more(20)

	stream := l.listen(t.Context(), a)
	a.leave(c)
	if err := patience.Receive(t, "the end of a stream", stream); err != nil {
		t.Errorf("the stream of a node that stops is broken off: %v", err)
	}
	a.run(binary, dsn) // and changes the schema, beside the node of the previous release
	l.more(20)
	b.leave(c)
	if b.starts(former, dsn) { // an upgrade that is taken back at one node, if the new schema says that it may be
		l.more(20)
		b.leave(c)
	} else {
		t.Log("the schema does not say that the previous release may be started at it")
	}
	b.run(binary, dsn)
	l.more(20)
	a.leave(c) // as it will leave for the release after this one
	a.run(binary, dsn)
	l.more(20)
	l.stop.Store(true)
	l.all.Wait()

	rows, err := stored(t, dsn)
	if err != nil {
		t.Fatal(err)
	}
	for title, n := range rows {
		if _, acknowledged := l.ids.Load(title); n != 1 || !acknowledged {
			t.Errorf("%s is stored %d times, and was answered: %t", title, n, acknowledged)
		}
	}
	if got := int64(len(rows)); got != l.done.Load() {
		t.Errorf("%d writes were answered, and %d are stored", l.done.Load(), got)
	}
	t.Logf("%d writes, said again %d times", l.done.Load(), l.again.Load())
}

var titles = db.Q[string](`SELECT title FROM tasks ORDER BY id`)

// stored is how often each title is stored.
func stored(t *testing.T, dsn string) (map[string]int, error) {
	d, err := db.Open(t.Context(), dsn, db.Options{})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	rows := map[string]int{}
	err = d.Read(t.Context(), func(tx *db.Tx) error {
		all, err := titles.All(tx)
		for _, title := range all {
			rows[title]++
		}
		return err
	})
	return rows, err
}
