package e2e

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"yardmaster/internal/client"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/patience"
)

// follower reads the stream of a run from whichever node answers, and goes on with the id of
// the last frame that it has when a stream ends.
type follower struct {
	nodes   []*member
	token   string
	path    string
	ids     []int64
	heard   atomic.Int64 // how many ids there are
	streams atomic.Int64 // how many streams were opened
	broken  atomic.Int64 // how many did not end by a word
	over    chan struct{}
}

func followRun(ctx context.Context, l *load, path string) *follower {
	f := &follower{nodes: l.nodes, token: l.token, path: path, over: make(chan struct{})}
	go func() {
		defer close(f.over)
		for at := 0; ctx.Err() == nil && !f.read(ctx, f.nodes[at%len(f.nodes)]); at++ {
		}
	}()
	return f
}

// read reads one stream to its end, and answers whether it was the end of the run.
func (f *follower) read(ctx context.Context, m *member) (over bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.listen+f.path, nil)
	if err != nil {
		return true
	}
	req.Header.Set("Authorization", "Bearer "+f.token)
	if n := len(f.ids); n > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatInt(f.ids[n-1], 10))
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return answer.StatusCode == http.StatusNoContent
	}
	f.streams.Add(1)
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		id, ok := strings.CutPrefix(lines.Text(), "id: ")
		if !ok {
			continue
		}
		if strings.HasSuffix(id, ".end") {
			return true
		}
		if n, err := strconv.ParseInt(id, 10, 64); err == nil {
			f.ids = append(f.ids, n)
			f.heard.Add(1)
		}
	}
	if lines.Err() != nil {
		f.broken.Add(1)
	}
	return false
}

// TestRollingRestart stops and starts three nodes one after the other, while people write, a
// box is amid a run and somebody follows the run: no write fails or is done twice, the run
// goes on, and whoever follows hears each of its events once, in order.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp(root, "restart")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "master.key"), []byte(strings.Repeat("cd", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dsn := dbtest.DSN(t, db.Postgres)
	var nodes []*member
	for _, name := range []string{"a", "b", "c"} {
		m := newMember(t, dir, name)
		m.flags = append(m.flags, "--merge-grace", "0")
		m.run(binary, dsn)
		nodes = append(nodes, m)
	}
	c, err := client.Setup(t.Context(), "http://"+nodes[1].listen, setupToken, client.Owner{
		Login: "ada", Name: "Ada", Email: "ada@example.com", Password: password, Account: owner,
	})
	if err != nil {
		t.Fatal(err)
	}
	st := &stack{t: t, ctx: t.Context(), dir: dir, c: c, listen: nodes[1].listen}
	st.addRepo()
	st.script("work", work)
	b := st.join("box")
	id := st.file("work", "Outlive three nodes")
	r := st.live(id, 1)
	ticks := b.ticks(r)

	l := &load{t: t, nodes: nodes, token: c.Token}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := followRun(ctx, l, "/v1/fleet/runs/"+r.ID+"/events")
	l.begin(3)
	t.Cleanup(func() {
		l.stop.Store(true)
		l.all.Wait()
	})
	for _, m := range nodes {
		ticked, heard := len(st.times(ticks)), f.heard.Load()
		l.more(20)
		m.leave(c)
		l.more(20)
		m.run(binary, dsn)
		patience.Until(t, "the run goes on, and is heard", func() bool {
			return len(st.times(ticks)) > ticked && f.heard.Load() > heard
		})
	}
	l.stop.Store(true)
	l.all.Wait()
	b.release(r)
	st.merges(id)
	patience.Ended(t, "the end of the stream", f.over)

	if got := st.outcomes(id); got != "succeeded" {
		t.Errorf("the restarts changed the run: %s", got)
	}
	r = st.tries(id)[0]
	st.counted(r)
	for i, n := range f.ids {
		if n != int64(i+1) {
			t.Errorf("event %d of the run was heard as number %d of %d", n, i+1, len(f.ids))
			break
		}
	}
	if n := int64(len(f.ids)); n != r.LastSeq {
		t.Errorf("%d events were heard, and the run has %d", n, r.LastSeq)
	}
	rows, err := stored(t, dsn)
	if err != nil {
		t.Fatal(err)
	}
	delete(rows, "Outlive three nodes")
	for title, n := range rows {
		if _, acknowledged := l.ids.Load(title); n != 1 || !acknowledged {
			t.Errorf("%s is stored %d times, and was answered: %t", title, n, acknowledged)
		}
	}
	if got := int64(len(rows)); got != l.done.Load() {
		t.Errorf("%d writes were answered, and %d are stored", l.done.Load(), got)
	}
	if f.streams.Load() < 2 || f.broken.Load() > 0 {
		t.Errorf("%d streams, of which %d were broken off", f.streams.Load(), f.broken.Load())
	}
	t.Logf("%d writes, said again %d times; %d events by %d streams", l.done.Load(), l.again.Load(), len(f.ids), f.streams.Load())
}
