package task

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// own lists all columns of Row; columns is its first part. insertTask names those that
// a task is created with.
const (
	columns = `id, account_id, repo_id, kind, sink, title, problem, status, attempt, charged, uncharged, max_attempts,
	failure_kind, failure, priority, stuck, not_before, waiting_deps, queued_at, run_id, box_id, branch, base_sha,
	wip_sha, wip_paths, wip_at, pr_id, checkout_sha, files, labels, guidance, template, command, confidence,
	budget_micros, result_schema, ask_id, created_by, created_at, updated_at, claimed_at, started_at, finished_at`
	own = columns + `, requested_by, plan_id, group_id, conflict_with, conflict_paths, conflict_at, stacked_on, start_sha, unbound`
)

var (
	// insertTask writes the columns that a new task has values for; the others get the
	// defaults of the schema.
	insertTask = db.SWith[Row](`INSERT INTO tasks (id, account_id, repo_id, kind, sink, title, problem, status, max_attempts,
		priority, waiting_deps, queued_at, branch, pr_id, checkout_sha, files, labels, template, command, confidence,
		budget_micros, result_schema, ask_id, created_by, created_at, updated_at, requested_by, unbound, start_sha)
		VALUES (:id, :account_id, :repo_id, :kind, :sink, :title, :problem, :status, :max_attempts, :priority,
		:waiting_deps, :queued_at, :branch, :pr_id, :checkout_sha, :files, :labels, :template, :command, :confidence,
		:budget_micros, :result_schema, :ask_id, :created_by, :created_at, :created_at, :requested_by, :unbound, :start_sha)`)

	updateBudget = db.SWith[updateBudgetArgs](`UPDATE tasks SET budget_micros = :budget_micros, updated_at = :updated_at
		WHERE account_id = :account_id AND id = :id`)
	// updateTask writes all columns that may change, if the task is still in the state
	// :from.
	updateTask = db.SWith[updateTaskArgs](`UPDATE tasks SET status = :status, attempt = :attempt, charged = :charged,
		uncharged = :uncharged, failure_kind = :failure_kind, failure = :failure, stuck = :stuck, not_before = :not_before,
		waiting_deps = :waiting_deps, queued_at = :queued_at, run_id = :run_id, box_id = :box_id, base_sha = :base_sha,
		wip_sha = :wip_sha, wip_paths = :wip_paths, wip_at = :wip_at, pr_id = :pr_id, guidance = :guidance,
		updated_at = :updated_at, claimed_at = :claimed_at, started_at = :started_at, finished_at = :finished_at,
		conflict_with = :conflict_with, conflict_paths = :conflict_paths, conflict_at = :conflict_at,
		stacked_on = :stacked_on, start_sha = :start_sha, unbound = :unbound
		WHERE account_id = :account_id AND id = :id AND status = :from`)

	selectTask = db.Q[Row](`SELECT ` + own + ` FROM tasks WHERE account_id = $1 AND id = $2`)

	insertLabel = db.SWith[insertLabelArgs](`INSERT INTO task_labels (account_id, name, value, created_at, task_id)
		VALUES (:account_id, :name, :value, :created_at, :task_id)`)

	insertDep = db.S(`INSERT INTO task_deps (task_id, depends_on) VALUES ($1, $2)`)

	selectUpstream = db.Q[upstream](`SELECT t.id, t.title, t.status, t.failure_kind, t.failure FROM task_deps d JOIN tasks t ON t.id = d.depends_on
		WHERE d.task_id = $1 ORDER BY t.id`)

	selectDependents = db.Q[string](`SELECT t.id FROM task_deps d JOIN tasks t ON t.id = d.task_id
		WHERE d.depends_on = $1 ORDER BY t.created_at, t.id`)
	lockDependents = db.Q[string](`SELECT id FROM tasks WHERE id IN (SELECT task_id FROM task_deps WHERE depends_on = $1)
		ORDER BY created_at, id`).ForUpdate()
	// lockBelow locks all tasks that wait for a task, directly or through others.
	lockBelow = db.Q[string](`SELECT id FROM tasks WHERE id IN (
			WITH RECURSIVE below (id) AS (SELECT task_id FROM task_deps WHERE depends_on = $1
				UNION SELECT d.task_id FROM below JOIN task_deps d ON d.depends_on = below.id)
			SELECT id FROM below)
		ORDER BY created_at, id`).ForUpdate()

	// dependencyDone counts down tasks in any state: a failed one counts again when it is
	// released. Lock the dependents first: a task that another transaction puts back into
	// the queue has then counted what it waits for.
	dependencyDone = db.Q[freed](`UPDATE tasks SET waiting_deps = waiting_deps - 1
		WHERE waiting_deps > 0 AND id IN (SELECT task_id FROM task_deps WHERE depends_on = $1) RETURNING ` + freedColumns)

	addDep    = db.S(`INSERT INTO task_deps (task_id, depends_on) VALUES ($1, $2) ON CONFLICT DO NOTHING`)
	deleteDep = db.S(`DELETE FROM task_deps WHERE task_id = $1 AND depends_on = $2`)

	joinPlan = db.SWith[joinPlanArgs](`UPDATE tasks SET plan_id = :plan_id, group_id = :group_id
		WHERE account_id = :account_id AND id = :id`)
	selectOfPlan = db.Q[Row](`SELECT ` + own + ` FROM tasks WHERE account_id = $1 AND plan_id = $2 ORDER BY created_at, id`)
)

// joinPlanArgs are the parameters of joinPlan.
type joinPlanArgs struct {
	AccountID, ID, PlanID string
	GroupID               *string
}

// insertLabelArgs are the parameters of insertLabel.
type insertLabelArgs struct {
	AccountID, Name, Value string
	CreatedAt              time.Time
	TaskID                 string
}

// updateTaskArgs are the parameters of updateTask.
type updateTaskArgs struct {
	Row
	From Status
}

// updateBudgetArgs are the parameters of updateBudget.
type updateBudgetArgs struct {
	AccountID, ID string
	BudgetMicros  *int64
	UpdatedAt     time.Time
}

type (
	// upstream is a task that another one depends on.
	upstream struct {
		ID, Title            string
		Status               Status
		FailureKind, Failure *string
	}
	edge struct{ TaskID, DependsOn string }
)

// insert writes a new task and sends QueueChanged if it is pending.
func insert(tx *db.Tx, t *Row) error {
	_, err := insertTask.Exec(tx, *t)
	if err == nil && t.Status == Pending {
		change := QueueChange{Lane: t.Lane(), Pending: 1, Created: t.CreatedAt}
		if t.Ready() {
			change.Ready = 1
		}
		err = QueueChanged.Send(tx, change)
	}
	return err
}

// store writes t, which was read in state from, and sends QueueChanged if that
// changes the queue. It returns an error if t is in another state by now.
func store(tx *db.Tx, t *Row, from Status) (err error) {
	was := false
	if from == Pending {
		if was, _, err = selectWasReady.Maybe(tx, t.AccountID, t.ID); err != nil {
			return err
		}
	}
	t.UpdatedAt = tx.Now
	n, err := updateTask.Exec(tx, updateTaskArgs{Row: *t, From: from})
	if err == nil && n != 1 {
		err = fmt.Errorf("task %s is no longer %s", t.ID, from)
	}
	if err != nil {
		return err
	}
	change := QueueChange{Lane: t.Lane(), Created: t.CreatedAt}
	if from == Pending {
		change.Pending--
	}
	if t.Status == Pending {
		change.Pending++
	}
	if was {
		change.Ready--
	}
	if t.Ready() {
		change.Ready++
	}
	if change.Pending == 0 && change.Ready == 0 {
		return nil
	}
	return QueueChanged.Send(tx, change)
}

// Lock reads a task of an account and keeps others from changing it until the
// transaction ends.
//
// All of the program takes its locks in one order, so that no two transactions
// wait for each other:
//
//  1. a box, an account (by those who claim, and by the platform's operator;
//     the box also by a run that ends for a fault of the box);
//  2. the scout of a plan, and then the plan;
//  3. tasks: one that looks after a pull request before the task that made it,
//     any other before those that were made later and may wait for it;
//  4. the repository, its pull requests, the run;
//  5. the depth of the account's queue, for room in it;
//  6. at the end, see db.AtEnd: what a scout's end does to its plan, the queue
//     and its lanes, how far plans are, the chain of the audit log.
//
// The exception is a task that waits for a newer one, because of a regroup or because
// their work conflicts. PostgreSQL breaks such a circle, and the write runs again.
func Lock(tx *db.Tx, account, taskID string) (Row, bool, error) {
	return selectTask.ForUpdate().Maybe(tx, account, taskID)
}

// TryLock is Lock for those who do not wait: it returns false as well if another
// transaction holds the task.
func TryLock(tx *db.Tx, account, taskID string) (Row, bool, error) {
	return selectTask.SkipLocked().Maybe(tx, account, taskID)
}

// LockAll locks tasks of an account in the order of Lock and returns them by id. It
// leaves out ids of no task.
func LockAll(tx *db.Tx, account string, taskIDs []string) (map[string]Row, error) {
	if taskIDs = slices.DeleteFunc(slices.Clone(taskIDs), func(s string) bool { return !id.Valid(s) }); len(taskIDs) == 0 {
		return nil, nil
	}
	rows, err := db.Select[Row](tx, db.Build(`SELECT `+own+` FROM tasks WHERE account_id = `, account).In("id", taskIDs).
		SQL(" ORDER BY created_at, id").ForUpdate())
	out := make(map[string]Row, len(rows))
	for _, t := range rows {
		out[t.ID] = t
	}
	return out, err
}

// Get reads a task of an account.
func Get(tx *db.Tx, account, taskID string) (Row, bool, error) {
	return selectTask.Maybe(tx, account, taskID)
}

// find reads a task of tx.Account, or returns fault.NotFound: the same for an id that is
// unknown, foreign or malformed. With lock it is as Lock.
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

// upstreams lists the dependencies of tasks, by task.
func upstreams(tx *db.Tx, taskIDs []string) (map[string][]string, error) {
	rows, err := db.Select[edge](tx,
		db.Build(`SELECT task_id, depends_on FROM task_deps WHERE TRUE`).In("task_id", taskIDs).SQL(" ORDER BY depends_on"))
	out := map[string][]string{}
	for _, r := range rows {
		out[r.TaskID] = append(out[r.TaskID], r.DependsOn)
	}
	return out, err
}

// Rows returns the tasks of tx.Account with the ids or, if ids is nil, its newest ones,
// as task.list shows them and up to limit.
func (s *Service) Rows(tx *db.Tx, ids []string, limit int) ([]Task, error) {
	b := db.Build(`SELECT `+own+` FROM tasks WHERE account_id = `, tx.Account)
	if ids != nil {
		b.In("id", ids).Few()
	}
	rows, err := db.Select[Row](tx, b.Newest("created_at", "id", limit))
	if err != nil {
		return nil, err
	}
	return s.view(tx, rows, ids == nil)
}

// searched is how many tasks behind its cursor a page of a text search reads, because no
// index knows the texts.
const searched = 20_000

// page reads a page. If a search stopped before its page was full, end is the
// key of the last task that it looked at.
func (s *Service) page(tx *db.Tx, p op.PageIn, repoID string) (rows []Row, end []string, err error) {
	states := p.Wants("status")
	if len(states) < 2 || p.Q != "" || p.Want("stuck") != "" || p.Want("waits") != "" {
		return s.pageOf(tx, p, repoID, states)
	}
	// Each state is read by its own index: read together, all tasks in the states would
	// be sorted. Other filters leave few tasks.
	slices.Sort(states)
	for _, st := range slices.Compact(states) {
		some, _, err := s.pageOf(tx, p, repoID, []string{st})
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, some...)
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID)) })
	return rows[:min(len(rows), p.Size())], nil, nil
}

// pageOf is page for tasks in one of the states, or in any.
func (s *Service) pageOf(tx *db.Tx, p op.PageIn, repoID string, states []string) (rows []Row, end []string, err error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, nil, err
	}
	named, err := namedOf(tx, p)
	if err != nil {
		return nil, nil, err
	}
	asked, err := askedIn(p)
	if err != nil {
		return nil, nil, err
	}
	narrow := func(b *db.Builder) *db.Builder {
		named(b)
		asked(b, policy.From(tx.Context()).UserID)
		if len(states) == 1 {
			b.Is("status", states[0])
		}
		if repoID != "" {
			b.And("repo_id = ", repoID)
		}
		if more {
			b.OlderThan("created_at", "id", at, last)
		}
		return b
	}
	b := narrow(db.Build(`SELECT `+own+` FROM tasks WHERE account_id = `, tx.Account))
	if len(states) > 1 {
		b.In("status", states)
	}
	if kinds := p.Wants("kind"); len(kinds) > 0 {
		b.In("kind", kinds)
	}
	if l := p.Want("label"); l != "" {
		name, value, _ := strings.Cut(l, "=")
		b.And("(created_at, id) IN (SELECT created_at, task_id FROM task_labels WHERE account_id = ", tx.Account).And("name = ",
			name).And("value = ", value).SQL(")")
	}
	if p.Want("finished") != "" {
		b.And("finished_at >= ", tx.Now.Add(-24*time.Hour))
	}
	if p.Want("stuck") != "" {
		err = s.Queue.NarrowStuck(tx, b)
	}
	if p.Want("waits") != "" && err == nil {
		err = s.Queue.NarrowPeople(tx, b)
	}
	if err != nil {
		return nil, nil, err
	}
	if p.Q != "" {
		b.Contains("title", p.Q)
		stop, err := db.Select[place](tx, narrow(db.Build(`SELECT created_at, id FROM tasks WHERE account_id = `, tx.Account)).
			SQL(" ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET ", searched-1))
		if err != nil {
			return nil, nil, err
		}
		for _, s := range stop {
			b.And("(created_at, id) >= ", db.Tuple(s.CreatedAt, s.ID))
			end = op.TimeKey(s.CreatedAt, s.ID)
		}
	}
	rows, err = db.Select[Row](tx, b.Newest("created_at", "id", p.Size()))
	if len(rows) == p.Size() {
		end = nil
	}
	return rows, end, err
}

// askedIn reads the filters of who is at the beginning of tasks and of when they were created, and answers what
// adds them to a list. me is the caller.
func askedIn(p op.PageIn) (func(b *db.Builder, me string), error) {
	var at [2]time.Time
	for i, key := range []string{"since", "before"} {
		text := p.Want(key)
		if text == "" {
			continue
		}
		var err error
		if at[i], err = time.Parse(time.RFC3339, text); err != nil {
			if at[i], err = time.Parse(time.DateOnly, text); err != nil {
				return nil, fault.Field("filter", key+" is a time such as 2026-11-02T15:04:05Z, or a day such as 2026-11-02")
			}
		}
	}
	person := p.Want("person")
	if person != "" && person != "me" && !id.Valid(person) {
		return nil, fault.Field("filter", "person must be the id of a person, or me")
	}
	return func(b *db.Builder, me string) {
		switch person {
		case "":
		case "me":
			b.And("requested_by = ", me)
		default:
			b.And("requested_by = ", person)
		}
		if !at[0].IsZero() {
			b.And("created_at >= ", at[0])
		}
		if !at[1].IsZero() {
			b.And("created_at < ", at[1])
		}
	}, nil
}

// namedOf reads the filters that name tasks, and answers what adds them to a list.
func namedOf(tx *db.Tx, p op.PageIn) (func(b *db.Builder), error) {
	part, err := p.Part()
	if err != nil {
		return nil, err
	}
	var ids []string
	if part != "" {
		if ids, err = db.IDs(tx, `SELECT id FROM tasks WHERE account_id`, part); err != nil {
			return nil, err
		}
	}
	return func(b *db.Builder) {
		if part != "" {
			b.In("id", ids).Few()
		}
		if branch := p.Want("branch"); branch != "" {
			b.And("branch = ", branch)
		}
		if box := p.Want("box"); box != "" {
			b.And("box_id = ", box)
		}
	}, nil
}

type place struct {
	CreatedAt time.Time
	ID        string
}

func pageKey(t Row) []string { return op.TimeKey(t.CreatedAt, t.ID) }
