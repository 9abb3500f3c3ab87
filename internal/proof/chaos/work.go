package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"yardmaster/internal/client"
)

// talk prints its environment and the marker, as a careless agent would, in the
// encodings in which secrets leak.
func talk(marker string) string {
	return `say() { printf '%s\n' "$1"; printf %s "$1" | base64 -w0; echo; printf 'k=%s' "$1" | base64 -w0; echo
		printf %s "$1" | od -An -v -tx1 | tr -d ' \n'; echo; printf %s "$1" | sed 's/+/%2B/g; s,/,%2F,g; s/=/%3D/g'; echo; }
	say '` + marker + `'; say "$OPEN_SECRET"; say "$CLOSED_SECRET"; say "$OPENAI_API_KEY"; env
	tr '\0' '\n' </proc/$PPID/environ; printf %s "$OPEN_SECRET" | dd bs=5 2>/dev/null; echo
	`
}

// The branch names the task, so no two tasks deliver the same file.
const deliver = `f=$(sed 's,.*/,,' .git/HEAD); echo done >"done-$f"; echo "Delivered $f." >"$YARDMASTER_REPORT"`

// script is the agent of most tasks: it works for a second or two.
func script(marker string) string {
	return talk(marker) + `for i in $(seq 1 20); do echo "line $i"; echo "$i" >"half-$YARDMASTER_REPORT" 2>/dev/null; sleep 0.07; done; ` +
		deliver
}

// scenario is the scenario of the scripted model for the built-in agent.
func scenario() string {
	return `scenarios:
  - name: deliver
    match: Task
    steps:
      - text: I say this slowly, so that there is time enough for something to go wrong before I am done
        slow_ms: 40
        shell: |
          ` + deliver + `
      - text: All is delivered.
`
}

// keyed gives a request the Idempotency-Key of its context.
type keyed struct{ http.RoundTripper }

type keyOf struct{}

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	if key, ok := r.Context().Value(keyOf{}).(string); ok {
		r = r.Clone(r.Context())
		r.Header.Set("Idempotency-Key", key)
	}
	return k.RoundTripper.RoundTrip(r)
}

// file files a task, and repeats the call with the same key until it is answered.
func (w *world) file(ctx context.Context, s step) error {
	template := "script"
	switch n := s.pick % 20; {
	case n == 0:
		template = "broken"
	case n < 6:
		template = "default"
	}
	title := "Task " + strconv.FormatInt(s.at.Microseconds(), 10)
	in := map[string]string{"repo": account + "/" + project, "title": title, "problem": title + ": deliver a file.", "template": template}
	ctx = context.WithValue(ctx, keyOf{}, fmt.Sprintf("chaos-%d-%d", w.Seed, s.at.Microseconds()))
	var out struct {
		TaskID string `json:"task_id"`
	}
	err := until(ctx, "a task is filed", func() (bool, error) {
		err := w.c.Call(ctx, http.MethodPost, "/v1/tasks", in, &out)
		var p *client.Problem
		if errors.As(err, &p) && p.Status < 500 && p.Status != http.StatusConflict {
			return false, fmt.Errorf("filing a task: %w", err)
		}
		if err != nil {
			pause(ctx, 200*time.Millisecond)
		}
		return err == nil, nil
	})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.filed, w.ids = append(w.filed, title), append(w.ids, out.TaskID)
	return nil
}

// change calls verb for a filed task. A refusal is a valid answer; while the server
// does not answer, change gives up.
func (w *world) change(ctx context.Context, s step, verb string) error {
	var body any
	w.mu.Lock()
	ids := w.ids[max(0, len(w.ids)-6):] // the newest are at work
	w.mu.Unlock()
	if verb == "redispatch" { // only a failed task can be redispatched
		body = map[string]any{}
		var p struct{ Data []client.Task }
		if err := w.c.Call(ctx, http.MethodGet, "/v1/tasks?status=failed&per_page=200", nil, &p); err != nil || len(p.Data) == 0 {
			return nil
		}
		ids = nil
		for _, t := range p.Data {
			ids = append(ids, t.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	id := ids[s.pick%uint64(len(ids))]
	err := w.c.Call(ctx, http.MethodPost, "/v1/tasks/"+id+"/"+verb, body, nil)
	var p *client.Problem
	switch {
	case err == nil:
		w.count(s.what)
	case errors.As(err, &p) && p.Status < 500 && p.Status != http.StatusConflict:
		return fmt.Errorf("%s of task %s: %w", verb, id, err)
	}
	return nil
}

// open are the tasks that have not ended.
func (w *world) open(ctx context.Context) (out []client.Task, err error) {
	w.mu.Lock()
	ids := append([]string(nil), w.ids...)
	w.mu.Unlock()
	for _, id := range ids {
		var t client.Task
		if err := w.c.Call(ctx, http.MethodGet, "/v1/tasks/"+id, nil, &t); err != nil {
			return nil, err
		}
		if !t.Ended() {
			out = append(out, t)
		}
	}
	return out, nil
}

// waits tells whether only time or a person can move a task on.
func waits(t client.Task) bool {
	if t.Status == "held" || t.Stuck {
		return true
	}
	for _, h := range t.Holds {
		if h.Reason == "retry_backoff" {
			return true
		}
	}
	return false
}
