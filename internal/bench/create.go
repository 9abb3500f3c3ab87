package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"yardmaster/internal/id"
)

// filings is how many tasks one round files.
const filings = 1500

func create(ctx context.Context, b *bench) error {
	w, err := b.settle(ctx, "create")
	if err != nil {
		return err
	}
	defer w.stop()
	bare, _, err := b.launch(ctx, b.self, "baseline", "--write", filepath.Join(b.dir, "create.db"))
	if err != nil {
		return err
	}
	defer bare.stop()
	var n atomic.Int64
	with := func(p *process, path, token string) func() (outcome, error) {
		l := load{clients: 16, method: http.MethodPost, url: p.url + path, token: token, body: filing, status: http.StatusAccepted}
		return func() (outcome, error) { return l.run(ctx, p, 0, filings, &n) }
	}
	ours, theirs, err := duel(rounds, with(w.process, "/v1/tasks", w.pat), with(bare, "/tasks", ""))
	if err != nil {
		return err
	}
	r := ratio(rates(ours), rates(theirs))
	b.add(row{what: "POST /v1/tasks, 16 clients", value: rate(rates(ours)), baseline: rate(rates(theirs)), ratio: r, target: "≥ the baseline", met: r >= 1})
	b.add(row{what: "the same, processor time of the server a call", value: us(costs(ours)), baseline: us(costs(theirs)), ratio: ratio(costs(ours), costs(theirs))})
	last, first := ours[len(ours)-1], ours[0]
	b.add(row{what: fmt.Sprintf("with %d tasks waiting, against with none", (rounds-1)*filings), value: rate(last.rate()), baseline: rate(first.rate()), ratio: ratio(last.rate(), first.rate())})
	return nil
}

// filing is the body of the i-th task.
func filing(i int64) []byte {
	n := strconv.FormatInt(i, 10)
	return []byte(`{"repo":"` + account + `/` + project + `","title":"Make widget ` + n + ` turn the right way round",` +
		`"problem":"Widget ` + n + ` turns left when it is asked to turn right. Its test says how it should be."}`)
}

// creator is the bare handler of filing.
type creator struct {
	pool   *sql.DB
	insert *sql.Stmt
}

func newCreator(path string) (*creator, error) {
	pool, err := openSQLite(path, false)
	if err != nil {
		return nil, err
	}
	if _, err := pool.ExecContext(context.Background(), `CREATE TABLE tasks (id TEXT PRIMARY KEY, account_id TEXT NOT NULL, repo_id TEXT NOT NULL,
		kind TEXT NOT NULL, sink TEXT NOT NULL, title TEXT NOT NULL, problem TEXT NOT NULL, status TEXT NOT NULL, priority BIGINT NOT NULL,
		queued_at BIGINT NOT NULL, branch TEXT NOT NULL, template TEXT NOT NULL, created_by TEXT NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL);
		CREATE INDEX tasks_list ON tasks (account_id, created_at, id);
		CREATE INDEX tasks_queue ON tasks (account_id, priority DESC, queued_at, id) WHERE status = 'pending'`); err != nil {
		return nil, err
	}
	insert, err := pool.PrepareContext(context.Background(), `INSERT INTO tasks VALUES ($1, $2, $3, 'work', 'queued', $4, $5, 'pending', 50, $6, $7, 'default', $8, $6, $6)`)
	return &creator{pool, insert}, err
}

func (c *creator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Repo    string `json:"repo"`
		Title   string `json:"title"`
		Problem string `json:"problem"`
	}
	if err := json.UnmarshalRead(r.Body, &in, json.RejectUnknownMembers(true)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	taskID := id.Random()
	if _, err := c.insert.ExecContext(r.Context(), taskID, account, in.Repo, in.Title, in.Problem, time.Now().UnixMicro(), "svc/"+taskID, "user:ada"); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	if err := json.MarshalWrite(w, map[string]string{"kind": "dispatched", "task_id": taskID}); err != nil {
		return // the client is gone
	}
}
