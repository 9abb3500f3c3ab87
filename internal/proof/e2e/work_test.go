package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/client"
)

// Scripts run in a checkout as the agent "command". They begin with steps; work waits
// in ticking until the test releases it.
const (
	// Each tick is a line in the file ticks and a line of output.
	ticking = `i=0; while [ ! -e .git/go ]; do i=$((i+1)); date +%s%N >>ticks; echo "line $i"; sleep 0.05; done; rm -f ticks; `
	// The branch names the task, so no two tasks deliver the same file.
	deliver = `f=$(sed 's,.*/,,' .git/HEAD); echo done >"done-$f"; echo "Delivered $f." >"$YARDMASTER_REPORT"`
	work    = ticking + deliver
)

// template sets the agent of the tasks that name the template.
func (st *stack) template(name string, fields map[string]any) {
	st.t.Helper()
	st.call(http.MethodPut, "/v1/templates/"+name, fields, nil)
}

func (st *stack) script(name, text string) {
	st.t.Helper()
	st.template(name, map[string]any{"agent": "command", "command": []string{"/bin/sh", "-c", text}})
}

// file creates a task and answers its id.
func (st *stack) file(template, title string) string {
	st.t.Helper()
	var out struct {
		TaskID string `json:"task_id"`
	}
	st.call(http.MethodPost, "/v1/tasks",
		map[string]string{"repo": owner + "/" + repoName, "title": title, "problem": title, "template": template}, &out)
	return out.TaskID
}

func (st *stack) task(id string) client.Task {
	st.t.Helper()
	var t client.Task
	st.call(http.MethodGet, "/v1/tasks/"+id, nil, &t)
	return t
}

// try is one run of a task, in the form of the API.
type try struct {
	ID          string     `json:"id"`
	TaskID      string     `json:"task_id"`
	Attempt     int        `json:"attempt"`
	BoxID       string     `json:"box_id"`
	State       string     `json:"state"`
	Outcome     string     `json:"outcome"`
	FailureKind string     `json:"failure_kind"`
	EndedReason string     `json:"ended_reason"`
	ResumeSHA   string     `json:"resume_sha"`
	LastSeq     int64      `json:"last_seq"`
	CreatedAt   time.Time  `json:"created_at"`
	EndedAt     *time.Time `json:"ended_at"`
}

func (st *stack) tries(task string) []try {
	st.t.Helper()
	var p struct{ Data []try }
	st.call(http.MethodGet, "/v1/tasks/"+task+"/attempts", nil, &p)
	return p.Data
}

// outcomes summarises the tries of a task: "lost(box_lost) succeeded".
func (st *stack) outcomes(task string) string {
	st.t.Helper()
	var out []string
	for _, r := range st.tries(task) {
		s := r.Outcome
		if r.FailureKind != "" {
			s += "(" + r.FailureKind + ")"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

// live waits until the agent of the nth try of a task works, and answers the try.
func (st *stack) live(task string, nth int) try {
	st.t.Helper()
	var r try
	st.until(fmt.Sprintf("try %d of %s is at work", nth, task), func() bool {
		tries := st.tries(task)
		if len(tries) > nth || len(tries) == nth && tries[nth-1].State == "ended" {
			st.t.Fatalf("the task has other tries: %s", st.outcomes(task))
		}
		if len(tries) == nth {
			r = tries[nth-1]
		}
		return r.State == "live"
	})
	return r
}

// ends waits for the end of the nth try of a task, and answers the try.
func (st *stack) ends(task string, nth int) try {
	st.t.Helper()
	var r try
	st.until(fmt.Sprintf("try %d of %s ends", nth, task), func() bool {
		if tries := st.tries(task); len(tries) >= nth {
			r = tries[nth-1]
		}
		return r.State == "ended"
	})
	return r
}

// merges waits until the work of a task is on the main branch.
func (st *stack) merges(task string) client.Task {
	st.t.Helper()
	var t client.Task
	st.until("task "+task+" merges", func() bool {
		if t = st.task(task); t.Ended() && t.Status != "merged" {
			st.t.Fatalf("the task ended as %s after %s", t.Status, st.outcomes(task))
		}
		return t.Status == "merged"
	})
	return t
}

// events reads a run's timeline page by page.
func (st *stack) events(r try) []client.Event {
	st.t.Helper()
	var all []client.Event
	for since := int64(0); ; {
		var p struct {
			Events []client.Event `json:"events"`
			Next   int64          `json:"next_since_seq"`
		}
		st.call(http.MethodGet, fmt.Sprintf("/v1/tasks/%s/events?run_id=%s&since_seq=%d", r.TaskID, r.ID, since), nil, &p)
		if len(p.Events) == 0 {
			return all
		}
		all, since = append(all, p.Events...), p.Next
	}
}

// lines is the output of a run's agent, from the stored events.
func (st *stack) lines(r try) []string {
	st.t.Helper()
	var text strings.Builder
	for _, e := range st.events(r) {
		var u struct{ Content struct{ Text string } }
		if e.Kind == "agent.update" && json.Unmarshal(e.Data, &u) == nil {
			text.WriteString(u.Content.Text)
		}
	}
	if text.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// counted checks that a run's output is the lines 1 to n, each once and in order, and
// answers n.
func (st *stack) counted(r try) int {
	st.t.Helper()
	lines := st.lines(r)
	for i, l := range lines {
		if l != "line "+strconv.Itoa(i+1) {
			st.t.Errorf("line %d of run %s is %q", i+1, r.ID, l)
			break
		}
	}
	return len(lines)
}

// checkout is the working folder of a run on a box.
func (b *machine) checkout(r try) string {
	return filepath.Join(b.data, "runs", fmt.Sprintf("%s.%d", r.ID, r.Attempt), "task")
}

// release lets the agent of a run continue.
func (b *machine) release(r try) {
	b.st.t.Helper()
	if err := os.WriteFile(filepath.Join(b.checkout(r), ".git", "go"), nil, 0o644); err != nil {
		b.st.t.Fatal(err)
	}
}

// ticks is the file to which the agent of a run writes the time. It can be read after
// the box has removed it.
func (b *machine) ticks(r try) *os.File {
	b.st.t.Helper()
	var f *os.File
	b.st.until("the agent ticks", func() (ok bool) {
		f, _ = os.Open(filepath.Join(b.checkout(r), "ticks"))
		return f != nil
	})
	b.st.t.Cleanup(func() { f.Close() })
	return f
}

// times reads the current content of ticks.
func (st *stack) times(f *os.File) []time.Time {
	st.t.Helper()
	info, err := f.Stat()
	if err != nil {
		st.t.Fatal(err)
	}
	text := make([]byte, info.Size())
	if _, err := f.ReadAt(text, 0); err != nil {
		st.t.Fatal(err)
	}
	var out []time.Time
	for _, word := range strings.Fields(string(text)) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			st.t.Fatal(err)
		}
		out = append(out, time.Unix(0, n))
	}
	return out
}

// delivered lists the files of tasks on the main branch.
func (st *stack) delivered() []string {
	st.t.Helper()
	names := strings.Fields(st.git(st.bare(), "ls-tree", "--name-only", "main"))
	return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, "done-") })
}
