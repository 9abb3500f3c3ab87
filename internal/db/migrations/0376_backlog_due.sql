-- +goose Up

-- Imports of backlogs are entries of the queue "backlog". due_at and claim are read and written by
-- older releases alone, whose loops leave to the queue what they have not written themselves: a
-- later release drops both columns.
INSERT INTO due (queue, key, lane, state, due_at, set_at, tries)
  SELECT 'backlog', id, '0' || account_id, 'waits', due_at, created_at, tries FROM backlog_imports WHERE state IN ('queued', 'running');
DROP INDEX backlog_imports_due;
ALTER TABLE backlog_imports DROP COLUMN due_at;
ALTER TABLE backlog_imports ADD COLUMN due_at BIGINT NOT NULL DEFAULT 9223372036854775807;
