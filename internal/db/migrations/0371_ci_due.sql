-- +goose Up

-- Heads whose checks are read, reports of checks and outputs of checks are entries of the queues
-- "host_heads", "ci_reports" and "ci_logs". open says of a head and of a report that it has one.
-- due_at, and tries of outputs, are read and written by older releases alone, whose loops leave to
-- the queues what they have not written themselves: a later release drops the columns, and the
-- indexes of those that may be NULL.
INSERT INTO due (queue, key, lane, state, due_at, set_at)
  SELECT 'host_heads', repo_id || '/' || sha, '0' || account_id, 'waits', due_at, due_at - 1800000000
  FROM host_heads WHERE due_at IS NOT NULL;
ALTER TABLE host_heads ADD COLUMN open BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE host_heads SET open = TRUE, due_at = NULL WHERE due_at IS NOT NULL;
CREATE INDEX host_heads_open ON host_heads (repo_id, sha) WHERE open;

INSERT INTO due (queue, key, lane, state, due_at, set_at)
  SELECT 'ci_reports', check_id, '0' || account_id, 'waits', due_at, due_at - 300000000 FROM ci_reports WHERE due_at IS NOT NULL;
ALTER TABLE ci_reports ADD COLUMN open BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE ci_reports SET open = TRUE, due_at = NULL WHERE due_at IS NOT NULL;
CREATE INDEX ci_reports_open ON ci_reports (check_id) WHERE open;

INSERT INTO due (queue, key, lane, state, due_at, set_at, tries)
  SELECT 'ci_logs', id, '0' || account_id, 'waits', due_at, COALESCE(kept_at, due_at - 3600000000),
    CASE WHEN kept_at IS NULL THEN tries ELSE 0 END FROM ci_logs;
DROP INDEX ci_logs_due;
ALTER TABLE ci_logs DROP COLUMN due_at;
ALTER TABLE ci_logs ADD COLUMN due_at BIGINT NOT NULL DEFAULT 9223372036854775807;
