package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/db"
)

var tasksStored = db.Q[int64](`SELECT COUNT(*) FROM tasks`)

// A stopped server leaves its whole database in one file.
func TestStoppedServerLeavesOneFile(t *testing.T) {
	st := newStack(t)
	const filed = 40
	for range filed {
		st.file("default", "Wait for a box")
	}
	st.server.stop()
	file := filepath.Join(st.path("server"), "yardmaster.db")
	for _, beside := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(file + beside); !os.IsNotExist(err) {
			t.Errorf("yardmaster.db%s is left: %v", beside, err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	alone := st.path("alone.db")
	if err := os.WriteFile(alone, text, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := db.Open(st.ctx, "sqlite:"+alone, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = d.Read(st.ctx, func(tx *db.Tx) error {
		n, err := tasksStored.One(tx)
		if err == nil && n != filed {
			t.Errorf("the file alone has %d of %d tasks", n, filed)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A box that is stopped says so: it is offline at once, and its claim, which waits at
// the server, gets nothing.
func TestStoppedBoxIsGivenNothing(t *testing.T) {
	st := newStack(t)
	st.script("work", deliver)
	gone := st.join("gone")
	st.merges(st.file("work", "Show that the box works"))
	st.until("its next claim waits", func() bool { return strings.Contains(gone.output(), "nothing to do") })
	gone.stop()
	if got := st.presence("gone"); got != "offline" {
		t.Errorf("a box that was stopped is %s", got)
	}
	id := st.file("work", "Wait for another box")
	if holds := st.holds(id); len(holds) != 1 || holds[0].Reason != "no_box_online" {
		t.Errorf("with no box there, the task waits with %+v", holds)
	}
	alive := st.join("alive")
	st.merges(id)
	if tries := st.tries(id); len(tries) != 1 || tries[0].BoxID != alive.id {
		t.Errorf("the tries: %+v", tries)
	}
	// The box gets work again once it is back.
	alive.stop()
	gone.run()
	id = st.file("work", "Be done by the box that came back")
	st.merges(id)
	if tries := st.tries(id); len(tries) != 1 || tries[0].BoxID != gone.id {
		t.Errorf("the tries: %+v", tries)
	}
	st.verify()
}

// A task that is filed at the moment in which a box is stopped waits for no lease,
// whatever has happened to it by then.
func TestBoxStoppedAsATaskComes(t *testing.T) {
	st := newStack(t)
	st.script("work", deliver)
	var ids []string
	for i := range 4 { // each may give the first task back, and a task is given up after five
		b := st.join(fmt.Sprint("box", i))
		var id string
		if stopped := make(chan error, 1); i%2 == 0 {
			go func() { stopped <- b.Stop() }()
			id = st.file("work", "Come as the box goes")
			if err := <-stopped; err != nil {
				t.Fatal(err)
			}
		} else {
			id = st.file("work", "Come as the box goes")
			b.stop()
		}
		ids = append(ids, id)
		if got := st.task(id).Status; got == "claimed" || got == "running" {
			t.Errorf("its box is stopped, and the task is %s", got)
		}
		if got := st.outcomes(id); strings.Contains(got, "lease_expired") || strings.Contains(got, "box_lost") {
			t.Errorf("the tries: %s", got)
		}
	}
	st.join("last")
	for _, id := range ids {
		st.merges(id)
	}
	st.verify()
}

// presence is the presence of the box with a name.
func (st *stack) presence(name string) string {
	st.t.Helper()
	var p struct {
		Data []struct {
			Name     string
			Presence struct{ Status string }
		}
	}
	st.call(http.MethodGet, "/v1/runners", nil, &p)
	for _, r := range p.Data {
		if r.Name == name {
			return r.Presence.Status
		}
	}
	return ""
}
