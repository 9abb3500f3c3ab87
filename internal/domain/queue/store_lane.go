package queue

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

const laneColumns = `l.account_id, l.repo_id, l.template, l.priority, l.ready, l.place, l.head_at`

var (
	// selectLanes lists the lanes with ready tasks in enabled repositories that lack no
	// permission, the next to be served first; unless $2, only those of tasks of kind ci.
	selectLanes = db.Q[lane](`SELECT ` + laneColumns + ` FROM queue_lanes l JOIN repos r ON r.id = l.repo_id AND r.enabled AND r.lacks = ''
		WHERE l.account_id = $1 AND l.ready > 0 AND (l.template = '' OR $2)
		ORDER BY l.place, l.head_at, l.repo_id, l.template, l.priority LIMIT $3`)
	// selectAllLanes lists the lanes of all repositories; selectFleet says why the cast.
	selectAllLanes = db.Q[lane](`SELECT ` + laneColumns + ` FROM queue_lanes l WHERE l.account_id = CAST($1 AS TEXT) AND l.ready > 0
		ORDER BY l.place, l.head_at, l.repo_id, l.template, l.priority`).Kept()
	// selectBegins lists how many points each repository has spent, and under no repository
	// where one comes in that has had no turn: what openLane takes the larger of.
	selectBegins = db.Q[begin](`SELECT '' AS repo_id, clock + 50 AS spent FROM queue_depths WHERE account_id = $1
		UNION ALL SELECT repo_id, MAX(place + priority) FROM queue_lanes WHERE account_id = $1 GROUP BY repo_id`)

	// growLane adds to a lane that has ready tasks. openLane adds to a lane that may
	// have none: the lane comes in where the others are now, or behind them if its
	// repository has had more turns than the others.
	growLane = db.SWith[laneArgs](`UPDATE queue_lanes SET ready = ready + :ready,
		head_at = CASE WHEN :head_at < head_at THEN :head_at ELSE head_at END
		WHERE account_id = :account_id AND repo_id = :repo_id AND template = :template AND priority = :priority AND ready > 0`)
	openLane = db.SWith[laneArgs](`INSERT INTO queue_lanes (account_id, repo_id, template, priority, ready, place, head_at)
		VALUES (:account_id, :repo_id, :template, :priority, :ready, COALESCE((SELECT MAX(turn)
		FROM (SELECT clock + 50 AS turn FROM queue_depths WHERE account_id = :account_id UNION ALL SELECT place + priority
		FROM queue_lanes WHERE account_id = :account_id AND repo_id = :repo_id) AS turns), 0) - :priority, :head_at)
		ON CONFLICT (account_id, repo_id, template, priority) DO UPDATE SET ready = queue_lanes.ready + excluded.ready,
		place = CASE WHEN queue_lanes.place < excluded.place THEN excluded.place ELSE queue_lanes.place END, head_at = excluded.head_at`)
	// shrinkLane takes from a lane, whether or not others have emptied it.
	shrinkLane = db.SWith[shrinkLaneArgs](`UPDATE queue_lanes SET ready = ready + :ready
		WHERE account_id = :account_id AND repo_id = :repo_id AND template = :template AND priority = :priority`)

	selectTurn = db.QWith[task.Lane, turn](`SELECT l.place, q.clock FROM queue_lanes l JOIN queue_depths q ON q.account_id = l.account_id
		WHERE l.account_id = :account_id AND l.repo_id = :repo_id AND l.template = :template AND l.priority = :priority`)
	setClock = db.S(`UPDATE queue_depths SET served_at = $2, clock = $3 WHERE account_id = $1`)
	setTurn  = db.S(`UPDATE queue_lanes SET place = $3 - priority WHERE account_id = $1 AND repo_id = $2 AND place + priority < $3`)
	setHead  = db.SWith[task.Lane](`UPDATE queue_lanes SET head_at = COALESCE((SELECT MIN(created_at) FROM tasks
		WHERE account_id = :account_id AND repo_id = :repo_id AND template = :template AND priority = :priority AND ` + task.IsReady +
		`), head_at)
		WHERE account_id = :account_id AND repo_id = :repo_id AND template = :template AND priority = :priority`)
)

type (
	// laneArgs are the parameters of growLane and openLane.
	laneArgs struct {
		task.Lane
		Ready  int64
		HeadAt time.Time
	}
	// shrinkLaneArgs are the parameters of shrinkLane.
	shrinkLaneArgs struct {
		task.Lane
		Ready int64
	}

	// lane is a row of queue_lanes: a lane with how many ready tasks it has, its place,
	// see lane.go, and when its first task was created, in microseconds.
	lane struct {
		task.Lane
		Ready  int64
		Place  int64
		HeadAt int64
	}
	turn  struct{ Place, Clock int64 }
	begin struct {
		RepoID string
		Spent  int64
	}
)

// change is what the change of one task does to its queue, or the sum of several for
// one lane.
type change struct {
	lane    task.Lane
	pending int64
	ready   int64
	created time.Time // of the task, or of the oldest that has become ready
	claimed int64     // how many tasks were claimed
	now     time.Time // when the last of them was
}

// Count takes a change of a task into the depth of its queue and into its lane. It
// subscribes to task.QueueChanged.
func Count(tx *db.Tx, c task.QueueChange) error {
	add := change{lane: c.Lane, pending: c.Pending, ready: c.Ready, created: c.Created}
	if c.Claimed {
		add.claimed, add.now = 1, tx.Now
	}
	changes.Add(tx, add)
	return nil
}

// changes are written at the end of a transaction, because every transaction that
// changes a task of an account wants the account's row of queue_depths. The
// transaction that has locked the row has the account's lanes to itself as well.
var changes = db.CountAtEnd(db.Second, func(tx *db.Tx, all []change) error {
	depths, lanes := map[string]int64{}, map[task.Lane]change{}
	for _, c := range all {
		depths[c.lane.AccountID] += c.pending
		sum, seen := lanes[c.lane]
		if !seen || c.ready > 0 && c.created.Before(sum.created) {
			sum.created = c.created
		}
		sum.ready, sum.claimed, sum.now = sum.ready+c.ready, sum.claimed+c.claimed, latest(sum.now, c.now)
		lanes[c.lane] = sum
	}
	for _, account := range slices.Sorted(maps.Keys(depths)) {
		if _, err := addDepth.Exec(tx, account, depths[account]); err != nil {
			return err
		}
	}
	for _, l := range slices.SortedFunc(maps.Keys(lanes), compareLanes) {
		if err := apply(tx, l, lanes[l]); err != nil {
			return err
		}
	}
	return nil
})

func compareLanes(a, b task.Lane) int {
	return cmp.Or(cmp.Compare(a.AccountID, b.AccountID), cmp.Compare(a.RepoID, b.RepoID), cmp.Compare(a.Template, b.Template),
		cmp.Compare(a.Priority, b.Priority))
}

// apply writes the sum of changes of a lane.
func apply(tx *db.Tx, l task.Lane, c change) error {
	if c.ready > 0 {
		args := laneArgs{Lane: l, Ready: c.ready, HeadAt: c.created}
		n, err := growLane.Exec(tx, args)
		if err == nil && n == 0 {
			_, err = openLane.Exec(tx, args)
		}
		if err != nil {
			return err
		}
	}
	if c.ready < 0 {
		if _, err := shrinkLane.Exec(tx, shrinkLaneArgs{Lane: l, Ready: c.ready}); err != nil {
			return err
		}
	}
	if c.claimed == 0 {
		return nil
	}
	t, ok, err := selectTurn.Maybe(tx, l)
	if err != nil || !ok {
		return err
	}
	var next int64
	for range c.claimed {
		t.Clock, next = t.served(l.Priority)
		t.Place = next - l.Priority
	}
	if _, err := setClock.Exec(tx, l.AccountID, c.now, t.Clock); err != nil {
		return err
	}
	if _, err := setTurn.Exec(tx, l.AccountID, l.RepoID, next); err != nil {
		return err
	}
	_, err = setHead.Exec(tx, l)
	return err
}

// depth returns how many tasks of an account are pending, without what tx changes.
func depth(tx *db.Tx, account string) (int64, error) {
	n, _, err := selectDepth.Maybe(tx, account)
	for c := range changes.Unwritten(tx) {
		if c.lane.AccountID == account {
			n += c.pending
		}
	}
	return n, err
}

// added returns how many more tasks of an account are pending than before tx.
func added(tx *db.Tx, account string) (n int64) {
	for _, c := range changes.Added(tx) {
		if c.lane.AccountID == account {
			n += c.pending
		}
	}
	return n
}

// lanesOf returns the lanes of an account, without what tx changes, the next to be
// served first.
func lanesOf(tx *db.Tx, account string) ([]lane, error) {
	lanes, err := selectAllLanes.All(tx, account)
	return withUnwritten(tx, account, lanes, true), err
}

// withUnwritten counts into the lanes of an account, which were read from the
// database, the changes that no row shows yet. Lanes that these open are added only
// if lanes are all that the account has.
func withUnwritten(tx *db.Tx, account string, lanes []lane, all bool) []lane {
	copied := false
	for c := range changes.Unwritten(tx) {
		if c.lane.AccountID != account || c.ready == 0 && c.claimed == 0 {
			continue
		}
		if !copied {
			lanes, copied = slices.Clone(lanes), true // a kept result is everybody's
		}
		found := false
		for i := range lanes {
			l := &lanes[i]
			if l.RepoID != c.lane.RepoID {
				continue
			}
			l.Place += turnCost * c.claimed
			if l.Lane == c.lane {
				l.Ready, found = l.Ready+c.ready, true
			}
		}
		if !found && all && c.ready > 0 {
			n := lane{Lane: c.lane, Ready: c.ready, Place: -c.lane.Priority, HeadAt: db.Micros(c.created)}
			if len(lanes) > 0 {
				n.Place += lanes[0].Place + task.DefaultPriority
			}
			lanes = append(lanes, n)
		}
	}
	if copied {
		slices.SortStableFunc(lanes, func(a, b lane) int { return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.HeadAt, b.HeadAt)) })
	}
	return lanes
}
