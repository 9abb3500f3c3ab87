package task

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/op"
	"yardmaster/internal/protocol"
)

const columns = `id, account_id, repo_id, kind, sink, title, problem, status, attempt, charged, uncharged, max_attempts,
	failure_kind, failure, priority, stuck, not_before, waiting_deps, queued_at, run_id, box_id, branch, base_sha,
	wip_sha, wip_paths, wip_at, pr_id, checkout_sha, files, labels, guidance, template, command, confidence,
	budget_micros, result_schema, ask_id, created_by, created_at, updated_at, claimed_at, started_at, finished_at`

// queueHead is since when the next task in the queue of an account a has waited.
const queueHead = `(SELECT t.queued_at FROM tasks t WHERE t.account_id = a.account_id AND t.status = 'pending' ORDER BY t.priority DESC, t.queued_at, t.id LIMIT 1)`

// queueOrder is the order in which tasks are claimed.
const queueOrder = `priority DESC, queued_at, id`

var (
	insertTask = db.S(`INSERT INTO tasks (` + columns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
		$14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36,
		$37, $38, $39, $40, $41, $42, $43)`)

	// updateTask writes whatever may change in a task's life, provided that it
	// is still in the state it was read in.
	updateTask = db.S(`UPDATE tasks SET status = $4, attempt = $5, charged = $6, uncharged = $7, failure_kind = $8,
		failure = $9, stuck = $10, not_before = $11, waiting_deps = $12, queued_at = $13, run_id = $14, box_id = $15,
		base_sha = $16, wip_sha = $17, wip_paths = $18, wip_at = $19, pr_id = $20, guidance = $21, updated_at = $22,
		claimed_at = $23, started_at = $24, finished_at = $25
		WHERE account_id = $1 AND id = $2 AND status = $3`)

	selectTask = db.Q[Row](`SELECT ` + columns + ` FROM tasks WHERE account_id = $1 AND id = $2`)

	selectQueue = db.Q[string](`SELECT id FROM tasks WHERE account_id = $1 AND status = 'pending' ORDER BY ` + queueOrder)
	selectDepth = db.Q[int64](`SELECT pending FROM queue_depths WHERE account_id = $1`)
	addDepth    = db.S(`INSERT INTO queue_depths (account_id, pending) VALUES ($1, $2)
		ON CONFLICT (account_id) DO UPDATE SET pending = queue_depths.pending + excluded.pending`)

	selectPending = db.Q[Row](`SELECT ` + columns + ` FROM tasks WHERE account_id = $1 AND status = 'pending' ORDER BY ` + queueOrder)

	// countBelow is how many are claimed after every task of a priority.
	countBelow = db.Q[int64](`SELECT COUNT(*) FROM tasks WHERE account_id = $1 AND status = 'pending' AND priority < $2`)

	// selectFirst is a sample of the queue, from its head.
	selectFirst = db.Q[Row](`SELECT ` + columns + ` FROM tasks WHERE account_id = $1 AND status = 'pending' ORDER BY ` + queueOrder + ` LIMIT 200`)

	// selectReady pages through the tasks whose own waits are over, those that
	// need no seat unless $6. The key of the row before is ($3, $4, $5); a
	// priority above all begins.
	selectReady = db.Q[Row](`SELECT ` + columns + ` FROM tasks
		WHERE account_id = $1 AND status = 'pending' AND waiting_deps = 0 AND not_before <= $2 AND (kind = 'ci' OR $6)
		AND (priority < $3 OR priority = $3 AND (queued_at, id) > ($4, $5))
		ORDER BY ` + queueOrder + ` LIMIT $7`)

	// selectNextWake names the index tasks_later by its condition.
	selectNextWake = db.Q[*time.Time](`SELECT MIN(not_before) FROM tasks
		WHERE account_id = $1 AND status = 'pending' AND not_before > 0 AND not_before > $2`)

	selectSeatUse = db.Q[inFlight](`SELECT COUNT(*) AS n, MAX(claimed_at) AS newest FROM tasks
		WHERE account_id = $1 AND status IN ('claimed', 'running') AND kind <> 'ci'`)

	selectBoxUse = db.Q[boxUse](`SELECT box_id, COUNT(*) AS n, MAX(claimed_at) AS newest FROM tasks
		WHERE status IN ('claimed', 'running') AND box_id IS NOT NULL GROUP BY box_id`)

	countHeld = db.Q[int64](`SELECT COUNT(*) FROM tasks WHERE status IN ('claimed', 'running') AND box_id = $1`)

	selectFleet = db.Q[boxRow](`SELECT ` + boxColumns + ` FROM boxes WHERE state <> 'revoked' AND (owner_target = 'shared'
		OR owner_target = 'org' AND COALESCE(owner_id, account_id) = $1
		OR owner_target = 'user' AND owner_id IN (SELECT user_id FROM memberships WHERE account_id = $1))`)

	selectBox = db.Q[boxRow](`SELECT ` + boxColumns + ` FROM boxes WHERE id = $1 AND state <> 'revoked'`)

	// The accounts that have work for a box that serves more than one, the one
	// whose next task has waited longest first. Neither reads more of a queue
	// than its head: the first goes from account to account through the index.
	selectServedByAll = db.Q[string](`WITH RECURSIVE a (account_id) AS (
			SELECT MIN(account_id) FROM tasks WHERE status = 'pending'
			UNION ALL
			SELECT (SELECT MIN(t.account_id) FROM tasks t WHERE t.status = 'pending' AND t.account_id > a.account_id) FROM a
			WHERE a.account_id IS NOT NULL)
		SELECT account_id FROM a WHERE account_id IS NOT NULL ORDER BY ` + queueHead + `, account_id`)
	selectServedByUser = db.Q[string](`SELECT account_id FROM memberships a WHERE user_id = $1 AND ` + queueHead + ` IS NOT NULL
		ORDER BY ` + queueHead + `, account_id`)

	lockAccount = db.Q[string](`SELECT id FROM accounts WHERE id = $1`).ForUpdate()
	lockBox     = db.Q[string](`SELECT id FROM boxes WHERE id = $1`).ForUpdate()

	insertDep = db.S(`INSERT INTO task_deps (task_id, depends_on) VALUES ($1, $2)`)

	selectUpstream = db.Q[upstream](`SELECT t.id, t.status FROM task_deps d JOIN tasks t ON t.id = d.depends_on
		WHERE d.task_id = $1 ORDER BY t.id`)

	selectDependents = db.Q[string](`SELECT t.id FROM task_deps d JOIN tasks t ON t.id = d.task_id
		WHERE d.depends_on = $1 ORDER BY t.id`)

	// dependencyDone needs no state: a failed dependent counts afresh when it
	// is released.
	dependencyDone = db.S(`UPDATE tasks SET waiting_deps = waiting_deps - 1
		WHERE waiting_deps > 0 AND id IN (SELECT task_id FROM task_deps WHERE depends_on = $1)`)

	insertEscalation = db.S(`INSERT INTO escalations (id, account_id, repo_id, category, title, body, reason, created_by, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`)
)

const boxColumns = `id, account_id, owner_target, owner_id, state, presence, slots, agents, isolation, last_beat_at`

type (
	inFlight struct {
		N      int64
		Newest *time.Time
	}
	boxUse struct {
		BoxID  string
		N      int64
		Newest *time.Time
	}
	boxRow struct {
		ID          string
		AccountID   string
		OwnerTarget string
		OwnerID     *string
		State       string
		Presence    string
		Slots       int64
		Agents      db.JSON[[]protocol.AgentInfo]
		Isolation   db.JSON[[]string]
		LastBeatAt  *time.Time
	}
	upstream struct {
		ID     string
		Status Status
	}
	edge  struct{ TaskID, DependsOn string }
	spent struct {
		TaskID string
		Micros int64
	}
)

func (r boxRow) box() Box {
	b := Box{ID: r.ID, AccountID: r.AccountID, Target: r.OwnerTarget, Enrolled: r.State == "enrolled", Online: r.Presence == "online",
		Slots: r.Slots, Isolation: r.Isolation.V}
	if r.OwnerID != nil {
		b.OwnerID = *r.OwnerID
	} else if r.OwnerTarget == "org" {
		b.OwnerID = r.AccountID
	}
	for _, a := range r.Agents.V {
		b.Agents = append(b.Agents, a.Name)
	}
	if r.LastBeatAt != nil {
		b.LastBeat = *r.LastBeatAt
	}
	return b
}

func insert(tx *db.Tx, t *Row) error {
	_, err := insertTask.Exec(tx, t.ID, t.AccountID, t.RepoID, t.Kind, t.Sink, t.Title, t.Problem, t.Status, t.Attempt, t.Charged,
		t.Uncharged, t.MaxAttempts, t.FailureKind, t.Failure, t.Priority, t.Stuck, t.NotBefore, t.WaitingDeps, t.QueuedAt, t.RunID,
		t.BoxID, t.Branch, t.BaseSHA, t.WIPSHA, t.WIPPaths, t.WIPAt, t.PRID, t.CheckoutSHA, t.Files, t.Labels, t.Guidance, t.Template,
		t.Command, t.Confidence, t.BudgetMicros, t.ResultSchema, t.AskID, t.CreatedBy, t.CreatedAt, t.UpdatedAt, t.ClaimedAt,
		t.StartedAt, t.FinishedAt)
	if err == nil && t.Status == Pending {
		depths.Add(tx, depth{t.AccountID, 1})
	}
	return err
}

// store writes t, which was read in state from.
func store(tx *db.Tx, t *Row, from Status) error {
	t.UpdatedAt = tx.Now
	n, err := updateTask.Exec(tx, t.AccountID, t.ID, from, t.Status, t.Attempt, t.Charged, t.Uncharged, t.FailureKind, t.Failure,
		t.Stuck, t.NotBefore, t.WaitingDeps, t.QueuedAt, t.RunID, t.BoxID, t.BaseSHA, t.WIPSHA, t.WIPPaths, t.WIPAt, t.PRID,
		t.Guidance, t.UpdatedAt, t.ClaimedAt, t.StartedAt, t.FinishedAt)
	if err == nil && n != 1 {
		err = fmt.Errorf("task %s is no longer %s", t.ID, from)
	}
	if err == nil && (from == Pending) != (t.Status == Pending) {
		change := depth{t.AccountID, 1}
		if from == Pending {
			change.by = -1
		}
		depths.Add(tx, change)
	}
	return err
}

// depth is how many more tasks of an account are pending after a change.
type depth struct {
	account string
	by      int64
}

// depths are kept at the end of a transaction: each account's row is one that
// every transaction of the account wants.
var depths = db.AtEnd(func(tx *db.Tx, all []depth) error {
	sums := map[string]int64{}
	for _, d := range all {
		sums[d.account] += d.by
	}
	for _, account := range slices.Sorted(maps.Keys(sums)) {
		if sums[account] == 0 {
			continue
		}
		if _, err := addDepth.Exec(tx, account, sums[account]); err != nil {
			return err
		}
	}
	return nil
})

// countQueue is how many tasks of an account were pending before what this
// transaction changes.
func countQueue(tx *db.Tx, account string) (int64, error) {
	n, _, err := selectDepth.Maybe(tx, account)
	return n, err
}

// Lock reads a task of an account and keeps others from changing it until the
// transaction ends. A task is locked before its run.
func Lock(tx *db.Tx, account, taskID string) (Row, bool, error) {
	return selectTask.ForUpdate().Maybe(tx, account, taskID)
}

// Get reads a task of an account.
func Get(tx *db.Tx, account, taskID string) (Row, bool, error) {
	return selectTask.Maybe(tx, account, taskID)
}

// find is Get for a caller: an id that is unknown, foreign or malformed is the
// same 404.
func find(tx *db.Tx, taskID string, lock bool) (Row, error) {
	if !id.Valid(taskID) {
		return Row{}, fault.Missing("task")
	}
	q := selectTask
	if lock {
		q = q.ForUpdate()
	}
	t, ok, err := q.Maybe(tx, tx.Account, taskID)
	if err == nil && !ok {
		err = fault.Missing("task")
	}
	return t, err
}

// upstreams lists, by task, what the tasks depend on.
func upstreams(tx *db.Tx, taskIDs []string) (map[string][]string, error) {
	rows, err := db.Select[edge](tx, db.Build(`SELECT task_id, depends_on FROM task_deps WHERE TRUE`).In("task_id", taskIDs).SQL(" ORDER BY depends_on"))
	out := map[string][]string{}
	for _, r := range rows {
		out[r.TaskID] = append(out[r.TaskID], r.DependsOn)
	}
	return out, err
}

// spendings is what the sessions of each task cost, as far as they had a price.
func spendings(tx *db.Tx, taskIDs []string) (map[string]int64, error) {
	rows, err := db.Select[spent](tx, db.Build(`SELECT task_id, CAST(SUM(cost_micros) AS BIGINT) AS micros FROM sessions
		WHERE account_id = `, tx.Account).And("cost_micros IS NOT NULL").In("task_id", taskIDs).SQL(" GROUP BY task_id"))
	out := map[string]int64{}
	for _, r := range rows {
		out[r.TaskID] = r.Micros
	}
	return out, err
}

func list(tx *db.Tx, p op.PageIn, repoID string) ([]Row, error) {
	b := db.Build(`SELECT `+columns+` FROM tasks WHERE account_id = `, tx.Account)
	if s := p.Want("status"); s != "" {
		b.And("status = ", s)
	}
	if k := p.Want("kind"); k != "" {
		b.And("kind = ", k)
	}
	if repoID != "" {
		b.And("repo_id = ", repoID)
	}
	if p.Q != "" {
		b.Contains("title", p.Q)
	}
	if after := p.After(); len(after) == 2 {
		at, err := strconv.ParseInt(after[0], 10, 64)
		if err != nil {
			return nil, fault.Field("cursor", "is not a cursor of this collection")
		}
		b.And("(created_at, id) < ", db.Tuple(at, after[1]))
	}
	return db.Select[Row](tx, b.SQL(" ORDER BY created_at DESC, id DESC LIMIT ", p.Size()))
}

func pageKey(t Row) []string { return []string{strconv.FormatInt(db.Micros(t.CreatedAt), 10), t.ID} }
