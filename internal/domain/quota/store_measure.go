package quota

import (
	"time"

	"yardmaster/internal/db"
)

type recordsRow struct{ Records, Bytes int64 }

// measuredArgs are the parameters of measured.
type measuredArgs struct {
	AccountID                                    string
	ObjectBytes, RecordBytes, Records, Accounted int64
	Told                                         db.JSON[[]string]
	MeasuredAt, RestUntil, DueAt                 time.Time
}

// receivedArgs are the parameters of received.
type receivedArgs struct {
	AccountID string
	Bytes     int64
	Now       time.Time
}

// countedTables are the records of an account, and the texts in them that callers, agents
// and other systems write: what grows without an end. TestEveryTableIsCountedOrNot has the
// other tables.
const countedTables = `
	SELECT COUNT(*) AS n, COALESCE(SUM(octet_length(data) + octet_length(object)), 0) AS b FROM audit WHERE account_id = $1 AND seq > 0
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(title) + octet_length(body) + octet_length(labels)), 0)
		FROM asks WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(title) + octet_length(problem) + COALESCE(octet_length(guidance), 0)
		+ COALESCE(octet_length(failure), 0) + COALESCE(octet_length(files), 0) + COALESCE(octet_length(result_schema), 0)), 0)
		FROM tasks WHERE account_id = $1
	UNION ALL SELECT COUNT(*), 0 FROM task_labels WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(COALESCE(octet_length(r.report), 0)), 0)
		FROM tasks t JOIN runs r ON r.task_id = t.id WHERE t.account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(e.data)), 0)
		FROM tasks t JOIN runs r ON r.task_id = t.id JOIN run_events e ON e.run_id = r.id WHERE t.account_id = $1
	UNION ALL SELECT COUNT(*), 0 FROM sessions WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(e.data)), 0)
		FROM sessions s JOIN session_events e ON e.session_id = s.id WHERE s.account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(title) + COALESCE(octet_length(overview), 0) + COALESCE(octet_length(source), 0)), 0)
		FROM plans WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(g.title) + octet_length(g.problem)), 0)
		FROM plans p JOIN plan_groups g ON g.plan_id = p.id WHERE p.account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(title) + octet_length(body)), 0) FROM pulls WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(a.details)), 0)
		FROM pulls p JOIN pull_actions a ON a.pr_id = p.id WHERE p.account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(text)), 0) FROM pulls p JOIN host_reviews r ON r.pr_id = p.id WHERE p.account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(path)), 0) FROM pull_threads WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(body)), 0) FROM pull_comments WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(COALESCE(octet_length(raw), 0) + COALESCE(octet_length(note), 0)), 0)
		FROM review_runs WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(claim) + octet_length(why) + COALESCE(octet_length(how_to_see), 0)
		+ COALESCE(octet_length(suggestion), 0)), 0) FROM review_findings WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(COALESCE(octet_length(output), 0)), 0) FROM ci_runs WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(question) + COALESCE(octet_length(answer), 0)), 0)
		FROM blockers WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(title) + octet_length(body)), 0) FROM escalations WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(title) + octet_length(body)), 0) FROM issues WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(title) + octet_length(body)), 0) FROM tracker_issues WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(title) + octet_length(text)), 0) FROM notifications WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(content)), 0) FROM digests WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(body)), 0) FROM webhook_events WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(COALESCE(octet_length(excerpt), 0)), 0) FROM webhook_attempts WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(COALESCE(octet_length(d.body), 0)), 0)
		FROM sources s JOIN source_deliveries d ON d.source_id = s.id WHERE s.account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(body)), 0) FROM templates WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(value)), 0) FROM prompt_vars WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(prompt)), 0) FROM system_prompts WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(sealed)), 0) FROM secrets WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(title) + octet_length(body)), 0) FROM schedules WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(COALESCE(octet_length(policy_yml), 0)), 0) FROM repos WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(k.body) + octet_length(k.title)), 0)
		FROM repos r JOIN kb_pages k ON k.repo_id = r.id WHERE r.account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(k.body) + octet_length(k.title)), 0)
		FROM repos r JOIN kb_versions k ON k.repo_id = r.id WHERE r.account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(name)), 0) FROM artifacts WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(name) + octet_length(layout)), 0) FROM dashboards WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(spec)), 0) FROM dashboard_widgets WHERE account_id = $1
	UNION ALL SELECT COUNT(*), 0 FROM template_lanes WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(envelope)), 0) FROM provenances WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(body)), 0) FROM idempotency_keys WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(email) + octet_length(login)), 0)
		FROM invitations WHERE kind = 'org_member' AND account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(name) + octet_length(labels)), 0) FROM enrollments WHERE account_id = $1
	UNION ALL SELECT COUNT(*), COALESCE(SUM(octet_length(model)), 0) FROM prices WHERE account_id = $1
	UNION ALL SELECT COUNT(*), 0 FROM tokens WHERE account_id = $1`

var (
	recordsOf = db.Q[recordsRow](`SELECT CAST(SUM(n) AS BIGINT) AS records, CAST(SUM(b) AS BIGINT) AS bytes FROM (` + countedTables + `) AS parts`)
	objectsOf = db.Q[int64](`SELECT CAST((SELECT COALESCE(SUM(size), 0) FROM ci_logs WHERE account_id = $1)
		+ (SELECT COALESCE(SUM(size), 0) FROM lfs_objects WHERE account_id = $1)
		+ (SELECT COALESCE(SUM(size), 0) FROM artifacts WHERE account_id = $1) AS BIGINT) AS bytes`)

	newcomers = db.S(`INSERT INTO account_measures (account_id, due_at) SELECT a.id, $1 FROM accounts a
		WHERE NOT EXISTS (SELECT 1 FROM account_measures m WHERE m.account_id = a.id)`)
	anyNewcomer = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM accounts a
		WHERE NOT EXISTS (SELECT 1 FROM account_measures m WHERE m.account_id = a.id)) AS any_new`)
	anyDue  = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM account_measures WHERE due_at <= $1) AS any_due`)
	takeDue = db.Q[string](`UPDATE account_measures SET due_at = $2 WHERE account_id IN
		(SELECT account_id FROM account_measures WHERE due_at <= $1 ORDER BY due_at LIMIT 10) AND due_at <= $1 RETURNING account_id`)
	received = db.SWith[receivedArgs](`INSERT INTO account_measures (account_id, received, due_at) VALUES (:account_id, :bytes, :now)
		ON CONFLICT (account_id) DO UPDATE SET received = account_measures.received + excluded.received,
		due_at = CASE WHEN account_measures.rest_until < account_measures.due_at THEN account_measures.rest_until
		ELSE account_measures.due_at END`)
	receivedOf = db.Q[int64](`SELECT received FROM account_measures WHERE account_id = $1`)
	measured   = db.SWith[measuredArgs](`UPDATE account_measures SET object_bytes = :object_bytes, record_bytes = :record_bytes,
		records = :records, received = CASE WHEN received > :accounted THEN received - :accounted ELSE 0 END, told = :told,
		measured_at = :measured_at, rest_until = :rest_until, due_at = :due_at WHERE account_id = :account_id`)
	sooner = db.S(`UPDATE account_measures SET due_at = $2 WHERE account_id = $1`)
	reset  = db.S(`UPDATE account_measures SET due_at = $1, rest_until = $1 WHERE due_at > $2 OR rest_until > $2`)
)

// ClockSetBack has what is due by a clock that was set back measured now.
func ClockSetBack(tx *db.Tx) error {
	_, err := reset.Exec(tx, tx.Micros(), db.Micros(tx.Now.Add(longestWait)))
	return err
}
