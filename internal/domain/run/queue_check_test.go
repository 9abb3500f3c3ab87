package run

import (
	"context"
	"time"

	"pgregory.net/rapid"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/protocol"
)

var (
	auditOf = db.Q[struct {
		Object string
		N      int64
	}](`SELECT object, COUNT(*) AS n FROM audit WHERE account_id = $1 GROUP BY object`)
	wrongWaits = db.Q[string](`SELECT t.id FROM tasks t WHERE t.account_id = $1 AND t.status IN ('pending', 'held') AND t.waiting_deps <>
		(SELECT COUNT(*) FROM task_deps d JOIN tasks u ON u.id = d.depends_on WHERE d.task_id = t.id AND u.status NOT IN ('completed', 'merged'))`)
	wrongLanes = db.Q[string](`SELECT l.repo_id FROM queue_lanes l WHERE l.account_id = $1 AND l.ready <> (SELECT COUNT(*) FROM tasks t
		WHERE t.account_id = l.account_id AND t.repo_id = l.repo_id AND t.template = l.template AND t.priority = l.priority
		AND t.status = 'pending' AND t.waiting_deps = 0 AND t.not_before = 0 AND t.conflict_with IS NULL)`)
	lonely = db.Q[string](`SELECT t.id FROM tasks t WHERE t.account_id = $1 AND t.status = 'pending' AND t.waiting_deps = 0 AND t.not_before = 0
		AND t.conflict_with IS NULL AND NOT EXISTS (SELECT 1 FROM queue_lanes l
		WHERE l.account_id = t.account_id AND l.repo_id = t.repo_id AND l.template = t.template AND l.priority = t.priority)`)
	wrongDepth = db.Q[int64](`SELECT q.pending FROM queue_depths q WHERE q.account_id = $1 AND q.pending <>
		(SELECT COUNT(*) FROM tasks WHERE account_id = $1 AND status = 'pending')`)
)

// check holds what must always be true.
func (m *queueModel) check(*rapid.T) {
	m.model.check(m.r)
	if m.broken != nil {
		m.fail("%v", m.broken)
	}
	m.see(func(tx *db.Tx) error {
		for what, q := range map[string]db.Query[string]{"task with wrong waiting_deps": wrongWaits, "lane that counts wrongly": wrongLanes, "task in no lane": lonely} {
			if bad, err := q.All(tx, m.account); err != nil || len(bad) > 0 {
				m.fail("%s: %v %v", what, bad, err)
			}
		}
		if n, wrong, err := wrongDepth.Maybe(tx, m.account); wrong || err != nil {
			m.fail("depth is %d %v", n, err)
		}
		for _, taskID := range m.tasks {
			if t, _, err := task.Get(tx, m.account, taskID); err != nil || t.Status != m.believe[taskID] {
				m.fail("task %s is %s, and was last told to be %s: %v", taskID, t.Status, m.believe[taskID], err)
			}
		}
		return nil
	})
	m.audited()
	m.explained()
}

// audited wants an audit row for each mutation: the moves of a task, and what
// happens to it besides (it was held back, or stuck).
func (m *queueModel) audited() {
	m.see(func(tx *db.Tx) error {
		rows, err := auditOf.All(tx, m.account)
		if err != nil {
			return err
		}
		besides, err := besideMoves.All(tx, m.account)
		if err != nil {
			return err
		}
		n := map[string]int64{}
		for _, r := range rows {
			n[r.Object] = r.N
		}
		for _, r := range besides {
			n[r.Object] -= r.N
		}
		for _, taskID := range m.tasks {
			if n[taskID] != m.records[taskID] {
				m.fail("task %s has %d audit rows of its %d moves", taskID, n[taskID], m.records[taskID])
			}
		}
		return nil
	})
}

var besideMoves = db.Q[struct {
	Object string
	N      int64
}](`SELECT object, COUNT(*) AS n FROM audit WHERE account_id = $1 AND kind IN ('task.held_back', 'task.stuck', 'task.unstuck') GROUP BY object`)

// explained wants each pending task to be claimable by a box, or to say why not.
func (m *queueModel) explained() {
	n := m.nodes[0]
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
			b, ok, err := task.FindBox(tx, box)
			if err != nil {
				return err
			}
			o, err := n.Tasks.Look(tx, box)
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

// drain lets everything end: nothing waits for ever.
func (m *queueModel) drain() {
	m.do(func(tx *db.Tx) error {
		for _, r := range m.repos {
			if _, err := enableRepo.Exec(tx, r, true); err != nil {
				return err
			}
		}
		for _, b := range m.boxes {
			if _, err := setFleet.Exec(tx, b, 5, "online", "enrolled"); err != nil {
				return err
			}
		}
		return nil
	})
	for range 200 {
		m.pass(time.Hour)
		if err := m.nodes[0].Scan(context.Background()); err != nil {
			m.fail("scan: %v", err)
		}
		left := 0
		for _, taskID := range m.tasks {
			if m.believe[taskID].Terminal() {
				continue
			}
			left++
			m.do(func(tx *db.Tx) error {
				t, _, err := task.Lock(tx, m.account, taskID)
				if err != nil {
					return err
				}
				switch t.Status {
				case task.Held:
					return m.nodes[0].Tasks.Release(tx, &t)
				case task.AwaitingCI, task.Mergeable:
					return m.nodes[0].Tasks.Merged(tx, &t)
				}
				return nil
			})
		}
		if left == 0 {
			return
		}
		m.fixture.Service = m.nodes[0].Service
		m.claimAs(m.boxes[0], id.New())
		for _, a := range m.attempts {
			if m.row(a).EndedAt == nil {
				m.say(a, []protocol.Event{finished(protocol.Finished{State: protocol.Succeeded, Report: "done"})}, 0)
			}
		}
	}
	_, status := m.call(m.nodes[0], "GET", "/v1/queue/status", nil)
	m.fail("not everything came to an end: %v", status)
}
