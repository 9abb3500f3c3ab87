package app

import (
	"fmt"
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/queue"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
)

// explained wants each pending task to be claimable by a box, or to say why
// not, and each held one, and one whose agent waits, to say what it waits for.
func (m *walk) explained() {
	m.waiting(m.nodes[0])
	at := [3]int64{m.newest.Seq, m.clock.Load(), m.fleets}
	if at == m.asked {
		return // nothing is different
	}
	m.asked = at
	m.parked(m.nodes[0])
	for _, t := range m.was.tasks {
		if t.Status == task.Pending {
			m.pending(m.nodes[0])
			return
		}
	}
}

func (m *walk) pending(n *node) {
	_, out := m.call(n, "GET", "/v1/tasks?filter=status:pending&per_page=200", nil)
	var free []string
	for _, row := range out["data"].([]any) {
		row := row.(map[string]any)
		if at := row["queue_position"].(float64); at < 1 {
			m.fail("task %v is number %v", row["id"], at)
		}
		if len(row["holds"].([]any)) == 0 {
			free = append(free, row["id"].(string))
		}
		for _, h := range row["holds"].([]any) {
			if h := h.(map[string]any); h["reason"] == "" || h["clears_when"] == "" || h["since"] == nil {
				m.fail("hold %v", h)
			}
		}
	}
	m.behindPulls(out["data"].([]any))
	_, status := m.call(n, "GET", "/v1/queue/status", nil)
	if status["queue_depth"] != float64(len(out["data"].([]any))) || status["claimable"] != float64(len(free)) {
		m.fail("queue status %v, of %d tasks %d are claimable", status, len(out["data"].([]any)), len(free))
	}
	if len(free) == 0 {
		return
	}
	work := false
	m.see(func(tx *db.Tx) error {
		work = false
		for _, box := range m.boxes {
			b, ok, err := queue.FindBox(tx, box)
			if err != nil {
				return err
			}
			o, err := n.parts.queue.Look(tx, box)
			if err != nil {
				return err
			}
			work = work || ok && b.Online && (o.Work || o.Asks())
		}
		return nil
	})
	if !work {
		m.fail("the tasks %v have no hold, and no box finds work", free)
	}
}

// waiting wants running tasks to say what their parked runs wait for, blocker by
// blocker, and those whose runs go on to say nothing.
func (m *walk) waiting(n *node) {
	want := map[string][]string{}
	for _, t := range m.was.tasks {
		if t.Status == task.Running {
			want[t.ID] = nil
		}
	}
	for _, b := range m.was.asked {
		if _, running := want[b.TaskID]; running && b.State == "open" && m.was.runs[b.RunID].State == run.Parked {
			want[b.TaskID] = append(want[b.TaskID], b.ID)
		}
	}
	at := fmt.Sprint(want)
	if at == m.waits {
		return // nothing is different
	}
	m.waits = at
	_, out := m.call(n, "GET", "/v1/tasks?filter=status:running&per_page=200", nil)
	for _, row := range out["data"].([]any) {
		row := row.(map[string]any)
		id := row["id"].(string)
		var named []string
		for _, h := range row["holds"].([]any) {
			h := h.(map[string]any)
			clear, _ := h["clear"].(map[string]any)
			if h["reason"] != task.Blocked || h["blocking"] != true || h["since"] == nil ||
				clear["capability"] != "blocker.answer" && clear["capability"] != "blocker.submit" {
				m.fail("the run of task %s waits, and the task says %v", id, h)
			}
			named = append(named, clear["args"].(map[string]any)["blockerId"].(string))
		}
		waits, running := want[id]
		slices.Sort(named)
		slices.Sort(waits)
		if !running || !slices.Equal(named, waits) {
			m.fail("the run of task %s waits for %v, and the task says %v", id, waits, row["holds"])
		}
		if len(waits) > 0 {
			m.seen["a parked run explained"]++
		}
		delete(want, id)
	}
	if len(want) > 0 {
		m.fail("tasks that run and are not listed: %v", want)
	}
}

// parked wants held tasks to say what a person has to do about them.
func (m *walk) parked(n *node) {
	held := map[string]string{}
	for _, t := range m.was.tasks {
		if t.Status == task.Held {
			held[t.ID] = *t.FailureKind
		}
	}
	if len(held) == 0 {
		return
	}
	_, out := m.call(n, "GET", "/v1/tasks?filter=status:held&per_page=200", nil)
	for _, row := range out["data"].([]any) {
		row := row.(map[string]any)
		holds := row["holds"].([]any)
		open := 0
		for _, b := range m.was.asked {
			if b.TaskID == row["id"] && b.State == "open" && held[b.TaskID] == task.Blocked {
				open++
			}
		}
		if len(holds) != max(open, 1) {
			m.fail("task %v is held for %d blockers, and says %v", row["id"], open, holds)
		}
		for _, h := range holds {
			h := h.(map[string]any)
			if h["reason"] != held[row["id"].(string)] || h["blocking"] != true || h["clear"] == nil || h["since"] == nil {
				m.fail("task %v is held for %v, and says %v", row["id"], held[row["id"].(string)], h)
			}
			args := h["clear"].(map[string]any)["args"].(map[string]any)
			if b, ok := args["blockerId"].(string); ok && m.was.blockers[b].State != "open" {
				m.fail("a blocker that is closed holds a task: %v", h)
			}
		}
		delete(held, row["id"].(string))
	}
	if len(held) > 0 {
		m.fail("tasks that are held and not listed: %v", held)
	}
}
