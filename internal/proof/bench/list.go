package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/money"
)

const (
	pageSize = 50
	many     = 1_000_000
	rounds   = 5
	// nearEnd is the oldest task, less those that the deep page begins with; the
	// waiting tasks follow its page.
	nearEnd = waiting + 2*pageSize
)

func list(ctx context.Context, b *bench) error {
	w, err := b.settle(ctx, "million")
	if err != nil {
		return err
	}
	w.stop()
	if err := w.fill(ctx, 0, many); err != nil {
		return err
	}
	if _, err := b.restart(ctx, w); err != nil {
		return err
	}
	defer w.stop()
	bare, _, err := b.launch(ctx, b.self, "baseline", "--read", w.database())
	if err != nil {
		return err
	}
	defer bare.stop()
	if err := w.sameTasks(ctx, bare); err != nil {
		return err
	}
	deep, err := w.deep(ctx)
	if err != nil {
		return err
	}
	var n atomic.Int64
	with := func(p *process, path, token string) func() (outcome, error) {
		l := load{clients: 4, method: http.MethodGet, url: p.url + path, token: token, status: http.StatusOK}
		return func() (outcome, error) { return l.run(ctx, p, 1500*time.Millisecond, 0, &n) }
	}
	const first = "/v1/tasks?per_page=50"
	ours, theirs, err := duel(rounds, with(w.process, first, w.pat), with(bare, "/tasks", ""))
	if err != nil {
		return err
	}
	r := ratio(rates(ours), rates(theirs))
	b.add(row{what: "GET /v1/tasks?per_page=50", value: rate(rates(ours)), baseline: rate(rates(theirs)), ratio: r,
		target: "≥ 0.80 of the baseline", met: r >= 0.8})
	b.add(row{what: "the same, processor time of the server a call", value: us(costs(ours)), baseline: us(costs(theirs)),
		ratio: ratio(costs(ours), costs(theirs))})

	far, near, err := duel(rounds, with(w.process, first+"&cursor="+deep, w.pat), with(w.process, first, w.pat))
	if err != nil {
		return err
	}
	r = rates(near) / rates(far)
	b.add(row{what: fmt.Sprintf("a page behind %d tasks, against the first page", many-nearEnd),
		value: us(time.Duration(4e9 / rates(far))), baseline: us(time.Duration(4e9 / rates(near))),
		ratio: r, target: "≤ 1.20 of the first page", met: r <= 1.2})
	return nil
}

// deep makes the cursor with which a walk through all but the last pages ends, from
// the cursor of the first page.
func (w *world) deep(ctx context.Context) (string, error) {
	var p struct {
		NextCursor string `json:"next_cursor"`
	}
	if err := w.api.Call(ctx, http.MethodGet, "/v1/tasks?per_page=50", nil, &p); err != nil {
		return "", err
	}
	b, err := base64.RawURLEncoding.DecodeString(p.NextCursor)
	if err != nil {
		return "", err
	}
	var c map[string]any
	if err := json.Unmarshal(b, &c); err != nil {
		return "", err
	}
	c["k"] = []string{strconv.FormatInt(firstTask+nearEnd*taskStep, 10), "~"} // a key above every id
	if b, err = json.Marshal(c); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// sameTasks checks that the baseline does the same work as the program.
func (w *world) sameTasks(ctx context.Context, bare *process) error {
	type answer struct {
		Data []jsontext.Value `json:"data"`
	}
	var ours, theirs answer
	if err := w.api.Call(ctx, http.MethodGet, "/v1/tasks?per_page=50", nil, &ours); err != nil {
		return err
	}
	resp, err := http.Get(bare.url + "/tasks")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.UnmarshalRead(resp.Body, &theirs); err != nil {
		return err
	}
	if len(ours.Data) != pageSize || len(theirs.Data) != pageSize || !bytes.Equal(ours.Data[0], theirs.Data[0]) ||
		!bytes.Equal(ours.Data[49], theirs.Data[49]) {
		return fmt.Errorf("the baseline answers other rows than the program: %s\n%s", theirs.Data, ours.Data)
	}
	return nil
}

const columns = `id, account_id, repo_id, kind, sink, title, problem, status, attempt, charged, uncharged, max_attempts,
	failure_kind, failure, priority, stuck, not_before, waiting_deps, queued_at, run_id, box_id, branch, base_sha,
	wip_sha, wip_paths, wip_at, pr_id, checkout_sha, files, labels, guidance, template, command, confidence,
	budget_micros, result_schema, ask_id, created_by, created_at, updated_at, claimed_at, started_at, finished_at`

// lister is the bare handler of the list.
type lister struct {
	conns   chan *listConn
	account string
}

// listConn is a reader with the same prepared statements as the program.
type listConn struct {
	conn                           *sql.Conn
	page, depth, deps, spent, repo *sql.Stmt
}

func newLister(path string) (*lister, error) {
	ctx := context.Background()
	pool, err := openSQLite(path, true)
	if err != nil {
		return nil, err
	}
	l := &lister{conns: make(chan *listConn, 4)}
	if err := pool.QueryRowContext(ctx, `SELECT id FROM accounts WHERE login = $1`, account).Scan(&l.account); err != nil {
		return nil, err
	}
	marks := func(first int) (s string) {
		for i := range pageSize {
			s += ", $" + strconv.Itoa(first+i)
		}
		return "(" + s[2:] + ")"
	}
	for range cap(l.conns) {
		conn, err := pool.Conn(ctx)
		if err != nil {
			return nil, err
		}
		c := &listConn{conn: conn}
		for _, s := range []struct {
			to   **sql.Stmt
			text string
		}{
			{&c.page, `SELECT ` + columns + ` FROM tasks WHERE account_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2`},
			{&c.depth, `SELECT pending FROM queue_depths WHERE account_id = $1`},
			{&c.deps, `SELECT task_id, depends_on FROM task_deps WHERE TRUE AND task_id IN ` + marks(1) + ` ORDER BY depends_on`},
			{&c.spent, `SELECT task_id, CAST(SUM(cost_micros) AS BIGINT) FROM sessions WHERE account_id = $1 AND cost_micros IS NOT NULL
				AND task_id IN ` + marks(2) + ` GROUP BY task_id`},
			{&c.repo, `SELECT owner, name FROM repos WHERE id = $1`},
		} {
			if *s.to, err = conn.PrepareContext(ctx, s.text); err != nil {
				return nil, err
			}
		}
		l.conns <- c
	}
	return l, nil
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (l *lister) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := <-l.conns
	tasks, err := c.list(r.Context(), l.account)
	l.conns <- c
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	next := "a cursor"
	buf := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buf)
	buf.Reset()
	if err := json.MarshalWrite(buf, op.Page[task.Task]{Data: tasks, NextCursor: &next}, json.FormatNilSliceAsNull(false)); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(buf.Len()))
	w.Write(buf.Bytes())
}

func (c *listConn) list(ctx context.Context, acct string) (out []task.Task, err error) {
	if _, err := c.conn.ExecContext(ctx, "BEGIN"); err != nil {
		return nil, err
	}
	defer func() { _, _ = c.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }() // ends a transaction of reads
	tasks, repos, err := c.read(ctx, acct)
	if err != nil {
		return nil, err
	}
	var depth int64
	if err := c.depth.QueryRowContext(ctx, acct).Scan(&depth); err != nil {
		return nil, err
	}
	ids := make([]any, len(tasks))
	for i := range tasks {
		ids[i] = tasks[i].ID
	}
	deps, err := collect[string](ctx, c.deps, ids...)
	if err != nil {
		return nil, err
	}
	spent, err := collect[int64](ctx, c.spent, append([]any{acct}, ids...)...)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for i := range tasks {
		t := &tasks[i]
		if _, ok := names[repos[i]]; !ok {
			var owner, name string
			if err := c.repo.QueryRowContext(ctx, repos[i]).Scan(&owner, &name); err != nil {
				return nil, err
			}
			names[repos[i]] = owner + "/" + name
		}
		t.Repo, t.QueueDepth, t.QueueDepthCap = names[repos[i]], depth, -1
		t.DependsOn = append([]string{}, deps[t.ID]...)
		if v := spent[t.ID]; len(v) > 0 {
			t.Budget.Spent = money.DollarsOrNone(&v[0])
		}
	}
	return tasks, nil
}

func collect[T any](ctx context.Context, s *sql.Stmt, args ...any) (map[string][]T, error) {
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string][]T{}
	for rows.Next() {
		var k string
		var v T
		if err := rows.Scan(&k, &v); err != nil {
			return nil, err
		}
		out[k] = append(out[k], v)
	}
	return out, rows.Err()
}

// read scans a page by hand. It reads and discards columns that a task does not show,
// as the program does.
func (c *listConn) read(ctx context.Context, acct string) (tasks []task.Task, repos []string, err error) {
	rows, err := c.page.QueryContext(ctx, acct, pageSize+1)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var t task.Task
		var repo, account, wipPaths, files, labels, command string
		var charged, uncharged, notBefore, waits, queued, created, updated int64
		var confidence float64
		var wipAt, budget, claimed, started, finished *int64
		var wip, checkout, schema *string
		err := rows.Scan(&t.ID, &account, &repo, &t.Kind, &t.Sink, &t.Title, &t.Problem, &t.Status, &t.Attempt, &charged,
			&uncharged, &t.MaxAttempts,
			&t.FailureKind, &t.Failure, &t.Priority, &t.Stuck, &notBefore, &waits, &queued, &t.RunID, &t.BoxID, &t.Branch, &t.BaseSHA,
			&wip, &wipPaths, &wipAt, &t.PRID, &checkout, &files, &labels, &t.Guidance, &t.Template, &command, &confidence,
			&budget, &schema, &t.AskID, &t.CreatedBy, &created, &updated, &claimed, &started, &finished)
		if err != nil {
			return nil, nil, err
		}
		var paths, argv []string
		for text, to := range map[string]any{files: &t.Files, labels: &t.Labels} {
			if err := json.Unmarshal([]byte(text), to); err != nil {
				return nil, nil, err
			}
		}
		if err := json.Unmarshal([]byte(wipPaths), &paths); err != nil {
			return nil, nil, err
		}
		if err := json.Unmarshal([]byte(command), &argv); err != nil {
			return nil, nil, err
		}
		if wip != nil {
			t.WIP = &task.WIP{SHA: *wip, Paths: paths, At: moment(wipAt)}
		}
		t.Holds, t.Budget.USD = []task.Hold{}, money.DollarsOrNone(budget)
		t.CreatedAt, t.ClaimedAt, t.StartedAt, t.FinishedAt = db.Time(created).Truncate(time.Millisecond), moment(claimed),
			moment(started), moment(finished)
		tasks, repos = append(tasks, t), append(repos, repo)
	}
	if err := rows.Err(); err != nil {
		return nil, nil, err
	}
	return tasks[:min(len(tasks), pageSize)], repos, nil
}

func moment(micros *int64) *time.Time {
	if micros == nil {
		return nil
	}
	t := db.Time(*micros).Truncate(time.Millisecond)
	return &t
}
