package db_test

import (
	"io/fs"
	"log/slog"
	"slices"
	"testing"
	"testing/fstest"

	"yardmaster/internal/db"
	"yardmaster/internal/db/migrations"
)

// until is the schema up to a migration, that one left out.
func until(t *testing.T, name string) fs.FS {
	t.Helper()
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	out := fstest.MapFS{}
	for _, n := range names {
		if n >= name {
			continue
		}
		text, err := fs.ReadFile(migrations.FS, n)
		if err != nil {
			t.Fatal(err)
		}
		out[n] = &fstest.MapFile{Data: text}
	}
	return out
}

// climbing makes a database up to a migration, puts rows in, climbs to the top and lists what
// is asked.
func climbing(t *testing.T, name, rows, ask string, want ...string) {
	t.Helper()
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			pool, log := empty(t, e), slog.New(slog.DiscardHandler)
			if err := db.Climb(t.Context(), pool, e, until(t, name), log); err != nil {
				t.Fatal(err)
			}
			if _, err := pool.Exec(rows); err != nil {
				t.Fatal(err)
			}
			if err := db.Climb(t.Context(), pool, e, migrations.FS, log); err != nil {
				t.Fatal(err)
			}
			if got := list(t, pool, ask); !slices.Equal(got, want) {
				t.Errorf("%q", got)
			}
		})
	}
}

const entriesAsked = `SELECT queue, key, lane, state, due_at, set_at, tries, why FROM due ORDER BY queue, key`

const accountRow = `INSERT INTO accounts (id, login, kind, tier, seats, created_at) VALUES ('acme', 'acme', 'org', 'free', 1, 1)`

// What waited to be applied is an entry afterwards, with its tries; what is over is none.
func TestDeliveriesBecomeEntries(t *testing.T) {
	t.Parallel()
	climbing(t, "0341", `INSERT INTO host_deliveries (host, guid, kind, bytes, state, tries, due_at, error, received_at, ended_at) VALUES
		('github:g', '1', 'push', 1, 'stored', 0, 10, NULL, 10, NULL),
		('github:g', '2', 'push', 1, 'stored', 3, 90, 'no', 20, NULL),
		('github:g', '3', 'push', 1, 'applied', 1, 30, NULL, 30, 31)`, entriesAsked,
		"deliveries | github:g/1 | 0 | waits | 10 | 10 | 0 | ", "deliveries | github:g/2 | 0 | waits | 90 | 20 | 3 | no")
}

// Messages to browsers that wait are entries of their accounts. An older release adds its own,
// and leaves the others alone.
func TestMessagesBecomeEntries(t *testing.T) {
	t.Parallel()
	climbing(t, "0370", accountRow+`;
		INSERT INTO users (id, login, name, email, created_at) VALUES ('u', 'u', 'U', 'u@x', 1);
		INSERT INTO push_subscriptions (id, account_id, user_id, digest, service, label, sealed, created_at)
			VALUES ('s', 'acme', 'u', 'd', 'x', '', '', 1);
		INSERT INTO push_messages (id, account_id, subscription_id, topic, urgent, sealed, tries, due_at, created_at) VALUES
			('1', 'acme', 's', 't', FALSE, '', 0, 10, 5), ('2', 'acme', 's', 'v', FALSE, '', 3, 90, 20)`, entriesAsked,
		"push | s/t | 0acme | waits | 10 | 5 | 0 | ", "push | s/v | 0acme | waits | 90 | 20 | 3 | ")
}

// Heads, reports and outputs of checks that are looked at again are entries, and the rows say
// so; the others are none.
func TestChecksBecomeEntries(t *testing.T) {
	t.Parallel()
	const day = "86400000000"
	climbing(t, "0371", accountRow+`;
		INSERT INTO repos (id, account_id, host, owner, name, default_branch, private, enabled, created_at)
			VALUES ('r', 'acme', 'h', 'acme', 'web', 'main', TRUE, TRUE, 1);
		INSERT INTO host_heads (repo_id, sha, account_id, base_ref, settle_at, due_at, created_at) VALUES
			('r', 'a', 'acme', 'main', 1, `+day+`, 1), ('r', 'b', 'acme', 'main', 1, NULL, 1);
		INSERT INTO ci_runs (id, account_id, repo_id, sha, command, status, created_at) VALUES
			('c', 'acme', 'r', 'a', 'make', 'queued', 1), ('d', 'acme', 'r', 'b', 'make', 'queued', 1);
		INSERT INTO ci_reports (check_id, account_id, due_at) VALUES ('c', 'acme', `+day+`), ('d', 'acme', NULL);
		INSERT INTO ci_logs (id, account_id, run_id, kept_at, tries, due_at, expires_at) VALUES
			('kept', 'acme', 'x', 7, 2, `+day+`, 9), ('not', 'acme', 'y', NULL, 2, `+day+`, 9)`, entriesAsked,
		"ci_logs | kept | 0acme | waits | 86400000000 | 7 | 0 | ", "ci_logs | not | 0acme | waits | 86400000000 | 82800000000 | 2 | ",
		"ci_reports | c | 0acme | waits | 86400000000 | 86100000000 | 0 | ",
		"host_heads | r/a | 0acme | waits | 86400000000 | 84600000000 | 0 | ")
}

// Repositories that are being made are entries; tries of the call that asked do not count.
func TestCreationsBecomeEntries(t *testing.T) {
	t.Parallel()
	const columns = `(id, account_id, host, owner, name, private, description, stack, base, state, tries, due_at, created_by, user_id,
		created_at, ended_at)`
	climbing(t, "0372", accountRow+`;
		INSERT INTO repo_creations `+columns+` VALUES
			('a', 'acme', 'h', 'acme', 'a', TRUE, '', '', 1, 'asked', 1, 90, '', '', 30, NULL),
			('b', 'acme', 'h', 'acme', 'b', TRUE, '', '', 1, 'made', 3, 95, '', '', 30, NULL),
			('c', 'acme', 'h', 'acme', 'c', TRUE, '', '', 1, 'done', 1, 90, '', '', 30, 40)`, entriesAsked,
		"creations | a | 0acme | waits | 90 | 30 | 0 | ", "creations | b | 0acme | waits | 95 | 30 | 2 | ")
}

// Mails about questions are entries.
func TestApprovalMailsBecomeEntries(t *testing.T) {
	t.Parallel()
	climbing(t, "0373", accountRow+`;
		INSERT INTO approval_mails (action_id, account_id, tries, due_at) VALUES ('a', 'acme', 2, 700000000)`, entriesAsked,
		"approval_mails | a | 0acme | waits | 700000000 | 100000000 | 2 | ")
}

// Issues that are to be opened at Linear are entries.
func TestTrackerIssuesBecomeEntries(t *testing.T) {
	t.Parallel()
	climbing(t, "0374", accountRow+`;
		INSERT INTO tracker_issues (id, account_id, repo_id, title, body, state, error, tries, due_at, created_by, created_at, ended_at) VALUES
			('a', 'acme', 'r', '', '', 'wanted', 'no', 2, 90, '', 30, NULL), ('b', 'acme', 'r', '', '', 'opened', NULL, 1, NULL, '', 30, 40)`,
		entriesAsked, "tracker | a | 0acme | waits | 90 | 30 | 2 | no")
}

// Schedules that are not paused are entries, at times of the calendar.
func TestSchedulesBecomeEntries(t *testing.T) {
	t.Parallel()
	climbing(t, "0375", accountRow+`;
		INSERT INTO users (id, login, name, email, created_at) VALUES ('u', 'u', 'U', 'u@x', 1);
		INSERT INTO schedules (id, account_id, title, body, labels, cron, zone, when_busy, user_id, scopes, next_at, created_by, created_at,
			updated_at) VALUES ('a', 'acme', '', '', '{}', '', '', '', 'u', '[]', 90, '', 30, 30),
			('b', 'acme', '', '', '{}', '', '', '', 'u', '[]', NULL, '', 30, 30)`, entriesAsked,
		"schedules | a | 0acme | waits | 90 | 0 | 0 | ")
}

// Imports of backlogs that have not ended are entries.
func TestImportsBecomeEntries(t *testing.T) {
	t.Parallel()
	climbing(t, "0376", accountRow+`;
		INSERT INTO repos (id, account_id, host, owner, name, default_branch, private, enabled, created_at) VALUES
			('r', 'acme', 'h', 'acme', 'web', 'main', TRUE, TRUE, 1), ('s', 'acme', 'h', 'acme', 'api', 'main', TRUE, TRUE, 1);
		INSERT INTO backlog_imports (id, account_id, repo_id, state, requested_by, tries, due_at, created_at) VALUES
			('a', 'acme', 'r', 'running', '', 2, 90, 30), ('b', 'acme', 's', 'done', '', 1, 90, 30)`, entriesAsked,
		"backlog | a | 0acme | waits | 90 | 30 | 2 | ")
}

// Digests that are planned are entries, two an account.
func TestDigestsBecomeEntries(t *testing.T) {
	t.Parallel()
	climbing(t, "0610", accountRow+`;
		INSERT INTO digest_dues (account_id, kind, zone, due_at) VALUES ('acme', 'daily', 'UTC', 90), ('acme', 'weekly', 'UTC', 95)`,
		entriesAsked, "digests | acme/daily | 0acme | waits | 90 | 0 | 0 | ", "digests | acme/weekly | 0acme | waits | 95 | 0 | 0 | ")
}

// Asks that wait for a judge are entries.
func TestAsksBecomeEntries(t *testing.T) {
	t.Parallel()
	climbing(t, "0611", accountRow+`;
		INSERT INTO asks (id, account_id, reach, title, body, source, labels, state, filed_by, scopes, depth, due_at, tries, created_at) VALUES
			('a', 'acme', '[]', '', '', '', '{}', 'pending', '', '[]', 0, 1800000090, 2, 30),
			('b', 'acme', '[]', '', '', '', '{}', 'dropped', '', '[]', 0, 90, 1, 30)`,
		entriesAsked, "asks | a | 0acme | waits | 1800000090 | 90 | 2 | ")
}

// The intents of an object are one entry, which waits as the oldest of them did.
func TestIntentsBecomeEntries(t *testing.T) {
	t.Parallel()
	climbing(t, "0670", accountRow+`;
		INSERT INTO repos (id, account_id, owner, name, host, default_branch, private, enabled, created_at) VALUES
			('r', 'acme', 'acme', 'web', 'elsewhere', 'main', FALSE, TRUE, 1);
		INSERT INTO host_intents (id, account_id, repo_id, object, kind, args, rank, state, tries, limited, due_at, created_at, ended_at) VALUES
			('1', 'acme', 'r', 'p', 'k', '', 0, 'done', 1, FALSE, 10, 1, 5),
			('2', 'acme', 'r', 'p', 'k', '', 2, 'due', 3, TRUE, 1800000000, 1, NULL),
			('3', 'acme', 'r', 'p', 'k', '', 0, 'due', 0, FALSE, 20, 1, NULL),
			('4', 'acme', 'r', 'q/check', 'k', '', 1, 'doing', 1, FALSE, 1900000000, 1, NULL)`,
		entriesAsked, "intents | r/p | 2acme | waits | 1800000000 | 900000000 | 3 | ",
		"intents | r/q/check | 1acme | waits | 1900000000 | 1000000000 | 1 | ")
}

// Orders to merge that stand are entries; an older release that carries one out has it until then.
func TestMergesBecomeEntries(t *testing.T) {
	t.Parallel()
	climbing(t, "0680", accountRow+`;
		INSERT INTO repos (id, account_id, host, owner, name, default_branch, private, enabled, created_at)
			VALUES ('r', 'acme', 'h', 'acme', 'web', 'main', TRUE, TRUE, 1);
		INSERT INTO pulls (id, account_id, repo_id, number, title, body, url, state, head_ref, base_ref, head_sha, base_sha, author_kind,
			created_at, updated_at) VALUES ('p', 'acme', 'r', 1, '', '', '', 'open', 'a', 'main', 'x', 'y', 'agent', 1, 1),
			('q', 'acme', 'r', 2, '', '', '', 'open', 'b', 'main', 'x', 'y', 'agent', 1, 1);
		INSERT INTO pull_actions (id, account_id, pr_id, kind, head_sha, state, error, requested_at, expires_at, due_at, tries, claim) VALUES
			('held', 'acme', 'p', 'merge', 'x', 'approved', NULL, 1, 9, 500000000, 1, 'n'),
			('late', 'acme', 'q', 'merge', 'x', 'approved', 'no', 1, 9, 700000000, 2, ''),
			('push', 'acme', 'p', 'push', 'x', 'approved', NULL, 1, 9, 1, 0, ''),
			('done', 'acme', 'p', 'merge', 'x', 'applied', NULL, 1, 9, 1, 1, 'n')`,
		`SELECT queue, key, lane, state, due_at, set_at, tries, why FROM due
			UNION ALL SELECT 'row', id, state, '', due_at, COALESCE(retry_at, 0), 0, '' FROM pull_actions ORDER BY 1, 2`,
		"merges | held | 0acme | waits | 500000000 | 380000000 | 0 | ", "merges | late | 0acme | waits | 700000000 | 580000000 | 2 | ",
		"row | done | applied |  | 253402300799000000 | 0 | 0 | ", "row | held | approved |  | 253402300799000000 | 0 | 0 | ",
		"row | late | approved |  | 253402300799000000 | 700000000 | 0 | ", "row | push | approved |  | 253402300799000000 | 0 | 0 | ")
}
