package task

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"yardmaster/internal/db"
)

// isReady is what a pending task needs to wait for nothing but a box. It is,
// word by word, the condition of the indexes tasks_ready and tasks_ready_by.
const isReady = `status = 'pending' AND waiting_deps = 0 AND not_before = 0 AND conflict_with IS NULL`

// isWaiting is the rest of the pending ones, the condition of tasks_waiting.
const isWaiting = `status = 'pending' AND (waiting_deps > 0 OR not_before > 0 OR conflict_with IS NOT NULL)`

const (
	laneColumns  = `l.account_id, l.repo_id, l.template, l.priority, l.ready, l.place, l.head_at`
	freedColumns = `id, account_id, repo_id, template, priority, created_at, (` + isReady + `) AS ready`
)

var (
	selectWasReady = db.Q[bool](`SELECT TRUE FROM tasks WHERE account_id = $1 AND id = $2 AND ` + isReady)

	selectDepth = db.Q[int64](`SELECT pending FROM queue_depths WHERE account_id = $1`).Kept()
	// selectQueues lists the accounts that have a queue, the deepest first.
	selectQueues = db.Q[queue](`SELECT account_id, pending FROM queue_depths WHERE pending > 0 ORDER BY pending DESC, account_id`)
	// countParked counts the held tasks of all accounts by what parked them. CROSS has
	// SQLite go through the accounts, so that it reads an index and not all tasks.
	countParked = db.Q[parkedCount](`SELECT COALESCE(t.failure_kind, '') AS failure_kind, COUNT(*) AS n FROM queue_depths q CROSS JOIN tasks t
		WHERE t.account_id = q.account_id AND t.status = 'held' GROUP BY COALESCE(t.failure_kind, '')`)
	addDepth = db.S(`INSERT INTO queue_depths (account_id, pending) VALUES ($1, $2)
		ON CONFLICT (account_id) DO UPDATE SET pending = queue_depths.pending + excluded.pending`)

	// selectLanes lists the lanes that have tasks in repositories that are
	// enabled, the next to be served first; those of checks only unless $2.
	selectLanes = db.Q[lane](`SELECT ` + laneColumns + ` FROM queue_lanes l JOIN repos r ON r.id = l.repo_id AND r.enabled
		WHERE l.account_id = $1 AND l.ready > 0 AND (l.template = '' OR $2)
		ORDER BY l.place, l.head_at, l.repo_id, l.template, l.priority LIMIT $3`)
	// selectAllLanes lists those of all repositories; for the cast see selectFleet.
	selectAllLanes = db.Q[lane](`SELECT ` + laneColumns + ` FROM queue_lanes l WHERE l.account_id = CAST($1 AS TEXT) AND l.ready > 0
		ORDER BY l.place, l.head_at, l.repo_id, l.template, l.priority`).Kept()

	// shiftLane is for a lane that has tasks; openLane for one that may have
	// none: it comes in where the others are now, or behind that if its
	// repository has had more than its turns.
	shiftLane = db.SWith[shiftLaneArgs](`UPDATE queue_lanes SET ready = ready + :ready,
		head_at = CASE WHEN :head_at < head_at THEN :head_at ELSE head_at END
		WHERE account_id = :account_id AND repo_id = :repo_id AND template = :template AND priority = :priority AND ready > 0`)
	openLane = db.SWith[openLaneArgs](`INSERT INTO queue_lanes (account_id, repo_id, template, priority, ready, place, head_at)
		VALUES (:account_id, :repo_id, :template, :priority, :ready, COALESCE((SELECT MAX(turn)
		FROM (SELECT clock + 50 AS turn FROM queue_depths WHERE account_id = :account_id UNION ALL SELECT place + priority
		FROM queue_lanes WHERE account_id = :account_id AND repo_id = :repo_id) AS turns), 0) - :priority, :head_at)
		ON CONFLICT (account_id, repo_id, template, priority) DO UPDATE SET ready = queue_lanes.ready + excluded.ready,
		place = CASE WHEN queue_lanes.place < excluded.place THEN excluded.place ELSE queue_lanes.place END, head_at = excluded.head_at`)
	// countOut takes from a lane, whatever has become of it.
	countOut = db.SWith[countOutArgs](`UPDATE queue_lanes SET ready = ready + :ready
		WHERE account_id = :account_id AND repo_id = :repo_id AND template = :template AND priority = :priority`)

	selectTurn = db.QWith[lane, turn](`SELECT l.place, q.clock FROM queue_lanes l JOIN queue_depths q ON q.account_id = l.account_id
		WHERE l.account_id = :account_id AND l.repo_id = :repo_id AND l.template = :template AND l.priority = :priority`)
	setClock = db.S(`UPDATE queue_depths SET served_at = $2, clock = $3 WHERE account_id = $1`)
	setTurn  = db.S(`UPDATE queue_lanes SET place = $3 - priority WHERE account_id = $1 AND repo_id = $2 AND place + priority < $3`)
	setHead  = db.SWith[lane](`UPDATE queue_lanes SET head_at = COALESCE((SELECT MIN(created_at) FROM tasks
		WHERE account_id = :account_id AND repo_id = :repo_id AND template = :template AND priority = :priority AND ` + isReady + `), head_at) WHERE account_id = :account_id AND repo_id = :repo_id AND template = :template
		AND priority = :priority`)

	selectHead = db.QWith[headArgs, Row](`SELECT ` + own + ` FROM tasks
		WHERE account_id = :account_id AND repo_id = :repo_id AND template = :template AND priority = :priority
		AND ` + isReady + ` ORDER BY created_at, id LIMIT :limit`)
	selectHeadBy = db.QWith[headByArgs, Row](`SELECT ` + own + ` FROM tasks
		WHERE account_id = :account_id AND requested_by = :requested_by AND repo_id = :repo_id AND template = :template
		AND priority = :priority AND ` + isReady + ` ORDER BY created_at, id LIMIT :limit`)

	selectHeadOfNobody = db.QWith[headArgs, Row](`SELECT ` + own + ` FROM tasks
		WHERE account_id = :account_id AND requested_by IS NULL AND repo_id = :repo_id AND template = :template
		AND priority = :priority AND ` + isReady + ` ORDER BY created_at, id LIMIT :limit`)

	// countAhead and countAfter tell how deep in its lane a task is, from
	// either end, as far as most.
	countAhead = db.QWith[placeArgs, int64](`SELECT COUNT(*) FROM (SELECT 1 AS one FROM tasks
		WHERE account_id = :account_id AND repo_id = :repo_id AND template = :template AND priority = :priority
		AND ` + isReady + ` AND (created_at, id) < (:created_at, :id) LIMIT :most) AS ahead`)
	countAfter = db.QWith[placeArgs, int64](`SELECT COUNT(*) FROM (SELECT 1 AS one FROM tasks
		WHERE account_id = :account_id AND repo_id = :repo_id AND template = :template AND priority = :priority
		AND ` + isReady + ` AND (created_at, id) >= (:created_at, :id) LIMIT :most) AS after`)

	// selectReadyFrom lists the ready tasks that are as new as one, the newest
	// first.
	selectReadyFrom = db.QWith[selectReadyFromArgs, waiter](`SELECT repo_id, template, priority, created_at, id FROM tasks
		WHERE account_id = :account_id AND ` + isReady + ` AND (created_at, id) >= (:created_at, :id) ORDER BY created_at DESC, id DESC LIMIT :limit`)

	// countReadyBy is for accounts that members' own boxes serve.
	countReadyBy = db.Q[crowd](`SELECT repo_id, template, priority, requested_by, TRUE AS told_apart, FALSE AS waits, FALSE AS later, NULL AS conflict_with, COUNT(*) AS n,
		MIN(queued_at) AS queued, MIN(updated_at) AS updated, NULL AS not_before FROM tasks WHERE account_id = $1 AND ` + isReady + `
		GROUP BY repo_id, template, priority, requested_by`)
	countWaiting = db.Q[crowd](`SELECT repo_id, template, 0 AS priority, NULL AS requested_by, FALSE AS told_apart, (waiting_deps > 0) AS waits, (not_before > $2) AS later, conflict_with,
		COUNT(*) AS n, MIN(queued_at) AS queued, MIN(updated_at) AS updated, MAX(not_before) AS not_before FROM tasks WHERE account_id = $1 AND ` + isWaiting + `
		GROUP BY repo_id, template, (waiting_deps > 0), (not_before > $2), conflict_with`)
	selectWaiting = db.Q[Row](`SELECT ` + own + ` FROM tasks WHERE account_id = $1 AND ` + isWaiting + ` ORDER BY created_at, id LIMIT $2`)

	// selectDue and selectNextWake name the index tasks_later by its condition.
	selectDue = db.Q[string](`SELECT id FROM tasks WHERE account_id = $1 AND status = 'pending' AND not_before > 0 AND not_before <= $2
		ORDER BY not_before LIMIT 64`)
	wakeUp         = db.Q[freed](`UPDATE tasks SET not_before = 0 WHERE account_id = $1 AND id = $2 AND status = 'pending' AND not_before > 0 RETURNING ` + freedColumns)
	selectNextWake = db.Q[*time.Time](`SELECT MIN(not_before) FROM tasks
		WHERE account_id = $1 AND status = 'pending' AND not_before > 0 AND not_before > $2`)

	selectOpen = db.Q[Row](`SELECT ` + own + ` FROM tasks WHERE repo_id = $1 AND status IN ('claimed', 'running', 'awaiting_ci', 'awaiting_review', 'mergeable')
		ORDER BY claimed_at, id LIMIT $2`)
	clearBehind = db.Q[freed](`UPDATE tasks SET conflict_with = NULL, conflict_at = NULL, conflict_paths = '[]' WHERE conflict_with = $1
		RETURNING ` + freedColumns)
	clearInRepo = db.Q[freed](`UPDATE tasks SET conflict_with = NULL, conflict_at = NULL, conflict_paths = '[]' WHERE repo_id = $1 AND status = 'pending'
		AND conflict_with IS NOT NULL RETURNING ` + freedColumns)

	// The accounts that have a queue for a box that serves more than one, the
	// one that was served longest ago first.
	selectServedByAll  = db.Q[string](`SELECT account_id FROM queue_depths WHERE pending > 0 ORDER BY served_at, account_id`)
	selectServedByUser = db.Q[string](`SELECT m.account_id FROM memberships m JOIN queue_depths q ON q.account_id = m.account_id
		WHERE m.user_id = $1 AND q.pending > 0 ORDER BY q.served_at, m.account_id`)
)

// selectReadyFromArgs are the parameters of selectReadyFrom.
type selectReadyFromArgs struct {
	AccountID string
	CreatedAt time.Time
	ID        string
	Limit     int
}

// headArgs are a lane, and how many of its first tasks are asked for; headByArgs
// of those that one person asked for.
type (
	headArgs struct {
		AccountID, RepoID, Template string
		Priority                    int64
		Limit                       int
	}
	headByArgs struct {
		headArgs
		RequestedBy string
	}
)

// placeArgs are a task that waits in its lane, and how far it is counted.
type placeArgs struct {
	Row
	Most int64
}

// countOutArgs are the parameters of countOut.
type countOutArgs struct {
	lane
	Ready int64
}

// openLaneArgs are the parameters of openLane.
type openLaneArgs struct {
	lane
	Ready  int64
	HeadAt time.Time
}

// shiftLaneArgs are the parameters of shiftLane.
type shiftLaneArgs struct {
	lane
	Ready  int64
	HeadAt time.Time
}

type (
	// lane is the ready tasks of one repository, template and priority.
	lane struct {
		AccountID string
		RepoID    string
		Template  string
		Priority  int64
		Ready     int64
		Place     int64
		HeadAt    int64
	}
	turn struct{ Place, Clock int64 }

	queue struct {
		AccountID string
		Pending   int64
	}
	parkedCount struct {
		FailureKind string
		N           int64
	}

	// waiter is a ready task.
	waiter struct {
		RepoID    string
		Template  string
		Priority  int64
		CreatedAt time.Time
		ID        string
	}
	gap struct {
		ID string
		N  int64
	}

	// freed is a task that has one wait less.
	freed struct {
		ID        string
		AccountID string
		RepoID    string
		Template  string
		Priority  int64
		CreatedAt time.Time
		Ready     bool
	}

	// crowd is pending tasks that wait for the same.
	crowd struct {
		RepoID       string
		Template     string
		Priority     int64
		RequestedBy  *string
		ToldApart    bool // by who asked for them
		Waits        bool
		Later        bool
		ConflictWith *string
		N            int64
		Queued       time.Time
		Updated      time.Time
		NotBefore    *time.Time
	}
)

// selectGaps counts, for each of the tasks, the ready ones of its lane from it
// up to the next of them.
func selectGaps(tx *db.Tx, account string, ids []string) (map[string]int64, error) {
	rows, err := db.Select[gap](tx, db.Build(`WITH page AS (SELECT id, repo_id, template, priority, created_at,
			LEAD(created_at) OVER lane AS next_at, LEAD(id) OVER lane AS next_id FROM tasks WHERE account_id = `, account).In("id", ids).
		SQL(` WINDOW lane AS (PARTITION BY repo_id, template, priority ORDER BY created_at, id))
		SELECT p.id, (SELECT COUNT(*) FROM tasks t WHERE t.account_id = `, account).SQL(` AND t.repo_id = p.repo_id AND t.template = p.template AND t.priority = p.priority
			AND t.status = 'pending' AND t.waiting_deps = 0 AND t.not_before = 0 AND t.conflict_with IS NULL
			AND (t.created_at, t.id) >= (p.created_at, p.id) AND (t.created_at, t.id) < (p.next_at, p.next_id)) AS n FROM page p WHERE p.next_at IS NOT NULL`))
	out := map[string]int64{}
	for _, g := range rows {
		out[g.ID] = g.N
	}
	return out, err
}

// A shift is what a change of one task does to its lane and its queue.
type shift struct {
	lane    lane // its key
	pending int64
	ready   int64
	at      time.Time // when the task was made
	served  int64     // 1 if it was claimed
	now     time.Time
}

func (t *Row) lane() lane {
	return lane{AccountID: t.AccountID, RepoID: t.RepoID, Template: t.Template, Priority: t.Priority}
}

func (t *Row) shift(pending int64, ready bool) shift {
	s := shift{lane: t.lane(), pending: pending, at: t.CreatedAt}
	if ready {
		s.ready = 1
	}
	return s
}

// noteFreed counts the tasks that are ready now.
func noteFreed(tx *db.Tx, tasks []freed) {
	for _, f := range tasks {
		if f.Ready {
			shifts.Add(tx, shift{lane: lane{AccountID: f.AccountID, RepoID: f.RepoID, Template: f.Template, Priority: f.Priority}, ready: 1, at: f.CreatedAt})
		}
	}
}

// shifts are made at the end of a transaction: each account's row is one that
// every transaction of the account wants. Whoever has it has the lanes, too.
var shifts = db.AtEnd(db.Second, func(tx *db.Tx, all []shift) error {
	depths, lanes := map[string]int64{}, map[lane]shift{}
	for _, s := range all {
		depths[s.lane.AccountID] += s.pending
		sum, seen := lanes[s.lane]
		if !seen || s.ready > 0 && s.at.Before(sum.at) {
			sum.at = s.at
		}
		sum.ready, sum.served, sum.now = sum.ready+s.ready, sum.served+s.served, latest(sum.now, s.now)
		lanes[s.lane] = sum
	}
	for _, account := range slices.Sorted(maps.Keys(depths)) {
		if _, err := addDepth.Exec(tx, account, depths[account]); err != nil {
			return err
		}
	}
	for _, l := range slices.SortedFunc(maps.Keys(lanes), lane.compare) {
		if err := l.apply(tx, lanes[l]); err != nil {
			return err
		}
	}
	return nil
})

func (l lane) compare(b lane) int {
	return cmp.Or(cmp.Compare(l.AccountID, b.AccountID), cmp.Compare(l.RepoID, b.RepoID), cmp.Compare(l.Template, b.Template), cmp.Compare(l.Priority, b.Priority))
}

func (l lane) apply(tx *db.Tx, s shift) error {
	if s.ready > 0 {
		n, err := shiftLane.Exec(tx, shiftLaneArgs{lane: l, Ready: s.ready, HeadAt: s.at})
		if err == nil && n == 0 {
			_, err = openLane.Exec(tx, openLaneArgs{lane: l, Ready: s.ready, HeadAt: s.at})
		}
		if err != nil {
			return err
		}
	}
	if s.ready < 0 {
		if _, err := countOut.Exec(tx, countOutArgs{lane: l, Ready: s.ready}); err != nil {
			return err
		}
	}
	if s.served == 0 {
		return nil
	}
	t, ok, err := selectTurn.Maybe(tx, l)
	if err != nil || !ok {
		return err
	}
	var next int64
	for range s.served {
		t.Clock, next = t.served(l.Priority)
		t.Place = next - l.Priority
	}
	if _, err := setClock.Exec(tx, l.AccountID, s.now, t.Clock); err != nil {
		return err
	}
	if _, err := setTurn.Exec(tx, l.AccountID, l.RepoID, next); err != nil {
		return err
	}
	_, err = setHead.Exec(tx, l)
	return err
}

// countQueue is how many tasks of an account were pending before what this
// transaction changes.
func countQueue(tx *db.Tx, account string) (int64, error) {
	n, _, err := selectDepth.Maybe(tx, account)
	shifts.Ahead(tx, func(s shift) {
		if s.lane.AccountID == account {
			n += s.pending
		}
	})
	return n, err
}

// lanesOf are the lanes of an account as the transactions before this one
// leave them.
func lanesOf(tx *db.Tx, account string) ([]lane, error) {
	lanes, err := selectAllLanes.All(tx, account)
	return catchUp(tx, account, lanes, true), err
}

// catchUp makes of lanes that were read what the transactions that share this
// one's commit, and come before it, have yet to make of them; those they open
// are added only if all of the account's lanes are there.
func catchUp(tx *db.Tx, account string, lanes []lane, all bool) []lane {
	copied := false
	shifts.Ahead(tx, func(s shift) {
		if s.lane.AccountID != account || s.ready == 0 && s.served == 0 {
			return
		}
		if !copied {
			lanes, copied = slices.Clone(lanes), true // they may be shared
		}
		found := false
		for i := range lanes {
			l := &lanes[i]
			if l.RepoID != s.lane.RepoID {
				continue
			}
			l.Place += turnCost * s.served
			if l.Template == s.lane.Template && l.Priority == s.lane.Priority {
				l.Ready, found = l.Ready+s.ready, true
			}
		}
		if !found && all && s.ready > 0 {
			n := s.lane
			n.Ready, n.Place, n.HeadAt = s.ready, -n.Priority, db.Micros(s.at)
			if len(lanes) > 0 {
				n.Place += lanes[0].Place + defaultPriority
			}
			lanes = append(lanes, n)
		}
	})
	if copied {
		slices.SortStableFunc(lanes, func(a, b lane) int { return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.HeadAt, b.HeadAt)) })
	}
	return lanes
}

// longestWait is the longest that a pending task backs off.
const longestWait = 30 * time.Minute

var pullIn = db.S(`UPDATE tasks SET not_before = $1 WHERE status = 'pending' AND not_before > 0 AND not_before > $2`)

// ClockSetBack ends what pending tasks back off for longer than longestWait.
func ClockSetBack(tx *db.Tx) error {
	_, err := pullIn.Exec(tx, tx.Now, tx.Now.Add(longestWait))
	return err
}
