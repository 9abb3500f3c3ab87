package e2e

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// links makes a folder of links to all programs of PATH, from which a test can remove
// single ones.
func (st *stack) links(name string) string {
	st.t.Helper()
	dir := st.path(name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		st.t.Fatal(err)
	}
	for _, from := range filepath.SplitList(os.Getenv("PATH")) {
		entries, err := os.ReadDir(from)
		if err != nil {
			continue // PATH may name folders that do not exist
		}
		for _, e := range entries {
			if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, os.ErrExist) {
				st.t.Fatal(err)
			}
		}
	}
	return dir
}

// A fault of a box costs no task a try: another box does the work, or the task waits
// until the box works again.
func TestBoxThatBreaksChargesNoTask(t *testing.T) {
	st := newStack(t)
	st.script("work", deliver)
	path := st.links("links")
	broken := st.join("broken", "PATH="+path)
	git := filepath.Join(path, "git")
	real, err := os.Readlink(git)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(git); err != nil {
		t.Fatal(err)
	}
	id := st.file("work", "Meet a box that has lost its git")
	st.until("the task waits for a fit box", func() bool {
		task := st.task(id)
		return task.Status == "pending" && len(task.Holds) == 1 && task.Holds[0].Reason == "box_unfit" &&
			strings.Contains(task.Holds[0].ClearsWhen, "git is not installed")
	})
	var p struct {
		Data []struct {
			Name     string
			Presence struct {
				Unfit     *string
				Telemetry struct{ State string }
			}
		}
	}
	st.until("the box shows why it takes no work", func() bool {
		st.call(http.MethodGet, "/v1/runners", nil, &p)
		return p.Data[0].Presence.Unfit != nil && strings.Contains(*p.Data[0].Presence.Unfit, "git is not installed") &&
			p.Data[0].Presence.Telemetry.State == "unfit"
	})
	var stalls struct {
		Data []struct {
			Reason string
			Count  int
		}
	}
	st.call(http.MethodGet, "/v1/queue/status", nil, &stalls)
	if len(stalls.Data) != 1 || stalls.Data[0].Reason != "box_unfit" || stalls.Data[0].Count != 1 {
		t.Errorf("stalls: %+v", stalls.Data)
	}
	if got := st.outcomes(id); got != "failed(box_unfit)" {
		t.Errorf("the tries: %s", got)
	}
	whole := st.join("whole")
	st.merges(id)
	if tries := st.tries(id); len(tries) != 2 || tries[1].BoxID != whole.id {
		t.Errorf("the tries: %+v", tries)
	}
	whole.stop()
	again := st.file("work", "Wait until the box is whole again")
	if err := os.Symlink(real, git); err != nil {
		t.Fatal(err)
	}
	st.merges(again)
	if tries := st.tries(again); tries[len(tries)-1].BoxID != broken.id {
		t.Errorf("the tries: %+v", tries)
	}
	st.verify()
}
