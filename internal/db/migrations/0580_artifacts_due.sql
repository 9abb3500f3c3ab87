-- +goose Up

-- Artifacts are entries of the queue "artifacts", one each until the row goes. due_at is read and
-- written by older releases alone, whose loops leave to the queue what they have not written
-- themselves: a later release drops the column.
INSERT INTO due (queue, key, lane, state, due_at, set_at)
  SELECT 'artifacts', id, '0' || account_id, 'waits', due_at, 0 FROM artifacts;
DROP INDEX artifacts_due;
ALTER TABLE artifacts DROP COLUMN due_at;
ALTER TABLE artifacts ADD COLUMN due_at BIGINT NOT NULL DEFAULT 9223372036854775807;
