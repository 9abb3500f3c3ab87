package app

import (
	"reflect"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

type (
	taskRow struct {
		ID, RepoID      string
		Kind            string
		Status          task.Status
		PRID            *string `db:"pr_id"`
		StackedOn       *string
		Attempt         int64
		RunID, BoxID    *string
		PlanID, GroupID *string
		WaitingDeps     int64
		Stuck           bool
		Charged         int64
		Uncharged       int64
		FailureKind     *string
		BudgetMicros    *int64
		UpdatedAt       time.Time
		StopScope       *string
		StopRef         *string
		StopPeriod      *string
		StopMicros      *int64
	}
	runRow struct {
		ID, TaskID, BoxID, State string
		Attempt, CommittedSeq    int64
		Outcome                  *string
		Halting                  string
		CreatedAt                time.Time
		EndedAt                  *time.Time
	}
	blockerRow struct{ ID, TaskID, RunID, State, Declared string }
	boxRow     struct{ ID, State string }
	planRow    struct {
		ID, RepoID, Status       string
		ApprovedAt               *time.Time
		CancelledAt, FailedAt    *time.Time
		Source                   string
		Merged, Total, HeldCount int64
	}
	groupRow struct{ ID, PlanID, Closed string }
	edgeRow  struct{ PlanID, GroupID, UpstreamID, Kind string }
	meterRow struct {
		Scope, Ref, Period string
		Reserved, Spent    int64
	}
	limitRow struct {
		Scope, Ref string
		Micros     int64
	}
	reservationRow struct {
		SessionID, Node string
		Amount, Used    int64
		Meters          db.JSON[[]struct{ S, R, P string }]
		WrittenOff      bool
		ExpiresAt       time.Time
	}
	link struct {
		Seq                  int64
		Kind, Object         string
		PrevHash, Hash, Data string
	}
	eventRow struct {
		Seq        int64
		Kind, Data string
	}
)

const links = `SELECT seq, kind, object, prev_hash, hash, data FROM audit WHERE account_id = $1 `

var (
	tasksOf = db.Q[taskRow](`SELECT t.id, t.repo_id, t.kind, t.status, t.pr_id, t.stacked_on, t.attempt, t.run_id, t.box_id, t.plan_id,
		t.group_id, t.waiting_deps, t.stuck, t.charged, t.uncharged,
		t.failure_kind, t.budget_micros, t.updated_at, s.scope AS stop_scope, s.ref AS stop_ref, s.period AS stop_period,
		s.micros AS stop_micros
		FROM tasks t LEFT JOIN budget_stops s ON s.task_id = t.id WHERE t.account_id = $1 ORDER BY t.id`)
	runsOf = db.Q[runRow](`SELECT r.id, r.task_id, r.box_id, r.state, r.attempt, r.committed_seq, r.outcome, r.halting, r.created_at,
		r.ended_at
		FROM tasks t JOIN runs r ON r.task_id = t.id WHERE t.account_id = $1 ORDER BY r.id`)
	boxesOf    = db.Q[boxRow](`SELECT id, state FROM boxes WHERE account_id = $1`)
	blockersOf = db.Q[blockerRow](`SELECT id, task_id, run_id, state, declared FROM blockers WHERE account_id = $1 ORDER BY id`)
	plansOf    = db.Q[planRow](`SELECT p.id, p.repo_id, g.status, p.approved_at, p.cancelled_at, p.failed_at, p.source, g.merged, g.total,
		g.held_count
		FROM plan_progress g JOIN plans p ON p.id = g.plan_id WHERE g.account_id = $1 ORDER BY p.id`)
	groupsOf = db.Q[groupRow](`SELECT g.id, g.plan_id, g.closed FROM plan_progress p JOIN plan_groups g ON g.plan_id = p.plan_id
		WHERE p.account_id = $1 ORDER BY g.id`)
	edgesOf = db.Q[edgeRow](`SELECT e.plan_id, e.group_id, e.upstream_id, e.kind FROM plan_progress p
		JOIN plan_edges e ON e.plan_id = p.plan_id
		WHERE p.account_id = $1 ORDER BY e.group_id, e.upstream_id`)
	metersOf = db.Q[meterRow](`SELECT scope, ref, period, reserved, spent FROM budgets WHERE account_id = $1
		ORDER BY scope, ref, period`)
	capsOf         = db.Q[limitRow](`SELECT scope, ref, micros FROM budget_limits WHERE account_id = $1`)
	reservationsOf = db.Q[reservationRow](`SELECT v.session_id, v.node, v.amount, v.used, v.meters, v.written_off, v.expires_at FROM tasks t
		JOIN runs r ON r.task_id = t.id
		JOIN sessions s ON s.run_id = r.id JOIN reservations v ON v.session_id = s.id WHERE t.account_id = $1
		ORDER BY v.session_id, v.node`)
	reservedBy = db.Q[string](`SELECT session_id FROM reservations WHERE node = $1`)
	newestLink = db.Q[link](links + `ORDER BY seq DESC LIMIT 1`)
	newLinks   = db.Q[link](links + `AND seq > $2 + 0 ORDER BY seq`)
	eventsOf   = db.Q[eventRow](`SELECT seq, kind, data FROM run_events WHERE run_id = $1 AND seq > $2 + 0 ORDER BY seq`)

	untrue = db.Q[string](wrongWaits + ` UNION ALL ` + wrongLanes + ` UNION ALL ` + lonely + ` UNION ALL ` + wrongDepth + ` UNION ALL ` +
		looseEdges)
)

// What is wrong in the database itself, in words.
const (
	wrongWaits = `SELECT 'task with wrong waiting_deps ' || t.id AS wrong FROM tasks t
		WHERE t.account_id = $1 AND t.status IN ('pending', 'held')
		AND t.waiting_deps <> (SELECT COUNT(*) FROM task_deps d JOIN tasks u ON u.id = d.depends_on
		WHERE d.task_id = t.id AND u.status NOT IN ('completed', 'merged'))`
	wrongLanes = `SELECT 'lane that counts wrongly ' || l.repo_id FROM queue_lanes l
		WHERE l.account_id = $1 AND l.ready <> (SELECT COUNT(*) FROM tasks t
		WHERE t.account_id = l.account_id AND t.repo_id = l.repo_id AND t.template = l.template AND t.priority = l.priority
		AND t.status = 'pending' AND t.waiting_deps = 0 AND t.not_before = 0 AND t.conflict_with IS NULL)`
	lonely = `SELECT 'task in no lane ' || t.id FROM tasks t WHERE t.account_id = $1 AND t.status = 'pending' AND t.waiting_deps = 0
		AND t.not_before = 0
		AND t.conflict_with IS NULL AND NOT EXISTS (SELECT 1 FROM queue_lanes l
		WHERE l.account_id = t.account_id AND l.repo_id = t.repo_id AND l.template = t.template AND l.priority = t.priority)`
	wrongDepth = `SELECT 'queue of depth ' || CAST(q.pending AS TEXT) FROM queue_depths q WHERE q.account_id = $1 AND q.pending <>
		(SELECT COUNT(*) FROM tasks t WHERE t.account_id = $1 AND t.status = 'pending')`
	// looseEdges are edges of plans that the tasks know nothing of.
	looseEdges = `SELECT 'task without an edge of its group ' || d.id FROM plan_progress p JOIN plan_edges e ON e.plan_id = p.plan_id
		JOIN plan_groups g ON g.id = e.group_id JOIN tasks d ON d.group_id = e.group_id JOIN tasks u ON u.group_id = e.upstream_id
		WHERE p.account_id = $1 AND g.closed = '' AND d.status IN ('pending', 'held')
		AND NOT EXISTS (SELECT 1 FROM task_deps x WHERE x.task_id = d.id AND x.depends_on = u.id)`
)

// state is all that an account's work is.
type state struct {
	tasks        map[string]taskRow
	runs         map[string]runRow
	boxes        map[string]string // their states
	blockers     map[string]blockerRow
	asked        []blockerRow
	plans        map[string]planRow
	groups       []groupRow
	edges        []edgeRow
	meters       []meterRow
	limits       []limitRow
	reservations []reservationRow
	pullState
}

// same tells whether nothing that a box can change differs.
func (s state) same(o state) bool {
	return reflect.DeepEqual(s.tasks, o.tasks) && reflect.DeepEqual(s.runs, o.runs) && reflect.DeepEqual(s.blockers, o.blockers) &&
		reflect.DeepEqual(s.plans, o.plans) && reflect.DeepEqual(s.meters, o.meters) &&
		reflect.DeepEqual(s.pullState, o.pullState)
}

func (m *walk) read() (s state) {
	m.see(func(tx *db.Tx) (err error) { s, err = m.load(tx); return err })
	return s
}

func byID[T any](rows []T, id func(T) string) map[string]T {
	out := make(map[string]T, len(rows))
	for _, r := range rows {
		out[id(r)] = r
	}
	return out
}

func (m *walk) load(tx *db.Tx) (s state, err error) {
	tasks, err := tasksOf.All(tx, m.account)
	if err != nil {
		return s, err
	}
	runs, err := runsOf.All(tx, m.account)
	if err != nil {
		return s, err
	}
	if s.asked, err = blockersOf.All(tx, m.account); err != nil {
		return s, err
	}
	boxes, err := boxesOf.All(tx, m.account)
	if err != nil {
		return s, err
	}
	s.boxes = map[string]string{}
	for _, b := range boxes {
		s.boxes[b.ID] = b.State
	}
	plans, err := plansOf.All(tx, m.account)
	if err != nil {
		return s, err
	}
	s.tasks = byID(tasks, func(t taskRow) string { return t.ID })
	s.runs = byID(runs, func(r runRow) string { return r.ID })
	s.blockers = byID(s.asked, func(b blockerRow) string { return b.ID })
	s.plans = byID(plans, func(p planRow) string { return p.ID })
	if len(plans) > 0 {
		if s.groups, err = groupsOf.All(tx, m.account); err != nil {
			return s, err
		}
		if s.edges, err = edgesOf.All(tx, m.account); err != nil {
			return s, err
		}
	}
	if s.meters, err = metersOf.All(tx, m.account); err != nil {
		return s, err
	}
	if s.limits, err = capsOf.All(tx, m.account); err != nil {
		return s, err
	}
	if len(s.meters) > 0 {
		if s.reservations, err = reservationsOf.All(tx, m.account); err != nil {
			return s, err
		}
	}
	s.pullState, err = loadPulls(tx, m.account)
	return s, err
}
