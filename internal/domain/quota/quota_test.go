package quota

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/codehost"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/seed"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

// A measure reads what is the account's, and no table as a whole.
func TestMeasureReadsByAccount(t *testing.T) {
	t.Parallel()
	plan := dbtest.Plan(t, "FROM audit WHERE account_id = $1 AND seq > 0 UNION ALL") + dbtest.Plan(t, "SUM(size)") + dbtest.Plan(t, "AS git_most")
	if plan == "" {
		t.Fatal("there is no such statement")
	}
	for line := range strings.Lines(plan) {
		if strings.Contains(line, "SCAN") && !strings.Contains(line, "SCAN parts") && !strings.Contains(line, "CONSTANT ROW") {
			t.Errorf("every row is read: %s of %s", line, plan)
		}
	}
}

// bounded says why tables that records do not count do not grow without an end by what an account
// does.
var bounded = map[string]string{
	"seat":   "a row for each person, box, repository, key, host or kind, which are limited or belong to no account",
	"part":   "a row or some for each of what is counted, without texts",
	"server": "it is the server's, or an operator's",
}

// uncounted are the tables that records do not count, by the reason in bounded, but for those of
// which the schema or config.Retention says it: see endless.
var uncounted = map[string]string{
	"access_requests": "server", "accounts": "seat", "audit_heads": "seat", "backlog_imports": "part",
	"blocker_fields": "part", "boxes": "seat", "budget_limits": "part", "budget_warnings": "part", "budgets": "part",
	"ci_tidying": "server", "code_hosts": "server", "dashboard_syncs": "server", "departures": "server",
	"donation_uses": "part", "donations": "part", "email_route_mails": "part", "email_routes": "seat",
	"event_cursors": "seat", "event_readers": "server", "git_homes": "server", "grants": "server",
	"host_commands": "part", "host_heads": "part", "host_owners": "seat", "host_redeliveries": "part",
	"host_tokens": "seat", "identities": "seat", "installations": "seat", "issue_handoffs": "part",
	"kb_grams": "part", "kb_links": "part", "kb_terms": "part", "merge_batches": "part", "merge_entries": "part",
	"meta": "server", "notification_choices": "seat", "notification_mails": "part", "onboarding": "seat",
	"operator_trail": "server", "oss_applications": "seat", "paid_subscriptions": "part", "plan_fanout_tasks": "part",
	"plan_fanouts": "part", "provider_keys": "seat", "push_subscriptions": "seat", "queue_lanes": "part",
	"releases": "server", "repo_bindings": "seat", "repo_creations": "part", "review_rules": "part", "revoked_keys": "seat",
	"schema_releases": "server", "update_pins": "seat", "users": "seat", "webhooks": "seat",
}

// endless answers the tables to which an account can add rows without an end, as far as the schema
// and config.Retention know. Another one loses its rows after a time, or its key is made of ids of
// other tables, so that it has a row for each of those at most.
func endless(t *testing.T) (out []string) {
	t.Helper()
	timed := map[string]bool{"goose_db_version": true}
	for _, k := range config.Retention {
		for _, table := range k.Tables {
			timed[table] = timed[table] || k.Ends == config.ByDays || k.Ends == config.ByItself
		}
	}
	if err := dbtest.SQLite(t).Read(t.Context(), func(tx *db.Tx) error {
		all, err := db.Select[string](tx, db.Build(`SELECT m.name FROM sqlite_master m WHERE m.type = 'table' AND (
			NOT EXISTS (SELECT 1 FROM pragma_table_info(m.name) c WHERE c.pk > 0) OR EXISTS (
			SELECT 1 FROM pragma_table_info(m.name) c WHERE c.pk > 0 AND NOT EXISTS (
				SELECT 1 FROM pragma_foreign_key_list(m.name) f WHERE f."from" = c.name)))`))
		for _, table := range all {
			if !timed[table] && !strings.HasPrefix(table, "sqlite_") {
				out = append(out, table)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// Every table is counted, or there is a reason why not.
func TestEveryTableIsCountedOrNot(t *testing.T) {
	t.Parallel()
	counted, _ := db.Tables(countedTables)
	all := endless(t)
	for _, table := range all {
		if _, not := uncounted[table]; slices.Contains(counted, table) == not {
			t.Errorf("%s: counted %v, and a reason not to %v", table, !not, not)
		}
	}
	for table, why := range uncounted {
		if !slices.Contains(all, table) || bounded[why] == "" {
			t.Errorf("%s (%s) is no table that needs a reason, or that is none", table, why)
		}
	}
}

// away is instead of the bytes of a repository whose node does not answer.
const away = -1

// disk is the host: the bytes of each repository.
type disk struct {
	mu    sync.Mutex
	bytes map[string]int64
}

func (d *disk) Size(r codehost.Repo) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.bytes[r.String()]
	if n == away {
		return 0, codehost.ErrAway
	}
	if !ok {
		return 0, codehost.ErrNotFound
	}
	return n, nil
}

// yard is an account with a limit of everything, another one, and two nodes.
type yard struct {
	t     *testing.T
	db    *db.DB
	disk  *disk
	nodes [2]*Service
	a, b  string
	mu    sync.Mutex
	now   time.Time
}

func (y *yard) clock() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.now
}

func (y *yard) later(d time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.now = y.now.Add(d)
}

func onBoth(t *testing.T, fn func(*testing.T, *yard)) {
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := &yard{t: t, now: time.Unix(1_800_000_000, 0), disk: &disk{bytes: map[string]int64{}}, a: id.New(), b: id.New()}
			y.db = dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: y.clock})
			for i := range y.nodes {
				y.nodes[i] = New(Needs{DB: y.db, Logger: slog.New(slog.DiscardHandler), Sizes: y.disk, Clock: y.clock})
			}
			y.add(seed.Account{ID: y.a, Login: "a", Tier: string(people.TierFree)},
				seed.Account{ID: y.b, Login: "b", Tier: string(people.TierFree)})
			for _, account := range []string{y.a, y.b} {
				y.add(seed.Repo{ID: "repo-" + account, Account: account, Owner: account, Name: "web"})
			}
			fn(t, y)
		})
	}
}

func (y *yard) add(rows ...seed.Row) {
	y.t.Helper()
	if err := y.db.Write(y.t.Context(), func(tx *db.Tx) error { return seed.Add(tx, rows...) }); err != nil {
		y.t.Fatal(err)
	}
}

// task adds a task to account a.
func (y *yard) task(name, problem string) {
	y.t.Helper()
	y.add(seed.Task{ID: name, Account: y.a, Repo: "repo-" + y.a, Title: "t", Problem: problem})
}

// limit sets what account a may have.
func (y *yard) limit(set Settings) {
	y.t.Helper()
	if err := y.db.Write(y.t.Context(), func(tx *db.Tx) error {
		_, err := saveQuota.Exec(tx, saveArgs{AccountID: y.a, quotaRow: set.row()})
		return err
	}); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) measure() stateRow {
	y.t.Helper()
	if err := y.nodes[0].Measure(y.t.Context(), y.a); err != nil {
		y.t.Fatal(err)
	}
	return y.state()
}

func (y *yard) state() (row stateRow) {
	y.t.Helper()
	if err := y.db.Read(y.t.Context(), func(tx *db.Tx) (err error) {
		row, _, err = state(tx, y.a)
		return err
	}); err != nil {
		y.t.Fatal(err)
	}
	return row
}

// told counts the events of what is nearly full.
func (y *yard) told() (n int) {
	y.t.Helper()
	if err := y.db.Read(y.t.Context(), func(tx *db.Tx) error {
		rows, err := db.Select[string](tx, db.Build(`SELECT data FROM audit WHERE kind = `, NearlyFullEvent.Name()))
		n = len(rows)
		return err
	}); err != nil {
		y.t.Fatal(err)
	}
	return n
}

func amount(n int64) *int64 { return &n }

// A repository whose node does not answer has what it had, and all else is measured.
func TestMeasureWithoutANode(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		here, there := y.a+"/near", y.a+"/web"
		y.add(seed.Repo{ID: "near", Account: y.a, Owner: y.a, Name: "near"})
		y.disk.bytes[here], y.disk.bytes[there] = 1000, 200
		before := y.measure()
		y.disk.bytes[here], y.disk.bytes[there] = 3000, away
		y.task("more", "work")
		after := y.measure()
		if before.GitBytes != 1200 || after.GitBytes != 3200 || after.Records != before.Records+1 {
			t.Errorf("%+v, and then %+v", before, after)
		}
	})
}

// After any writes and deletions a measure says what there is, whichever node makes it.
func TestMeasureIsTrue(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.add(seed.Task{ID: "other", Account: y.b, Repo: "repo-" + y.b, Problem: strings.Repeat("b", 1000)})
		if err := y.nodes[0].Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		none := y.state()
		random := rand.New(rand.NewPCG(1, 2))
		tasks := map[string]int64{}
		for step := range 40 {
			switch name := fmt.Sprint("task-", random.IntN(15)); {
			case tasks[name] > 0:
				y.add(seed.TaskGone{ID: name})
				delete(tasks, name)
			default:
				problem := strings.Repeat("ä", random.IntN(3000))
				y.task(name, problem)
				tasks[name] = int64(len("t[]") + len(problem)) // with no files
			}
			y.disk.mu.Lock()
			y.disk.bytes[y.a+"/web"] = random.Int64N(1 << 30)
			git := y.disk.bytes[y.a+"/web"]
			y.disk.mu.Unlock()
			if err := y.nodes[step%2].Admit(t.Context(), y.a, &op.Op{Row: op.Row{ID: "task.create", Status: 202}}, 10); err != nil {
				t.Fatal(err)
			}
			if step%4 != 3 {
				continue
			}
			y.later(time.Hour)
			for _, node := range y.nodes { // what both were sent is written, and then one measures
				if err := node.Pass(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			got := y.measure()
			var bytes int64
			for n := range maps.Values(tasks) {
				bytes += n
			}
			if got.Records-none.Records != int64(len(tasks)) || got.RecordBytes-none.RecordBytes != bytes ||
				got.GitBytes != git || got.Repos != 1 {
				t.Fatalf("step %d: %d records of %d bytes and %d bytes of git, want %d, %d, %d", step, got.Records-none.Records,
					got.RecordBytes-none.RecordBytes, got.GitBytes, len(tasks), bytes, git)
			}
		}
	})
}

// What is nearly full is told once, and again when there was room in between.
func TestNearlyFullIsToldOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.limit(Settings{RecordBytes: amount(10_000)})
		for i, step := range []struct {
			bytes int
			told  int
		}{{7000, 0}, {8500, 1}, {7800, 1}, {8600, 1}, {5000, 1}, {9000, 2}} {
			if i > 0 {
				y.add(seed.TaskGone{ID: "big"})
			}
			y.task("big", strings.Repeat("x", step.bytes))
			for range 2 {
				y.measure()
			}
			if n := y.told(); n != step.told {
				t.Errorf("step %d: told %d times, not %d", i, n, step.told)
			}
		}
	})
}

func do(id, method string, status int) *op.Op {
	return &op.Op{Row: op.Row{ID: id, Method: method, Status: status, Path: "/v1/x"}}
}

// An account without room is refused what makes something, on every node, by what it has
// sent since it was measured too; beyond that, all but what ends and deletes. Another
// account goes on.
func TestFullAccountIsRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		ctx := t.Context()
		create, change, remove, cancel := do("task.create", "POST", 202), do("config.set", "PUT", 200), do("secret.delete", "DELETE", 200),
			do("task.cancel", "POST", 200)
		base := y.measure().RecordBytes
		y.limit(Settings{RecordBytes: amount(base + 10_000)})
		y.later(fresh)
		refused := func(node int, o *op.Op, bytes int64) bool {
			t.Helper()
			err := y.nodes[node].Admit(ctx, y.a, o, bytes)
			f, is := errors.AsType[*fault.Error](err)
			if err != nil && (!is || f.Slug != SlugFull || f.Kind.Status() != 507 || !f.Deliberate() || f.Extra["quota"] != RecordBytes ||
				f.Extra["most"] != base+10_000) {
				t.Errorf("%s: %v", o.ID, err)
			}
			return err != nil
		}
		if refused(0, create, 5000) || refused(0, create, 5500) {
			t.Error("there was room")
		}
		if !refused(0, create, 1) {
			t.Error("what was sent since the measure is not counted")
		}
		if refused(0, change, 1) || refused(0, remove, 1) {
			t.Error("changes and deletions are refused by an account that is just full")
		}
		if refused(1, create, 1) {
			t.Error("the other node knows already")
		}
		if err := y.nodes[0].flush(ctx); err != nil {
			t.Fatal(err)
		}
		y.later(fresh)
		if !refused(1, create, 1) {
			t.Error("the other node does not know")
		}
		y.measure() // nothing of what was sent is stored
		if refused(0, create, 1) || refused(1, change, 1) {
			t.Error("there is room again")
		}
		y.task("big", strings.Repeat("x", int(base)+12_000))
		y.measure()
		y.later(fresh)
		for node := range y.nodes {
			if !refused(node, create, 1) || !refused(node, change, 1) {
				t.Error("an account beyond what it may have goes on")
			}
			if refused(node, remove, 1) || refused(node, cancel, 1) {
				t.Error("an account cannot make room")
			}
			if err := y.nodes[node].Admit(ctx, y.b, create, 1); err != nil {
				t.Errorf("the other account: %v", err)
			}
		}
		y.add(seed.TaskGone{ID: "big"})
		y.measure()
		if refused(0, create, 1) {
			t.Error("there is room after the deletion")
		}
	})
}

// The limits are those of the tier, but for what an operator has set; who runs a server for
// themselves has none.
func TestLimitsByTier(t *testing.T) {
	t.Parallel()
	for tier, l := range byTier {
		row := stateRow{Tier: tier}
		if row.limits() != l || row.limited() != (tier != people.TierSelfHosted) {
			t.Errorf("%s: %+v", tier, row.limits())
		}
	}
	row := stateRow{Tier: people.TierSelfHosted, GitMost: amount(5), GitBytes: 4}
	if l := row.levels()[0]; l != (level{GitBytes, 4, 5, true}) || l.full() || !l.share(80) || l.share(81) {
		t.Errorf("%+v", l)
	}
	row = stateRow{Tier: people.TierFree, GitMost: amount(None), GitBytes: 1 << 60}
	if l := row.levels()[0]; l.full() || l.share(1) {
		t.Errorf("%+v", l)
	}
	for _, l := range (stateRow{Tier: "unheard of"}).levels() {
		if l.most != None {
			t.Errorf("%+v", l)
		}
	}
}

// One pass measures an account that has sent something after a minute and not before, and
// one that has not after an hour.
func TestWhenAccountsAreMeasured(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		ctx := t.Context()
		pass := func(after time.Duration) (again bool) {
			t.Helper()
			y.later(after)
			before := y.state().MeasuredAt
			if err := y.nodes[0].Pass(ctx); err != nil {
				t.Fatal(err)
			}
			now := y.state().MeasuredAt
			return now != nil && (before == nil || !now.Equal(*before))
		}
		if !pass(0) || pass(time.Second) || pass(58*time.Minute) || !pass(2*time.Minute) {
			t.Error("an account is measured at first, and then after an hour")
		}
		if err := y.nodes[0].Admit(ctx, y.a, do("task.create", "POST", 202), 1); err != nil {
			t.Fatal(err)
		}
		if pass(50*time.Second) || !pass(10*time.Second) || pass(10*time.Minute) {
			t.Error("an account that has sent something is measured after a minute")
		}
	})
}

// An object that does not fit is refused, whatever the account beside it has.
func TestObjectThatDoesNotFit(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.limit(Settings{ObjectBytes: amount(100)})
		err := y.nodes[0].ObjectRoom(t.Context(), y.a, 101)
		if f, is := errors.AsType[*fault.Error](err); !is || f.Slug != SlugFull || f.Extra["quota"] != ObjectBytes {
			t.Errorf("101 of 100 bytes: %v", err)
		}
		if err := y.nodes[0].ObjectRoom(t.Context(), y.a, 100); err != nil {
			t.Errorf("100 of 100 bytes: %v", err)
		}
		if err := y.nodes[0].ObjectRoom(t.Context(), y.b, 101); err != nil {
			t.Errorf("the other account: %v", err)
		}
	})
}
