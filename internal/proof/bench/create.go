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

	"yardmaster/internal/db"
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
	b.add(row{what: "POST /v1/tasks, 16 clients", value: rate(rates(ours)), baseline: rate(rates(theirs)), ratio: r,
		target: "≥ the baseline", met: r >= 1})
	b.add(row{what: "the same, processor time of the server a call", value: us(costs(ours)), baseline: us(costs(theirs)),
		ratio: ratio(costs(ours), costs(theirs))})
	last, first := ours[len(ours)-1], ours[0]
	b.add(row{what: fmt.Sprintf("with %d tasks waiting, against with none", (rounds-1)*filings), value: rate(last.rate()),
		baseline: rate(first.rate()), ratio: ratio(last.rate(), first.rate())})
	return nil
}

// filing is the body of the i-th task.
func filing(i int64) []byte {
	n := strconv.FormatInt(i, 10)
	return []byte(`{"repo":"` + account + `/` + project + `","title":"Make widget ` + n + ` turn the right way round",` +
		`"problem":"Widget ` + n + ` turns left when it is asked to turn right. Its test says how it should be."}`)
}

// creator is the bare handler that files tasks.
type creator struct {
	pool   *sql.DB
	insert *sql.Stmt
}

// newCreator makes a database with the program's own schema, so that a row costs the
// same indexes and references in both.
func newCreator(path string) (*creator, error) {
	ctx := context.Background()
	d, err := db.Open(ctx, "sqlite:"+path, db.Options{})
	if err != nil {
		return nil, err
	}
	if err := d.Close(); err != nil {
		return nil, err
	}
	pool, err := openSQLite(path, false)
	if err != nil {
		return nil, err
	}
	for _, text := range []string{
		`INSERT INTO accounts (id, login, kind, tier, seats, created_at) VALUES ('acct', 'acct', 'organization', 'self_hosted', 2, 0)`,
		`INSERT INTO repos (id, account_id, owner, name, host, default_branch, private, enabled, created_at)
			VALUES ('repo', 'acct', 'acct', 'repo', 'builtin', 'main', TRUE, TRUE, 0)`,
	} {
		if _, err := pool.ExecContext(ctx, text); err != nil {
			return nil, err
		}
	}
	insert, err := pool.PrepareContext(ctx,
		`INSERT INTO tasks (id, account_id, repo_id, kind, sink, title, problem, status, attempt, charged, uncharged, max_attempts,
		priority, stuck, not_before, waiting_deps, queued_at, branch, wip_paths, files, labels, template, command, confidence, created_by,
		created_at, updated_at)
		VALUES ($1, 'acct', 'repo', 'work', 'queued', $2, $3, 'pending', 0, 0, 0, 3, 50, FALSE, 0, 0, $4, $5, '[]', '[]', '{}', 'default',
		'[]', 1, $6, $4, $4)`)
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
	if _, err := c.insert.ExecContext(r.Context(), taskID, in.Title, in.Problem, time.Now().UnixMicro(), "svc/"+taskID,
		"user:ada"); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	if err := json.MarshalWrite(w, map[string]string{"kind": "dispatched", "task_id": taskID}); err != nil {
		return // the client has disconnected
	}
}
